//! Binomial tree: short blocks. Every rank collects the blocks of its subtree and hands them on
//! together.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    topology::{Binomial, Tree, TreeShape},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<BinomialGather>(
    Collective::Gather,
    Algorithm::Binomial,
    "blocks of whole subtrees up a binomial tree",
);

#[derive(Debug, Clone, Copy)]
struct BinomialGather {
    tree: Binomial,
    rank: u32,
    root: u32,
    children: u32,
    count: u64,
}

impl BinomialGather {
    /// Where the blocks of this rank's subtree are put together, from this rank's on: in the
    /// result if rank 0 is the root, which otherwise turns them at the end.
    fn blocks(&self, first: u32, number: u32) -> Range {
        let in_result = self.rank == 0 && self.root == 0;
        let buffer = if in_result { Buffer::Receive } else { Buffer::Temporary };
        Range::new(buffer, u64::from(first) * self.count, u64::from(number) * self.count)
    }

    fn turn(&self, call: &Call<'_>, out: &mut Round) {
        let behind = call.ranks - self.root;
        let own_placed = u32::from(call.in_place);
        out.copy(
            self.blocks(own_placed, behind - own_placed),
            call.blocks(Buffer::Receive, self.root + own_placed, behind - own_placed),
        );
        out.copy(self.blocks(behind, self.root), call.blocks(Buffer::Receive, 0, self.root));
    }
}

impl Program for BinomialGather {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let tree = Binomial::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: 2 });
        let children = tree.child_count(rank);
        BinomialGather { tree, rank, root: call.root, children, count: call.count }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.count > 0)
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let own = Range::new(Buffer::Send, 0, call.count);
        for child in 0..self.children {
            let from = self.tree.child(self.rank, child);
            out.receive(from, child, self.blocks(1 << child, self.tree.subtree(from)));
        }
        let leaf = self.children == 0 && self.rank != self.root;
        if !leaf && !call.in_place {
            out.copy(own, self.blocks(0, 1));
        }
        (0..self.children).for_each(|child| out.wait(child));
        match self.tree.parent(self.rank) {
            Some(parent) => {
                let all = self.blocks(0, self.tree.subtree(self.rank));
                out.send(parent, 0, if leaf { own } else { all });
                out.wait(0);
            }
            None if self.root == 0 => {}
            None => self.turn(call, out),
        }
    }

    fn slots(&self) -> u32 {
        self.children.max(1)
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        match (self.rank == self.root, self.children) {
            (true, _) if self.root == 0 => 0,
            (false, 0) => 0,
            _ => u64::from(self.tree.subtree(self.rank)) * self.count,
        }
    }
}
