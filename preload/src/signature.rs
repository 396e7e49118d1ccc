//! The message size of a call, by what MPI demands to be equal on all ranks.

use std::ffi::c_int;

use runner::{Arguments, Block, Handle};

use crate::{job::JobContext, known_communicators::CommunicatorPlace};

/// The size by which a method is chosen (see [`records::Collective::message_size`]).
///
/// By the rules of signatures it is the same on every rank of a correct call, though the ranks
/// take it from different arguments: where MPI reads only some of them, only these are looked at.
/// Nothing for a call that is wrong by MPI's rules, and where `size` tells nothing of a datatype.
///
/// # Safety
/// The arguments must be the application's, on a communicator of the processes of `place`.
#[inline(always)]
pub unsafe fn message_bytes(
    job: &JobContext,
    arguments: &Arguments,
    place: CommunicatorPlace,
    size: impl Fn(Handle) -> Option<u64>,
) -> Option<u64> {
    let in_place = |block: &Block| block.buffer.addr() == job.library.mpi.constants.in_place;
    let root_is_here = |root: c_int| {
        let is_root = u32::try_from(root).is_ok_and(|root| root < place.plans.procs);
        is_root.then_some(root == place.rank)
    };
    // SAFETY: `counts` has an entry for each process of `place`, by MPI's rules for the application's arguments
    // (contract of this function).
    unsafe {
        match arguments {
            Arguments::Barrier => Some(0),
            Arguments::Bcast { data, root } => {
                root_is_here(*root)?;
                bytes(&size, data.count, data.datatype)
            }
            Arguments::Reduce { data, count, root } => {
                root_is_here(*root)?;
                bytes(&size, *count, data.datatype)
            }
            Arguments::Allreduce { data, count }
            | Arguments::Scan { data, count }
            | Arguments::Exscan { data, count }
            | Arguments::ReduceScatterBlock { data, count } => bytes(&size, *count, data.datatype),
            Arguments::ReduceScatter { data, counts } => {
                let procs = place.plans.procs;
                let mut all = 0_i64;
                for rank in 0..procs as usize {
                    let count = counts.get(rank);
                    if count < 0 {
                        return None;
                    }
                    all = all.checked_add(count)?;
                }
                // The mean block; a block of one byte in all is still a message.
                let all = bytes(&size, all, data.datatype)?;
                Some(all.div_ceil(u64::from(procs)))
            }
            Arguments::Allgather { send, receive } | Arguments::Alltoall { send, receive } => {
                let block = if in_place(send) { receive } else { send };
                bytes(&size, block.count, block.datatype)
            }
            Arguments::Gather { send, receive, root } => {
                let block = if root_is_here(*root)? && in_place(send) { receive } else { send };
                bytes(&size, block.count, block.datatype)
            }
            Arguments::Scatter { send, receive, root } => {
                let block = if root_is_here(*root)? { send } else { receive };
                bytes(&size, block.count, block.datatype)
            }
            _ => None,
        }
    }
}

#[inline(always)]
fn bytes(size: impl Fn(Handle) -> Option<u64>, count: i64, datatype: Handle) -> Option<u64> {
    // Without data ranks may pass what they like as the type.
    if count == 0 {
        return Some(0);
    }
    u64::try_from(count).ok()?.checked_mul(size(datatype)?)
}
