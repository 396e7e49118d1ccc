//! Scatter, then allgather by recursive doubling: long messages, where a tree would send the whole
//! message many times over (Barnett et al.; van de Geijn).
//!
//! The message falls into as many parts as there are ranks, which go down a binomial tree; then
//! the groups of neighbouring ranks that hold parts double.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round, Sequence,
    algorithms::halves::Halves,
    topology::{Binomial, Tree, TreeShape},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Sequence<ScatterParts, DoubleParts>>(
    Collective::Bcast,
    Algorithm::ScatterAllgather,
    "parts down a binomial tree, then allgather by recursive doubling",
);

/// The parts of the relative ranks `first..end`.
pub(super) fn parts(call: &Call<'_>, first: u32, end: u32) -> Range {
    let whole = ElementSpan { start: 0, count: call.count };
    let begin = |part: u32| match part == call.ranks {
        true => call.count,
        false => whole.part(u64::from(part), u64::from(call.ranks)).start,
    };
    Range::new(Buffer::Receive, begin(first), begin(end) - begin(first))
}

/// Every rank receives the parts of its subtree and hands each child those of the child's.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScatterParts {
    tree: Binomial,
    rank: u32,
    children: u32,
}

/// Most sends under way at once.
const MAX_SENDS: u32 = 32;

impl Program for ScatterParts {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let tree = Binomial::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: 2 });
        let children = tree.child_count(rank);
        ScatterParts { tree, rank, children }
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let of = |rank: u32| {
            let first = call.relative(rank);
            parts(call, first, first + self.tree.subtree(rank))
        };
        let own = of(self.rank);
        if let Some(parent) = self.tree.parent(self.rank)
            && own.count > 0
        {
            out.receive(parent, 0, own);
            out.wait(0);
        }
        let to = |child| self.tree.child_in(self.rank, child, Binomial::DOWNWARD);
        for child in 0..self.children {
            let range = of(to(child));
            if range.count > 0 {
                out.send(to(child), child, range);
            }
        }
        let sent = (0..self.children).filter(|child| of(to(*child)).count > 0);
        sent.for_each(|child| out.wait(child));
    }

    fn slots(&self) -> u32 {
        MAX_SENDS
    }

    fn destinations(&self) -> u32 {
        self.children
    }
}

/// Allgather of the parts by doubling groups of relative ranks. The root takes part as everybody
/// else, and receives what it has, in scratch memory: what it sends may be read-only.
#[derive(Debug, Clone, Copy)]
struct DoubleParts {
    halves: Halves,
}

impl Program for DoubleParts {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        DoubleParts { halves: Halves::new(call.ranks, call.relative(rank)) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.halves.levels())
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let level = self.halves.levels() - 1 - index as u32;
        let rank_of = |relative| call.after(call.root, relative);
        self.halves.gather(level, rank_of, |first, end| parts(call, first, end), out);
        if self.halves.is_first() {
            out.receive_aside();
        }
    }

    fn temporary(&self, call: &Call<'_>, _: &mut Round) -> u64 {
        let levels = if self.halves.is_first() { self.halves.levels() } else { 0 };
        let upper_half = |level| {
            let group = self.halves.group(level);
            parts(call, group.middle, group.end).count
        };
        (0..levels).map(upper_half).max().unwrap_or(0)
    }

    fn slots(&self) -> u32 {
        Halves::SLOTS
    }
}
