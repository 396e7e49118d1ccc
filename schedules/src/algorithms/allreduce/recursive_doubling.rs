//! Recursive doubling: short messages. In step k a rank exchanges all it has with the rank whose
//! number differs in bit k; ranks beyond a power of two are folded away first.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, OperandOrder, Program, Range, Round, algorithms::fold::Fold,
};

pub(in super::super) const ENTRY: Entry = Entry::new::<RecursiveDoubling>(
    Collective::Allreduce,
    Algorithm::RecursiveDoubling,
    "whole vectors exchanged at doubling distances",
);

#[derive(Debug, Clone, Copy)]
struct RecursiveDoubling {
    fold: Fold,
    whole: ElementSpan,
}

impl Program for RecursiveDoubling {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RecursiveDoubling {
            fold: Fold::new(call.ranks, rank),
            whole: ElementSpan { start: 0, count: call.count },
        }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { u64::from(self.fold.levels) + 2 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let result = self.whole.in_buffer(Buffer::Receive);
        let scratch: Range = self.whole.in_buffer(Buffer::Temporary);
        if index == 0 {
            out.copy(self.whole.in_buffer(call.input()), result);
            self.fold.fold(result, scratch, out);
        } else if index <= u64::from(self.fold.levels) {
            let Some(number) = self.fold.number() else { return };
            let other = number ^ (1 << (index - 1));
            let partner = self.fold.rank_of(other);
            out.exchange(partner, scratch, partner, result);
            let order = if other < number || call.commutative {
                OperandOrder::SourceFirst
            } else {
                OperandOrder::IntoFirst
            };
            out.combine(scratch, result, order);
        } else {
            self.fold.unfold(result, out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.whole.count
    }
}
