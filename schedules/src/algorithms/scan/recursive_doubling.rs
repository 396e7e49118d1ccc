//! Recursive doubling: every rank keeps its prefix and the total of its group of 2^k ranks, and
//! exchanges totals with the rank that differs in bit k, if there is one. What comes from a lower
//! rank belongs to the prefix.

use crate::{Buffer, Call, ElementSpan, OperandOrder, Program, Range, Round};

#[derive(Debug, Clone, Copy)]
pub(super) struct RecursiveDoubling<const EXCLUSIVE: bool> {
    rank: u32,
    ranks: u32,
    whole: ElementSpan,
}

impl<const EXCLUSIVE: bool> RecursiveDoubling<EXCLUSIVE> {
    fn total(&self) -> Range {
        self.whole.in_buffer(Buffer::Temporary)
    }

    fn came(&self) -> Range {
        Range::new(Buffer::Temporary, self.whole.count, self.whole.count)
    }

    /// Whether anybody is told the total after the exchange at this distance.
    fn meets_others(&self, bit: u32) -> bool {
        let later = std::iter::successors(Some(2 * bit), |bit| Some(2 * bit));
        later.take_while(|bit| *bit < self.ranks).any(|bit| self.rank ^ bit < self.ranks)
    }

    fn exchange(&self, call: &Call<'_>, bit: u32, out: &mut Round) {
        let partner = self.rank ^ bit;
        if partner >= self.ranks {
            return;
        }
        out.exchange(partner, self.came(), partner, self.total());
        let result = self.whole.in_buffer(Buffer::Receive);
        if partner < self.rank {
            // The first lower partner is the one of the lowest set bit.
            if EXCLUSIVE && self.rank & (bit - 1) == 0 {
                out.copy(self.came(), result);
            } else {
                out.combine(self.came(), result, OperandOrder::SourceFirst);
            }
        }
        if !self.meets_others(bit) {
            return;
        }
        if partner < self.rank {
            out.combine(self.came(), self.total(), OperandOrder::SourceFirst);
        } else {
            let order =
                if call.commutative { OperandOrder::SourceFirst } else { OperandOrder::IntoFirst };
            out.combine(self.came(), self.total(), order);
        }
    }
}

impl<const EXCLUSIVE: bool> Program for RecursiveDoubling<EXCLUSIVE> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        RecursiveDoubling { rank, ranks: call.ranks, whole }
    }

    fn rounds(&self) -> u64 {
        match self.whole.count {
            0 => 0,
            _ => 1 + u64::from(u32::BITS - (self.ranks - 1).leading_zeros()),
        }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if let Some(step) = index.checked_sub(1) {
            return self.exchange(call, 1 << step, out);
        }
        let own = self.whole.in_buffer(call.input());
        out.copy(own, self.total());
        if !EXCLUSIVE {
            out.copy(own, self.whole.in_buffer(Buffer::Receive));
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        2 * self.whole.count
    }
}
