//! Blocks of whole subtrees, which gathers take up a tree and scatters down.
//!
//! They stand in the order of a walk through the tree, a rank's own first, so that a message is one
//! piece. Where that is not the order of ranks after the root, and where the root is not rank 0, the
//! root copies all blocks; nobody else copies any.

use crate::{
    Buffer, Call, Range,
    topology::{ChildOrder, Tree, children},
};

/// One rank's subtree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subtree<T> {
    tree: T,
    rank: u32,
    root: u32,
    /// How many children there are.
    pub children: u32,
    /// How many ranks are below, with this one.
    pub ranks: u32,
    /// Elements of a block.
    pub count: u64,
}

/// Blocks that follow each other by rank and in the order of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockRun {
    /// Where the first one stands in the order of the tree.
    pub place: u32,
    /// The rank of the first one.
    pub rank: u32,
    pub number: u32,
}

impl<T: Tree> Subtree<T> {
    pub fn new(call: &Call<'_>, rank: u32) -> Self {
        let tree = T::of_call(call, call.root);
        let (children, ranks) = (tree.child_count(rank), tree.subtree(rank));
        Subtree { tree, rank, root: call.root, children, ranks, count: call.count }
    }

    pub fn parent(&self) -> Option<u32> {
        self.tree.parent(self.rank)
    }

    pub fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// Whether the root's blocks stand in its own buffer as they do in the tree.
    pub fn is_straight(&self) -> bool {
        self.is_root() && self.root == 0 && T::IS_IN_ORDER
    }

    /// Some of the blocks, in scratch memory or, where they stand there, in the root's own buffer.
    pub fn blocks(&self, straight: Buffer, first: u32, number: u32) -> Range {
        let buffer = if self.is_straight() { straight } else { Buffer::Temporary };
        Range::new(buffer, u64::from(first) * self.count, u64::from(number) * self.count)
    }

    /// The children, in ascending order: rank, where their blocks begin, and how many these are.
    pub fn children(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut place = 1;
        children(self.tree, self.rank, ChildOrder::Ascending).map(move |child| {
            let number = self.tree.subtree(child);
            place += number;
            (child, place - number, number)
        })
    }

    /// Elements of scratch memory.
    pub fn temporary(&self) -> u64 {
        let is_leaf = self.children == 0 && !self.is_root();
        let none = is_leaf || self.is_straight();
        if none { 0 } else { u64::from(self.ranks) * self.count }
    }

    /// The root's blocks, in the order of the tree.
    pub fn runs(&self, call: &Call<'_>) -> Vec<BlockRun> {
        if T::IS_IN_ORDER {
            let behind = call.ranks - self.root;
            return vec![
                BlockRun { place: 0, rank: self.root, number: behind },
                BlockRun { place: behind, rank: 0, number: self.root },
            ];
        }
        let (mut runs, mut place): (Vec<BlockRun>, u32) = (Vec::new(), 0);
        let mut next = vec![self.rank];
        while let Some(rank) = next.pop() {
            match runs.last_mut().filter(|run| run.rank + run.number == rank) {
                Some(run) => run.number += 1,
                None => runs.push(BlockRun { place, rank, number: 1 }),
            }
            place += 1;
            next.extend(children(self.tree, rank, ChildOrder::Descending));
        }
        runs
    }
}
