use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// One chain that begins at the root: the topology of a pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Chain(RelativeRanks);

impl Tree for Chain {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        Chain(RelativeRanks::new(shape))
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        self.0.relative(rank).checked_sub(1).map(|before| self.0.rank(before))
    }

    fn child_count(&self, rank: u32) -> u32 {
        u32::from(self.0.relative(rank) + 1 < self.0.ranks)
    }

    fn child(&self, rank: u32, _index: u32) -> u32 {
        self.0.rank(self.0.relative(rank) + 1)
    }

    fn ordered_root(_wanted: u32) -> Option<u32> {
        Some(0)
    }
}

/// Fan-out many chains that hang on the root, as equal in length as they can be, longer ones
/// first; each holds consecutive ranks.
#[derive(Debug, Clone, Copy)]
pub struct KChain {
    relative: RelativeRanks,
    chains: u32,
}

impl KChain {
    /// Relative rank at which a chain begins; that of one past the last is the number of ranks.
    fn begin(&self, chain: u32) -> u32 {
        let others = self.relative.ranks - 1;
        let (length, longer) = (others / self.chains, others % self.chains);
        1 + chain * length + chain.min(longer)
    }

    /// The chain that holds a relative rank from 1 on.
    fn chain_of(&self, relative: u32) -> u32 {
        let others = self.relative.ranks - 1;
        let (length, longer) = (others / self.chains, others % self.chains);
        let in_longer = longer * (length + 1);
        let place = relative - 1;
        if place < in_longer { place / (length + 1) } else { longer + (place - in_longer) / length }
    }
}

impl Tree for KChain {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        let chains = shape.fan_out.max(1).min(shape.ranks.max(2) - 1);
        KChain { relative: RelativeRanks::new(shape), chains }
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.relative.relative(rank);
        if relative == 0 {
            return None;
        }
        let heads = self.begin(self.chain_of(relative)) == relative;
        Some(self.relative.rank(if heads { 0 } else { relative - 1 }))
    }

    fn child_count(&self, rank: u32) -> u32 {
        let relative = self.relative.relative(rank);
        if self.relative.ranks == 1 {
            0
        } else if relative == 0 {
            self.chains
        } else {
            u32::from(self.begin(self.chain_of(relative) + 1) > relative + 1)
        }
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let relative = self.relative.relative(rank);
        self.relative.rank(if relative == 0 { self.begin(index) } else { relative + 1 })
    }

    fn ordered_root(_wanted: u32) -> Option<u32> {
        Some(0)
    }
}
