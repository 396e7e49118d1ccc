//! Two trees: long messages on many ranks. Each half of the message goes down a tree of its own, in
//! segments; whoever hands on segments of one tree only receives those of the other, so that
//! everybody sends and receives all the time.
//!
//! The paper colours the edges, to have each rank send and receive one message at a time. Here both
//! trees' messages are posted together, and take turns by themselves.
//!
//! [`HalvesDown`] is that on any two trees: also on those of nodes' leaders, with the ranks of each
//! node below its leader.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round,
    topology::{TreeShape, TwoTrees, TwoTreesPosition},
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

/// A rank's part in two trees down which the halves of the message go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalvesDown<const CHILDREN: usize> {
    sides: [TreeHalf<CHILDREN>; 2],
}

#[derive(Debug, Clone, Copy)]
struct TreeHalf<const CHILDREN: usize> {
    position: TwoTreesPosition<CHILDREN>,
    half: ElementSpan,
    segments: u64,
    first_slot: u32,
}

impl<const CHILDREN: usize> TreeHalf<CHILDREN> {
    const SLOTS: u32 = RECEIVES as u32 + CHILDREN as u32 * SENDS as u32;

    fn receive_slot(&self, at: u64) -> u32 {
        self.first_slot + (at % RECEIVES) as u32
    }

    fn children(&self) -> impl Iterator<Item = (u32, u32)> {
        let slots = (self.first_slot + RECEIVES as u32..).step_by(SENDS as usize);
        let children = self.position.children.into_iter().zip(slots);
        children.filter_map(|(child, slot)| Some((child?, slot)))
    }

    /// Rounds by which it is behind the other tree, whose segments come earlier.
    fn late(&self) -> u64 {
        if self.position.is_leaf { RECEIVES - 2 } else { 0 }
    }

    fn rounds(&self) -> u64 {
        if self.position.is_alone() { 0 } else { self.segments + self.late() }
    }

    fn segment(&self, call: &Call<'_>, at: u64) -> Range {
        self.half.segment(at, call.segment).in_buffer(Buffer::Receive)
    }

    fn post(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if let Some(parent) = self.position.parent.filter(|_| at < self.segments) {
            out.receive(parent, self.receive_slot(at), self.segment(call, at));
        }
    }

    /// Waits for a segment, and hands it on.
    fn pass(&self, call: &Call<'_>, at: u64, out: &mut Round) {
        if at >= self.segments {
            return;
        }
        if self.position.parent.is_some() {
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

impl<const CHILDREN: usize> HalvesDown<CHILDREN> {
    /// Of a rank that stands so in the two trees.
    pub fn new(call: &Call<'_>, positions: [TwoTreesPosition<CHILDREN>; 2]) -> Self {
        let (left, right) = ElementSpan { start: 0, count: call.count }.halves();
        let side = |tree, position, half: ElementSpan| TreeHalf {
            position,
            half,
            segments: half.segments(call.segment),
            first_slot: tree * TreeHalf::<CHILDREN>::SLOTS,
        };
        let [first, second] = positions;
        HalvesDown { sides: [side(0, first, left), side(1, second, right)] }
    }

    /// See [`Program::rounds`].
    pub fn rounds(&self) -> u64 {
        let rounds = self.sides.iter().map(TreeHalf::rounds).max().unwrap_or(0);
        if rounds == 0 { 0 } else { rounds + 1 }
    }

    /// See [`Program::round`].
    pub fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        // In the order in which a rank that is above in both trees sends.
        let ahead = if index == 0 { 0..RECEIVES } else { index + RECEIVES - 1..index + RECEIVES };
        for round in ahead {
            self.in_turn(round).for_each(|(side, at)| side.post(call, at, out));
        }
        if index + 1 == self.rounds() {
            return self.sides.iter().for_each(|side| side.end(out));
        }
        self.in_turn(index).for_each(|(side, at)| side.pass(call, at, out));
    }

    /// The segments of a round: what is to be handed on comes before what comes late.
    fn in_turn(&self, round: u64) -> impl Iterator<Item = (&TreeHalf<CHILDREN>, u64)> {
        let of = |is_leaf| self.sides.iter().filter(move |side| side.position.is_leaf == is_leaf);
        let both = of(false).chain(of(true));
        both.filter_map(move |side| Some((side, round.checked_sub(side.late())?)))
    }

    /// See [`Program::sent_before`]: a rank may be another's child in both trees.
    pub fn sent_before(&self, index: u64) -> Option<u64> {
        Some(2 * index)
    }

    /// See [`Program::slots`].
    pub fn slots(&self) -> u32 {
        2 * TreeHalf::<CHILDREN>::SLOTS
    }

    /// See [`Round::destinations`].
    pub fn destinations(&self) -> u32 {
        let [left, right] = &self.sides;
        // A rank may be below in both trees.
        let is_new = |(child, _): &(u32, u32)| !left.position.children.contains(&Some(*child));
        (left.children().count() + right.children().filter(is_new).count()) as u32
    }
}

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TwoTreesBcast(HalvesDown<2>);

impl Program for TwoTreesBcast {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let trees =
            TwoTrees::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: call.fan_out });
        TwoTreesBcast(HalvesDown::new(call, trees.positions(rank)))
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

    fn destinations(&self) -> u32 {
        self.0.destinations()
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        self.0.sent_before(index)
    }
}
