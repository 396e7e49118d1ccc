//! Bruck: short messages, any number of ranks in the steps of the next power of two. Blocks stand
//! in the order in which they come, own first, and are turned into rank order at the end.

use records::{Algorithm, Collective};

use crate::{Buffer, Call, Entry, Program, Range, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Bruck>(
    Collective::Allgather,
    Algorithm::Bruck,
    "all blocks so far go to doubling distances; turned into rank order at the end",
);

#[derive(Debug, Clone, Copy)]
struct Bruck {
    rank: u32,
    ranks: u32,
    steps: u32,
    /// One block for each rank.
    temporary: u64,
}

impl Program for Bruck {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let steps = u32::BITS - (call.ranks - 1).leading_zeros();
        let temporary = u64::from(call.ranks) * call.count;
        Bruck { rank, ranks: call.ranks, steps, temporary }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.steps) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let blocks = |first, number| call.blocks(Buffer::Temporary, first, number);
        if index == 0 {
            let own = if call.in_place {
                call.block(Buffer::Receive, self.rank)
            } else {
                Range::new(Buffer::Send, 0, call.count)
            };
            out.copy(own, blocks(0, 1));
        } else if index <= u64::from(self.steps) {
            let have = 1 << (index - 1);
            let number = have.min(self.ranks - have);
            let (from, to) = (call.after(self.rank, have), call.before(self.rank, have));
            out.exchange(from, blocks(have, number), to, blocks(0, number));
        } else {
            let behind = self.ranks - self.rank;
            let result = |first, number| call.blocks(Buffer::Receive, first, number);
            out.copy(blocks(0, behind), result(self.rank, behind));
            out.copy(blocks(behind, self.rank), result(0, self.rank));
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }
}
