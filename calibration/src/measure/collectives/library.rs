//! Calls of collectives as C has them: the MPI library's, or those of a plug-in.

use std::ffi::{c_int, c_void};

use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op};
use records::Collective;
use runner::{Arguments, Block, Blocks, Counts, Handle, Reduction};

use crate::{Error, Result, exchange::Communicator};

type Barrier = unsafe extern "C" fn(MPI_Comm) -> c_int;
type Bcast = unsafe extern "C" fn(*mut c_void, c_int, MPI_Datatype, c_int, MPI_Comm) -> c_int;
type Exchange = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MPI_Datatype,
    *mut c_void,
    c_int,
    MPI_Datatype,
    MPI_Comm,
) -> c_int;
type Rooted = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MPI_Datatype,
    *mut c_void,
    c_int,
    MPI_Datatype,
    c_int,
    MPI_Comm,
) -> c_int;
type Allgatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MPI_Datatype,
    *mut c_void,
    *const c_int,
    *const c_int,
    MPI_Datatype,
    MPI_Comm,
) -> c_int;
type Gatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MPI_Datatype,
    *mut c_void,
    *const c_int,
    *const c_int,
    MPI_Datatype,
    c_int,
    MPI_Comm,
) -> c_int;
type Scatterv = unsafe extern "C" fn(
    *const c_void,
    *const c_int,
    *const c_int,
    MPI_Datatype,
    *mut c_void,
    c_int,
    MPI_Datatype,
    c_int,
    MPI_Comm,
) -> c_int;
type Alltoallv = unsafe extern "C" fn(
    *const c_void,
    *const c_int,
    *const c_int,
    MPI_Datatype,
    *mut c_void,
    *const c_int,
    *const c_int,
    MPI_Datatype,
    MPI_Comm,
) -> c_int;
type Combine = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    c_int,
    MPI_Datatype,
    MPI_Op,
    MPI_Comm,
) -> c_int;
type Reduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    c_int,
    MPI_Datatype,
    MPI_Op,
    c_int,
    MPI_Comm,
) -> c_int;
type ReduceScatter = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    *const c_int,
    MPI_Datatype,
    MPI_Op,
    MPI_Comm,
) -> c_int;

/// The function of the MPI library that is linked, with its name.
pub(super) fn function(collective: Collective) -> (&'static str, *const c_void) {
    macro_rules! linked {
        ($name:ident) => {
            (stringify!($name), ffi::$name as *const c_void)
        };
    }
    match collective {
        Collective::Allgather => linked!(MPI_Allgather),
        Collective::Allgatherv => linked!(MPI_Allgatherv),
        Collective::Allreduce => linked!(MPI_Allreduce),
        Collective::Alltoall => linked!(MPI_Alltoall),
        Collective::Alltoallv => linked!(MPI_Alltoallv),
        Collective::Barrier => linked!(MPI_Barrier),
        Collective::Bcast => linked!(MPI_Bcast),
        Collective::Exscan => linked!(MPI_Exscan),
        Collective::Gather => linked!(MPI_Gather),
        Collective::Gatherv => linked!(MPI_Gatherv),
        Collective::Reduce => linked!(MPI_Reduce),
        Collective::ReduceScatter => linked!(MPI_Reduce_scatter),
        Collective::ReduceScatterBlock => linked!(MPI_Reduce_scatter_block),
        Collective::Scan => linked!(MPI_Scan),
        Collective::Scatter => linked!(MPI_Scatter),
        Collective::Scatterv => linked!(MPI_Scatterv),
    }
}

/// One side of a call as C has it.
struct Side {
    buffer: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
}

impl Side {
    fn of(block: &Block) -> Result<Self> {
        let count = int(block.count)?;
        Ok(Side { buffer: block.buffer, count, datatype: datatype(block.datatype) })
    }
}

fn int(count: i64) -> Result<c_int> {
    c_int::try_from(count).map_err(|_| {
        Error::Usage(format!("blocks of {count} elements; MPI counts to {}", c_int::MAX))
    })
}

fn ints(counts: Counts) -> Result<*const c_int> {
    match counts {
        Counts::Int(ints) => Ok(ints),
        Counts::Large(_) => Err(Error::Unsupported("counts above those of int".to_owned())),
    }
}

