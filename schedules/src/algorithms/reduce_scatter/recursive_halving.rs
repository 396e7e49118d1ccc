//! Recursive halving: short and middle messages. A group of ranks splits into halves, and each
//! rank hands its partner of the other half its contribution to that half's blocks. Any number of
//! ranks; a half may be one larger than the other.

use std::marker::PhantomData;

use super::BlockDivision;
use crate::{Buffer, Call, ElementSpan, Program, Range, Round, algorithms::halves::Halves};

#[derive(Debug, Clone, Copy)]
pub(super) struct RecursiveHalving<B> {
    halves: Halves,
    own: ElementSpan,
    whole: ElementSpan,
    blocks: PhantomData<B>,
}

impl<B> RecursiveHalving<B> {
    /// The vector as far as it is combined; what comes in stands behind it.
    fn partial(&self, span: ElementSpan) -> Range {
        ElementSpan { start: span.start - self.whole.start, ..span }.in_buffer(Buffer::Temporary)
    }
}

impl<B: BlockDivision> RecursiveHalving<B> {
    fn halve(&self, call: &Call<'_>, level: u32, out: &mut Round) {
        let group = self.halves.group(level);
        let Some(partner) = group.source() else { return };
        let lower = B::span(call, group.first, group.middle);
        let upper = B::span(call, group.middle, group.end);
        let (own, other) = if group.is_lower() { (lower, upper) } else { (upper, lower) };
        let scratch = |place: u64| {
            Range::new(Buffer::Temporary, self.whole.count + place * own.count, own.count)
        };
        let own_partner = (!group.is_surplus()).then_some(partner);
        let sources = [(1, own_partner), (2, group.surplus())];
        let sources = || {
            let posted = |(slot, from): (u32, Option<u32>)| from.map(|from| (slot, from));
            sources.into_iter().filter_map(posted).filter(|_| own.count > 0)
        };
        sources().for_each(|(slot, from)| out.receive(from, slot, scratch(u64::from(slot) - 1)));
        if other.count > 0 {
            out.send(partner, 0, self.partial(other));
        }
        for (slot, _) in sources() {
            out.wait(slot);
            out.combine_left(scratch(u64::from(slot) - 1), self.partial(own));
        }
        if other.count > 0 {
            out.wait(0);
        }
    }
}

impl<B: BlockDivision> Program for RecursiveHalving<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RecursiveHalving {
            halves: Halves::new(call.ranks, rank),
            own: B::span(call, rank, rank + 1),
            whole: B::whole(call),
            blocks: PhantomData,
        }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.halves.levels()) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let levels = u64::from(self.halves.levels());
        if index == 0 {
            out.copy(self.whole.in_buffer(call.input()), self.partial(self.whole));
        } else if index <= levels {
            self.halve(call, index as u32 - 1, out);
        } else {
            out.copy(self.partial(self.own), Range::new(Buffer::Receive, 0, self.own.count));
        }
    }

    fn slots(&self) -> u32 {
        Halves::SLOTS
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        // The last rank of an upper half takes in twice its half, which may hold nearly everything.
        3 * self.whole.count
    }
}
