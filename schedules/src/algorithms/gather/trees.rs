//! Up a tree: short blocks. Every rank collects the blocks of its subtree and hands them on together.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::subtrees::Subtree,
    topology::{Bine, Binomial, KNomial, Tree},
};

pub(in super::super) const BINOMIAL: Entry = Entry::new::<TreeGather<Binomial>>(
    Collective::Gather,
    Algorithm::Binomial,
    "blocks of whole subtrees up a binomial tree",
);

pub(in super::super) const BINE: Entry = Entry::new::<TreeGather<Bine>>(
    Collective::Gather,
    Algorithm::Bine,
    "blocks of whole subtrees up a binomial tree whose ranks are nearer to each other",
);

pub(in super::super) const K_NOMIAL: Entry = Entry::new::<TreeGather<KNomial>>(
    Collective::Gather,
    Algorithm::KNomial,
    "blocks of whole subtrees up a k-nomial tree; the fan-out is its radix",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct TreeGather<T> {
    subtree: Subtree<T>,
}

impl<T: Tree> TreeGather<T> {
    fn blocks(&self, first: u32, number: u32) -> Range {
        self.subtree.blocks(Buffer::Receive, first, number)
    }

    /// From the order of the tree into that of ranks. In place, the root's own block is there.
    fn turn(&self, call: &Call<'_>, out: &mut Round) {
        self.subtree.each_run(call, |run| {
            let skipped = u32::from(call.in_place && run.place == 0);
            let number = run.number - skipped;
            out.copy(
                self.blocks(run.place + skipped, number),
                call.blocks(Buffer::Receive, run.rank + skipped, number),
            );
        });
    }
}

impl<T: Tree> Program for TreeGather<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        TreeGather { subtree: Subtree::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.subtree.count > 0)
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let own = Range::new(Buffer::Send, 0, call.count);
        for ((from, first, number), slot) in self.subtree.children().zip(0_u32..) {
            out.receive(from, slot, self.blocks(first, number));
        }
        let leaf = self.subtree.children == 0 && !self.subtree.is_root();
        if !leaf && !call.in_place {
            out.copy(own, self.blocks(0, 1));
        }
        (0..self.subtree.children).for_each(|slot| out.wait(slot));
        match self.subtree.parent() {
            Some(parent) => {
                let all = self.blocks(0, self.subtree.ranks);
                out.send(parent, 0, if leaf { own } else { all });
                out.wait(0);
            }
            None if self.subtree.is_straight() => {}
            None => self.turn(call, out),
        }
    }

    fn slots(&self) -> u32 {
        self.subtree.children.max(1)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.subtree.temporary()
    }
}
