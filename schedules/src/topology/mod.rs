//! Virtual topologies: who is next to whom.
//!
//! A tree answers for one rank at a time, in O(log p) or better, without being built: a million
//! ranks cost nothing that is not asked for. Any number of ranks, any root.

use crate::Call;

mod binary;
mod bine;
mod binomial;
mod chain;
mod doubling;
mod fitted;
mod flat;
mod in_order_binary;
mod k_nomial;
mod last_in_order;
mod ring;
mod two_trees;

pub use binary::Binary;
pub use bine::{Bine, bine_peer};
pub use binomial::Binomial;
pub use chain::{Chain, KChain};
pub use doubling::Doubling;
pub use fitted::FittedTree;
pub use flat::Flat;
pub use in_order_binary::InOrderBinary;
pub use k_nomial::KNomial;
pub use last_in_order::LastInOrder;
pub use ring::Ring;
pub use two_trees::{TwoTrees, TwoTreesPosition};

/// What a tree is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// The root, below `ranks`.
    pub root: u32,
    /// Number of chains, or radix; other trees don't look at it.
    pub fan_out: u32,
}

/// In which order a rank serves its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildOrder {
    /// Nearest after the root first; the smallest subtree of a binomial tree.
    Ascending,
    /// The other way round: the largest subtree of a binomial tree.
    Descending,
}

/// A rooted tree over all ranks.
pub trait Tree: Copy {
    /// The order that suits a broadcast: who has the longest way to go comes first.
    const DOWNWARD: ChildOrder;

    /// Whether a walk through the tree, to the children in ascending order, meets the ranks as they
    /// follow the root.
    const IS_IN_ORDER: bool = false;

    /// The tree of a shape.
    fn new(shape: TreeShape) -> Self;

    /// The tree of a call, from a root.
    fn of_call(call: &Call<'_>, root: u32) -> Self {
        Self::new(TreeShape { ranks: call.ranks, root, fan_out: call.fan_out })
    }

    /// The rank from which `rank` hears; none for the root.
    fn parent(&self, rank: u32) -> Option<u32>;

    /// Number of children of `rank`.
    fn child_count(&self, rank: u32) -> u32;

    /// Child `index` (below [`Tree::child_count`]) in ascending order.
    fn child(&self, rank: u32, index: u32) -> u32;

    /// Number of ranks in the subtree of `rank`, with itself.
    fn subtree(&self, rank: u32) -> u32 {
        1 + children(*self, rank, ChildOrder::Ascending)
            .map(|child| self.subtree(child))
            .sum::<u32>()
    }

    /// Whether the ranks in the subtree of `child` stand before `rank` where the values of a
    /// reduction are put in rank order.
    fn stands_before(&self, _rank: u32, _child: u32) -> bool {
        false
    }

    /// The root from which the tree keeps the order of ranks in a reduction: every subtree holds
    /// consecutive ranks, and children in ascending order extend their parent's run on the side
    /// that [`Tree::stands_before`] tells. None if it doesn't from any root.
    fn ordered_root(_wanted: u32) -> Option<u32> {
        None
    }

    /// The head of the tree of a reduction; what comes there goes on to the root, if that is
    /// another rank.
    fn head(call: &Call<'_>) -> u32 {
        let ordered = Self::ordered_root(call.root).filter(|_| !call.commutative);
        ordered.unwrap_or(call.root)
    }

    /// Child `index` in a given order.
    fn child_in(&self, rank: u32, index: u32, order: ChildOrder) -> u32 {
        match order {
            ChildOrder::Ascending => self.child(rank, index),
            ChildOrder::Descending => self.child(rank, self.child_count(rank) - 1 - index),
        }
    }
}

/// The children of a rank, in a given order.
pub fn children<T: Tree>(tree: T, rank: u32, order: ChildOrder) -> impl Iterator<Item = u32> {
    (0..tree.child_count(rank)).map(move |index| tree.child_in(rank, index, order))
}

/// Ranks relative to the root.
#[derive(Debug, Clone, Copy)]
struct RelativeRanks {
    ranks: u32,
    root: u32,
}

impl RelativeRanks {
    const fn new(shape: TreeShape) -> Self {
        RelativeRanks { ranks: shape.ranks, root: shape.root }
    }

    const fn relative(self, rank: u32) -> u32 {
        if rank >= self.root { rank - self.root } else { rank + (self.ranks - self.root) }
    }

    const fn rank(self, relative: u32) -> u32 {
        let room = self.ranks - self.root;
        if relative < room { self.root + relative } else { relative - room }
    }
}

