//! Bruck: short messages. Blocks are turned so that block i is bound for the rank i ahead; in step
//! k those whose number has bit k travel 2^k ranks; the last step turns them back.

use records::{Algorithm, Collective};

use crate::{Buffer, Call, Entry, Program, Range, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Bruck>(
    Collective::Alltoall,
    Algorithm::Bruck,
    "blocks travel to doubling distances, bit by bit of how far they have to go",
);

#[derive(Debug, Clone, Copy)]
struct Bruck {
    rank: u32,
    ranks: u32,
    steps: u32,
    count: u64,
}

impl Bruck {
    /// The blocks, turned; then what is sent; then what is received.
    fn turned(&self, call: &Call<'_>, first: u32, number: u32) -> Range {
        call.blocks(Buffer::Temporary, first, number)
    }

    fn packed(&self, call: &Call<'_>, area: u32, first: u32, number: u32) -> Range {
        let start = u64::from(self.ranks) + u64::from(area) * u64::from(self.most());
        let start = (start + u64::from(first)) * call.count;
        Range::new(Buffer::Temporary, start, u64::from(number) * call.count)
    }

    /// Most blocks that travel in one step.
    fn most(&self) -> u32 {
        (0..self.steps).map(|step| self.travelling(step)).max().unwrap_or(0)
    }

    /// Number of blocks whose number has a bit.
    fn travelling(&self, step: u32) -> u32 {
        let bit = 1 << step;
        let left = self.ranks % (2 * bit);
        self.ranks / (2 * bit) * bit + left.saturating_sub(bit)
    }

    /// Runs of blocks whose numbers have a bit: first block, length, place among all of them.
    fn runs(&self, step: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let (bit, ranks) = (1_u32 << step, self.ranks);
        let firsts = (bit..ranks).step_by(2 * bit as usize).enumerate();
        firsts.map(move |(run, first)| (first, bit.min(ranks - first), run as u32 * bit))
    }
}

impl Program for Bruck {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let steps = u32::BITS - (call.ranks - 1).leading_zeros();
        Bruck { rank, ranks: call.ranks, steps, count: call.count }
    }

    fn rounds(&self) -> u64 {
        // Turn; pack, exchange and unpack in each step; turn back.
        if self.count == 0 { 0 } else { 2 + 3 * u64::from(self.steps) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let step = (index.saturating_sub(1) / 3) as u32;
        let input = call.input();
        if index == 0 {
            let ahead = self.ranks - self.rank;
            out.copy(call.blocks(input, self.rank, ahead), self.turned(call, 0, ahead));
            out.copy(call.blocks(input, 0, self.rank), self.turned(call, ahead, self.rank));
        } else if step == self.steps {
            // Block i came from the rank i behind.
            for block in 0..self.ranks {
                let from = call.before(self.rank, block);
                out.copy(self.turned(call, block, 1), call.block(Buffer::Receive, from));
            }
        } else if (index - 1) % 3 == 1 {
            let number = self.travelling(step);
            let (from, to) = (call.before(self.rank, 1 << step), call.after(self.rank, 1 << step));
            out.exchange(
                from,
                self.packed(call, 1, 0, number),
                to,
                self.packed(call, 0, 0, number),
            );
        } else {
            let packing = (index - 1).is_multiple_of(3);
            for (first, number, place) in self.runs(step) {
                let turned = self.turned(call, first, number);
                let packed = self.packed(call, u32::from(!packing), place, number);
                if packing { out.copy(turned, packed) } else { out.copy(packed, turned) }
            }
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        (u64::from(self.ranks) + 2 * u64::from(self.most())) * self.count
    }
}
