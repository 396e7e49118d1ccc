use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// The root is everybody's parent.
#[derive(Debug, Clone, Copy)]
pub struct Flat(RelativeRanks);

impl Tree for Flat {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        Flat(RelativeRanks::new(shape))
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        (rank != self.0.root).then_some(self.0.root)
    }

    fn child_count(&self, rank: u32) -> u32 {
        if rank == self.0.root { self.0.ranks - 1 } else { 0 }
    }

    /// Ranks after the root first; those before it from the nearest to rank 0, so that each one
    /// extends what has been reduced so far.
    fn child(&self, rank: u32, index: u32) -> u32 {
        let after = self.0.ranks - 1 - self.0.root;
        if index < after { rank + 1 + index } else { rank - 1 - (index - after) }
    }

    fn stands_before(&self, rank: u32, child: u32) -> bool {
        child < rank
    }

    fn ordered_root(wanted: u32) -> Option<u32> {
        Some(wanted)
    }
}
