//! Ring: reduce-scatter around a ring, then allgather around it; the longest messages, all of them
//! to neighbours. Segmented, the reduce-scatter goes around once per segment of the parts, so that
//! less is under way at a time.

use records::{Algorithm, Collective};

use crate::{Buffer, Call, ElementSpan, Entry, Program, Range, Round, topology::Ring};

pub(in super::super) const ENTRY: Entry = Entry::new::<RingAllreduce<false>>(
    Collective::Allreduce,
    Algorithm::Ring,
    "reduce-scatter, then allgather, around a ring",
)
.commutative();

pub(in super::super) const SEGMENTED: Entry = Entry::new::<RingAllreduce<true>>(
    Collective::Allreduce,
    Algorithm::SegmentedRing,
    "reduce-scatter around a ring segment by segment, then allgather around it",
)
.commutative()
.segmented();

#[derive(Debug, Clone, Copy)]
struct RingAllreduce<const SEGMENTED: bool> {
    ring: Ring,
    rank: u32,
    whole: ElementSpan,
    /// Ranks less one: the hops of once around.
    hops: u64,
    /// Times around for the reduce-scatter.
    phases: u64,
    /// Elements of the longest message of the reduce-scatter.
    longest: u64,
}

impl<const SEGMENTED: bool> RingAllreduce<SEGMENTED> {
    fn part(&self, call: &Call<'_>, rank: u32) -> ElementSpan {
        self.whole.part(u64::from(rank), u64::from(call.ranks))
    }

    /// One hop of the reduce-scatter: the part that arrives is combined and goes on next.
    fn reduce(&self, call: &Call<'_>, phase: u64, hop: u32, out: &mut Round) {
        let sent = call.before(self.rank, hop + 1);
        let received = call.before(sent, 1);
        let piece = |rank| {
            let part = self.part(call, rank).part(phase, self.phases);
            part.in_buffer(Buffer::Receive)
        };
        let into = piece(received);
        let scratch = Range::new(Buffer::Temporary, 0, into.count);
        let (from, to) = (self.ring.previous(self.rank), self.ring.next(self.rank));
        out.exchange(from, scratch, to, piece(sent));
        out.combine_left(scratch, into);
    }

    /// One hop of the allgather.
    fn gather(&self, call: &Call<'_>, hop: u32, out: &mut Round) {
        let sent = call.before(self.rank, hop);
        let received = call.before(sent, 1);
        let part = |rank| self.part(call, rank).in_buffer(Buffer::Receive);
        let (from, to) = (self.ring.previous(self.rank), self.ring.next(self.rank));
        out.exchange(from, part(received), to, part(sent));
    }
}

impl<const SEGMENTED: bool> Program for RingAllreduce<SEGMENTED> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let largest = whole.part(0, u64::from(call.ranks));
        let phases = if SEGMENTED { largest.segments(call.segment).max(1) } else { 1 };
        RingAllreduce {
            ring: Ring::new(call.ranks),
            rank,
            whole,
            hops: u64::from(call.ranks) - 1,
            phases,
            longest: largest.part(0, phases).count,
        }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { 1 + self.hops * (self.phases + 1) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(index) = index.checked_sub(1) else {
            return out
                .copy(self.whole.in_buffer(call.input()), self.whole.in_buffer(Buffer::Receive));
        };
        let (phase, hop) = (index / self.hops, (index % self.hops) as u32);
        if phase < self.phases {
            self.reduce(call, phase, hop, out);
        } else {
            self.gather(call, hop, out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.longest
    }
}
