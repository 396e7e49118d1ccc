//! The MPI library at hand, loaded at run time, so that one test program serves them all.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
};

use colibri_runner::{AbiFamily, Arguments, Handle, Mpi, MpiConstants, Side};

/// What the command and the file of a family that is tried are called.
pub fn names(family: AbiFamily) -> (&'static str, &'static CStr) {
    match family {
        AbiFamily::OpenMpi => ("openmpi", c"libmpi.so.40"),
        AbiFamily::Mpich => ("mpich", c"libmpich.so.12"),
        AbiFamily::Standard => panic!("no library of {family} is tried"),
    }
}

/// What `MPI_User_function` is.
pub type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);

macro_rules! native {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The runner's table, and what else the tests need of the library.
        #[derive(Clone, Copy)]
        pub struct Library {
            pub family: AbiFamily,
            pub mpi: Mpi,
            pub world: Handle,
            pub number: Handle,
            pub double: Handle,
            pub double_int: Handle,
            pub sum: Handle,
            pub min: Handle,
            pub maxloc: Handle,
            pub no_type: Handle,
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Library {
            /// Of a family.
            pub fn load(family: AbiFamily) -> Self {
                let (_, file) = names(family);
                // SAFETY: an MPI library may be loaded; dlsym may be called.
                unsafe {
                    let there = libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
                    assert!(!there.is_null(), "{file:?} cannot be loaded");
                }
                let named = |symbol: &str| find(&CString::new(symbol).unwrap()) as usize;
                let is_open_mpi = family == AbiFamily::OpenMpi;
                let either = |open_mpi: &str, mpich: usize| match is_open_mpi {
                    true => named(open_mpi),
                    false => mpich,
                };
                let constants = MpiConstants::new(family, find).unwrap();
                // SAFETY: these are the functions of these names.
                let mpi = unsafe { Mpi::load(find, constants) }.unwrap();
                Library {
                    family,
                    mpi,
                    world: either("ompi_mpi_comm_world", 0x4400_0000),
                    number: either("ompi_mpi_uint32_t", 0x4c00_043d),
                    double: either("ompi_mpi_double", 0x4c00_080b),
                    double_int: either("ompi_mpi_double_int", 0x8c00_0001),
                    sum: either("ompi_mpi_op_sum", 0x5800_0003),
                    min: either("ompi_mpi_op_min", 0x5800_0002),
                    maxloc: either("ompi_mpi_op_maxloc", 0x5800_000c),
                    no_type: either("ompi_mpi_datatype_null", 0x0c00_0000),
                    $($name: {
                        let address = named($symbol) as *const c_void;
                        // SAFETY: MPI's function of this name has this type.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "C" fn($($argument),*) -> c_int,
                            >(address)
                        }
                    },)*
                }
            }
        }
    };
}

native! {
    init "MPI_Init" (*mut c_int, *mut c_void);
    finalize "MPI_Finalize" ();
    version "MPI_Get_library_version" (*mut c_char, *mut c_int);
    intercomm_create "MPI_Intercomm_create" (Handle, c_int, Handle, c_int, c_int, *mut Handle);
    op_create "MPI_Op_create" (UserFunction, c_int, *mut Handle);
    op_free "MPI_Op_free" (*mut Handle);
}

/// A symbol of the libraries of this process.
pub fn find(symbol: &CStr) -> *const c_void {
    // SAFETY: the name is a C string; the whole process is searched.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) }
}

pub fn check(code: c_int) {
    assert_eq!(code, 0, "an MPI function failed");
}

impl Library {
    pub fn rank_and_size(&self, comm: Handle) -> (usize, usize) {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a communicator of the test.
        unsafe {
            check((self.mpi.comm_rank)(comm, &mut rank));
            check((self.mpi.comm_size)(comm, &mut size));
        }
        (rank as usize, size as usize)
    }

    /// What it says that it is.
    pub fn version_in_words(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH.
        let (mut text, mut length) = (vec![0_u8; 8192], 0);
        // SAFETY: there is room for the text.
        check(unsafe { (self.version)(text.as_mut_ptr().cast(), &mut length) });
        text.truncate(length as usize);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The parts of `comm` with the same color, by key.
    pub fn split(&self, comm: Handle, color: c_int, key: c_int) -> Handle {
        let mut made = 0;
        // SAFETY: as above.
        check(unsafe { (self.mpi.comm_split)(comm, color, key, &mut made) });
        made
    }

    pub fn free(&self, mut comm: Handle) {
        // SAFETY: as above.
        check(unsafe { (self.mpi.comm_free)(&mut comm) });
    }

    /// The greatest and least of what the ranks say.
    pub fn spread(&self, comm: Handle, mine: u32) -> (u32, u32) {
        let both = [mine, u32::MAX - mine];
        let mut least = [0_u32; 2];
        let (from, into) = (both.as_ptr().cast(), least.as_mut_ptr().cast());
        // SAFETY: two numbers each.
        check(unsafe { (self.mpi.allreduce)(from, into, 2, self.number, self.min, comm) });
        (u32::MAX - least[1], least[0])
    }

    /// The library's own collective.
    pub unsafe fn call(&self, arguments: &Arguments, comm: Handle) -> c_int {
        // SAFETY: the arguments are the test's.
        unsafe { self.mpi.call(arguments, comm) }
    }

    /// A datum of two numbers at these places, in bytes; elements are so far from each other.
    pub fn pair(&self, places: [isize; 2], lower: isize, extent: isize) -> Handle {
        let (mut parts, mut made, lengths) = (0, 0, [1, 1]);
        // SAFETY: arrays of two.
        unsafe {
            let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
            check((self.mpi.type_create_hindexed)(2, lengths, places, self.number, &mut parts));
            check((self.mpi.type_create_resized)(parts, lower, extent, &mut made));
            check((self.mpi.type_free)(&mut parts));
            check((self.mpi.type_commit)(&mut made));
        }
        made
    }

    pub fn free_type(&self, mut datatype: Handle) {
        // SAFETY: made by the test.
        check(unsafe { (self.mpi.type_free)(&mut datatype) });
    }

    pub fn operation(&self, function: UserFunction, is_commutative: bool) -> Handle {
        let mut made = 0;
        // SAFETY: a function of the right type.
        check(unsafe { (self.op_create)(function, c_int::from(is_commutative), &mut made) });
        made
    }
}

/// Arguments that MPI must not look at.
pub fn insignificant(library: &Library) -> Side {
    Side::uniform(ptr::without_provenance_mut(0xdead_0000), -7, library.no_type)
}
