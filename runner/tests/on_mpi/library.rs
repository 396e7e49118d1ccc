//! An MPI library, loaded at run time: its collectives with the runner's arguments, and what else
//! the tests call. The test program links none, so that it runs on each.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    mem::transmute_copy,
};

use colibri_runner::{Arguments, Block, Blocks, Constants, Counts, Handle, Mpi};

/// A user-defined operation.
pub type Operation = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);

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
    pub constants: Constants,
}

// SAFETY: an address of a loaded library, and numbers.
unsafe impl Sync for Library {}

pub const ANY_TAG: c_int = -1;
pub const THREAD_MULTIPLE: c_int = 3;

impl Library {
    /// By the name of its file.
    pub fn load(file: &str) -> Self {
        let name = CString::new(file).unwrap();
        // Open MPI's plug-ins look for its symbols among the global ones.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "{file} cannot be loaded");
        let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) } as Handle;
        let is_open_mpi = symbol(c"ompi_mpi_byte") != 0;
        let (names, constants) = match is_open_mpi {
            true => (
                Names {
                    world: symbol(c"ompi_mpi_comm_world"),
                    number: symbol(c"ompi_mpi_uint32_t"),
                    sum: symbol(c"ompi_mpi_op_sum"),
                    any_source: -1,
                    request_null: symbol(c"ompi_request_null"),
                },
                Constants {
                    in_place: 1,
                    status_ignore: 0,
                    byte: symbol(c"ompi_mpi_byte"),
                    packed: symbol(c"ompi_mpi_packed"),
                    bitwise_or: symbol(c"ompi_mpi_op_bor"),
                    errors_return: symbol(c"ompi_mpi_errors_return"),
                },
            ),
            false => (
                Names {
                    world: 0x4400_0000,
                    number: 0x4c00_0406,
                    sum: 0x5800_0003,
                    any_source: -2,
                    request_null: 0x2c00_0000,
                },
                Constants {
                    in_place: usize::MAX,
                    status_ignore: 1,
                    byte: 0x4c00_010d,
                    packed: 0x4c00_010f,
                    bitwise_or: 0x5800_0008,
                    errors_return: 0x5400_0001,
                },
            ),
        };
        Library { library, names, constants }
    }

    /// Whether it is MPICH or one of its kin.
    pub fn is_mpich(&self) -> bool {
        self.constants.in_place == usize::MAX
    }

    /// The runner's table.
    pub fn table(&self) -> Mpi {
        let find = |name: &CStr| unsafe { libc::dlsym(self.library, name.as_ptr()) }.cast_const();
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

type Pointer = *const c_void;

/// One side of a call as C has it.
fn side(block: &Block) -> (Pointer, c_int, Handle) {
    (block.buffer.cast_const(), block.count as c_int, block.datatype)
}

fn ints(counts: Counts) -> *const c_int {
    match counts {
        Counts::Int(ints) => ints,
        Counts::Large(_) => panic!("the classic functions have counts of int"),
    }
}

fn sides(blocks: &Blocks) -> (Pointer, *const c_int, *const c_int, Handle) {
    let Blocks { buffer, counts, displacements, datatype } = *blocks;
    (buffer.cast_const(), ints(counts), ints(displacements), datatype)
}

impl Library {
    /// The library's own collective.
    pub fn collective(&self, arguments: &Arguments, comm: Handle) {
        type V = *const c_int;
        match arguments {
            Arguments::Barrier => call!(self, c"MPI_Barrier", comm => Handle),
            Arguments::Bcast { data, root } => {
                let (buffer, count, kind) = side(data);
                call!(self, c"MPI_Bcast", buffer => Pointer, count => c_int, kind => Handle,
                    *root => c_int, comm => Handle);
            }
            Arguments::Allgather { send, receive } => {
                let (s, r) = (side(send), side(receive));
                call!(self, c"MPI_Allgather", s.0 => Pointer, s.1 => c_int, s.2 => Handle,
                    r.0 => Pointer, r.1 => c_int, r.2 => Handle, comm => Handle);
            }
            Arguments::Alltoall { send, receive } => {
                let (s, r) = (side(send), side(receive));
                call!(self, c"MPI_Alltoall", s.0 => Pointer, s.1 => c_int, s.2 => Handle,
                    r.0 => Pointer, r.1 => c_int, r.2 => Handle, comm => Handle);
            }
            Arguments::Gather { send, receive, root } => {
                let (s, r) = (side(send), side(receive));
                call!(self, c"MPI_Gather", s.0 => Pointer, s.1 => c_int, s.2 => Handle,
                    r.0 => Pointer, r.1 => c_int, r.2 => Handle, *root => c_int, comm => Handle);
            }
            Arguments::Scatter { send, receive, root } => {
                let (s, r) = (side(send), side(receive));
                call!(self, c"MPI_Scatter", s.0 => Pointer, s.1 => c_int, s.2 => Handle,
                    r.0 => Pointer, r.1 => c_int, r.2 => Handle, *root => c_int, comm => Handle);
            }
            Arguments::Gatherv { send, receive, root } => {
                let (s, r) = (side(send), sides(receive));
                call!(self, c"MPI_Gatherv", s.0 => Pointer, s.1 => c_int, s.2 => Handle,
                    r.0 => Pointer, r.1 => V, r.2 => V, r.3 => Handle, *root => c_int,
                    comm => Handle);
            }
            Arguments::Scatterv { send, receive, root } => {
                let (s, r) = (sides(send), side(receive));
                call!(self, c"MPI_Scatterv", s.0 => Pointer, s.1 => V, s.2 => V, s.3 => Handle,
                    r.0 => Pointer, r.1 => c_int, r.2 => Handle, *root => c_int, comm => Handle);
            }
            Arguments::Reduce { data, count, root } => {
                call!(self, c"MPI_Reduce", data.send => Pointer, data.receive => *mut c_void,
                    *count as c_int => c_int, data.datatype => Handle, data.operation => Handle,
                    *root => c_int, comm => Handle);
            }
            Arguments::ReduceScatter { data, counts } => {
                call!(self, c"MPI_Reduce_scatter", data.send => Pointer,
                    data.receive => *mut c_void, ints(*counts) => V, data.datatype => Handle,
                    data.operation => Handle, comm => Handle);
            }
            Arguments::Allreduce { data, count }
            | Arguments::Exscan { data, count }
            | Arguments::ReduceScatterBlock { data, count }
            | Arguments::Scan { data, count } => {
                let name = match arguments {
                    Arguments::Allreduce { .. } => c"MPI_Allreduce",
                    Arguments::Exscan { .. } => c"MPI_Exscan",
                    Arguments::Scan { .. } => c"MPI_Scan",
                    _ => c"MPI_Reduce_scatter_block",
                };
                call!(self, name, data.send => Pointer, data.receive => *mut c_void,
                    *count as c_int => c_int, data.datatype => Handle, data.operation => Handle,
                    comm => Handle);
            }
            Arguments::Allgatherv { .. } | Arguments::Alltoallv { .. } => {
                panic!("no algorithms of ours are compared with these")
            }
        }
    }
}
