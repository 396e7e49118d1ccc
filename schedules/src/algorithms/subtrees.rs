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

    /// The children, in descending order: rank, where their blocks begin, and how many these are.
    pub fn children_backwards(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut place = self.ranks;
        children(self.tree, self.rank, ChildOrder::Descending).map(move |child| {
            let number = self.tree.subtree(child);
            place -= number;
            (child, place, number)
        })
    }

    /// Elements of scratch memory.
    pub fn temporary(&self) -> u64 {
        let is_leaf = self.children == 0 && !self.is_root();
        let none = is_leaf || self.is_straight();
        if none { 0 } else { u64::from(self.ranks) * self.count }
    }

    /// The root's blocks, in the order of the tree.
    pub fn each_run(&self, call: &Call<'_>, mut tell: impl FnMut(BlockRun)) {
        if T::IS_IN_ORDER {
            let behind = call.ranks - self.root;
            tell(BlockRun { place: 0, rank: self.root, number: behind });
            return tell(BlockRun { place: behind, rank: 0, number: self.root });
        }
        let mut run = BlockRun { place: 0, rank: self.root, number: 0 };
        walk(self.tree, self.root, &mut |rank| {
            if run.rank + run.number != rank {
                tell(run);
                run = BlockRun { place: run.place + run.number, rank, number: 0 };
            }
            run.number += 1;
        });
        tell(run);
    }
}

/// Visits the ranks of a subtree: its head, then its children's, in ascending order.
fn walk<T: Tree>(tree: T, head: u32, visit: &mut impl FnMut(u32)) {
    visit(head);
    children(tree, head, ChildOrder::Ascending).for_each(|child| walk(tree, child, visit));
}
