use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// The child 2^k after a rank heads the tree of up to 2^k ranks that begins there.
#[derive(Debug, Clone, Copy)]
pub struct Binomial(RelativeRanks);

impl Binomial {
    /// Number of ranks in the subtree of `rank`; they follow each other, relative to the root.
    pub fn subtree(&self, rank: u32) -> u32 {
        let relative = self.0.relative(rank);
        let left = self.0.ranks - relative;
        if relative == 0 { left } else { left.min(1 << relative.trailing_zeros()) }
    }
}

impl Tree for Binomial {
    const DOWNWARD: ChildOrder = ChildOrder::Descending;
    const IS_IN_ORDER: bool = true;

    fn new(shape: TreeShape) -> Self {
        Binomial(RelativeRanks::new(shape))
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.0.relative(rank);
        (relative != 0).then(|| self.0.rank(relative & (relative - 1)))
    }

    fn child_count(&self, rank: u32) -> u32 {
        // A subtree of n ranks has a child at each power of two below n.
        u32::BITS - (self.subtree(rank) - 1).leading_zeros()
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        self.0.rank(self.0.relative(rank) + (1 << index))
    }

    fn subtree(&self, rank: u32) -> u32 {
        Binomial::subtree(self, rank)
    }

    fn ordered_root(_wanted: u32) -> Option<u32> {
        Some(0)
    }
}
