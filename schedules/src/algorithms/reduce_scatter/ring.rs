//! Ring: long messages, all of them to the next rank. The partial result of a block goes around
//! the ring, from the rank after its owner to its owner, and everybody adds to it.

use std::marker::PhantomData;

use super::BlockDivision;
use crate::{Buffer, Call, ElementSpan, Program, Range, Round, topology::Ring};

#[derive(Debug, Clone, Copy)]
pub(super) struct RingReduceScatter<B> {
    ring: Ring,
    rank: u32,
    ranks: u32,
    own: ElementSpan,
    blocks: PhantomData<B>,
}

impl<B: BlockDivision> Program for RingReduceScatter<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RingReduceScatter {
            ring: Ring::new(call.ranks),
            rank,
            ranks: call.ranks,
            own: B::span(call, rank, rank + 1),
            blocks: PhantomData,
        }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let hop = index as u32;
        let result = Range::new(Buffer::Receive, 0, self.own.count);
        // Two of the largest block are scratch, used in turn.
        let largest = B::largest(call, out);
        let scratch =
            |hop: u32, count| Range::new(Buffer::Temporary, u64::from(hop % 2) * largest, count);
        if hop + 1 == self.ranks {
            // The last partial result is that of the own block.
            return match hop {
                0 => out.copy(self.own.in_buffer(call.input()), result),
                _ => out.copy(scratch(hop - 1, self.own.count), result),
            };
        }
        let sent = call.before(self.rank, hop + 1);
        let received = call.before(sent, 1);
        let block = |rank| B::span(call, rank, rank + 1);
        let what = match hop {
            0 => block(sent).in_buffer(call.input()),
            _ => scratch(hop - 1, block(sent).count),
        };
        let into = scratch(hop, block(received).count);
        out.exchange(self.ring.previous(self.rank), into, self.ring.next(self.rank), what);
        out.combine_left(block(received).in_buffer(call.input()), into);
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, call: &Call<'_>, scratch: &mut Round) -> u64 {
        2 * B::largest(call, scratch)
    }
}
