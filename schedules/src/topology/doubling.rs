use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// A binomial tree in which the ranks that have the message double in rank order: in step k those
/// below 2^k hand it to the one 2^k after them.
///
/// So rank v, relative to the root, has the children v + 2^k for all 2^k above v. On a power of two
/// ranks it has the shape of [`Binomial`](super::Binomial), with the ranks at other places: on nodes
/// that are filled one after the other, most of its edges go from node to node. It is the tree of
/// Open MPI's broadcast (`ompi_coll_base_topo_build_bmtree`).
#[derive(Debug, Clone, Copy)]
pub struct Doubling(RelativeRanks);

impl Doubling {
    /// Distance to the first child.
    const fn first_distance(relative: u32) -> u32 {
        match relative.checked_ilog2() {
            None => 1,
            Some(level) => 2 << level,
        }
    }
}

impl Tree for Doubling {
    /// The first child's subtree is the largest.
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        Doubling(RelativeRanks::new(shape))
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.0.relative(rank);
        let level = relative.checked_ilog2()?;
        Some(self.0.rank(relative - (1 << level)))
    }

    fn child_count(&self, rank: u32) -> u32 {
        let relative = self.0.relative(rank);
        let distances =
            std::iter::successors(Some(Self::first_distance(relative)), |far| far.checked_mul(2));
        let room = self.0.ranks - 1 - relative;
        distances.take_while(|distance| *distance <= room).count() as u32
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let relative = self.0.relative(rank);
        self.0.rank(relative + (Self::first_distance(relative) << index))
    }
}
