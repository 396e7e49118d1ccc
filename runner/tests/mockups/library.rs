//! The MPI library at hand, loaded at run time, so that one test program serves them all.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
};

use colibri_runner::{Arguments, Block, Constants, Handle, Reduction};

/// A family of MPI libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    Mpich,
}

impl Family {
    pub const ALL: [Family; 2] = [Family::OpenMpi, Family::Mpich];

    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }

    fn file(self) -> &'static CStr {
        match self {
            Family::OpenMpi => c"libmpi.so.40",
            Family::Mpich => c"libmpich.so.12",
        }
    }
}

/// What `MPI_User_function` is.
pub type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);

macro_rules! native {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The library's functions and constants.
        #[derive(Clone, Copy)]
        pub struct Library {
            pub family: Family,
            pub constants: Constants,
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
            pub fn load(family: Family) -> Self {
                let file = family.file();
                // SAFETY: an MPI library may be loaded; dlsym may be called.
                unsafe {
                    let there = libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
                    assert!(!there.is_null(), "{file:?} cannot be loaded");
                }
                let named = |symbol: &str| find(&CString::new(symbol).unwrap()) as usize;
                let is_open_mpi = family == Family::OpenMpi;
                let either = |open_mpi: &str, mpich: usize| match is_open_mpi {
                    true => named(open_mpi),
                    false => mpich,
                };
                Library {
                    family,
                    constants: Constants {
                        in_place: if is_open_mpi { 1 } else { usize::MAX },
                        status_ignore: if is_open_mpi { 0 } else { 1 },
                        byte: either("ompi_mpi_byte", 0x4c00_010d),
                        bitwise_or: either("ompi_mpi_op_bor", 0x5800_0008),
                        packed: either("ompi_mpi_packed", 0x4c00_010f),
                        errors_return: either("ompi_mpi_errors_return", 0x5400_0001),
                    },
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
    abort "MPI_Abort" (Handle, c_int);
    comm_free "MPI_Comm_free" (*mut Handle);
    comm_rank "MPI_Comm_rank" (Handle, *mut c_int);
    comm_size "MPI_Comm_size" (Handle, *mut c_int);
    comm_split "MPI_Comm_split" (Handle, c_int, c_int, *mut Handle);
    intercomm_create "MPI_Intercomm_create" (Handle, c_int, Handle, c_int, c_int, *mut Handle);
    op_create "MPI_Op_create" (UserFunction, c_int, *mut Handle);
    op_free "MPI_Op_free" (*mut Handle);
    type_commit "MPI_Type_commit" (*mut Handle);
    type_hindexed "MPI_Type_create_hindexed" (c_int, *const c_int, *const isize, Handle, *mut Handle);
    type_resized "MPI_Type_create_resized" (Handle, isize, isize, *mut Handle);
    type_free "MPI_Type_free" (*mut Handle);
    allgather "MPI_Allgather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    allreduce "MPI_Allreduce" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    alltoall "MPI_Alltoall" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    bcast "MPI_Bcast" (*mut c_void, c_int, Handle, c_int, Handle);
    gather "MPI_Gather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    reduce "MPI_Reduce" (*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle);
    reduce_scatter "MPI_Reduce_scatter" (*const c_void, *mut c_void, *const c_int, Handle, Handle, Handle);
    reduce_scatter_block "MPI_Reduce_scatter_block" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    scan "MPI_Scan" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    scatter "MPI_Scatter" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
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
            check((self.comm_rank)(comm, &mut rank));
            check((self.comm_size)(comm, &mut size));
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
        check(unsafe { (self.comm_split)(comm, color, key, &mut made) });
        made
    }

    pub fn free(&self, mut comm: Handle) {
        // SAFETY: as above.
        check(unsafe { (self.comm_free)(&mut comm) });
    }

    /// The greatest and least of what the ranks say.
    pub fn spread(&self, comm: Handle, mine: u32) -> (u32, u32) {
        let both = [mine, u32::MAX - mine];
        let mut least = [0_u32; 2];
        let (from, into) = (both.as_ptr().cast(), least.as_mut_ptr().cast());
        // SAFETY: two numbers each.
        check(unsafe { (self.allreduce)(from, into, 2, self.number, self.min, comm) });
        (u32::MAX - least[1], least[0])
    }

    /// The library's own collective.
    pub unsafe fn call(&self, arguments: &Arguments, comm: Handle) -> c_int {
        let whole = |block: &Block| (block.buffer, block.count as c_int, block.datatype);
        let operands = |data: &Reduction| (data.send, data.receive, data.datatype, data.operation);
        // SAFETY: the arguments are the test's.
        unsafe {
            match arguments {
                Arguments::Allgather { send, receive } => {
                    let ((from, n, a), (into, m, b)) = (whole(send), whole(receive));
                    (self.allgather)(from, n, a, into, m, b, comm)
                }
                Arguments::Alltoall { send, receive } => {
                    let ((from, n, a), (into, m, b)) = (whole(send), whole(receive));
                    (self.alltoall)(from, n, a, into, m, b, comm)
                }
                Arguments::Gather { send, receive, root } => {
                    let ((from, n, a), (into, m, b)) = (whole(send), whole(receive));
                    (self.gather)(from, n, a, into, m, b, *root, comm)
                }
                Arguments::Scatter { send, receive, root } => {
                    let ((from, n, a), (into, m, b)) = (whole(send), whole(receive));
                    (self.scatter)(from, n, a, into, m, b, *root, comm)
                }
                Arguments::Bcast { data, root } => {
                    let (buffer, n, datatype) = whole(data);
                    (self.bcast)(buffer, n, datatype, *root, comm)
                }
                Arguments::Allreduce { data, count } => {
                    let (from, into, datatype, op) = operands(data);
                    (self.allreduce)(from, into, *count as c_int, datatype, op, comm)
                }
                Arguments::Scan { data, count } => {
                    let (from, into, datatype, op) = operands(data);
                    (self.scan)(from, into, *count as c_int, datatype, op, comm)
                }
                Arguments::Reduce { data, count, root } => {
                    let (from, into, datatype, op) = operands(data);
                    (self.reduce)(from, into, *count as c_int, datatype, op, *root, comm)
                }
                Arguments::ReduceScatterBlock { data, count } => {
                    let (from, into, datatype, op) = operands(data);
                    (self.reduce_scatter_block)(from, into, *count as c_int, datatype, op, comm)
                }
                Arguments::ReduceScatter { data, counts } => {
                    let (from, into, datatype, op) = operands(data);
                    let colibri_runner::Counts::Int(counts) = *counts else { unreachable!() };
                    (self.reduce_scatter)(from, into, counts, datatype, op, comm)
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// A datum of two numbers at these places, in bytes; elements are so far from each other.
    pub fn pair(&self, places: [isize; 2], lower: isize, extent: isize) -> Handle {
        let (mut parts, mut made, lengths) = (0, 0, [1, 1]);
        // SAFETY: arrays of two.
        unsafe {
            let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
            check((self.type_hindexed)(2, lengths, places, self.number, &mut parts));
            check((self.type_resized)(parts, lower, extent, &mut made));
            check((self.type_free)(&mut parts));
            check((self.type_commit)(&mut made));
        }
        made
    }

    pub fn free_type(&self, mut datatype: Handle) {
        // SAFETY: made by the test.
        check(unsafe { (self.type_free)(&mut datatype) });
    }

    pub fn operation(&self, function: UserFunction, is_commutative: bool) -> Handle {
        let mut made = 0;
        // SAFETY: a function of the right type.
        check(unsafe { (self.op_create)(function, c_int::from(is_commutative), &mut made) });
        made
    }
}

/// Arguments that MPI must not look at.
pub fn insignificant(library: &Library) -> Block {
    Block { buffer: ptr::without_provenance_mut(0xdead_0000), count: -7, datatype: library.no_type }
}
