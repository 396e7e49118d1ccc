//! Segments down a tree: one program for all trees.

use crate::{
    Buffer, Call, ElementSpan, Program, Range, Round, Step,
    algorithms::grouping::GROUP,
    topology::{ChildOrder, Tree},
};

/// Slots 0 and 1 receive segments in turn, so that the next segment's receive is posted before
/// this one is forwarded; the others send.
const FIRST_SEND: u32 = 2;

/// Most sends under way at once: enough for the children of any binomial tree.
const MAX_SENDS: u32 = 32;

/// Every rank receives segment after segment from its parent and hands each to all its children
/// before the next.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TreeBcast<T> {
    flow: Flow<T>,
    whole: ElementSpan,
}

impl<T: Tree> Program for TreeBcast<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let tree = T::of_call(call, call.root);
        TreeBcast { flow: Flow::new(tree, rank, whole.segments(call.segment)), whole }
    }

    fn rounds(&self) -> u64 {
        self.flow.rounds()
    }

    #[inline(always)]
    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let segment = |index| self.whole.segment(index, call.segment).in_buffer(Buffer::Receive);
        self.flow.round(index, segment, out);
    }

    fn slots(&self) -> u32 {
        self.flow.slots()
    }

    fn destinations(&self) -> u32 {
        self.flow.children
    }
}

/// Where one rank stands in a flow of segments down a tree: a round per segment and child, or, if
/// there is one segment only, per [`GROUP`] children.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow<T> {
    tree: T,
    rank: u32,
    parent: Option<u32>,
    children: u32,
    segments: u64,
}

impl<T: Tree> Flow<T> {
    pub fn new(tree: T, rank: u32, segments: u64) -> Self {
        let (parent, children) = (tree.parent(rank), tree.child_count(rank));
        Flow { tree, rank, parent, children, segments }
    }

    pub fn rounds(&self) -> u64 {
        match (self.parent, self.children) {
            (None, 0) => 0,
            (_, 0) => self.segments,
            (_, children) if self.segments == 1 => u64::from(children.div_ceil(GROUP)),
            // The last one waits for the sends.
            (_, children) => self.segments * u64::from(children) + 1,
        }
    }

    pub fn slots(&self) -> u32 {
        match self.children {
            // Most ranks of a large tree are leaves: what they hold counts.
            0 => self.segments.min(2) as u32,
            _ => FIRST_SEND + self.sends_at_once(),
        }
    }

    pub fn children(&self) -> u32 {
        self.children
    }

    fn sends_at_once(&self) -> u32 {
        match self.children {
            0 => 0,
            children => (self.segments.clamp(1, 2) as u32).max(children.min(MAX_SENDS)),
        }
    }

    #[inline(always)]
    pub fn round(&self, index: u64, segment: impl Fn(u64) -> Range, out: &mut Round) {
        match self.segments {
            1 => self.round_of_one(index as u32, segment(0), out),
            _ => self.round_of_many(index, segment, out),
        }
    }

    #[inline(never)]
    fn round_of_many(&self, index: u64, segment: impl Fn(u64) -> Range, out: &mut Round) {
        let sends_at_once = u64::from(self.sends_at_once());
        let send_slot = |send: u64| FIRST_SEND + (send % sends_at_once) as u32;
        let children = u64::from(self.children.max(1));
        if index == self.segments * children {
            let first = index.saturating_sub(sends_at_once);
            (first..index).for_each(|send| out.wait(send_slot(send)));
            return;
        }
        let (at, child) = (index / children, (index % children) as u32);
        if child == 0
            && let Some(parent) = self.parent
        {
            if at == 0 {
                out.receive(parent, 0, segment(0));
            }
            if at + 1 < self.segments {
                out.receive(parent, ((at + 1) % 2) as u32, segment(at + 1));
            }
            out.wait((at % 2) as u32);
        }
        if self.children > 0 {
            if index >= sends_at_once {
                out.wait(send_slot(index));
            }
            out.send(self.child(child), send_slot(index), segment(at));
        }
    }

    /// In the order in which they are served.
    fn child(&self, index: u32) -> u32 {
        let place = match T::DOWNWARD {
            ChildOrder::Ascending => index,
            ChildOrder::Descending => self.children - 1 - index,
        };
        self.tree.child(self.rank, place)
    }

    /// A round where all is one segment: whoever makes rounds in great numbers has fewer to make.
    #[inline(always)]
    fn round_of_one(&self, index: u32, segment: Range, out: &mut Round) {
        if index == 0
            && let Some(parent) = self.parent
        {
            out.receive(parent, 0, segment);
            out.wait(0);
        }
        let group = index * GROUP..self.children.min((index + 1) * GROUP);
        if group.end > MAX_SENDS {
            return self.send_beyond(group, segment, out);
        }
        let send = |child| {
            let (peer, slot) = (self.child(child), FIRST_SEND + child);
            Step::Send { peer, slot, range: segment }
        };
        let last = group.end == self.children;
        out.extend(group.map(send));
        if last {
            out.extend((0..self.children).map(|child| Step::Wait { slot: FIRST_SEND + child }));
        }
    }

    /// The sends of a round where slots are used again.
    #[inline(never)]
    fn send_beyond(&self, group: std::ops::Range<u32>, segment: Range, out: &mut Round) {
        let send_slot = |child: u32| FIRST_SEND + child % MAX_SENDS;
        let last = group.end == self.children;
        for child in group {
            if child >= MAX_SENDS {
                out.wait(send_slot(child));
            }
            out.send(self.child(child), send_slot(child), segment);
        }
        if last {
            let first = self.children - MAX_SENDS;
            (first..self.children).for_each(|child| out.wait(send_slot(child)));
        }
    }
}
