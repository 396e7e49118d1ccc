//! The arguments of a collective call.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use records::Collective;

use crate::Handle;

/// A buffer of `count` elements of a type, as MPI describes it.
///
/// Where MPI says that the arguments are not significant on a rank (send arguments beside
/// `MPI_IN_PLACE`, receive arguments away from the root), nothing here may be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Address of the first element, `MPI_IN_PLACE`, or `MPI_BOTTOM`.
    pub buffer: *mut c_void,
    /// Elements; for the side of a call that has one block per rank, the elements of one block.
    pub count: i64,
    /// Type of the elements.
    pub datatype: Handle,
}

/// Counts or displacements of a v-form, one per rank: `int` in the classic functions, `MPI_Count`
/// in those whose names end in `_c` (displacements there are `MPI_Aint`, of the same width).
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// An array of `int`.
    Int(*const c_int),
    /// An array of 64-bit integers.
    Large(*const i64),
}

/// Blocks of different length, one per rank.
#[derive(Debug, Clone, Copy)]
pub struct VectorBlocks {
    /// As [`Block::buffer`].
    pub buffer: *mut c_void,
    /// Elements of each rank's block.
    pub counts: Counts,
    /// Where each block begins, in extents of the type from `buffer`.
    pub displacements: Counts,
    /// Type of the elements.
    pub datatype: Handle,
}

/// Operands and result of a reduction.
#[derive(Debug, Clone, Copy)]
pub struct Reduction {
    /// Address of this rank's operand, or `MPI_IN_PLACE`.
    pub send: *const c_void,
    /// Address of the result, where the rank has one.
    pub receive: *mut c_void,
    /// Type of the elements.
    pub datatype: Handle,
    /// The operation that combines them.
    pub operation: Handle,
}

/// What an application passes to a blocking collective, save the communicator: whatever carries
/// out collectives (our algorithms, mock-ups, the MPI library itself) takes them in this form.
///
/// # The call's contract
/// Unsafe functions that take a call's arguments rely on these conditions, by this name:
/// - handles that are significant on this rank are live ones of the library whose table is used, and nobody
///   frees them before the function returns;
/// - a buffer that is significant on this rank is valid for its elements: for reads where it is sent, for
///   writes where it is received;
/// - what is received overlaps nothing that is sent, `MPI_IN_PLACE` apart;
/// - an array that is significant on this rank has an entry for each rank of the communicator;
/// - all ranks of the communicator make the same call, in the same order among their calls on it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are MPI's own")]
pub enum Arguments {
    Allgather { send: Block, receive: Block },
    Allgatherv { send: Block, receive: VectorBlocks },
    Allreduce { data: Reduction, count: i64 },
    Alltoall { send: Block, receive: Block },
    Alltoallv { send: VectorBlocks, receive: VectorBlocks },
    Barrier,
    Bcast { data: Block, root: c_int },
    Exscan { data: Reduction, count: i64 },
    Gather { send: Block, receive: Block, root: c_int },
    Gatherv { send: Block, receive: VectorBlocks, root: c_int },
    Reduce { data: Reduction, count: i64, root: c_int },
    ReduceScatter { data: Reduction, counts: Counts },
    ReduceScatterBlock { data: Reduction, count: i64 },
    Scan { data: Reduction, count: i64 },
    Scatter { send: Block, receive: Block, root: c_int },
    Scatterv { send: VectorBlocks, receive: Block, root: c_int },
}

impl Counts {
    /// The count or displacement of a rank.
    ///
    /// # Safety
    /// The array must be valid for reads up to the entry of the rank.
    pub unsafe fn get(self, rank: usize) -> i64 {
        // SAFETY: `rank` is the index of an entry (contract of this function).
        unsafe {
            match self {
                Counts::Int(array) => i64::from(*array.add(rank)),
                Counts::Large(array) => *array.add(rank),
            }
        }
    }
}

impl Arguments {
    /// What is combined; nothing where data is only moved.
    pub fn reduction(&self) -> Option<&Reduction> {
        match self {
            Arguments::Allreduce { data, .. }
            | Arguments::Exscan { data, .. }
            | Arguments::Reduce { data, .. }
            | Arguments::ReduceScatter { data, .. }
            | Arguments::ReduceScatterBlock { data, .. }
            | Arguments::Scan { data, .. } => Some(data),
            _ => None,
        }
    }

    /// Where this rank sends from and where it receives; the one buffer of a broadcast is the
    /// second.
    pub(crate) fn buffers(&self) -> (*mut u8, *mut u8) {
        let (send, receive) = match self {
            Arguments::Barrier => (ptr::null_mut(), ptr::null_mut()),
            Arguments::Bcast { data, .. } => (ptr::null_mut(), data.buffer),
            Arguments::Allgather { send, receive }
            | Arguments::Alltoall { send, receive }
            | Arguments::Gather { send, receive, .. }
            | Arguments::Scatter { send, receive, .. } => (send.buffer, receive.buffer),
            Arguments::Allgatherv { send, receive } | Arguments::Gatherv { send, receive, .. } => {
                (send.buffer, receive.buffer)
            }
            Arguments::Scatterv { send, receive, .. } => (send.buffer, receive.buffer),
            Arguments::Alltoallv { send, receive } => (send.buffer, receive.buffer),
            Arguments::Allreduce { data, .. }
            | Arguments::Exscan { data, .. }
            | Arguments::Reduce { data, .. }
            | Arguments::ReduceScatter { data, .. }
            | Arguments::ReduceScatterBlock { data, .. }
            | Arguments::Scan { data, .. } => (data.send.cast_mut(), data.receive),
        };
        (send.cast(), receive.cast())
    }

    /// The collective that they are of.
    pub fn collective(&self) -> Collective {
        match self {
            Arguments::Allgather { .. } => Collective::Allgather,
            Arguments::Allgatherv { .. } => Collective::Allgatherv,
            Arguments::Allreduce { .. } => Collective::Allreduce,
            Arguments::Alltoall { .. } => Collective::Alltoall,
            Arguments::Alltoallv { .. } => Collective::Alltoallv,
            Arguments::Barrier => Collective::Barrier,
            Arguments::Bcast { .. } => Collective::Bcast,
            Arguments::Exscan { .. } => Collective::Exscan,
            Arguments::Gather { .. } => Collective::Gather,
            Arguments::Gatherv { .. } => Collective::Gatherv,
            Arguments::Reduce { .. } => Collective::Reduce,
            Arguments::ReduceScatter { .. } => Collective::ReduceScatter,
            Arguments::ReduceScatterBlock { .. } => Collective::ReduceScatterBlock,
            Arguments::Scan { .. } => Collective::Scan,
            Arguments::Scatter { .. } => Collective::Scatter,
            Arguments::Scatterv { .. } => Collective::Scatterv,
        }
    }
}
