//! Recursive doubling: the groups of neighbouring ranks that share all blocks double. Any number
//! of ranks; a half may be one larger than the other.

use records::{Algorithm, Collective};

use super::place_own;
use crate::{Buffer, Call, Entry, Program, Round, algorithms::halves::Halves};

pub(in super::super) const ENTRY: Entry = Entry::new::<RecursiveDoubling>(
    Collective::Allgather,
    Algorithm::RecursiveDoubling,
    "groups that share all blocks double",
);

#[derive(Debug, Clone, Copy)]
struct RecursiveDoubling {
    halves: Halves,
    rank: u32,
}

impl Program for RecursiveDoubling {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RecursiveDoubling { halves: Halves::new(call.ranks, rank), rank }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.halves.levels()) + 1
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(step) = index.checked_sub(1) else {
            return place_own(call, self.rank, out);
        };
        let level = self.halves.levels() - 1 - step as u32;
        let blocks = |first, end| call.blocks(Buffer::Receive, first, end - first);
        self.halves.gather(level, |rank| rank, blocks, out);
    }

    fn slots(&self) -> u32 {
        Halves::SLOTS
    }
}
