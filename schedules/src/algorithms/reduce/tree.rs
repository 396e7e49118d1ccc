//! Segments up a tree: one program for all trees.

use crate::{
    Buffer, Call, ElementSpan, OperandOrder, Program, Range, Round, WINDOW,
    algorithms::grouping::GROUP, topology::Tree,
};

/// Slots 0 and 1 receive in turn, so that the next message's receive is posted before this one is
/// combined; the others send segments in turn (a leaf, which receives nothing, sends from slot 0
/// on).
const FIRST_SEND: u32 = 2;

/// Every rank combines, segment by segment, its children's values with its own and hands the
/// result to its parent.
///
/// Where the order of operands allows it, the first child's value is received where the segment is
/// combined, and this rank's own is combined with it: so nothing is copied.
///
/// A non-commutative operation on a tree that keeps the order of ranks from rank 0 only is reduced
/// there, and the result is then sent to the root.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TreeReduce<T> {
    tree: T,
    rank: u32,
    /// Root of the tree.
    head: u32,
    root: u32,
    parent: Option<u32>,
    children: u32,
    whole: ElementSpan,
    segments: u64,
    /// Elements of the longest segment.
    longest: u64,
    /// Whether the first child's value is received where the segment is combined.
    direct: bool,
    /// Segments that are received there, combined or sent on at a time.
    turns: u64,
}

/// One segment of the vector, and where it is combined.
#[derive(Debug, Clone, Copy)]
struct SegmentPart {
    at: u64,
    span: ElementSpan,
    accumulator: Range,
}

impl<T: Tree> TreeReduce<T> {
    /// Rounds of the tree itself: one per segment and child, and one that waits for the sends; or,
    /// if there is one segment only, one per [`GROUP`] children.
    fn tree_rounds(&self) -> u64 {
        match self.segments {
            1 => u64::from(self.children.div_ceil(GROUP).max(1)),
            segments => segments * u64::from(self.children.max(1)) + 1,
        }
    }

    /// A division would cost more than the rest of a step; mostly none is needed.
    #[inline]
    fn turn(&self, at: u64) -> u64 {
        if at < self.turns { at } else { at % self.turns }
    }

    /// The slot that sends segment `at`.
    fn send_slot(&self, at: u64) -> u32 {
        let turn = self.turn(at) as u32;
        if self.children == 0 { turn } else { FIRST_SEND + turn }
    }

    /// Before the place and the slot of segment `at` are used again.
    fn wait_for_turn(&self, at: u64, out: &mut Round) {
        if self.parent.is_some() && at >= self.turns {
            out.wait(self.send_slot(at));
        }
    }

    /// A round where all is one segment: whoever makes rounds in great numbers has fewer to make.
    #[inline(always)]
    fn round_of_one(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let part =
            SegmentPart { at: 0, span: self.whole, accumulator: self.accumulator(0, self.whole) };
        if self.children == 0 {
            self.send_leaf(call, part.at, part.span, out);
        }
        let first = index as u32 * GROUP;
        let end = self.children.min(first + GROUP);
        (first..end).for_each(|child| self.combine_child(call, part, child, out));
        if self.parent.is_some() && end == self.children {
            out.wait(self.send_slot(0));
        }
    }

    /// A segment's child, or a leaf's segment.
    #[inline(never)]
    fn round_of_many(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if self.children == 0 {
            return self.send_leaf(call, index, self.whole.segment(index, call.segment), out);
        }
        let children = u64::from(self.children);
        let part = self.part(call, index / children);
        self.combine_child(call, part, (index % children) as u32, out);
    }

    fn part(&self, call: &Call<'_>, at: u64) -> SegmentPart {
        let span = self.whole.segment(at, call.segment);
        SegmentPart { at, span, accumulator: self.accumulator(at, span) }
    }

    /// Where segment `at` is combined. The head, if it isn't the root, combines all of the vector
    /// before it sends it on.
    fn accumulator(&self, at: u64, segment: ElementSpan) -> Range {
        match self.parent {
            None if self.rank == self.root => segment.in_buffer(Buffer::Receive),
            None => segment.in_buffer(Buffer::Temporary),
            Some(_) => Range::new(Buffer::Temporary, self.turn(at) * self.longest, segment.count),
        }
    }

    /// The messages of a rank alternate between two slots, segment after segment.
    fn receive_slot(&self, at: u64, child: u32) -> u32 {
        ((at as u32 & self.children) ^ child) & 1
    }

    /// Elements of scratch memory where segments are combined; after it come those being received.
    fn accumulators(&self) -> u64 {
        match self.parent {
            None if self.rank == self.root => 0,
            None => self.whole.count,
            Some(_) => self.turns * self.longest,
        }
    }

