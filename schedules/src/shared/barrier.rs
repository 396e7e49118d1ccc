//! Flags: the ranks arrive at the first, which lets all go, or at the first of their group; two ranks await each other.

use records::{Algorithm, Collective};

use super::is_exchanged;
use crate::{
    Call, Entry, Flag, Program, Round,
    topology::{KNomial, Tree, TreeShape},
};

pub(super) const ENTRY: Entry = Entry::new::<Flags>(
    Collective::Barrier,
    Algorithm::SharedFlags,
    "each rank raises a flag in shared memory, the first awaits all and raises its own; two await each other; the fan-out \
     is the size of groups, each with a first rank of its own",
)
.shared()
.fanned();

/// How many flags a barrier of one group waits for one after the other, beside those that several ranks raise at once.
pub const fn flags_in_turn(ranks: u32) -> u32 {
    match ranks {
        0 | 1 => 0,
        _ if is_exchanged(ranks) => 1,
        _ => 2,
    }
}

/// Groups of at most [`Call::fan_out`] neighbours, whose first ranks are such groups again, and so on up to rank 0: the
/// first of each awaits the others, and lets them go when it may go itself. Without a fan-out all are one group.
#[derive(Debug, Clone, Copy)]
struct Flags {
    rank: u32,
    groups: KNomial,
}

impl Program for Flags {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let fan_out = if call.fan_out == 0 { call.ranks } else { call.fan_out };
        let shape = TreeShape { ranks: call.ranks, root: 0, fan_out };
        Flags { rank, groups: KNomial::new(shape) }
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let Flags { rank, groups } = *self;
        let awaited = groups.child_count(rank);
        match groups.parent(rank) {
            _ if is_exchanged(call.ranks) => {
                out.signal(Flag::Arrived, 1);
                out.await_all(Flag::Arrived, 1);
            }
            // One step for all of them.
            None if awaited + 1 == call.ranks => {
                out.await_all(Flag::Arrived, 1);
                out.signal(Flag::Combined, 1);
            }
            above => {
                for index in 0..awaited {
                    out.await_flag(groups.child(rank, index), Flag::Arrived, 1);
                }
                if let Some(first) = above {
                    out.signal(Flag::Arrived, 1);
                    out.await_flag(first, Flag::Combined, 1);
                }
                if awaited > 0 {
                    out.signal(Flag::Combined, 1);
                }
            }
        }
        out.finish(true);
    }

    fn slots(&self) -> u32 {
        0
    }

    fn turns(&self) -> u64 {
        1
    }

    fn shared_elements(&self) -> u64 {
        0
    }
}
