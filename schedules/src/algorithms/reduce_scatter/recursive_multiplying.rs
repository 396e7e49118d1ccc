//! Recursive multiplying, backwards: short messages. As recursive halving, but that a group splits
//! into several at once.

use std::marker::PhantomData;

use super::BlockDivision;
use crate::{
    Buffer, Call, ElementSpan, Program, Range, Round, algorithms::multiplying::Multiplying,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct MultiplyingReduceScatter<B> {
    ranks: Multiplying,
    rank: u32,
    whole: ElementSpan,
    blocks: PhantomData<B>,
}

impl<B: BlockDivision> MultiplyingReduceScatter<B> {
    /// The vector as far as it is combined; what comes in stands behind it.
    fn partial(&self, span: ElementSpan) -> Range {
        ElementSpan { start: span.start - self.whole.start, ..span }.in_buffer(Buffer::Temporary)
    }

    /// A step, the highest digit first.
    fn divide(&self, call: &Call<'_>, step: u32, out: &mut Round) {
        let Some(group) = self.ranks.group(step) else { return };
        let part = |digit| {
            let ranks = group.ranks_of(digit);
            self.partial(B::span(call, ranks.start, ranks.end))
        };
        let own = part(group.digit);
        let scratch = |place: u32| {
            let start = self.whole.count + u64::from(place) * own.count;
            Range::new(Buffer::Temporary, start, own.count)
        };
        let has_data = |message: &(u32, u32, Range)| message.2.count > 0;
        let come = group.sources().map(|(place, _, from)| (from, place, scratch(place)));
        let most = self.ranks.most();
        let go = group.destinations().map(|(place, digit, to)| (to, most + place, part(digit)));
        out.exchange_all(come.clone().filter(has_data), go.filter(has_data));
        come.for_each(|(_, _, came)| out.combine_left(came, own));
    }

    /// The result, to its place: of whom stood aside, through the partner.
    fn place(&self, call: &Call<'_>, out: &mut Round) {
        let block = |rank| self.partial(B::span(call, rank, rank + 1));
        let own = block(self.rank);
        let result = Range::new(Buffer::Receive, 0, own.count);
        let fold = &self.ranks.fold;
        match (fold.partner(), fold.number()) {
            (Some(partner), None) if own.count > 0 => {
                out.receive(partner, 0, result);
                out.wait(0);
            }
            (Some(partner), Some(_)) if block(partner).count > 0 => {
                out.send(partner, 0, block(partner));
                out.copy(own, result);
                out.wait(0);
            }
            (_, Some(_)) => out.copy(own, result),
            _ => {}
        }
    }
}

impl<B: BlockDivision> Program for MultiplyingReduceScatter<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let (ranks, whole) = (Multiplying::new(call, rank), B::whole(call));
        MultiplyingReduceScatter { ranks, rank, whole, blocks: PhantomData }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { u64::from(self.ranks.steps) + 2 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let steps = u64::from(self.ranks.steps);
        if index == 0 {
            let all = self.partial(self.whole);
            out.copy(self.whole.in_buffer(call.input()), all);
            let scratch = Range::new(Buffer::Temporary, self.whole.count, self.whole.count);
            self.ranks.fold.fold(all, scratch, out);
        } else if index <= steps {
            self.divide(call, (steps - index) as u32, out);
        } else {
            self.place(call, out);
        }
    }

    fn slots(&self) -> u32 {
        self.ranks.slots()
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        let folded = if self.ranks.fold.partner().is_some() { self.whole.count } else { 0 };
        let groups = (0..self.ranks.steps).filter_map(|step| self.ranks.group(step));
        let incoming = groups.map(|group| {
            let own = group.ranks_of(group.digit);
            group.sources().count() as u64 * B::span(call, own.start, own.end).count
        });
        self.whole.count + incoming.max().unwrap_or(0).max(folded)
    }

    fn destinations(&self) -> u32 {
        self.ranks.most()
    }
}
