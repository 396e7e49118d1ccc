//! An MPI library, loaded at run time: its collectives with the runner's arguments, and what else
//! the tests call. The test program links none, so that it runs on each.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem::transmute_copy,
};

use colibri_runner::{AbiFamily, Arguments, Handle, Mpi, MpiConstants};

/// A user-defined operation.
pub type UserOperation = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);

/// Handles and constants that the headers of MPI libraries define differently.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    pub world: Handle,
    pub number: Handle,
    pub sum: Handle,
    pub any_source: c_int,
    pub request_null: Handle,
}

/// A library in use.
pub struct Library {
    library: *mut c_void,
    pub names: Names,
    pub constants: MpiConstants,
}

// SAFETY: an address of a loaded library, and numbers.
unsafe impl Sync for Library {}

pub const ANY_TAG: c_int = -1;
pub const THREAD_MULTIPLE: c_int = 3;

/// Two of every four ranks on one node, the other two on another.
unsafe extern "C" fn processor_name(name: *mut c_char, length: *mut c_int) -> c_int {
    let launchers = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"];
    let rank = launchers.iter().find_map(|name| std::env::var(name).ok()).unwrap();
    let node = rank.parse::<u8>().unwrap() % 4 / 2;
    unsafe {
        *name = (b'0' + node) as c_char;
        *length = 1;
    }
    0
}

impl Library {
    /// By the name of its file.
    pub fn load(file: &str) -> Self {
        let name = CString::new(file).unwrap();
        // Open MPI's plug-ins look for its symbols among the global ones.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "{file} cannot be loaded");
        let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) } as Handle;
        let is_open_mpi = symbol(c"ompi_mpi_byte") != 0;
        let (names, family) = match is_open_mpi {
            true => (
                Names {
                    world: symbol(c"ompi_mpi_comm_world"),
                    number: symbol(c"ompi_mpi_uint32_t"),
                    sum: symbol(c"ompi_mpi_op_sum"),
                    any_source: -1,
                    request_null: symbol(c"ompi_request_null"),
                },
                AbiFamily::OpenMpi,
            ),
            false => (
                Names {
                    world: 0x4400_0000,
                    number: 0x4c00_0406,
                    sum: 0x5800_0003,
                    any_source: -2,
                    request_null: 0x2c00_0000,
                },
                AbiFamily::Mpich,
            ),
        };
        let constants = MpiConstants::new(family, |name| symbol(name) as *const c_void).unwrap();
        Library { library, names, constants }
    }

    /// Whether it is MPICH or one of its kin.
    pub fn is_mpich(&self) -> bool {
        self.constants.in_place == usize::MAX
    }

    /// The runner's table.
    pub fn table(&self) -> Mpi {
        let find = |name: &CStr| match name.to_bytes() {
            b"MPI_Get_processor_name" => processor_name as *const c_void,
            _ => unsafe { libc::dlsym(self.library, name.as_ptr()) }.cast_const(),
        };
        unsafe { Mpi::load(find, self.constants) }.unwrap()
    }

    /// A function, of type `F`.
    pub fn function<F: Copy>(&self, name: &CStr) -> F {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        let address = unsafe { libc::dlsym(self.library, name.as_ptr()) };
        assert!(!address.is_null(), "the library has no {name:?}");
        unsafe { transmute_copy(&address) }
    }
}

/// Calls a function of the library by name; it must return `MPI_SUCCESS`. Types of arguments are
/// written where they are not those of the values.
macro_rules! call {
    ($library:expr, $name:expr $(, $value:expr => $type:ty)* $(,)?) => {{
        let function: unsafe extern "C" fn($($type),*) -> c_int = $library.function($name);
        let code = unsafe { function($($value),*) };
        assert_eq!(code, 0, "{:?}", $name);
    }};
}
pub(crate) use call;

impl Library {
    /// The library's own collective.
    pub fn collective(&self, arguments: &Arguments, comm: Handle) {
        let code = unsafe { self.table().call(arguments, comm) };
        assert_eq!(code, 0, "{arguments:?}");
    }
}
