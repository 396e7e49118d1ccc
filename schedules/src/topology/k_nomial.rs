use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// A binomial tree with a radix k, its fan-out, of at least 2: relative ranks are numbers to the
/// base k, a rank's parent clears its last digit that isn't 0, and its children set one digit of
/// those that follow.
#[derive(Debug, Clone, Copy)]
pub struct KNomial {
    relative: RelativeRanks,
    radix: u32,
}

impl KNomial {
    /// Weight of the last digit that isn't 0; for the root, a weight that no rank reaches.
    fn weight(&self, relative: u32) -> u64 {
        let radix = u64::from(self.radix);
        let mut weight = 1;
        while weight < u64::from(self.relative.ranks) && u64::from(relative) % (weight * radix) == 0
        {
            weight *= radix;
        }
        weight
    }
}

impl Tree for KNomial {
    const DOWNWARD: ChildOrder = ChildOrder::Descending;
    const IS_IN_ORDER: bool = true;

    fn new(shape: TreeShape) -> Self {
        KNomial { relative: RelativeRanks::new(shape), radix: shape.fan_out.max(2) }
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.relative.relative(rank);
        if relative == 0 {
            return None;
        }
        let above = u64::from(relative) % (self.weight(relative) * u64::from(self.radix));
        Some(self.relative.rank(relative - above as u32))
    }

    fn child_count(&self, rank: u32) -> u32 {
        let relative = self.relative.relative(rank);
        let left = u64::from(self.relative.ranks - 1 - relative);
        let (own, mut weight, mut count) = (self.weight(relative), 1, 0);
        while weight < own && weight <= left {
            count += (left / weight).min(u64::from(self.radix - 1)) as u32;
            weight *= u64::from(self.radix);
        }
        count
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let (level, digit) = (index / (self.radix - 1), index % (self.radix - 1) + 1);
        self.relative.rank(self.relative.relative(rank) + digit * self.radix.pow(level))
    }

    fn subtree(&self, rank: u32) -> u32 {
        let relative = self.relative.relative(rank);
        let left = self.relative.ranks - relative;
        self.weight(relative).min(u64::from(left)) as u32
    }

    fn ordered_root(_wanted: u32) -> Option<u32> {
        Some(0)
    }
}
