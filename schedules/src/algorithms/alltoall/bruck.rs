//! Bruck: short messages. Blocks are turned so that block i is bound for the rank i ahead; in step
//! k those whose number has bit k travel 2^k ranks; the last step turns them back. With a radix, those
//! with another digit k than 0 travel that many times the radix^k, all digits at once (Bruck et al.,
//! IEEE TPDS 8, 1997).

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::radix::{digits, radix, weight},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Bruck<2>>(
    Collective::Alltoall,
    Algorithm::Bruck,
    "blocks travel to doubling distances, bit by bit of how far they have to go",
);

pub(in super::super) const OF_RADIX: Entry = Entry::new::<Bruck<0>>(
    Collective::Alltoall,
    Algorithm::KBruck,
    "blocks travel digit by digit to the base fan-out of how far they have to go",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct Bruck<const RADIX: u32> {
    rank: u32,
    ranks: u32,
    radix: u32,
    steps: u32,
    count: u64,
}

impl<const RADIX: u32> Bruck<RADIX> {
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

    /// Number of blocks whose number has another digit than 0.
    fn travelling(&self, step: u32) -> u32 {
        self.messages(step).map(|(_, _, number)| number).sum()
    }

    /// How far the messages of a step go, the place of their first block among all that travel, and
    /// how many these are: by the digits 1, 2, ...
    fn messages(&self, step: u32) -> impl Iterator<Item = (u32, u32, u32)> + Clone {
        let (ranks, weight) = (u64::from(self.ranks), weight(self.radix, step));
        let (all, left) =
            (weight * u64::from(self.radix), ranks % (weight * u64::from(self.radix)));
        let mut place = 0;
        let digits = (1..u64::from(self.radix)).take_while(move |digit| digit * weight < ranks);
        digits.map(move |digit| {
            let number = ranks / all * weight + left.saturating_sub(digit * weight).min(weight);
            place += number;
            ((digit * weight) as u32, (place - number) as u32, number as u32)
        })
    }

    /// Whether the blocks of each message of a step follow each other: then they need not be packed.
    fn is_one_run(&self, step: u32) -> bool {
        weight(self.radix, step) * u64::from(self.radix) >= u64::from(self.ranks)
    }

    /// Runs of blocks whose numbers have a digit: first block, length, place among all that travel.
    fn runs(&self, step: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let (ranks, weight) = (self.ranks, weight(self.radix, step) as usize);
        self.messages(step).flat_map(move |(first, place, _)| {
            let firsts = (first..ranks).step_by(weight * self.radix as usize).zip(0_u32..);
            let weight = weight as u32;
            firsts.map(move |(first, run)| (first, weight.min(ranks - first), place + run * weight))
        })
    }
}

impl<const RADIX: u32> Program for Bruck<RADIX> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let radix = radix::<RADIX>(call);
        let steps = digits(call.ranks, radix);
        Bruck { rank, ranks: call.ranks, radix, steps, count: call.count }
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
            let messages = (0..).zip(self.messages(step));
            let come = messages.clone().map(|(slot, (distance, place, number))| {
                (call.before(self.rank, distance), slot, self.packed(call, 1, place, number))
            });
            let go = messages.map(|(slot, (distance, place, number))| {
                let slot = self.radix - 1 + slot;
                let what = match self.is_one_run(step) {
                    true => self.turned(call, distance, number),
                    false => self.packed(call, 0, place, number),
                };
                (call.after(self.rank, distance), slot, what)
            });
            out.exchange_all(come, go);
        } else {
            let packing = (index - 1).is_multiple_of(3);
            if packing && self.is_one_run(step) {
                return;
            }
            for (first, number, place) in self.runs(step) {
                let turned = self.turned(call, first, number);
                let packed = self.packed(call, u32::from(!packing), place, number);
                if packing { out.copy(turned, packed) } else { out.copy(packed, turned) }
            }
        }
    }

    fn slots(&self) -> u32 {
        2 * (self.radix - 1)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        (u64::from(self.ranks) + 2 * u64::from(self.most())) * self.count
    }

    fn destinations(&self) -> u32 {
        self.radix - 1
    }
}
