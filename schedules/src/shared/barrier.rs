//! Flags: the ranks arrive at the first, which lets all go; two ranks await each other.

use records::{Algorithm, Collective};

use super::is_exchanged;
use crate::{Call, Entry, Flag, Program, Round};

pub(super) const ENTRY: Entry = Entry::new::<Flags>(
    Collective::Barrier,
    Algorithm::SharedFlags,
    "each rank raises a flag in shared memory, the first awaits all and raises its own; two await each other",
)
.shared();

/// How many flags a barrier waits for one after the other, beside those that several ranks raise at once.
pub const fn flags_in_turn(ranks: u32) -> u32 {
    match ranks {
        0 | 1 => 0,
        _ if is_exchanged(ranks) => 1,
        _ => 2,
    }
}

#[derive(Debug, Clone, Copy)]
struct Flags {
    rank: u32,
}

impl Program for Flags {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        Flags { rank }
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        match self.rank {
            _ if is_exchanged(call.ranks) => {
                out.signal(Flag::Arrived, 1);
                out.await_all(Flag::Arrived, 1);
            }
            0 => {
                out.await_all(Flag::Arrived, 1);
                out.signal(Flag::Combined, 1);
            }
            _ => {
                out.signal(Flag::Arrived, 1);
                out.await_flag(0, Flag::Combined, 1);
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
}