/// A tree of the registry, for whoever chooses it by name (a drawing, say).
#[derive(Debug, Clone, Copy)]
pub struct Topology {
    pub name: &'static str,
    /// What it looks like.
    pub description: &'static str,
    parent: fn(TreeShape, u32) -> Option<u32>,
    children: fn(TreeShape, u32, ChildOrder) -> Vec<u32>,
}

impl Topology {
    const fn from_tree<T: Tree>(name: &'static str, description: &'static str) -> Self {
        Topology {
            name,
            description,
            parent: |shape, rank| T::new(shape).parent(rank),
            children: |shape, rank, order| children(T::new(shape), rank, order).collect(),
        }
    }

    /// The rank from which `rank` hears; none for the root.
    pub fn parent(&self, shape: TreeShape, rank: u32) -> Option<u32> {
        (self.parent)(shape, rank)
    }

    /// The children of `rank`.
    pub fn children(&self, shape: TreeShape, rank: u32, order: ChildOrder) -> Vec<u32> {
        (self.children)(shape, rank, order)
    }
}

pub const TOPOLOGIES: &[Topology] = &[
    Topology::from_tree::<Flat>("flat", "the root is everybody's parent"),
    Topology::from_tree::<Chain>("chain", "everybody hears from the one before"),
    Topology::from_tree::<KChain>("k-chain", "fan-out many chains hang on the root"),
    Topology::from_tree::<Binary>(
        "binary",
        "two children each, levels filled evenly on both sides",
    ),
    Topology::from_tree::<InOrderBinary>(
        "in-order-binary",
        "binary; read in order it lists the ranks",
    ),
    Topology::from_tree::<Binomial>(
        "binomial",
        "the root's child 2^k away heads a tree of 2^k ranks",
    ),
    Topology::from_tree::<Bine>("bine", "binomial, with ranks that are nearer to each other"),
    Topology::from_tree::<KNomial>("k-nomial", "binomial with a radix (fan-out) other than 2"),
];

