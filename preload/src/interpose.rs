//! The functions that stand before the MPI library's.
//!
//! Each is there twice, as `MPI_X` and as `PMPI_X`: Open MPI's Fortran goes straight to the
//! second. What they go on to is the library's `PMPI_X`, so that no call comes here twice.
//!
//! C's arguments are words or ints, whatever the library calls their types; MPICH's handles are
//! ints in words whose upper half may hold anything.

use std::{
    ffi::{c_char, c_int, c_void},
    mem,
};

use runner::{Arguments, Block, Counts, Handle, Reduction};

use crate::{
    carry_out, communicators, freed_communicators,
    job::JobContext,
    library::{self, LibraryFunction},
    lifetime,
    say::say,
};

type ReceiveAddress = *mut c_void;
type SendAddress = *const c_void;

/// Counts per rank: `int` or `MPI_Count`.
trait CountType: Copy {
    fn counts(array: *const Self) -> Counts;
}

impl CountType for c_int {
    fn counts(array: *const Self) -> Counts {
        Counts::Int(array)
    }
}

impl CountType for i64 {
    fn counts(array: *const Self) -> Counts {
        Counts::Large(array)
    }
}

fn block(buffer: SendAddress, count: impl Into<i64>, datatype: Handle) -> Block {
    Block { buffer: buffer.cast_mut(), count: count.into(), datatype }
}

fn reduction(
    send: SendAddress,
    receive: ReceiveAddress,
    datatype: Handle,
    operation: Handle,
) -> Reduction {
    Reduction { send, receive, datatype, operation }
}

/// The library has no such function: by the one with small counts, if it has that.
///
/// # Safety
/// The arguments must be the application's. Nobody checks that counts of 64 bits are not those of an inter-communicator, as
/// [`library::call_classic`] demands.
#[cold]
unsafe fn without(name: &str, arguments: Arguments, comm: Handle) -> c_int {
    // SAFETY: the arguments are the application's (contract of this function), counts of 64 bits apart (see
    // above).
    if let Some(code) = unsafe { library::call_classic(&arguments, comm) } {
        return code;
    }
    say(&format!("the MPI library has no {name}"));
    match JobContext::current() {
        Some(job) => {
            let code = job.library.error_other;
            // SAFETY: the communicator is the application's.
            unsafe { (job.library.mpi.comm_call_errhandler)(comm, code) };
            code
        }
        None => std::process::abort(),
    }
}

/// Defines both functions for one collective. `N` is the type of its counts.
macro_rules! catch {
    ($($mpi:ident $pmpi:ident ($($name:ident: $type:ty),*) $arguments:expr;)*) => {$(
        catch!(@function $mpi $pmpi ($($name: $type),*) $arguments);
        catch!(@function $pmpi $pmpi ($($name: $type),*) $arguments);
    )*};
    (@function $mpi:ident $pmpi:ident ($($name:ident: $type:ty),*) $arguments:expr) => {
        /// Chooses and carries out, or goes on to the MPI library's function.
        ///
        /// # Safety
        /// That function's own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi($($name: $type,)* comm: Handle) -> c_int {
            static LIBRARY_FUNCTION: LibraryFunction = LibraryFunction::new(catch!(@c $pmpi));
            type Function = unsafe extern "C" fn($($type,)* Handle) -> c_int;
            #[allow(clippy::too_many_arguments, reason = "MPI's function has as many")]
            unsafe fn library($($name: $type,)* comm: Handle) -> c_int {
                let behind = LIBRARY_FUNCTION.address();
                // SAFETY: the arguments are the application's; what is behind is the library's
                // function of this name, whose signature this is.
                unsafe {
                    if behind.is_null() {
                        return without(stringify!($pmpi), $arguments, comm);
                    }
                    mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm)
                }
            }
            #[inline(never)]
            #[allow(clippy::too_many_arguments, reason = "MPI's function has as many")]
            unsafe extern "C" fn chosen($($name: $type,)* comm: Handle) -> c_int {
                // SAFETY: the arguments are the application's.
                unsafe {
                    match carry_out::choose($arguments, comm) {
                        None => library($($name,)* comm),
                        Some(call) => call.carry_out(&move || library($($name,)* comm)),
                    }
                }
            }
            // SAFETY: the arguments are the application's; as in `library`.
            unsafe {
                match LIBRARY_FUNCTION.known() {
                    Some(behind) if carry_out::is_left_alone(&$arguments, comm) => {
                        mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm)
                    }
                    _ => chosen($($name,)* comm),
                }
            }
        }
    };
    (@c $name:ident) => {
        match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("an identifier holds no zero byte"),
        }
    };
}

