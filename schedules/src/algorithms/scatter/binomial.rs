//! Binomial tree: short blocks. Every rank receives the blocks of its subtree and hands each child
//! those of the child's.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    topology::{Binomial, Tree, TreeShape},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<BinomialScatter>(
    Collective::Scatter,
    Algorithm::Binomial,
    "blocks of whole subtrees down a binomial tree",
);

#[derive(Debug, Clone, Copy)]
struct BinomialScatter {
    tree: Binomial,
    rank: u32,
    root: u32,
    children: u32,
    count: u64,
}

impl BinomialScatter {
    /// Where the blocks of this rank's subtree are, in order from this rank on: the root has them
    /// in its send buffer if it is rank 0, and turns them into scratch memory otherwise.
    fn blocks(&self, first: u32, number: u32) -> Range {
        let buffer =
            if self.rank == 0 && self.root == 0 { Buffer::Send } else { Buffer::Temporary };
        Range::new(buffer, u64::from(first) * self.count, u64::from(number) * self.count)
    }

    fn turn(&self, call: &Call<'_>, out: &mut Round) {
        let behind = call.ranks - self.root;
        out.copy(call.blocks(Buffer::Send, self.root, behind), self.blocks(0, behind));
        out.copy(call.blocks(Buffer::Send, 0, self.root), self.blocks(behind, self.root));
    }
}

impl Program for BinomialScatter {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let tree = Binomial::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: 2 });
        let children = tree.child_count(rank);
        BinomialScatter { tree, rank, root: call.root, children, count: call.count }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.count > 0)
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let result = Range::new(Buffer::Receive, 0, call.count);
        match self.tree.parent(self.rank) {
            None if self.root == 0 => {}
            None => self.turn(call, out),
            Some(parent) => {
                let all = self.blocks(0, self.tree.subtree(self.rank));
                out.receive(parent, 0, if self.children == 0 { result } else { all });
                out.wait(0);
            }
        }
        for child in (0..self.children).rev() {
            let to = self.tree.child(self.rank, child);
            out.send(to, child, self.blocks(1 << child, self.tree.subtree(to)));
        }
        let has_own_block = self.children > 0 || self.rank == self.root;
        if has_own_block && !(self.rank == self.root && call.in_place) {
            out.copy(self.blocks(0, 1), result);
        }
        (0..self.children).for_each(|child| out.wait(child));
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

    fn destinations(&self) -> u32 {
        self.children
    }
}
