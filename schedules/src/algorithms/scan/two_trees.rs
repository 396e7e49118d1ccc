//! Two trees: long messages on many ranks. Each half of the message goes up and down a binary tree that
//! lists the ranks in order; whoever is inside one tree is a leaf of the other (Sanders, Speck, Träff,
//! "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009).
//!
//! Up: a rank puts what its left subtree comes to left of its own contribution, and hands on what its whole
//! subtree comes to. Down: it gets the prefix of all before its subtree, puts that left of what it has, and
//! hands the prefix to its left child, its own result to its right one.
//!
//! A prefix comes as many hops after a rank's own segment as there are to the root and back, so a rank
//! waits for it so many rounds later. Two ranks may be neighbours in both trees: what goes from one to the other
//! is posted by both in the same rounds, and in these in the same order.

use crate::{
    Buffer, Call, ElementSpan, OperandOrder, Program, Range, Round,
    topology::{TreeShape, TwoTrees},
};

/// Receives of prefixes that may be posted at once.
const PREFIXES: u64 = 3;
/// Slots of a tree: from the children, of prefixes, to the parent and the children.
const FROM_LEFT: u32 = 0;
const FROM_RIGHT: u32 = 1;
const FROM_PARENT: u32 = 2;
const TO_PARENT: u32 = FROM_PARENT + PREFIXES as u32;
const TO_LEFT: u32 = TO_PARENT + 1;
const TO_RIGHT: u32 = TO_LEFT + 1;
const SLOTS: u32 = TO_RIGHT + 1;
/// Scratch segments of a tree: from the children, the subtree's, prefixes.
const SUBTREE: u64 = 2;
const PREFIX: u64 = 3;
const SCRATCH: u64 = PREFIX + PREFIXES;

/// Where a rank stands in a tree that lists the ranks in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InOrderPlace {
    parent: Option<u32>,
    left: Option<u32>,
    right: Option<u32>,
}

impl InOrderPlace {
    fn new(tree: u32, ranks: u32, rank: u32) -> Self {
        // A root beside the ranks heads both trees. With an odd number rank 0 heads the second one, which is
        // then the first of the others.
        let beside = u32::from(tree == 0 || ranks.is_multiple_of(2));
        let tree = tree * beside;
        let trees = TwoTrees::new(TreeShape { ranks: ranks + beside, root: 0, fan_out: 2 });
        let of_ranks = |node: u32| node.checked_sub(beside);
        let children = trees.children(tree, rank + beside);
        let children = || children.into_iter().flatten().filter_map(of_ranks);
        InOrderPlace {
            parent: trees.parent(tree, rank + beside).and_then(of_ranks),
            left: children().find(|child| *child < rank),
            right: children().find(|child| *child > rank),
        }
    }
}

/// One tree, as a rank sees it.
#[derive(Debug, Clone, Copy)]
struct InOrderHalf {
    place: InOrderPlace,
    half: ElementSpan,
    segments: u64,
    longest: u64,
    /// Hops to the root.
    depth: u64,
    /// Whether there are ranks before those of the subtree.
    has_prefix: bool,
    /// Whether anybody asks what the whole subtree comes to.
    sends_up: bool,
    first_slot: u32,
    first_scratch: u64,
}

impl InOrderHalf {
    fn new(call: &Call<'_>, rank: u32, tree: u32, half: ElementSpan) -> Self {
        let place = InOrderPlace::new(tree, call.ranks, rank);
        let (mut depth, mut lefts, mut below) = (0, 0, rank);
        while let Some(parent) = InOrderPlace::new(tree, call.ranks, below).parent {
            depth += 1;
            lefts += u64::from(below < parent);
            below = parent;
        }
        InOrderHalf {
            place,
            half,
            segments: half.segments(call.segment),
            longest: if half.count > 0 { half.segment(0, call.segment).count } else { 0 },
            depth,
            has_prefix: lefts < depth,
            sends_up: lefts > 0,
            first_slot: tree * SLOTS,
            first_scratch: 0,
        }
    }

    fn rounds(&self) -> u64 {
        if self.segments == 0 { 0 } else { self.segments + self.late() }
    }

    /// So many rounds after a segment has gone up, its prefix is waited for.
    fn late(&self) -> u64 {
        2 * self.depth
    }

    fn span(&self, call: &Call<'_>, at: u64) -> ElementSpan {
        self.half.segment(at, call.segment)
    }

    fn scratch(&self, which: u64, count: u64) -> Range {
        Range::new(Buffer::Temporary, self.first_scratch + which * self.longest, count)
    }

    fn prefix(&self, at: u64, count: u64) -> (u32, Range) {
        let slot = self.first_slot + FROM_PARENT + (at % PREFIXES) as u32;
        (slot, self.scratch(PREFIX + at % PREFIXES, count))
    }

    /// The segment that goes up in a round.
    fn going_up(&self, index: u64) -> Option<u64> {
        (index < self.segments).then_some(index)
    }

    /// The segment whose prefix a rank so late waits for.
    fn going_down(&self, index: u64, late: u64) -> Option<u64> {
        index.checked_sub(late).filter(|at| *at < self.segments)
    }

    fn post_up(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(at) = self.going_up(index) else { return };
        let count = self.span(call, at).count;
        let right = self.place.right.filter(|_| self.sends_up);
        for (child, which) in [(self.place.left, FROM_LEFT), (right, FROM_RIGHT)] {
            if let Some(child) = child {
                let into = self.scratch(u64::from(which), count);
                out.receive(child, self.first_slot + which, into);
            }
        }
    }

