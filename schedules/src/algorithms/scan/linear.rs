//! Along a chain: the prefix comes from the rank before, and goes on with the own contribution.

use crate::{Buffer, Call, ElementSpan, OperandOrder, Program, Range, Round};

/// Slots 0 and 1 receive in turn, 2 and 3 send in turn.
const FIRST_SEND: u32 = 2;

#[derive(Debug, Clone, Copy)]
pub(super) struct Linear<const EXCLUSIVE: bool> {
    rank: u32,
    ranks: u32,
    whole: ElementSpan,
    segments: u64,
    longest: u64,
}

impl<const EXCLUSIVE: bool> Linear<EXCLUSIVE> {
    fn scratch(&self, which: u64, count: u64) -> Range {
        Range::new(Buffer::Temporary, which * self.longest, count)
    }

    /// Where a prefix comes in. A scan's goes straight into scratch and is put left of the own
    /// contribution; an exscan's is the result, but may be so only after the own contribution,
    /// which can lie in the same place, has been copied.
    fn receive(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at < self.segments {
            let range = self.scratch(at % 2, self.whole.segment(at, call.segment).count);
            out.receive(self.rank - 1, (at % 2) as u32, range);
        }
    }

    fn send(&self, at: u64, range: Range, out: &mut Round) {
        if self.rank + 1 < self.ranks {
            out.send(self.rank + 1, FIRST_SEND + (at % 2) as u32, range);
        }
    }

    fn first_rank(&self, call: &Call<'_>, at: u64, segment: ElementSpan, out: &mut Round) {
        if at >= 2 && self.ranks > 1 {
            out.wait(FIRST_SEND + (at % 2) as u32);
        }
        let own = segment.in_buffer(call.input());
        if !EXCLUSIVE {
            out.copy(own, segment.in_buffer(Buffer::Receive));
        }
        self.send(at, own, out);
    }

    fn other_rank(&self, call: &Call<'_>, at: u64, segment: ElementSpan, out: &mut Round) {
        let last = self.rank + 1 == self.ranks;
        let (came, result) =
            (self.scratch(at % 2, segment.count), segment.in_buffer(Buffer::Receive));
        let onwards = self.scratch(2 + at % 2, segment.count);
        if at == 0 {
            self.receive(call, 0, out);
        }
        self.receive(call, at + 1, out);
        if at >= 2 && !last {
            out.wait(FIRST_SEND + (at % 2) as u32);
        }
        let sum = if EXCLUSIVE { onwards } else { result };
        if !(EXCLUSIVE && last) {
            out.copy(segment.in_buffer(call.input()), sum);
        }
        out.wait((at % 2) as u32);
        if !(EXCLUSIVE && last) {
            out.combine(came, sum, OperandOrder::SourceFirst);
            self.send(at, sum, out);
        }
        if EXCLUSIVE {
            out.copy(came, result);
        }
    }
}

impl<const EXCLUSIVE: bool> Program for Linear<EXCLUSIVE> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        Linear {
            rank,
            ranks: call.ranks,
            whole,
            segments: whole.segments(call.segment),
            longest: whole.segment(0, call.segment).count,
        }
    }

    fn rounds(&self) -> u64 {
        if self.segments == 0 { 0 } else { self.segments + 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == self.segments {
            if self.rank + 1 < self.ranks {
                let first = self.segments.saturating_sub(2);
                (first..self.segments).for_each(|at| out.wait(FIRST_SEND + (at % 2) as u32));
            }
            return;
        }
        let segment = self.whole.segment(index, call.segment);
        if self.rank == 0 {
            self.first_rank(call, index, segment, out);
        } else {
            self.other_rank(call, index, segment, out);
        }
    }

    fn slots(&self) -> u32 {
        4
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        Some(index)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        if self.rank == 0 { 0 } else { 4 * self.longest }
    }
}
