//! Two trees: long messages on many ranks. Each half of the message goes down a tree of its own, in
//! segments; whoever hands on segments of one tree only receives those of the other, so that
//! everybody sends and receives all the time.
//!
//! The paper colours the edges, to have each rank send and receive one message at a time. Here both
//! trees' messages are posted together, and take turns by themselves.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round,
    topology::{TreeShape, TwoTrees},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<TwoTreesBcast>(
    Collective::Bcast,
    Algorithm::TwoTrees,
    "each half of the message down a tree of its own; who is inside one is a leaf of the other",
)
.segmented();

/// Slots that receive of each tree, in turn: so far may a rank's two trees be apart.
const RECEIVES: u64 = 8;
/// Slots that send to each child, in turn.
const SENDS: u64 = 2;

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TwoTreesBcast {
    sides: [TreeHalf; 2],
}

/// One tree, as a rank sees it.
#[derive(Debug, Clone, Copy)]
struct TreeHalf {
    parent: Option<u32>,
    children: [Option<u32>; 2],
    half: ElementSpan,
    segments: u64,
    first_slot: u32,
}

impl TreeHalf {
    const SLOTS: u32 = (RECEIVES + 2 * SENDS) as u32;

    fn receive_slot(&self, at: u64) -> u32 {
        self.first_slot + (at % RECEIVES) as u32
    }

    fn children(&self) -> impl Iterator<Item = (u32, u32)> {
        let slot = self.first_slot + RECEIVES as u32;
        let slots = [slot, slot + SENDS as u32];
        self.children.into_iter().zip(slots).filter_map(|(child, slot)| Some((child?, slot)))
    }

    fn is_leaf(&self) -> bool {
        self.children == [None, None]
    }

    fn segment(&self, call: &Call<'_>, at: u64) -> Range {
        self.half.segment(at, call.segment).in_buffer(Buffer::Receive)
    }

    /// The segments whose receives come into reach in a round.
    fn reach(&self, index: u64) -> std::ops::Range<u64> {
        let ahead = if self.is_leaf() { 1 } else { RECEIVES - 1 };
        let first = if index == 0 { 0 } else { index + ahead };
        first..(index + ahead + 1).min(self.segments)
    }

    fn post(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if let Some(parent) = self.parent {
            out.receive(parent, self.receive_slot(at), self.segment(call, at));
        }
    }

    /// Waits for a segment, and hands it on.
    fn pass(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at >= self.segments {
            return;
        }
        if self.parent.is_some() {
            out.wait(self.receive_slot(at));
        }
        for (child, slot) in self.children() {
            let slot = slot + (at % SENDS) as u32;
            if at >= SENDS {
                out.wait(slot);
            }
            out.send(child, slot, self.segment(call, at));
        }
    }

    /// Waits for what is still being sent.
    fn end(&self, out: &mut Round) {
        for (_, slot) in self.children() {
            let under_way = self.segments.saturating_sub(SENDS)..self.segments;
            under_way.for_each(|at| out.wait(slot + (at % SENDS) as u32));
        }
    }
}

impl TwoTreesBcast {
    /// A leaf waits for its segments so many rounds late: they may come later than those that the
    /// rank hands on.
    fn late(side: &TreeHalf) -> u64 {
        if side.parent.is_some() && side.is_leaf() { RECEIVES - 2 } else { 0 }
    }
}

impl Program for TwoTreesBcast {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let trees =
            TwoTrees::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: call.fan_out });
        let (left, right) = ElementSpan { start: 0, count: call.count }.halves();
        let side = |tree, half: ElementSpan| TreeHalf {
            parent: trees.parent(tree, rank),
            children: trees.children(tree, rank),
            half,
            segments: half.segments(call.segment),
            first_slot: tree * TreeHalf::SLOTS,
        };
        TwoTreesBcast { sides: [side(0, left), side(1, right)] }
    }

    fn rounds(&self) -> u64 {
        let rounds = |side: &TreeHalf| match (side.parent, side.is_leaf()) {
            (None, true) => 0,
            _ => side.segments + Self::late(side),
        };
        let rounds = self.sides.iter().map(rounds).max().unwrap_or(0);
        if rounds == 0 { 0 } else { rounds + 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        // In turns: on two ranks both trees' messages have the same sender.
        let [left, right] = self.sides.map(|side| side.reach(index));
        for at in left.start.min(right.start)..left.end.max(right.end) {
            let sides = self.sides.iter().zip([&left, &right]);
            let reached = sides.filter(|(_, reach)| reach.contains(&at));
            reached.for_each(|(side, _)| side.post(call, at, out));
        }
        if index + 1 == self.rounds() {
            return self.sides.iter().for_each(|side| side.end(out));
        }
        // What is to be handed on comes before what is only received.
        for leaves in [false, true] {
            for side in self.sides.iter().filter(|side| side.is_leaf() == leaves) {
                if let Some(at) = index.checked_sub(Self::late(side)) {
                    side.pass(call, at, out);
                }
            }
        }
    }

    fn slots(&self) -> u32 {
        2 * TreeHalf::SLOTS
    }

    fn destinations(&self) -> u32 {
        let [left, right] = &self.sides;
        let of = |side: &TreeHalf| side.children().count() as u32;
        // On two ranks the root has one child, in both trees.
        if left.children == right.children { of(left) } else { of(left) + of(right) }
    }
}
