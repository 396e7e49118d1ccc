//! The collectives of the MPI library that this program links.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use runner::{Arguments, Block, Blocks, Counts, Handle, Reduction};

use crate::{
    Error, Result,
    exchange::{Communicator, check},
};

/// One side of a call as C has it.
struct Side {
    buffer: *mut c_void,
    count: c_int,
    datatype: ffi::MPI_Datatype,
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

fn datatype(handle: Handle) -> ffi::MPI_Datatype {
    ffi::MPI_Datatype(handle as _)
}

fn operation(data: &Reduction) -> ffi::MPI_Op {
    ffi::MPI_Op(data.operation as _)
}

/// Calls the library's collective.
///
/// # Safety
/// The arguments must be as MPI demands, and the same call must be made on all ranks of `comm`.
///
/// # Errors
/// The library refuses, or the counts are none of its.
pub(super) unsafe fn call(arguments: &Arguments, comm: &Communicator) -> Result<()> {
    let comm = comm.raw();
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        match arguments {
            Arguments::Allgather { send, receive } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                let code = ffi::MPI_Allgather(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, comm,
                );
                check("MPI_Allgather", code)
            }
            Arguments::Alltoall { send, receive } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                let code = ffi::MPI_Alltoall(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, comm,
                );
                check("MPI_Alltoall", code)
            }
            Arguments::Barrier => check("MPI_Barrier", ffi::MPI_Barrier(comm)),
            Arguments::Bcast { data, root } => {
                let Side { buffer, count, datatype } = Side::of(data)?;
                check("MPI_Bcast", ffi::MPI_Bcast(buffer, count, datatype, *root, comm))
            }
            Arguments::Gather { send, receive, root } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                let code = ffi::MPI_Gather(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, *root, comm,
                );
                check("MPI_Gather", code)
            }
            Arguments::Scatter { send, receive, root } => {
                let (s, r) = (Side::of(send)?, Side::of(receive)?);
                let code = ffi::MPI_Scatter(
                    s.buffer, s.count, s.datatype, r.buffer, r.count, r.datatype, *root, comm,
                );
                check("MPI_Scatter", code)
            }
            Arguments::Allgatherv { send, receive } => {
                let (s, r) = (Side::of(send)?, receive);
                let (counts, places, kind) = vectors(r)?;
                let code = ffi::MPI_Allgatherv(
                    s.buffer, s.count, s.datatype, r.buffer, counts, places, kind, comm,
                );
                check("MPI_Allgatherv", code)
            }
            Arguments::Gatherv { send, receive, root } => {
                let (s, r) = (Side::of(send)?, receive);
                let (counts, places, kind) = vectors(r)?;
                let code = ffi::MPI_Gatherv(
                    s.buffer, s.count, s.datatype, r.buffer, counts, places, kind, *root, comm,
                );
                check("MPI_Gatherv", code)
            }
            Arguments::Scatterv { send, receive, root } => {
                let (s, r) = (send, Side::of(receive)?);
                let (counts, places, kind) = vectors(s)?;
                let code = ffi::MPI_Scatterv(
                    s.buffer, counts, places, kind, r.buffer, r.count, r.datatype, *root, comm,
                );
                check("MPI_Scatterv", code)
            }
            Arguments::Alltoallv { send, receive } => {
                let (counts, places, kind) = vectors(send)?;
                let (from_counts, from_places, from_kind) = vectors(receive)?;
                let code = ffi::MPI_Alltoallv(
                    send.buffer,
                    counts,
                    places,
                    kind,
                    receive.buffer,
                    from_counts,
                    from_places,
                    from_kind,
                    comm,
                );
                check("MPI_Alltoallv", code)
            }
            _ => reduce(arguments, comm),
        }
    }
}

fn vectors(blocks: &Blocks) -> Result<(*const c_int, *const c_int, ffi::MPI_Datatype)> {
    Ok((ints(blocks.counts)?, ints(blocks.displacements)?, datatype(blocks.datatype)))
}

/// # Safety
/// As [`call`].
unsafe fn reduce(arguments: &Arguments, comm: ffi::MPI_Comm) -> Result<()> {
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        match arguments {
            Arguments::Allreduce { data: d, count } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let code = ffi::MPI_Allreduce(d.send, d.receive, int(*count)?, kind, op, comm);
                check("MPI_Allreduce", code)
            }
            Arguments::Exscan { data: d, count } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let code = ffi::MPI_Exscan(d.send, d.receive, int(*count)?, kind, op, comm);
                check("MPI_Exscan", code)
            }
            Arguments::Scan { data: d, count } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let code = ffi::MPI_Scan(d.send, d.receive, int(*count)?, kind, op, comm);
                check("MPI_Scan", code)
            }
            Arguments::Reduce { data: d, count, root } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let count = int(*count)?;
                let code = ffi::MPI_Reduce(d.send, d.receive, count, kind, op, *root, comm);
                check("MPI_Reduce", code)
            }
            Arguments::ReduceScatterBlock { data: d, count } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let count = int(*count)?;
                let code = ffi::MPI_Reduce_scatter_block(d.send, d.receive, count, kind, op, comm);
                check("MPI_Reduce_scatter_block", code)
            }
            Arguments::ReduceScatter { data: d, counts } => {
                let (kind, op) = (datatype(d.datatype), operation(d));
                let counts = ints(*counts)?;
                let code = ffi::MPI_Reduce_scatter(d.send, d.receive, counts, kind, op, comm);
                check("MPI_Reduce_scatter", code)
            }
            other => {
                let collective = other.collective();
                Err(Error::Unsupported(format!("{collective} combines nothing")))
            }
        }
    }
}
