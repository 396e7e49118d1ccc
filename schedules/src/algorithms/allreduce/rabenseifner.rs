//! Rabenseifner: reduce-scatter by recursive halving, then allgather by recursive doubling; long
//! messages. The vector is halved by elements, so any count does; since distances double while the
//! vector is halved, the order of operands is kept. Ranks beyond a power of two are folded away.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, OperandOrder, Program, Range, Round, algorithms::fold::Fold,
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Rabenseifner>(
    Collective::Allreduce,
    Algorithm::Rabenseifner,
    "reduce-scatter by recursive halving, then allgather by recursive doubling",
);

/// Which part of the vector a rank works on, level by level.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Windows {
    pub fold: Fold,
    pub whole: ElementSpan,
    /// Where the vector is reduced.
    pub buffer: Buffer,
}

impl Windows {
    pub fn new(call: &Call<'_>, rank: u32, buffer: Buffer) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        Windows { fold: Fold::new(call.ranks, rank), whole, buffer }
    }

    /// What the rank of a number keeps on a level, and what its partner there keeps.
    pub fn at(&self, number: u32, level: u32) -> (ElementSpan, ElementSpan) {
        let mut own = self.whole;
        let mut other = own;
        for level in 0..=level {
            let (lower, upper) = own.halves();
            (own, other) = if number >> level & 1 == 0 { (lower, upper) } else { (upper, lower) };
        }
        (own, other)
    }

    /// Scratch for what comes in; behind the vector where that is in the scratch memory too.
    fn scratch(&self, count: u64) -> Range {
        let start = if self.buffer == Buffer::Temporary { self.whole.count } else { 0 };
        Range::new(Buffer::Temporary, start, count)
    }

    pub fn temporary(&self) -> u64 {
        if self.buffer == Buffer::Temporary { 2 * self.whole.count } else { self.whole.count }
    }

    /// The first round: the contribution to where it is reduced, and folding.
    pub fn begin(&self, call: &Call<'_>, out: &mut Round) {
        let own = self.whole.in_buffer(self.buffer);
        out.copy(self.whole.in_buffer(call.input()), own);
        self.fold.fold(own, self.scratch(self.whole.count), out);
    }

    /// Hands the partner its half and combines what the partner has of one's own.
    pub fn halve(&self, call: &Call<'_>, number: u32, level: u32, out: &mut Round) {
        let other_number = number ^ (1 << level);
        let partner = self.fold.rank_of(other_number);
        let (own, other) = self.at(number, level);
        let scratch = self.scratch(own.count);
        out.exchange(partner, scratch, partner, other.in_buffer(self.buffer));
        let order = if other_number < number || call.commutative {
            OperandOrder::SourceFirst
        } else {
            OperandOrder::IntoFirst
        };
        out.combine(scratch, own.in_buffer(self.buffer), order);
    }

    /// Exchanges windows with the partner.
    fn join(&self, number: u32, level: u32, out: &mut Round) {
        let partner = self.fold.rank_of(number ^ (1 << level));
        let (own, other) = self.at(number, level);
        out.exchange(partner, other.in_buffer(self.buffer), partner, own.in_buffer(self.buffer));
    }
}

#[derive(Debug, Clone, Copy)]
struct Rabenseifner(Windows);

impl Program for Rabenseifner {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Rabenseifner(Windows::new(call, rank, Buffer::Receive))
    }

    fn rounds(&self) -> u64 {
        // Fold, halve, join, unfold.
        if self.0.whole.count == 0 { 0 } else { 2 + 2 * u64::from(self.0.fold.levels) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let levels = u64::from(self.0.fold.levels);
        let number = self.0.fold.number();
        if index == 0 {
            self.0.begin(call, out);
        } else if index <= 2 * levels {
            let Some(number) = number else { return };
            if index <= levels {
                self.0.halve(call, number, index as u32 - 1, out);
            } else {
                self.0.join(number, (2 * levels - index) as u32, out);
            }
        } else {
            self.0.fold.unfold(self.0.whole.in_buffer(Buffer::Receive), out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.0.temporary()
    }
}
