//! Two trees: the two-tree broadcast the other way round. Each half of the vector goes up a tree of
//! its own, in segments; whoever combines in one tree sends but its own part in the other.
//!
//! [`HalvesUp`] is that on any two trees: also on those of nodes' leaders, with the ranks of each
//! node below its leader.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, OperandOrder, Program, Range, Round,
    topology::{TreeShape, TwoTrees, TwoTreesPosition},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<TwoTreesReduce>(
    Collective::Reduce,
    Algorithm::TwoTrees,
    "each half of the vector up a tree of its own; who is inside one is a leaf of the other",
)
.commutative()
.segmented();

/// Slots that receive from each child, in turn.
const RECEIVES: u64 = 2;
/// Segments that are received, combined or sent on at a time, where the rank is no leaf.
const TURNS: u64 = 3;

/// Sends under way at once of a rank that combines nothing.
const LEAF_SENDS: u64 = 8;
/// Segments by which a rank is ahead with the tree in which it is a leaf.
const AHEAD: u64 = LEAF_SENDS - 1;

/// A rank's part in two trees up which the halves of the vector go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalvesUp<const CHILDREN: usize> {
    sides: [ReducedHalf<CHILDREN>; 2],
}

/// One tree, as a rank sees it.
#[derive(Debug, Clone, Copy)]
struct ReducedHalf<const CHILDREN: usize> {
    position: TwoTreesPosition<CHILDREN>,
    half: ElementSpan,
    segments: u64,
    longest: u64,
    first_slot: u32,
    /// Where its scratch memory begins.
    scratch: u64,
    /// Whether the first child's value is received where the segment is combined.
    direct: bool,
}

impl<const CHILDREN: usize> ReducedHalf<CHILDREN> {
    /// Slots that receive come before those that send.
    const ARRIVALS: u64 = CHILDREN as u64 * RECEIVES;
    fn receive_slot(&self, child: usize, at: u64) -> u32 {
        self.first_slot + (child as u64 * RECEIVES + at % RECEIVES) as u32
    }

    fn send_slot(&self, at: u64) -> u32 {
        self.first_slot + (Self::ARRIVALS + at % self.turns()) as u32
    }

    /// Segments that are combined or sent on at a time: so many that a leaf is ahead and waits for nobody.
    fn turns(&self) -> u64 {
        if self.position.is_leaf { LEAF_SENDS } else { TURNS }
    }

    fn slots(&self) -> u32 {
        match self.position.has_children() {
            true => (Self::ARRIVALS + self.turns()) as u32,
            false => LEAF_SENDS as u32,
        }
    }

    fn span(&self, call: &Call<'_>, at: u64) -> ElementSpan {
        self.half.segment(at, call.segment)
    }

    fn children(&self) -> impl Iterator<Item = (usize, u32)> {
        let children = self.position.children.into_iter().enumerate();
        children.filter_map(|(index, child)| Some((index, child?)))
    }

    /// Where a segment is combined: the root has its receive buffer for that.
    fn accumulator(&self, call: &Call<'_>, at: u64) -> Range {
        let span = self.span(call, at);
        match self.position.parent {
            None => span.in_buffer(Buffer::Receive),
            Some(_) => {
                let start = self.scratch + at % self.turns() * self.longest;
                Range::new(Buffer::Temporary, start, span.count)
            }
        }
    }

    /// Where the segment of a child is received, the `nth` of those that there are.
    fn arrival(&self, call: &Call<'_>, nth: usize, at: u64) -> Range {
        if nth == 0 && self.direct {
            return self.accumulator(call, at);
        }
        let accumulators = if self.position.parent.is_some() { self.turns() } else { 0 };
        let place = accumulators + nth as u64 * RECEIVES + at % RECEIVES;
        let start = self.scratch + place * self.longest;
        Range::new(Buffer::Temporary, start, self.span(call, at).count)
    }

    /// Elements of scratch memory.
    fn temporary(&self) -> u64 {
        let arrivals = self.children().count() as u64 * RECEIVES;
        match (arrivals, self.position.parent) {
            (0, _) => 0,
            (_, None) => arrivals * self.longest,
            (_, Some(_)) => (self.turns() + arrivals) * self.longest,
        }
    }

    /// Posts the receives of a segment.
    fn post(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at >= self.segments || !self.position.has_children() {
            return;
        }
        // The place is free again once what was combined there has been sent on.
        if self.position.parent.is_some() && at >= self.turns() {
            out.wait(self.send_slot(at));
        }
        for (nth, (child, rank)) in self.children().enumerate() {
            out.receive(rank, self.receive_slot(child, at), self.arrival(call, nth, at));
        }
    }

    /// Sends a segment, after combining it with what comes from below.
    fn hand_on(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        match self.position.has_children() {
            _ if at >= self.segments => {}
            true => self.combine(call, at, out),
            false => self.send_own(call, at, out),
        }
    }

    /// Sends a segment of a rank that waits for nothing.
    fn send_own(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        let Some(parent) = self.position.parent else { return };
        let slot = self.first_slot + (at % LEAF_SENDS) as u32;
        if at >= LEAF_SENDS {
            out.wait(slot);
        }
        out.send(parent, slot, self.span(call, at).in_buffer(call.input()));
    }

