//! Down a tree: short blocks. Every rank receives the blocks of its subtree and hands each child
//! those of the child's.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::subtrees::Subtree,
    topology::{Bine, Binomial, KNomial, Tree},
};

pub(in super::super) const BINOMIAL: Entry = Entry::new::<TreeScatter<Binomial>>(
    Collective::Scatter,
    Algorithm::Binomial,
    "blocks of whole subtrees down a binomial tree",
);

pub(in super::super) const BINE: Entry = Entry::new::<TreeScatter<Bine>>(
    Collective::Scatter,
    Algorithm::Bine,
    "blocks of whole subtrees down a binomial tree whose ranks are nearer to each other",
);

pub(in super::super) const K_NOMIAL: Entry = Entry::new::<TreeScatter<KNomial>>(
    Collective::Scatter,
    Algorithm::KNomial,
    "blocks of whole subtrees down a k-nomial tree; the fan-out is its radix",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct TreeScatter<T> {
    subtree: Subtree<T>,
}

impl<T: Tree> TreeScatter<T> {
    fn blocks(&self, first: u32, number: u32) -> Range {
        self.subtree.blocks(Buffer::Send, first, number)
    }
}

impl<T: Tree> Program for TreeScatter<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        TreeScatter { subtree: Subtree::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.subtree.count > 0)
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let (result, children) =
            (Range::new(Buffer::Receive, 0, call.count), self.subtree.children);
        match self.subtree.parent() {
            None if self.subtree.is_straight() => {}
            // From the order of ranks into that of the tree.
            None => self.subtree.each_run(call, |run| {
                let straight = call.blocks(Buffer::Send, run.rank, run.number);
                out.copy(straight, self.blocks(run.place, run.number));
            }),
            Some(parent) => {
                let all = self.blocks(0, self.subtree.ranks);
                out.receive(parent, 0, if children == 0 { result } else { all });
                out.wait(0);
            }
        }
        // Whoever has the most below comes first.
        for ((to, first, number), slot) in
            self.subtree.children_backwards().zip((0..children).rev())
        {
            out.send(to, slot, self.blocks(first, number));
        }
        let is_root = self.subtree.is_root();
        if (children > 0 || is_root) && !(is_root && call.in_place) {
            out.copy(self.blocks(0, 1), result);
        }
        (0..children).for_each(|slot| out.wait(slot));
    }

    fn slots(&self) -> u32 {
        self.subtree.children.max(1)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.subtree.temporary()
    }

    fn destinations(&self) -> u32 {
        self.subtree.children
    }
}