    /// In the round in which the parent sends it.
    fn post_down(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(parent) = self.place.parent.filter(|_| self.has_prefix) else { return };
        let Some(at) = self.going_down(index, self.late() - 2) else { return };
        let (slot, into) = self.prefix(at, self.span(call, at).count);
        out.receive(parent, slot, into);
    }

    fn up(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(at) = self.going_up(index) else { return };
        let span = self.span(call, at);
        let result = span.in_buffer(Buffer::Receive);
        out.copy(span.in_buffer(call.input()), result);
        if self.place.left.is_some() {
            out.wait(self.first_slot + FROM_LEFT);
            out.combine_left(self.scratch(FROM_LEFT.into(), span.count), result);
        }
        let Some(parent) = self.place.parent.filter(|_| self.sends_up) else { return };
        let mut subtree = result;
        if self.place.right.is_some() {
            out.wait(self.first_slot + FROM_RIGHT);
            subtree = self.scratch(SUBTREE, span.count);
            out.copy(result, subtree);
            let right = self.scratch(FROM_RIGHT.into(), span.count);
            let order =
                if call.commutative { OperandOrder::SourceFirst } else { OperandOrder::IntoFirst };
            out.combine(right, subtree, order);
        }
        out.send(parent, self.first_slot + TO_PARENT, subtree);
    }

    fn down(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(at) = self.going_down(index, self.late()) else { return };
        let span = self.span(call, at);
        let result = span.in_buffer(Buffer::Receive);
        if self.has_prefix {
            let (slot, prefix) = self.prefix(at, span.count);
            out.wait(slot);
            out.combine_left(prefix, result);
            if let Some(left) = self.place.left {
                out.send(left, self.first_slot + TO_LEFT, prefix);
            }
        }
        if let Some(right) = self.place.right {
            out.send(right, self.first_slot + TO_RIGHT, result);
        }
    }

    /// Waits for what this round has sent.
    fn sent(&self, index: u64, out: &mut Round) {
        let goes_up = self.going_up(index).is_some() && self.sends_up;
        let goes_down = self.going_down(index, self.late()).is_some();
        let to_left = goes_down && self.has_prefix && self.place.left.is_some();
        let to_right = goes_down && self.place.right.is_some();
        for (is_sent, slot) in [(goes_up, TO_PARENT), (to_left, TO_LEFT), (to_right, TO_RIGHT)] {
            if is_sent {
                out.wait(self.first_slot + slot);
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TwoTreesScan {
    sides: [InOrderHalf; 2],
}

impl Program for TwoTreesScan {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let (first, second) = ElementSpan { start: 0, count: call.count }.halves();
        let first = InOrderHalf::new(call, rank, 0, first);
        let second = InOrderHalf::new(call, rank, 1, second);
        let second = InOrderHalf { first_scratch: SCRATCH * first.longest, ..second };
        TwoTreesScan { sides: [first, second] }
    }

    fn rounds(&self) -> u64 {
        self.sides.iter().map(InOrderHalf::rounds).max().unwrap_or(0)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        self.sides.iter().for_each(|side| side.post_up(call, index, out));
        self.sides.iter().for_each(|side| side.post_down(call, index, out));
        self.sides.iter().for_each(|side| side.up(call, index, out));
        self.sides.iter().for_each(|side| side.down(call, index, out));
        self.sides.iter().for_each(|side| side.sent(index, out));
    }

    fn slots(&self) -> u32 {
        2 * SLOTS
    }

    /// Two ranks may be neighbours in both trees.
    fn sent_before(&self, index: u64) -> Option<u64> {
        Some(2 * index)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.sides.iter().map(|side| SCRATCH * side.longest).sum()
    }

    fn destinations(&self) -> u32 {
        let sent =
            |place: InOrderPlace| [place.parent, place.left, place.right].into_iter().flatten();
        self.sides.iter().map(|side| sent(side.place).count() as u32).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_trees_list_the_ranks_in_order_and_nobody_is_inside_both() {
        for ranks in 1..=130 {
            for tree in 0..2 {
                let place = |rank| InOrderPlace::new(tree, ranks, rank);
                let root = (0..ranks).find(|rank| place(*rank).parent.is_none()).unwrap();
                let (mut listed, mut above, mut next) = (Vec::new(), Vec::new(), Some(root));
                while next.is_some() || !above.is_empty() {
                    while let Some(rank) = next {
                        above.push(rank);
                        next = place(rank).left;
                    }
                    let rank = above.pop().unwrap();
                    listed.push(rank);
                    next = place(rank).right;
                    let children = [place(rank).left, place(rank).right];
                    let told = |child: u32| place(child).parent == Some(rank);
                    assert!(children.into_iter().flatten().all(told), "{ranks} {rank}");
                }
                assert!(listed.into_iter().eq(0..ranks), "{ranks}, tree {tree}");
            }
            let is_inside = |tree, rank| {
                let InOrderPlace { left, right, .. } = InOrderPlace::new(tree, ranks, rank);
                left.or(right).is_some()
            };
            assert!(!(0..ranks).any(|rank| is_inside(0, rank) && is_inside(1, rank)), "{ranks}");
        }
    }
}
