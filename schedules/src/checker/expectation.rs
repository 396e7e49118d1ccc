//! What the collectives mean: the buffers before and after.

use records::{BufferContent, Collective};

use super::values::{UNDEFINED, ValueTable};
use crate::{Call, entry::known_to};

/// One rank's buffers before the call.
pub(super) struct InitialBuffers {
    pub send: Vec<u32>,
    pub receive: Vec<u32>,
}

/// The block of a rank in a buffer that holds all blocks.
fn block(collective: Collective, call: &Call<'_>, rank: u32) -> (u64, u64) {
    if collective.has_counts() {
        (call.displacements[rank as usize], call.counts[rank as usize])
    } else {
        (u64::from(rank) * call.count, call.count)
    }
}

/// Elements of a buffer that holds all blocks.
fn all(collective: Collective, call: &Call<'_>) -> u64 {
    (0..call.ranks)
        .map(|rank| block(collective, call, rank))
        .map(|(at, n)| at + n)
        .max()
        .unwrap_or(0)
}

/// The number of elements that `rank` sends and receives, as `known` to it.
fn lengths(collective: Collective, call: &Call<'_>, rank: u32) -> (u64, u64) {
    let length = |held: BufferContent| match held {
        BufferContent::OwnAtRoot | BufferContent::AllAtRoot if rank != call.root => 0,
        BufferContent::Nothing => 0,
        BufferContent::Own | BufferContent::OwnAtRoot => block(collective, call, rank).1,
        BufferContent::All | BufferContent::AllAtRoot => all(collective, call),
    };
    // Rank 0 of an exscan receives nothing, so that its buffer may be none.
    let receives_nothing = collective == Collective::Exscan && rank == 0;
    let received = if receives_nothing { 0 } else { length(collective.receives()) };
    (length(collective.sends()), received)
}

/// The buffers of `rank` before the call, which is the one of this number.
pub(super) fn before(
    collective: Collective,
    call: &Call<'_>,
    rank: u32,
    number: usize,
    values: &mut ValueTable,
) -> InitialBuffers {
    let known = known_to(collective, call, rank);
    let (send, receive) = lengths(collective, call, rank);
    let own = |count: u64, values: &mut ValueTable| -> Vec<u32> {
        (0..count).map(|index| values.of_ranks(number, index, rank, rank + 1)).collect()
    };
    if collective == Collective::Bcast && rank == call.root {
        return InitialBuffers { send: Vec::new(), receive: own(receive, values) };
    }
    let undefined = vec![UNDEFINED; receive as usize];
    if !known.in_place {
        return InitialBuffers { send: own(send, values), receive: undefined };
    }
    let contribution = own(send, values);
    let receive = match collective {
        // The root keeps its block where it is: nothing is received.
        Collective::Scatter | Collective::Scatterv => {
            return InitialBuffers { send: contribution, receive: Vec::new() };
        }
        Collective::Gather
        | Collective::Gatherv
        | Collective::Allgather
        | Collective::Allgatherv => {
            let (at, count) = block(collective, call, rank);
            let mut blocks = undefined;
            blocks[at as usize..(at + count) as usize].copy_from_slice(&contribution);
            blocks
        }
        _ => contribution,
    };
    InitialBuffers { send: Vec::new(), receive }
}

/// What must stand in the receive buffer of `rank` afterwards, element by element; elements that
/// are not named may hold anything.
pub(super) fn after(
    collective: Collective,
    call: &Call<'_>,
    rank: u32,
    number: usize,
    values: &mut ValueTable,
) -> Vec<(u64, u32)> {
    let known = known_to(collective, call, rank);
    let root = rank == call.root;
    let (count, ranks) = (call.count, call.ranks);
    let mut wanted = Vec::new();
    let mut put = |place: u64, index: u64, first: u32, end: u32| {
        wanted.push((place, values.of_ranks(number, index, first, end)));
    };
    let (at, own) = block(collective, call, rank);
    match collective {
        Collective::Barrier => {}
        Collective::Bcast => (0..count).for_each(|i| put(i, i, call.root, call.root + 1)),
        Collective::Reduce if !root => {}
        Collective::Reduce | Collective::Allreduce => (0..count).for_each(|i| put(i, i, 0, ranks)),
        Collective::Scan => (0..count).for_each(|i| put(i, i, 0, rank + 1)),
        Collective::Exscan if rank == 0 => {}
        Collective::Exscan => (0..count).for_each(|i| put(i, i, 0, rank)),
        Collective::Gather | Collective::Gatherv if !root => {}
        Collective::Gather
        | Collective::Gatherv
        | Collective::Allgather
        | Collective::Allgatherv => {
            for from in 0..ranks {
                let (at, count) = block(collective, call, from);
                (0..count).for_each(|i| put(at + i, i, from, from + 1));
            }
        }
        Collective::Scatter | Collective::Scatterv if known.in_place => {}
        Collective::Scatter | Collective::Scatterv => {
            (0..own).for_each(|i| put(i, at + i, call.root, call.root + 1));
        }
        Collective::Alltoall | Collective::Alltoallv => {
            for from in 0..ranks {
                let place = block(collective, call, from).0;
                (0..own).for_each(|i| put(place + i, at + i, from, from + 1));
            }
        }
        Collective::ReduceScatter | Collective::ReduceScatterBlock => {
            (0..own).for_each(|i| put(i, at + i, 0, ranks));
        }
    }
    wanted
}