/// The tree of that name.
pub fn find(name: &str) -> Option<&'static Topology> {
    TOPOLOGIES.iter().find(|topology| topology.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = TreeShape> {
        (1..=40).flat_map(|ranks| {
            (0..ranks).flat_map(move |root| {
                [1, 2, 3, 4, 50].map(move |fan_out| TreeShape { ranks, root, fan_out })
            })
        })
    }

    fn fits(topology: &Topology, shape: TreeShape) -> bool {
        topology.name != "k-nomial" || shape.fan_out >= 2
    }

    /// Parents and children agree, and every rank hangs on the root: it is a tree.
    #[test]
    fn every_topology_is_a_tree_over_all_ranks() {
        for topology in TOPOLOGIES {
            for shape in shapes().filter(|shape| fits(topology, *shape)) {
                let mut edges = 0;
                for rank in 0..shape.ranks {
                    let up = topology.children(shape, rank, ChildOrder::Ascending);
                    let mut down = topology.children(shape, rank, ChildOrder::Descending);
                    down.reverse();
                    assert_eq!(up, down, "{} {shape:?}", topology.name);
                    for child in &up {
                        let parent = topology.parent(shape, *child);
                        assert_eq!(parent, Some(rank), "{} {shape:?} {child}", topology.name);
                    }
                    edges += up.len();
                    let mut above = rank;
                    for _ in 0..shape.ranks {
                        above = topology.parent(shape, above).unwrap_or(above);
                    }
                    assert_eq!(above, shape.root, "{} {shape:?} {rank}", topology.name);
                }
                assert_eq!(edges as u32, shape.ranks - 1, "{} {shape:?}", topology.name);
            }
        }
    }

    /// Edges of trees as Open MPI 4.1.4 sent messages along them, on 8 ranks and on 7 (its
    /// component pml/monitoring wrote who sent to whom).
    #[test]
    fn trees_of_open_mpi_are_those_that_were_seen() {
        fn edges<T: Tree>(ranks: u32, root: u32) -> Vec<(u32, u32)> {
            let tree = T::new(TreeShape { ranks, root, fan_out: 0 });
            let below = |rank| children(tree, rank, ChildOrder::Ascending);
            (0..ranks).flat_map(|rank| below(rank).map(move |child| (rank, child))).collect()
        }
        let doubling = [(0, 1), (0, 2), (0, 4), (1, 3), (1, 5), (2, 6), (3, 7)];
        assert_eq!(edges::<Doubling>(8, 0), doubling);
        assert_eq!(edges::<Doubling>(7, 0), doubling[..6]);
        let mut in_order = edges::<LastInOrder>(8, 7);
        in_order.sort_by_key(|(_, child)| *child);
        assert_eq!(in_order, [(1, 0), (3, 1), (3, 2), (7, 3), (6, 4), (6, 5), (7, 6)]);
        let mut in_order = edges::<LastInOrder>(7, 6);
        in_order.sort_by_key(|(_, child)| *child);
        assert_eq!(in_order, [(2, 0), (2, 1), (6, 2), (5, 3), (5, 4), (6, 5)]);
    }

    #[test]
    fn trees_of_open_mpi_are_trees_over_all_ranks() {
        fn is_a_tree<T: Tree>(shape: TreeShape) {
            let tree = T::new(shape);
            let mut met = vec![shape.root];
            for at in 0..shape.ranks as usize {
                let rank = met[at];
                for child in children(tree, rank, ChildOrder::Ascending) {
                    assert_eq!(tree.parent(child), Some(rank), "{shape:?}");
                    met.push(child);
                }
            }
            met.sort_unstable();
            assert!(met.into_iter().eq(0..shape.ranks), "{shape:?}");
        }
        for shape in shapes() {
            is_a_tree::<Doubling>(shape);
            is_a_tree::<LastInOrder>(TreeShape { root: shape.ranks - 1, ..shape });
        }
    }

    fn depth<T: Tree>(shape: TreeShape) -> u32 {
        let tree = T::new(shape);
        let depth_of = |rank| {
            let above = std::iter::successors(Some(rank), |rank| tree.parent(*rank));
            above.count() as u32 - 1
        };
        (0..shape.ranks).map(depth_of).max().unwrap()
    }

    #[test]
    fn depths_are_the_least_that_the_fan_out_allows() {
        for ranks in 1..=70_u32 {
            for root in [0, ranks / 2, ranks - 1] {
                let shape = TreeShape { ranks, root, fan_out: 3 };
                assert_eq!(depth::<Chain>(shape), ranks - 1);
                assert_eq!(depth::<Flat>(shape), u32::from(ranks > 1));
                assert_eq!(depth::<KChain>(shape), (ranks - 1).div_ceil(3));
                assert_eq!(depth::<Binary>(shape), ranks.ilog2(), "{ranks}");
                assert_eq!(
                    depth::<Binomial>(shape),
                    (0..ranks).map(u32::count_ones).max().unwrap()
                );
            }
            let root = ranks / 2;
            let in_order = depth::<InOrderBinary>(TreeShape { ranks, root, fan_out: 0 });
            assert_eq!(in_order, ranks.ilog2(), "{ranks}");
        }
    }

    #[test]
    fn a_radix_of_two_is_binomial() {
        for ranks in 1..=70 {
            let shape = TreeShape { ranks, root: ranks / 3, fan_out: 2 };
            let (binomial, k_nomial) = (Binomial::new(shape), KNomial::new(shape));
            for rank in 0..ranks {
                assert_eq!(
                    children(binomial, rank, ChildOrder::Ascending).collect::<Vec<_>>(),
                    children(k_nomial, rank, ChildOrder::Ascending).collect::<Vec<_>>()
                );
            }
        }
    }

    /// The ranks of a subtree in the order in which a reduction puts their values together.
    fn order_of<T: Tree>(tree: T, rank: u32) -> Vec<u32> {
        let mut order = vec![rank];
        for child in children(tree, rank, ChildOrder::Ascending) {
            let below = order_of(tree, child);
            let place = if tree.stands_before(rank, child) { 0 } else { order.len() };
            order.splice(place..place, below);
        }
        order
    }

    fn keeps_order<T: Tree>() {
        for shape in shapes().filter(|shape| shape.fan_out >= 2) {
            let root = T::ordered_root(shape.root).unwrap();
            let order = order_of(T::new(TreeShape { root, ..shape }), root);
            assert!(order.is_sorted() && order.len() as u32 == shape.ranks, "{shape:?}: {order:?}");
        }
    }

    #[test]
    fn trees_that_say_so_keep_the_order_of_ranks() {
        keeps_order::<Flat>();
        keeps_order::<Chain>();
        keeps_order::<KChain>();
        keeps_order::<InOrderBinary>();
        keeps_order::<Binomial>();
        keeps_order::<KNomial>();
        assert_eq!(Binary::ordered_root(0), None);
    }

    /// The halves of a splitted binary tree pair up, all but one rank if their number is odd.
    #[test]
    fn the_sides_of_a_binary_tree_pair_up() {
        for shape in shapes() {
            let tree = Binary::new(shape);
            for rank in (0..shape.ranks).filter(|rank| *rank != shape.root) {
                match tree.partner(rank) {
                    Some(partner) => {
                        assert_eq!(tree.partner(partner), Some(rank));
                        assert_ne!(tree.is_left(rank), tree.is_left(partner));
                    }
                    None => assert!(shape.ranks % 2 == 0 && tree.is_left(rank)),
                }
                let above = tree.parent(rank).unwrap();
                assert!(above == shape.root || tree.is_left(above) == tree.is_left(rank));
            }
        }
    }
}
