//! The MPI library of the process, found at run time.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt, mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use runner::{Constants, Handle, Mpi};

/// What MPI libraries are called as files; a program that loads MPI itself (mpi4py) keeps it out
/// of the scope in which symbols are searched.
const FILES: [&CStr; 6] = [
    c"libmpi.so.40",
    c"libmpich.so.12",
    c"libmpi.so.12",
    c"libmpi_abi.so.1",
    c"libmpi_abi.so.0",
    c"libmpi_cray.so.12",
];

/// A function that stands behind one of ours, looked up once.
pub struct Behind {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Behind {
    pub const fn new(name: &'static CStr) -> Self {
        Behind { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Where it has been looked up and is there.
    #[inline(always)]
    pub fn known(&self) -> Option<*mut c_void> {
        Some(self.address.load(Ordering::Relaxed)).filter(|address| !address.is_null())
    }

    /// Null where the library has no such function.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look_up() } else { known }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let found = function(self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// A function of the library; null where it has none of this name.
pub fn function(name: &CStr) -> *mut c_void {
    // SAFETY: a C string; RTLD_NEXT searches what was loaded after this library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if next.is_null() { in_files(name) } else { next }
}

/// A variable of the library. A program that isn't position-independent has a copy of its own,
/// which is the one that counts: what is searched first is the program.
fn variable(name: &CStr) -> *mut c_void {
    // SAFETY: a C string.
    let default = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if default.is_null() { in_files(name) } else { default }
}

fn in_files(name: &CStr) -> *mut c_void {
    for file in FILES {
        // SAFETY: C strings; RTLD_NOLOAD only looks for what is loaded already.
        let found = unsafe {
            let library = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            match library.is_null() {
                true => ptr::null_mut(),
                false => libc::dlsym(library, name.as_ptr()),
            }
        };
        if !found.is_null() {
            return found;
        }
    }
    ptr::null_mut()
}

/// The kinds of MPI library, by how their headers define handles and constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Handles are addresses of variables.
    OpenMpi,
    /// Handles are ints: MPICH, Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// The ABI of MPI 5: handles are addresses, named ones are small numbers.
    Standard,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
            Family::Standard => "the ABI of MPI 5",
        })
    }
}