fn datatype(handle: Handle) -> MPI_Datatype {
    MPI_Datatype(handle as _)
}

fn operation(data: &Reduction) -> MPI_Op {
    MPI_Op(data.operation as _)
}

fn vectors(blocks: &Blocks) -> Result<(*const c_int, *const c_int, MPI_Datatype)> {
    Ok((ints(blocks.counts)?, ints(blocks.displacements)?, datatype(blocks.datatype)))
}

/// The address as a function of this type.
macro_rules! typed {
    ($address:expr, $type:ty) => {
        std::mem::transmute::<*const c_void, $type>($address)
    };
}

/// Calls a collective; what it returns.
///
/// # Safety
/// `address` must be that of a function with the signature of MPI's collective that the arguments
/// are for; the arguments must be as MPI demands, and the same call must be made on all ranks of
/// `comm`.
///
/// # Errors
/// The counts are none of C's; nothing is called then.
pub(super) unsafe fn call(
    address: *const c_void,
    arguments: &Arguments,
    comm: &Communicator,
) -> Result<c_int> {
    let comm = comm.raw();
    // SAFETY: the caller vouches for the function and its arguments.
    let code = unsafe {
        match arguments {
            Arguments::Barrier => typed!(address, Barrier)(comm),
            Arguments::Bcast { data, root } => {
                let Side { buffer, count, datatype } = Side::of(data)?;
                typed!(address, Bcast)(buffer, count, datatype, *root, comm)
            }
            Arguments::Allgather { send, receive } | Arguments::Alltoall { send, receive } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                typed!(address, Exchange)(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, comm,
                )
            }
            Arguments::Gather { send, receive, root }
            | Arguments::Scatter { send, receive, root } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                typed!(address, Rooted)(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, *root, comm,
                )
            }
            Arguments::Allgatherv { send, receive } => {
                let (s, r) = (Side::of(send)?, receive);
                let (counts, places, kind) = vectors(r)?;
                typed!(address, Allgatherv)(
                    s.buffer, s.count, s.datatype, r.buffer, counts, places, kind, comm,
                )
            }
            Arguments::Gatherv { send, receive, root } => {
                let (s, r) = (Side::of(send)?, receive);
                let (counts, places, kind) = vectors(r)?;
                typed!(address, Gatherv)(
                    s.buffer, s.count, s.datatype, r.buffer, counts, places, kind, *root, comm,
                )
            }
            Arguments::Scatterv { send, receive, root } => {
                let (s, r) = (send, Side::of(receive)?);
                let (counts, places, kind) = vectors(s)?;
                typed!(address, Scatterv)(
                    s.buffer, counts, places, kind, r.buffer, r.count, r.datatype, *root, comm,
                )
            }
            Arguments::Alltoallv { send, receive } => {
                let (counts, places, kind) = vectors(send)?;
                let (from_counts, from_places, from_kind) = vectors(receive)?;
                typed!(address, Alltoallv)(
                    send.buffer,
                    counts,
                    places,
                    kind,
                    receive.buffer,
                    from_counts,
                    from_places,
                    from_kind,
                    comm,
                )
            }
            Arguments::Allreduce { data: d, count }
            | Arguments::Exscan { data: d, count }
            | Arguments::Scan { data: d, count }
            | Arguments::ReduceScatterBlock { data: d, count } => {
                let (count, kind, op) = (int(*count)?, datatype(d.datatype), operation(d));
                typed!(address, Combine)(d.send, d.receive, count, kind, op, comm)
            }
            Arguments::Reduce { data: d, count, root } => {
                let (count, kind, op) = (int(*count)?, datatype(d.datatype), operation(d));
                typed!(address, Reduce)(d.send, d.receive, count, kind, op, *root, comm)
            }
            Arguments::ReduceScatter { data: d, counts } => {
                let (counts, kind, op) = (ints(*counts)?, datatype(d.datatype), operation(d));
                typed!(address, ReduceScatter)(d.send, d.receive, counts, kind, op, comm)
            }
        }
    };
    Ok(code)
}
