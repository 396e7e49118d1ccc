//! Bruck: short messages, any number of ranks in the steps of the next power of two, or of the radix
//! (Bruck et al., IEEE TPDS 8, 1997). Blocks stand in the order in which they come, own first, and
//! are turned into rank order at the end.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::radix::{digits, radix, weight},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Bruck<2>>(
    Collective::Allgather,
    Algorithm::Bruck,
    "all blocks so far go to doubling distances; turned into rank order at the end",
);

pub(in super::super) const OF_RADIX: Entry = Entry::new::<Bruck<0>>(
    Collective::Allgather,
    Algorithm::KBruck,
    "all blocks so far go to fan-out - 1 ranks at once; turned into rank order at the end",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct Bruck<const RADIX: u32> {
    rank: u32,
    ranks: u32,
    radix: u32,
    steps: u32,
    /// One block for each rank.
    temporary: u64,
}

impl<const RADIX: u32> Bruck<RADIX> {
    /// The messages of a step: how far they go, and their blocks.
    fn messages(&self, step: u32) -> impl Iterator<Item = (u32, u32)> + Clone {
        let (have, ranks) = (weight(self.radix, step) as u32, self.ranks);
        let distances = (1..self.radix).map(move |times| u64::from(times) * u64::from(have));
        let distances = distances.take_while(move |&distance| distance < u64::from(ranks));
        distances.map(move |distance| (distance as u32, have.min(ranks - distance as u32)))
    }
}

impl<const RADIX: u32> Program for Bruck<RADIX> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let radix = radix::<RADIX>(call);
        let temporary = u64::from(call.ranks) * call.count;
        Bruck { rank, ranks: call.ranks, radix, steps: digits(call.ranks, radix), temporary }
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
            let messages = (0..).zip(self.messages(index as u32 - 1)).filter(|_| call.count > 0);
            let come = messages.clone().map(|(slot, (distance, number))| {
                (call.after(self.rank, distance), slot, blocks(distance, number))
            });
            let go = messages.map(|(slot, (distance, number))| {
                let slot = self.radix - 1 + slot;
                (call.before(self.rank, distance), slot, blocks(0, number))
            });
            out.exchange_all(come, go);
        } else {
            let behind = self.ranks - self.rank;
            let result = |first, number| call.blocks(Buffer::Receive, first, number);
            out.copy(blocks(0, behind), result(self.rank, behind));
            out.copy(blocks(behind, self.rank), result(0, self.rank));
        }
    }

    fn slots(&self) -> u32 {
        2 * (self.radix - 1)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }

    fn destinations(&self) -> u32 {
        self.radix - 1
    }
}
