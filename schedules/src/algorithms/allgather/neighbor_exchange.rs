//! Neighbour exchange (Chen et al.): half the steps of a ring, two blocks at a time, with the two
//! neighbours in turn. Even numbers of ranks only.

use records::{Algorithm, Collective};

use super::place_own;
use crate::{Buffer, Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<NeighborExchange>(
    Collective::Allgather,
    Algorithm::NeighborExchange,
    "two blocks at a time, with the two neighbours in turn",
)
.even();

#[derive(Debug, Clone, Copy)]
struct NeighborExchange {
    rank: u32,
    ranks: u32,
}

impl NeighborExchange {
    /// Even ranks begin with the neighbour after them and odd ones with the one before; then they
    /// take turns.
    const fn looks_after(&self, step: u32) -> bool {
        (self.rank + step).is_multiple_of(2)
    }

    /// First of the two blocks that a step brings (step 0: of those that it leaves one with).
    /// They come from ever farther away, on the neighbour's side.
    fn arrives(&self, call: &Call<'_>, step: u32) -> u32 {
        let own = self.rank & !1;
        let distance = step.next_multiple_of(2);
        match self.looks_after(step) {
            _ if step == 0 => own,
            true => call.after(own, distance),
            false => call.before(own, distance),
        }
    }
}

impl Program for NeighborExchange {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        NeighborExchange { rank, ranks: call.ranks }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks / 2) + 1
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(step) = index.checked_sub(1) else {
            return place_own(call, self.rank, out);
        };
        let step = step as u32;
        let neighbour = match self.looks_after(step) {
            true => call.after(self.rank, 1),
            false => call.before(self.rank, 1),
        };
        if step == 0 {
            let block = |rank| call.block(Buffer::Receive, rank);
            return out.exchange(neighbour, block(neighbour), neighbour, block(self.rank));
        }
        let pair = |first| call.blocks(Buffer::Receive, first, 2);
        let (into, what) = (self.arrives(call, step), self.arrives(call, step - 1));
        out.exchange(neighbour, pair(into), neighbour, pair(what));
    }

    fn slots(&self) -> u32 {
        2
    }
}
