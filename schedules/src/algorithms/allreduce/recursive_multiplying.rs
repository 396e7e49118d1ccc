//! Recursive multiplying: short messages. As recursive doubling, but with several ranks at once, in
//! fewer steps.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, OperandOrder, Program, Range, Round,
    algorithms::multiplying::Multiplying,
};

pub(in super::super) const ENTRY: Entry = Entry::new::<MultiplyingAllreduce>(
    Collective::Allreduce,
    Algorithm::RecursiveMultiplying,
    "whole vectors exchanged among fan-out ranks at a time",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct MultiplyingAllreduce {
    ranks: Multiplying,
    whole: ElementSpan,
}

impl MultiplyingAllreduce {
    /// All who exchange combine in the order of their numbers: so all get the same result, to the
    /// last digit.
    fn multiply(&self, call: &Call<'_>, step: u32, out: &mut Round) {
        let Some(group) = self.ranks.group(step) else { return };
        let (most, result) = (self.ranks.most(), self.whole.in_buffer(Buffer::Receive));
        let come = group.sources().map(|(place, _, from)| (from, place, self.scratch(place)));
        out.exchange_all(
            come,
            group.destinations().map(|(place, _, to)| (to, most + place, result)),
        );
        for place in 1..group.digit {
            out.combine_left(self.scratch(place - 1), self.scratch(place));
        }
        if group.digit > 0 {
            out.combine_left(self.scratch(group.digit - 1), result);
        }
        for place in group.digit..group.size - 1 {
            let order = match call.commutative {
                true => OperandOrder::SourceFirst,
                false => OperandOrder::IntoFirst,
            };
            out.combine(self.scratch(place), result, order);
        }
    }

    fn scratch(&self, place: u32) -> Range {
        Range::new(Buffer::Temporary, u64::from(place) * self.whole.count, self.whole.count)
    }
}

impl Program for MultiplyingAllreduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        MultiplyingAllreduce { ranks: Multiplying::new(call, rank), whole }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { u64::from(self.ranks.steps) + 2 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let result = self.whole.in_buffer(Buffer::Receive);
        if index == 0 {
            out.copy(self.whole.in_buffer(call.input()), result);
            self.ranks.fold.fold(result, self.scratch(0), out);
        } else if index <= u64::from(self.ranks.steps) {
            self.multiply(call, index as u32 - 1, out);
        } else {
            self.ranks.fold.unfold(result, out);
        }
    }

    fn slots(&self) -> u32 {
        self.ranks.slots()
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        u64::from(self.ranks.most()) * self.whole.count
    }

    fn destinations(&self) -> u32 {
        self.ranks.most()
    }
}
