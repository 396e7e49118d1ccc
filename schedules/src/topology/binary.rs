use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// Two children each, levels filled evenly on both sides.
///
/// The children of relative rank v on level l (the root's is 0) are v + 2^l and v + 2^(l+1). So
/// odd relative ranks stand on the root's left side and even ones on its right, each side's count
/// is the other's or one more, and v and v + 1 (v odd) stand at the same place of the two sides:
/// what splitted-binary needs. Filled from the left instead, one side can be twice the other.
#[derive(Debug, Clone, Copy)]
pub struct Binary(RelativeRanks);

impl Binary {
    /// Whether `rank` stands on the root's left side; the root itself doesn't.
    pub fn is_left(&self, rank: u32) -> bool {
        self.0.relative(rank) % 2 == 1
    }

    /// The rank at the same place of the other side; none for the root, and for the last rank of
    /// the left side if that is the larger one.
    pub fn partner(&self, rank: u32) -> Option<u32> {
        let relative = self.0.relative(rank);
        let other = if relative % 2 == 1 { relative + 1 } else { relative.checked_sub(1)? };
        (other < self.0.ranks).then(|| self.0.rank(other))
    }

    /// 2^level of a relative rank.
    const fn width(relative: u32) -> u32 {
        1 << (relative + 1).ilog2()
    }
}

impl Tree for Binary {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        Binary(RelativeRanks::new(shape))
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.0.relative(rank);
        if relative == 0 {
            return None;
        }
        let above = Self::width(relative) / 2;
        // The level above ends at 2 above - 2; only the left child's parent lies in it.
        let left = relative - above <= 2 * above - 2;
        Some(self.0.rank(relative - if left { above } else { 2 * above }))
    }

    fn child_count(&self, rank: u32) -> u32 {
        let relative = self.0.relative(rank);
        let width = Self::width(relative);
        u32::from(relative + width < self.0.ranks) + u32::from(relative + 2 * width < self.0.ranks)
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let relative = self.0.relative(rank);
        self.0.rank(relative + (Self::width(relative) << index))
    }
}
