//! Functions with large counts where the MPI library has none.
//!
//! A program that looks for them by name (mpi4py does) finds ours, so that they have to work: as the
//! classic functions, with what an `int` holds.

use std::{
    ffi::{CStr, c_int, c_void},
    mem,
};

use runner::{Arguments, Counts, Handle};

use crate::library::function;

type In = *const c_void;
type Out = *mut c_void;

/// More than an `int` holds is a wrong count to the library, which says so unless the argument
/// doesn't count on this rank.
fn int(count: i64) -> c_int {
    c_int::try_from(count).unwrap_or(-1)
}

fn behind(name: &CStr) -> Option<*mut c_void> {
    Some(function(name)).filter(|address| !address.is_null())
}

macro_rules! call {
    ($name:literal, $comm:ident, $($argument:expr => $type:ty),*) => {{
        type Function = unsafe extern "C" fn($($type,)* Handle) -> c_int;
        let behind = behind($name)?;
        // SAFETY: the library's function of this name has this signature.
        unsafe { mem::transmute::<*mut c_void, Function>(behind)($($argument,)* $comm) }
    }};
}

macro_rules! move_data {
    ($name:literal, $comm:ident, $send:ident, $receive:ident $(, $root:expr)?) => {
        call!($name, $comm,
            $send.buffer.cast_const() => In, int($send.count) => c_int, $send.datatype => Handle,
            $receive.buffer => Out, int($receive.count) => c_int, $receive.datatype => Handle
            $(, $root => c_int)?)
    };
}

macro_rules! combine {
    ($name:literal, $comm:ident, $data:ident, $count:expr => $type:ty $(, $root:expr)?) => {
        call!($name, $comm,
            $data.send => In, $data.receive => Out, $count => $type, $data.datatype => Handle,
            $data.operation => Handle $(, $root => c_int)?)
    };
}

/// The code of the library's classic function; nothing if it lacks that, too.
///
/// # Safety
/// The arguments must be the application's.
pub unsafe fn classic(arguments: &Arguments, comm: Handle) -> Option<c_int> {
    Some(match arguments {
        Arguments::Allgather { send, receive } => {
            move_data!(c"PMPI_Allgather", comm, send, receive)
        }
        Arguments::Alltoall { send, receive } => move_data!(c"PMPI_Alltoall", comm, send, receive),
        Arguments::Gather { send, receive, root } => {
            move_data!(c"PMPI_Gather", comm, send, receive, *root)
        }
        Arguments::Scatter { send, receive, root } => {
            move_data!(c"PMPI_Scatter", comm, send, receive, *root)
        }
        Arguments::Bcast { data, root } => call!(c"PMPI_Bcast", comm,
            data.buffer => Out, int(data.count) => c_int, data.datatype => Handle,
            *root => c_int),
        Arguments::Allreduce { data, count } => {
            combine!(c"PMPI_Allreduce", comm, data, int(*count) => c_int)
        }
        Arguments::Scan { data, count } => {
            combine!(c"PMPI_Scan", comm, data, int(*count) => c_int)
        }
        Arguments::Exscan { data, count } => {
            combine!(c"PMPI_Exscan", comm, data, int(*count) => c_int)
        }
        Arguments::Reduce { data, count, root } => {
            combine!(c"PMPI_Reduce", comm, data, int(*count) => c_int, *root)
        }
        Arguments::ReduceScatterBlock { data, count } => {
            combine!(c"PMPI_Reduce_scatter_block", comm, data, int(*count) => c_int)
        }
        Arguments::ReduceScatter { data, counts } => {
            // SAFETY: the caller vouches for the array.
            let counts = unsafe { narrowed(*counts, comm)? };
            let counts = counts.as_ptr();
            combine!(c"PMPI_Reduce_scatter", comm, data, counts => *const c_int)
        }
        _ => return None,
    })
}

/// # Safety
/// There must be a count for each rank of the local group.
unsafe fn narrowed(counts: Counts, comm: Handle) -> Option<Vec<c_int>> {
    type Size = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
    let behind = behind(c"PMPI_Comm_size")?;
    let mut size = 0;
    // SAFETY: the library's function of this name has this signature; the caller vouches for the
    // array.
    unsafe {
        if mem::transmute::<*mut c_void, Size>(behind)(comm, &mut size) != 0 {
            return None;
        }
        Some((0..size as usize).map(|rank| int(counts.get(rank))).collect())
    }
}
