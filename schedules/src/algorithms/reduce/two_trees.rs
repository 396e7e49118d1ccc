//! Two trees: the two-tree broadcast the other way round. Each half of the vector goes up a tree of
//! its own, in segments; whoever combines in one tree sends but its own part in the other.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, OperandOrder, Program, Range, Round,
    topology::{TreeShape, TwoTrees},
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
/// Segments that are received, combined or sent on at a time.
const TURNS: u64 = 3;

/// Sends of a leaf under way at once: so far may a rank be ahead with the tree in which it is one.
const LEAF_SENDS: u64 = 8;

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TwoTreesReduce {
    sides: [ReducedHalf; 2],
}

/// One tree, as a rank sees it.
#[derive(Debug, Clone, Copy)]
struct ReducedHalf {
    parent: Option<u32>,
    children: [Option<u32>; 2],
    half: ElementSpan,
    segments: u64,
    longest: u64,
    first_slot: u32,
    /// Where its scratch memory begins.
    scratch: u64,
    /// Whether the first child's value is received where the segment is combined.
    direct: bool,
}

impl ReducedHalf {
    const SLOTS: u32 = LEAF_SENDS as u32;

    fn receive_slot(&self, child: usize, at: u64) -> u32 {
        self.first_slot + child as u32 * RECEIVES as u32 + (at % RECEIVES) as u32
    }

    fn send_slot(&self, at: u64) -> u32 {
        self.first_slot + 2 * RECEIVES as u32 + (at % TURNS) as u32
    }

    fn is_leaf(&self) -> bool {
        self.children == [None, None]
    }

    fn span(&self, call: &Call<'_>, at: u64) -> ElementSpan {
        self.half.segment(at, call.segment)
    }

    /// Where a segment is combined: the root has its receive buffer for that.
    fn accumulator(&self, call: &Call<'_>, at: u64) -> Range {
        let span = self.span(call, at);
        match self.parent {
            None => span.in_buffer(Buffer::Receive),
            Some(_) => {
                let start = self.scratch + at % TURNS * self.longest;
                Range::new(Buffer::Temporary, start, span.count)
            }
        }
    }

    /// Where a child's segment is received.
    fn arrival(&self, call: &Call<'_>, child: usize, at: u64) -> Range {
        if child == 0 && self.direct {
            return self.accumulator(call, at);
        }
        let accumulators = if self.parent.is_some() { TURNS } else { 0 };
        let place = accumulators + child as u64 * RECEIVES + at % RECEIVES;
        let start = self.scratch + place * self.longest;
        Range::new(Buffer::Temporary, start, self.span(call, at).count)
    }

    /// Elements of scratch memory.
    fn temporary(&self) -> u64 {
        match (self.is_leaf(), self.parent) {
            (true, _) => 0,
            (false, None) => 2 * RECEIVES * self.longest,
            (false, Some(_)) => (TURNS + 2 * RECEIVES) * self.longest,
        }
    }

    /// Posts the receives of a segment.
    fn post(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at >= self.segments || self.is_leaf() {
            return;
        }
        // The place is free again once what was combined there has been sent on.
        if self.parent.is_some() && at >= TURNS {
            out.wait(self.send_slot(at));
        }
        for (child, rank) in self.children.into_iter().enumerate() {
            if let Some(rank) = rank {
                out.receive(rank, self.receive_slot(child, at), self.arrival(call, child, at));
            }
        }
    }

    /// Sends a segment of a leaf, which waits for nothing.
    fn send_leaf(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        let Some(parent) = self.parent.filter(|_| at < self.segments) else { return };
        let slot = self.first_slot + (at % LEAF_SENDS) as u32;
        if at >= LEAF_SENDS {
            out.wait(slot);
        }
        out.send(parent, slot, self.span(call, at).in_buffer(call.input()));
    }

    /// Combines what comes of a segment, and sends it on.
    fn pass(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at >= self.segments {
            return;
        }
        let own = self.span(call, at).in_buffer(call.input());
        let accumulator = self.accumulator(call, at);
        if !self.direct {
            out.copy(own, accumulator);
        }
        for (child, _) in self.children.iter().enumerate().filter(|(_, child)| child.is_some()) {
            out.wait(self.receive_slot(child, at));
            let arrival = self.arrival(call, child, at);
            let what = if arrival == accumulator { own } else { arrival };
            out.combine(what, accumulator, OperandOrder::SourceFirst);
        }
        if let Some(parent) = self.parent {
            out.send(parent, self.send_slot(at), accumulator);
        }
    }

    /// Waits for what is still being sent.
    fn end(&self, out: &mut Round) {
        if self.parent.is_none() {
            return;
        }
        let sends = if self.is_leaf() { LEAF_SENDS } else { TURNS };
        for at in self.segments.saturating_sub(sends)..self.segments {
            let leaf = self.first_slot + (at % LEAF_SENDS) as u32;
            out.wait(if self.is_leaf() { leaf } else { self.send_slot(at) });
        }
    }
}

impl Program for TwoTreesReduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let trees =
            TwoTrees::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: call.fan_out });
        let (left, right) = ElementSpan { start: 0, count: call.count }.halves();
        let side = |tree, half: ElementSpan, scratch| ReducedHalf {
            parent: trees.parent(tree, rank),
            children: trees.children(tree, rank),
            half,
            segments: half.segments(call.segment),
            longest: half.segment(0, call.segment).count,
            first_slot: tree * ReducedHalf::SLOTS,
            scratch,
            // In place, the root's own value lies where it combines.
            direct: !(call.in_place && rank == call.root),
        };
        let first = side(0, left, 0);
        TwoTreesReduce { sides: [first, side(1, right, first.temporary())] }
    }

    fn rounds(&self) -> u64 {
        let segments = self.sides.iter().map(|side| side.segments).max().unwrap_or(0);
        if segments == 0 { 0 } else { segments + 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if self.sides.iter().all(|side| side.parent.is_none() && side.is_leaf()) {
            if index == 0 {
                let whole = ElementSpan { start: 0, count: call.count };
                out.copy(whole.in_buffer(call.input()), whole.in_buffer(Buffer::Receive));
            }
            return;
        }
        if index == 0 {
            self.sides.iter().for_each(|side| side.post(call, 0, out));
        }
        if index + 1 == self.rounds() {
            return self.sides.iter().for_each(|side| side.end(out));
        }
        self.sides.iter().for_each(|side| side.post(call, index + 1, out));
        // As a leaf a rank is ahead: or each tree would wait for the other.
        let ahead =
            if index == 0 { 0..LEAF_SENDS } else { index + LEAF_SENDS - 1..index + LEAF_SENDS };
        let [leaves, inner] = [true, false].map(|leaf| {
            let sides = self.sides.iter();
            sides.filter(move |side| side.is_leaf() == leaf)
        });
        for at in ahead {
            leaves.clone().for_each(|side| side.send_leaf(call, at, out));
        }
        inner.for_each(|side| side.pass(call, index, out));
    }

    fn slots(&self) -> u32 {
        2 * ReducedHalf::SLOTS
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.sides.iter().map(ReducedHalf::temporary).sum()
    }
}