    /// Where a child's message is received.
    #[inline(always)]
    fn arrival(&self, part: SegmentPart, child: u32) -> Range {
        if child == 0 && self.direct {
            return part.accumulator;
        }
        let slot = u64::from(self.receive_slot(part.at, child));
        let start = self.accumulators() + slot * self.longest;
        Range::new(Buffer::Temporary, start, part.span.count)
    }

    #[inline(always)]
    fn receive(&self, part: SegmentPart, child: u32, out: &mut Round) {
        if child == 0 && self.direct {
            self.wait_for_turn(part.at, out);
        }
        let (from, slot) = (self.tree.child(self.rank, child), self.receive_slot(part.at, child));
        out.receive(from, slot, self.arrival(part, child));
    }

    #[inline(always)]
    fn combine_child(&self, call: &Call<'_>, part: SegmentPart, child: u32, out: &mut Round) {
        let SegmentPart { at, span, accumulator } = part;
        let own = span.in_buffer(call.input());
        if child == 0 && !self.direct {
            self.wait_for_turn(at, out);
            out.copy(own, accumulator);
        }
        if at == 0 && child == 0 {
            self.receive(part, 0, out);
        }
        if child + 1 < self.children {
            self.receive(part, child + 1, out);
        } else if at + 1 < self.segments {
            self.receive(self.part(call, at + 1), 0, out);
        }
        out.wait(self.receive_slot(at, child));
        if child == 0 && self.direct {
            out.combine(own, accumulator, OperandOrder::SourceFirst);
        } else {
            let stands_before =
                || self.tree.stands_before(self.rank, self.tree.child(self.rank, child));
            let before = call.commutative || stands_before();
            let order = if before { OperandOrder::SourceFirst } else { OperandOrder::IntoFirst };
            out.combine(self.arrival(part, child), accumulator, order);
        }
        if let Some(parent) = self.parent
            && child + 1 == self.children
        {
            out.send(parent, self.send_slot(at), accumulator);
        }
    }

    /// A leaf sends its segments from where they are.
    #[inline]
    fn send_leaf(&self, call: &Call<'_>, at: u64, segment: ElementSpan, out: &mut Round) {
        match self.parent {
            Some(parent) => {
                self.wait_for_turn(at, out);
                out.send(parent, self.send_slot(at), segment.in_buffer(call.input()));
            }
            None => out.copy(segment.in_buffer(call.input()), segment.in_buffer(Buffer::Receive)),
        }
    }

    /// From the head to the root.
    fn forward(&self, out: &mut Round) {
        if self.rank == self.head {
            out.send(self.root, 0, self.whole.in_buffer(Buffer::Temporary));
            out.wait(0);
        } else if self.rank == self.root {
            out.receive(self.head, 0, self.whole.in_buffer(Buffer::Receive));
            out.wait(0);
        }
    }
}

impl<T: Tree> Program for TreeReduce<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let head = T::head(call);
        let tree = T::of_call(call, head);
        let whole = ElementSpan { start: 0, count: call.count };
        let segments = whole.segments(call.segment);
        let children = tree.child_count(rank);
        // In place, this rank's own value lies where the root combines.
        let in_the_way = call.in_place && rank == head && head == call.root;
        let direct = children > 0
            && !in_the_way
            && (call.commutative || !tree.stands_before(rank, tree.child(rank, 0)));
        // Received into, combined and sent at the same time.
        let turns = if direct { 3 } else { 2 };
        TreeReduce {
            tree,
            rank,
            head,
            root: call.root,
            parent: tree.parent(rank),
            children,
            whole,
            segments,
            longest: whole.segment(0, call.segment).count,
            direct,
            turns: segments.clamp(1, turns),
        }
    }

    fn rounds(&self) -> u64 {
        if self.segments == 0 { 0 } else { self.tree_rounds() + u64::from(self.head != self.root) }
    }

    #[inline(always)]
    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let rounds = self.tree_rounds();
        if index == rounds {
            self.forward(out);
        } else if self.segments == 1 {
            self.round_of_one(call, index, out);
        } else if index + 1 == rounds {
            if self.parent.is_some() {
                let first = self.segments - self.turns;
                (first..self.segments).for_each(|at| out.wait(self.send_slot(at)));
            }
        } else {
            self.round_of_many(call, index, out);
        }
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        let is_of_tree = self.segments > WINDOW && index < self.tree_rounds();
        is_of_tree.then(|| index / u64::from(self.children.max(1)))
    }

    fn slots(&self) -> u32 {
        let sends = self.turns as u32;
        if self.children == 0 { sends } else { FIRST_SEND + sends }
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        match (self.children, self.direct) {
            (0, _) => 0,
            (1, true) => self.accumulators(),
            _ => self.accumulators() + 2 * self.longest,
        }
    }
}
