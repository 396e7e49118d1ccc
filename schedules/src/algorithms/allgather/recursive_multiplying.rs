//! Recursive multiplying: short and middle messages. As recursive doubling, but with several ranks
//! at once, in fewer steps.

use std::ops::Range as Ranks;

use records::{Algorithm, Collective};

use super::place_own;
use crate::{Buffer, Call, Entry, Program, Range, Round, algorithms::multiplying::Multiplying};

pub(in super::super) const ENTRY: Entry = Entry::new::<MultiplyingAllgather>(
    Collective::Allgather,
    Algorithm::RecursiveMultiplying,
    "groups that share all blocks become fan-out times as large",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct MultiplyingAllgather {
    ranks: Multiplying,
    rank: u32,
    empty: bool,
}

impl MultiplyingAllgather {
    fn blocks(call: &Call<'_>, ranks: Ranks<u32>) -> Range {
        call.blocks(Buffer::Receive, ranks.start, ranks.end - ranks.start)
    }

    /// What one rank has goes to the other.
    fn hand(&self, folding: bool, range: Range, out: &mut Round) {
        let fold = &self.ranks.fold;
        match (fold.partner(), fold.number().is_some() == folding) {
            (None, _) => return,
            (Some(partner), true) => out.receive(partner, 0, range),
            (Some(partner), false) => out.send(partner, 0, range),
        }
        out.wait(0);
    }
}

impl Program for MultiplyingAllgather {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        MultiplyingAllgather { ranks: Multiplying::new(call, rank), rank, empty: call.count == 0 }
    }

    fn rounds(&self) -> u64 {
        if self.empty { 0 } else { u64::from(self.ranks.steps) + 2 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == 0 {
            place_own(call, self.rank, out);
            // Of two that are folded, the first hands its block over.
            let first = self.rank & !1;
            self.hand(true, Self::blocks(call, first..first + 1), out);
        } else if index <= u64::from(self.ranks.steps) {
            let Some(group) = self.ranks.group(index as u32 - 1) else { return };
            let come = group.sources().map(|(place, digit, from)| {
                (from, place, Self::blocks(call, group.ranks_of(digit)))
            });
            let own = Self::blocks(call, group.ranks_of(group.digit));
            let most = self.ranks.most();
            out.exchange_all(
                come,
                group.destinations().map(|(place, _, to)| (to, most + place, own)),
            );
        } else {
            self.hand(false, Self::blocks(call, 0..call.ranks), out);
        }
    }

    fn slots(&self) -> u32 {
        self.ranks.slots()
    }

    fn destinations(&self) -> u32 {
        self.ranks.most()
    }
}