/// All collectives with counts: their names here, arguments without the communicator, and what
/// they are to the rest of this library.
macro_rules! with_counts {
    ($allgather:ident $p_allgather:ident $allreduce:ident $p_allreduce:ident
     $alltoall:ident $p_alltoall:ident $bcast:ident $p_bcast:ident $exscan:ident $p_exscan:ident
     $gather:ident $p_gather:ident $reduce:ident $p_reduce:ident
     $reduce_scatter:ident $p_reduce_scatter:ident
     $reduce_scatter_block:ident $p_reduce_scatter_block:ident
     $scan:ident $p_scan:ident $scatter:ident $p_scatter:ident) => {
        catch! {
            $allgather $p_allgather (send: SendAddress, scount: N, stype: Handle, receive: ReceiveAddress, rcount: N, rtype: Handle)
                Arguments::Allgather { send: block(send, scount, stype), receive: block(receive, rcount, rtype) };
            $allreduce $p_allreduce (send: SendAddress, receive: ReceiveAddress, count: N, datatype: Handle, op: Handle)
                Arguments::Allreduce { data: reduction(send, receive, datatype, op), count: count.into() };
            $alltoall $p_alltoall (send: SendAddress, scount: N, stype: Handle, receive: ReceiveAddress, rcount: N, rtype: Handle)
                Arguments::Alltoall { send: block(send, scount, stype), receive: block(receive, rcount, rtype) };
            $bcast $p_bcast (buffer: ReceiveAddress, count: N, datatype: Handle, root: c_int)
                Arguments::Bcast { data: block(buffer, count, datatype), root };
            $exscan $p_exscan (send: SendAddress, receive: ReceiveAddress, count: N, datatype: Handle, op: Handle)
                Arguments::Exscan { data: reduction(send, receive, datatype, op), count: count.into() };
            $gather $p_gather (send: SendAddress, scount: N, stype: Handle, receive: ReceiveAddress, rcount: N, rtype: Handle, root: c_int)
                Arguments::Gather { send: block(send, scount, stype), receive: block(receive, rcount, rtype), root };
            $reduce $p_reduce (send: SendAddress, receive: ReceiveAddress, count: N, datatype: Handle, op: Handle, root: c_int)
                Arguments::Reduce { data: reduction(send, receive, datatype, op), count: count.into(), root };
            $reduce_scatter $p_reduce_scatter (send: SendAddress, receive: ReceiveAddress, counts: *const N, datatype: Handle, op: Handle)
                Arguments::ReduceScatter { data: reduction(send, receive, datatype, op), counts: N::counts(counts) };
            $reduce_scatter_block $p_reduce_scatter_block (send: SendAddress, receive: ReceiveAddress, count: N, datatype: Handle, op: Handle)
                Arguments::ReduceScatterBlock { data: reduction(send, receive, datatype, op), count: count.into() };
            $scan $p_scan (send: SendAddress, receive: ReceiveAddress, count: N, datatype: Handle, op: Handle)
                Arguments::Scan { data: reduction(send, receive, datatype, op), count: count.into() };
            $scatter $p_scatter (send: SendAddress, scount: N, stype: Handle, receive: ReceiveAddress, rcount: N, rtype: Handle, root: c_int)
                Arguments::Scatter { send: block(send, scount, stype), receive: block(receive, rcount, rtype), root };
        }
    };
}