macro_rules! functions {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions of the library that this one calls by itself; their handles are words,
        /// as in [`runner::Mpi`].
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn find() -> Result<Self, String> {
                Ok(Functions {
                    $($name: {
                        let address = function($symbol);
                        if address.is_null() {
                            return Err(format!("the MPI library has no {:?}", $symbol));
                        }
                        // SAFETY: MPI's function of this name has this signature.
                        unsafe {
                            mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> c_int,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

type CopyAttribute =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type DeleteAttribute = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

functions! {
    abort c"PMPI_Abort" (Handle, c_int);
    allgather c"PMPI_Allgather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    allreduce c"PMPI_Allreduce" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    barrier c"PMPI_Barrier" (Handle);
    comm_call_errhandler c"PMPI_Comm_call_errhandler" (Handle, c_int);
    comm_create_keyval c"PMPI_Comm_create_keyval" (CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void);
    comm_delete_attr c"PMPI_Comm_delete_attr" (Handle, c_int);
    comm_free c"PMPI_Comm_free" (*mut Handle);
    comm_free_keyval c"PMPI_Comm_free_keyval" (*mut c_int);
    comm_get_errhandler c"PMPI_Comm_get_errhandler" (Handle, *mut Handle);
    comm_get_parent c"PMPI_Comm_get_parent" (*mut Handle);
    comm_get_attr c"PMPI_Comm_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
    comm_group c"PMPI_Comm_group" (Handle, *mut Handle);
    comm_rank c"PMPI_Comm_rank" (Handle, *mut c_int);
    comm_set_attr c"PMPI_Comm_set_attr" (Handle, c_int, *mut c_void);
    comm_set_errhandler c"PMPI_Comm_set_errhandler" (Handle, Handle);
    comm_size c"PMPI_Comm_size" (Handle, *mut c_int);
    comm_split c"PMPI_Comm_split" (Handle, c_int, c_int, *mut Handle);
    comm_test_inter c"PMPI_Comm_test_inter" (Handle, *mut c_int);
    errhandler_free c"PMPI_Errhandler_free" (*mut Handle);
    gatherv c"PMPI_Gatherv" (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, c_int, Handle);
    gather c"PMPI_Gather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    get_processor_name c"PMPI_Get_processor_name" (*mut c_char, *mut c_int);
    group_free c"PMPI_Group_free" (*mut Handle);
    group_translate_ranks c"PMPI_Group_translate_ranks" (Handle, c_int, *const c_int, Handle, *mut c_int);
    isend c"PMPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    lookup_name c"PMPI_Lookup_name" (*const c_char, Handle, *mut c_char);
    op_commutative c"PMPI_Op_commutative" (Handle, *mut c_int);
    publish_name c"PMPI_Publish_name" (*const c_char, Handle, *const c_char);
    type_commit c"PMPI_Type_commit" (*mut Handle);
    type_dup c"PMPI_Type_dup" (Handle, *mut Handle);
    type_free c"PMPI_Type_free" (*mut Handle);
    type_get_envelope c"PMPI_Type_get_envelope" (Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    type_get_extent c"PMPI_Type_get_extent" (Handle, *mut isize, *mut isize);
    type_get_true_extent c"PMPI_Type_get_true_extent" (Handle, *mut isize, *mut isize);
    type_size_x c"PMPI_Type_size_x" (Handle, *mut i64);
    unpublish_name c"PMPI_Unpublish_name" (*const c_char, Handle, *const c_char);
    wait c"PMPI_Wait" (*mut Handle, *mut c_void);
}

/// The library, with what its header says.
#[derive(Clone, Copy)]
pub struct Library {
    pub family: Family,
    pub call: Functions,
    pub constants: Constants,
    /// The bits of a word that make up a handle: MPICH's are ints, and the rest of the word in
    /// which one is passed may hold anything.
    pub handle_bits: usize,
    pub world: Handle,
    pub own: Handle,
    pub no_comm: Handle,
    pub no_type: Handle,
    pub no_operation: Handle,
    /// `MPI_INFO_NULL`.
    pub no_info: Handle,
    /// `MPI_BAND`.
    pub and: Handle,
    /// `MPI_PROC_NULL`.
    pub no_rank: c_int,
    /// `MPI_ERR_NO_MEM`.
    pub error_memory: c_int,
    /// `MPI_ERR_OTHER`.
    pub error_other: c_int,
    /// Where named operations end; see [`Library::is_named_operation`].
    operations: Operations,
}

/// How named operations are told from the application's own.
#[derive(Clone, Copy)]
enum Operations {
    /// One of these addresses.
    Among([usize; 14]),
    /// These bits of the handle have this value.
    Bits(usize, usize),
    /// Below this number.
    Below(usize),
}

impl Library {
    /// The library that the process has loaded.
    ///
    /// # Errors
    /// None, or one whose header isn't known; says which.
    pub fn find() -> Result<Self, String> {
        let call = Functions::find()?;
        match family()? {
            Family::OpenMpi => open_mpi(call),
            Family::Mpich => Ok(mpich(call)),
            Family::Standard => Ok(standard(call)),
        }
    }

    /// The runner's table.
    ///
    /// # Errors
    /// A function is missing.
    pub fn table(&self) -> Result<Mpi, String> {
        let find = |name: &CStr| {
            let Ok(name) = CString::new([b"P", name.to_bytes()].concat()) else {
                return ptr::null();
            };
            function(&name).cast_const()
        };
        // SAFETY: these are the functions of these names, the constants are of the same library.
        unsafe { Mpi::load(find, self.constants) }.map_err(|missing| missing.to_string())
    }

    /// Whether the operation is one of MPI's own, which are defined for some datatypes only.
    pub fn is_named_operation(&self, operation: Handle) -> bool {
        let operation = operation & self.handle_bits;
        match self.operations {
            Operations::Among(named) => named.contains(&operation),
            Operations::Bits(mask, value) => operation & mask == value,
            Operations::Below(end) => operation < end,
        }
    }
}

fn family() -> Result<Family, String> {
    let address = function(c"PMPI_Get_library_version");
    if address.is_null() {
        return Err("no MPI library of version 3 or later is loaded".into());
    }
    // SAFETY: all-zero is a value of this plain structure.
    let mut place: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: a valid address and a place for the answer, whose name is a C string if it is there.
    let file = unsafe {
        match libc::dladdr(address, &mut place) != 0 && !place.dli_fname.is_null() {
            true => CStr::from_ptr(place.dli_fname).to_string_lossy().into_owned(),
            false => String::new(),
        }
    };
    if file.rsplit('/').next().is_some_and(|name| name.starts_with("libmpi_abi.")) {
        return Ok(Family::Standard);
    }
    // More than any library's MPI_MAX_LIBRARY_VERSION_STRING (256 to 8192).
    let mut text = [0_u8; 1 << 15];
    let mut length: c_int = 0;
    // SAFETY: MPI's function of this name has this signature and writes a C string.
    let text = unsafe {
        let version = mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int,
        >(address);
        version(text.as_mut_ptr(), &mut length);
        CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy()
    };
    if text.starts_with("Open MPI") {
        return Ok(Family::OpenMpi);
    }
    if ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| text.contains(name)) {
        return Ok(Family::Mpich);
    }
    let line = text.lines().next().unwrap_or_default();
    Err(format!("the MPI library is none of those that are known (it says '{line}')"))
}

fn open_mpi(call: Functions) -> Result<Library, String> {
    let at = |name: &CStr| match variable(name) {
        address if address.is_null() => Err(format!("Open MPI has no {name:?}")),
        address => Ok(address.addr()),
    };
    let operations = Operations::Among([
        at(c"ompi_mpi_op_max")?,
        at(c"ompi_mpi_op_min")?,
        at(c"ompi_mpi_op_sum")?,
        at(c"ompi_mpi_op_prod")?,
        at(c"ompi_mpi_op_land")?,
        at(c"ompi_mpi_op_band")?,
        at(c"ompi_mpi_op_lor")?,
        at(c"ompi_mpi_op_bor")?,
        at(c"ompi_mpi_op_lxor")?,
        at(c"ompi_mpi_op_bxor")?,
        at(c"ompi_mpi_op_maxloc")?,
        at(c"ompi_mpi_op_minloc")?,
        at(c"ompi_mpi_op_replace")?,
        at(c"ompi_mpi_op_no_op")?,
    ]);
    Ok(Library {
        family: Family::OpenMpi,
        call,
        constants: Constants {
            in_place: 1,
            status_ignore: 0,
            byte: at(c"ompi_mpi_byte")?,
            packed: at(c"ompi_mpi_packed")?,
            bitwise_or: at(c"ompi_mpi_op_bor")?,
            errors_return: at(c"ompi_mpi_errors_return")?,
        },
        handle_bits: usize::MAX,
        world: at(c"ompi_mpi_comm_world")?,
        own: at(c"ompi_mpi_comm_self")?,
        no_comm: at(c"ompi_mpi_comm_null")?,
        no_type: at(c"ompi_mpi_datatype_null")?,
        no_operation: at(c"ompi_mpi_op_null")?,
        no_info: at(c"ompi_mpi_info_null")?,
        and: at(c"ompi_mpi_op_band")?,
        no_rank: -2,
        error_memory: 39,
        error_other: 16,
        operations,
    })
}

fn mpich(call: Functions) -> Library {
    Library {
        family: Family::Mpich,
        call,
        constants: Constants {
            in_place: usize::MAX,
            status_ignore: 1,
            byte: 0x4c00_010d,
            packed: 0x4c00_010f,
            bitwise_or: 0x5800_0008,
            errors_return: 0x5400_0001,
        },
        handle_bits: u32::MAX as usize,
        world: 0x4400_0000,
        own: 0x4400_0001,
        no_comm: 0x0400_0000,
        no_type: 0x0c00_0000,
        no_operation: 0x1800_0000,
        no_info: 0x1c00_0000,
        and: 0x5800_0006,
        no_rank: -1,
        error_memory: 34,
        error_other: 15,
        // The two highest bits of a handle are 01 in what is built in.
        operations: Operations::Bits(0xc000_0000, 0x4000_0000),
    }
}

fn standard(call: Functions) -> Library {
    Library {
        family: Family::Standard,
        call,
        constants: Constants {
            in_place: 1,
            status_ignore: 0,
            byte: 0x247,
            packed: 0x207,
            bitwise_or: 0x29,
            errors_return: 0x143,
        },
        handle_bits: usize::MAX,
        world: 0x101,
        own: 0x102,
        no_comm: 0x100,
        no_type: 0x200,
        no_operation: 0x20,
        no_info: 0x130,
        and: 0x28,
        no_rank: -3,
        error_memory: 39,
        error_other: 16,
        // Named handles of all kinds fit into ten bits.
        operations: Operations::Below(1 << 10),
    }
}
