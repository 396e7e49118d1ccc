//! Pairwise: long messages. In step i every rank sends to the rank i after it the block that is
//! that rank's; nothing is sent twice.

use std::marker::PhantomData;

use super::BlockDivision;
use crate::{Buffer, Call, ElementSpan, Program, Range, Round};

#[derive(Debug, Clone, Copy)]
pub(super) struct Pairwise<B> {
    rank: u32,
    ranks: u32,
    own: ElementSpan,
    /// Whether the result would overwrite what is still to be sent.
    in_place: bool,
    blocks: PhantomData<B>,
}

impl<B> Pairwise<B> {
    /// In place, the result is built in scratch memory, behind what comes in.
    fn result(&self) -> Range {
        match self.in_place {
            true => Range::new(Buffer::Temporary, self.own.count, self.own.count),
            false => Range::new(Buffer::Receive, 0, self.own.count),
        }
    }
}

impl<B: BlockDivision> Program for Pairwise<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let own = B::span(call, rank, rank + 1);
        let (ranks, in_place) = (call.ranks, call.in_place);
        Pairwise { rank, ranks, own, in_place, blocks: PhantomData }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks) + 1
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let distance = index as u32;
        if distance == 0 {
            out.copy(self.own.in_buffer(call.input()), self.result());
        } else if distance == self.ranks {
            out.copy(self.result(), Range::new(Buffer::Receive, 0, self.own.count));
        } else {
            let (from, to) = (call.before(self.rank, distance), call.after(self.rank, distance));
            let scratch = Range::new(Buffer::Temporary, 0, self.own.count);
            out.exchange(from, scratch, to, B::span(call, to, to + 1).in_buffer(call.input()));
            out.combine_left(scratch, self.result());
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        if self.in_place { 2 * self.own.count } else { self.own.count }
    }

    fn destinations(&self) -> u32 {
        self.ranks - 1
    }
}