catch! {
    MPI_Barrier PMPI_Barrier () Arguments::Barrier;
}

/// The functions of old.
mod classic {
    use super::*;
    type N = c_int;
    with_counts! {
        MPI_Allgather PMPI_Allgather MPI_Allreduce PMPI_Allreduce MPI_Alltoall PMPI_Alltoall
        MPI_Bcast PMPI_Bcast MPI_Exscan PMPI_Exscan MPI_Gather PMPI_Gather
        MPI_Reduce PMPI_Reduce MPI_Reduce_scatter PMPI_Reduce_scatter
        MPI_Reduce_scatter_block PMPI_Reduce_scatter_block MPI_Scan PMPI_Scan
        MPI_Scatter PMPI_Scatter
    }
}

/// Those with counts of type `MPI_Count`.
mod large {
    use super::*;
    type N = i64;
    with_counts! {
        MPI_Allgather_c PMPI_Allgather_c MPI_Allreduce_c PMPI_Allreduce_c
        MPI_Alltoall_c PMPI_Alltoall_c MPI_Bcast_c PMPI_Bcast_c MPI_Exscan_c PMPI_Exscan_c
        MPI_Gather_c PMPI_Gather_c MPI_Reduce_c PMPI_Reduce_c
        MPI_Reduce_scatter_c PMPI_Reduce_scatter_c
        MPI_Reduce_scatter_block_c PMPI_Reduce_scatter_block_c MPI_Scan_c PMPI_Scan_c
        MPI_Scatter_c PMPI_Scatter_c
    }
}

/// Defines both functions for one beside which this library does something of its own.
macro_rules! border {
    ($($mpi:ident $pmpi:ident ($($name:ident: $type:ty),*)
        $before:expr, $after:expr, $at_end:expr;)*) => {$(
        border!(@function $mpi $pmpi ($($name: $type),*) $before, $after, $at_end);
        border!(@function $pmpi $pmpi ($($name: $type),*) $before, $after, $at_end);
    )*};
    (@function $mpi:ident $pmpi:ident ($($name:ident: $type:ty),*)
        $before:expr, $after:expr, $at_end:expr) => {
        /// The MPI library's function, with what this library does beside.
        ///
        /// # Safety
        /// That function's own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi($($name: $type),*) -> c_int {
            static LIBRARY_FUNCTION: LibraryFunction = LibraryFunction::new(catch!(@c $pmpi));
            type Function = unsafe extern "C" fn($($type),*) -> c_int;
            let behind = LIBRARY_FUNCTION.address();
            if behind.is_null() {
                say(concat!("there is no MPI library with ", stringify!($pmpi)));
                std::process::abort();
            }
            // SAFETY: what is behind is the library's function of this name, whose signature this
            // is; what is beside wants to be called here.
            unsafe {
                $before;
                let code = mem::transmute::<ReceiveAddress, Function>(behind)($($name),*);
                if code == 0 {
                    $after;
                }
                $at_end;
                code
            }
        }
    };
}

/// Nothing is to be done beside.
fn nothing() {}

border! {
    MPI_Init PMPI_Init (argc: *mut c_int, argv: *mut *mut *mut c_char)
        nothing(), lifetime::begin(), nothing();
    MPI_Init_thread PMPI_Init_thread
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int)
        nothing(), lifetime::begin(), nothing();
    MPI_Finalize PMPI_Finalize () lifetime::end(), nothing(), nothing();
    MPI_Intercomm_merge PMPI_Intercomm_merge (inter: Handle, high: c_int, merged: *mut Handle)
        communicators::merging(), nothing(), nothing();
    MPI_Comm_free PMPI_Comm_free (comm: *mut Handle)
        freed_communicators::begin(comm), nothing(), freed_communicators::end();
    MPI_Comm_disconnect PMPI_Comm_disconnect (comm: *mut Handle)
        freed_communicators::begin(comm), nothing(), freed_communicators::end();
}
