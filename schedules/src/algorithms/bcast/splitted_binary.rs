//! Splitted binary tree (the paper's own, section 4 and Table 2).
//!
//! The left half of the message goes down the left side of a binary tree and the right half down
//! its right side, in segments; so each rank carries half of what it would in a binary tree. Then
//! every rank exchanges halves with the rank at its place of the other side. Where the number of
//! ranks is even, one rank has no such partner: the root sends it the other half.

use records::{Algorithm, Collective};

use super::tree::Flow;
use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Round,
    topology::{Binary, Tree, TreeShape},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<SplittedBinary>(
    Collective::Bcast,
    Algorithm::SplittedBinary,
    "halves down the two sides of a binary tree, then exchanged between the sides",
)
.segmented();

/// The root's sends to its two children.
const TO_LEFT: u32 = 2;

#[derive(Debug, Clone, Copy)]
struct SplittedBinary {
    tree: Binary,
    rank: u32,
    root: u32,
    /// The rank that has no partner.
    alone: Option<u32>,
    left: ElementSpan,
    right: ElementSpan,
    /// What this rank forwards: none at the root, which feeds both sides.
    flow: Option<Flow<Binary>>,
    segments: [u64; 2],
    ranks: u32,
}

impl SplittedBinary {
    fn tree_rounds(&self) -> u64 {
        match self.flow {
            Some(flow) => flow.rounds(),
            None if self.ranks == 1 => 0,
            None => self.segments[0].max(self.segments[1]) + 1,
        }
    }

    /// The root's round: one segment of each half, then all waits.
    fn feed(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let sides = [self.left, self.right];
        let children = self.tree.child_count(self.rank);
        let last = self.segments[0].max(self.segments[1]);
        for side in 0..children {
            let (segments, half) = (self.segments[side as usize], sides[side as usize]);
            let slot = |segment: u64| TO_LEFT + 2 * side + (segment % 2) as u32;
            if index < segments {
                if index >= 2 {
                    out.wait(slot(index));
                }
                let range = half.segment(index, call.segment).in_buffer(Buffer::Receive);
                out.send(self.tree.child(self.rank, side), slot(index), range);
            } else if index == last {
                (segments.saturating_sub(2)..segments).for_each(|segment| out.wait(slot(segment)));
            }
        }
    }

    fn exchange(&self, out: &mut Round) {
        let (left, right) =
            (self.left.in_buffer(Buffer::Receive), self.right.in_buffer(Buffer::Receive));
        match (self.tree.partner(self.rank), self.alone) {
            (Some(partner), _) if self.tree.is_left(self.rank) => {
                out.exchange(partner, right, partner, left);
            }
            (Some(partner), _) => out.exchange(partner, left, partner, right),
            (None, Some(alone)) if right.count > 0 => {
                if alone == self.rank {
                    out.receive(self.root, 0, right);
                } else {
                    out.send(alone, 0, right);
                }
                out.wait(0);
            }
            (None, _) => {}
        }
    }
}

impl Program for SplittedBinary {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let (left, right) = ElementSpan { start: 0, count: call.count }.halves();
        let segments = [left.segments(call.segment), right.segments(call.segment)];
        let tree = Binary::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: 2 });
        let flow = (rank != call.root)
            .then(|| Flow::new(tree, rank, segments[usize::from(!tree.is_left(rank))]));
        let last = call.before(call.root, 1);
        SplittedBinary {
            tree,
            rank,
            root: call.root,
            alone: call.ranks.is_multiple_of(2).then_some(last),
            left,
            right,
            flow,
            segments,
            ranks: call.ranks,
        }
    }

    fn rounds(&self) -> u64 {
        if self.ranks == 1 { 0 } else { self.tree_rounds() + 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == self.tree_rounds() {
            return self.exchange(out);
        }
        match self.flow {
            None => self.feed(call, index, out),
            Some(flow) => {
                let half = if self.tree.is_left(self.rank) { self.left } else { self.right };
                let segment = |index| half.segment(index, call.segment).in_buffer(Buffer::Receive);
                flow.round(index, segment, out);
            }
        }
    }

    fn slots(&self) -> u32 {
        self.flow.map_or(TO_LEFT + 4, |flow| flow.slots().max(2))
    }

    fn destinations(&self) -> u32 {
        self.flow.map_or(2, |flow| flow.children())
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        match self.flow {
            _ if index >= self.tree_rounds() => None,
            Some(flow) => flow.sent_before(index),
            None => Some(index),
        }
    }
}