    /// Combines what comes of a segment, and sends it on.
    fn combine(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        let own = self.span(call, at).in_buffer(call.input());
        let accumulator = self.accumulator(call, at);
        if !self.direct {
            out.copy(own, accumulator);
        }
        for (nth, (child, _)) in self.children().enumerate() {
            out.wait(self.receive_slot(child, at));
            let arrival = self.arrival(call, nth, at);
            let what = if arrival == accumulator { own } else { arrival };
            out.combine(what, accumulator, OperandOrder::SourceFirst);
        }
        if let Some(parent) = self.position.parent {
            out.send(parent, self.send_slot(at), accumulator);
        }
    }

    /// Waits for what is still being sent.
    fn end(&self, out: &mut Round) {
        if self.position.parent.is_none() {
            return;
        }
        let combines = self.position.has_children();
        let sends = if combines { self.turns() } else { LEAF_SENDS };
        for at in self.segments.saturating_sub(sends)..self.segments {
            let own = self.first_slot + (at % LEAF_SENDS) as u32;
            out.wait(if combines { self.send_slot(at) } else { own });
        }
    }
}

impl<const CHILDREN: usize> HalvesUp<CHILDREN> {
    /// Of a rank that stands so in the two trees.
    pub fn new(call: &Call<'_>, rank: u32, positions: [TwoTreesPosition<CHILDREN>; 2]) -> Self {
        let (left, right) = ElementSpan { start: 0, count: call.count }.halves();
        let side = |position, half: ElementSpan, first_slot, scratch| ReducedHalf {
            position,
            half,
            segments: half.segments(call.segment),
            longest: half.segment(0, call.segment).count,
            first_slot,
            scratch,
            // In place, the root's own value lies where it combines.
            direct: !(call.in_place && rank == call.root),
        };
        let [first, second] = positions;
        let first = side(first, left, 0, 0);
        let second = side(second, right, first.slots(), first.temporary());
        HalvesUp { sides: [first, second] }
    }

    /// See [`Program::rounds`].
    pub fn rounds(&self) -> u64 {
        let segments = self.sides.iter().map(|side| side.segments).max().unwrap_or(0);
        if segments == 0 { 0 } else { segments + 1 }
    }

    /// See [`Program::round`].
    pub fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if self.sides.iter().all(|side| side.position.is_alone()) {
            if index == 0 {
                let whole = ElementSpan { start: 0, count: call.count };
                out.copy(whole.in_buffer(call.input()), whole.in_buffer(Buffer::Receive));
            }
            return;
        }
        if index + 1 == self.rounds() {
            return self.sides.iter().for_each(|side| side.end(out));
        }
        // For a rank that is below in both trees receives are posted in the order in which it sends. Where there is
        // none, those of the tree in which the rank combines come first.
        let is_above_in_both = self.of(true).any(|side| side.position.has_children());
        let post = |is_leaf, at, out: &mut Round| {
            self.of(is_leaf).for_each(|side| side.post(call, at, out));
        };
        let hand_on = |is_leaf, at, out: &mut Round| {
            self.of(is_leaf).for_each(|side| side.hand_on(call, at, out));
        };
        if !is_above_in_both {
            if index == 0 {
                post(false, 0, out);
            }
            post(false, index + 1, out);
        }
        // As a leaf a rank is ahead: or each tree would wait for the other.
        if index == 0 {
            post(true, 0, out);
            for at in 0..AHEAD {
                post(true, at + 1, out);
                hand_on(true, at, out);
            }
        }
        if is_above_in_both {
            if index == 0 {
                post(false, 0, out);
            }
            post(true, index + AHEAD + 1, out);
            post(false, index + 1, out);
        }
        hand_on(true, index + AHEAD, out);
        hand_on(false, index, out);
    }

    /// The trees in which the rank is a leaf, or those in which it is none.
    fn of(&self, is_leaf: bool) -> impl Iterator<Item = &ReducedHalf<CHILDREN>> {
        self.sides.iter().filter(move |side| side.position.is_leaf == is_leaf)
    }

    /// See [`Program::sent_before`]: a rank may be another's child in both trees.
    pub fn sent_before(&self, index: u64) -> Option<u64> {
        Some(2 * index)
    }

    /// See [`Program::slots`].
    pub fn slots(&self) -> u32 {
        self.sides.iter().map(ReducedHalf::slots).sum()
    }

    /// See [`Program::temporary`].
    pub fn temporary(&self) -> u64 {
        self.sides.iter().map(ReducedHalf::temporary).sum()
    }
}

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TwoTreesReduce(HalvesUp<2>);

impl Program for TwoTreesReduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let trees =
            TwoTrees::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: call.fan_out });
        TwoTreesReduce(HalvesUp::new(call, rank, trees.positions(rank)))
    }

    fn rounds(&self) -> u64 {
        self.0.rounds()
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        self.0.round(call, index, out);
    }

    fn slots(&self) -> u32 {
        self.0.slots()
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.0.temporary()
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        self.0.sent_before(index)
    }
}
