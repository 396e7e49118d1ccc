use super::{RelativeRanks, TreeShape};

/// Two binary trees that lie over all ranks but the root, who feeds the heads of both: whoever has
/// children in one has none in the other, so that all send as much as they receive.
///
/// In the first, a rank's height is the number of zeros at the end of its number; the second is its
/// mirror image where the number of ranks without the root is even, and otherwise the first shifted
/// by one (Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and
/// scan", Parallel Computing 35, 2009).
#[derive(Debug, Clone, Copy)]
pub struct TwoTrees {
    relative: RelativeRanks,
    /// Ranks without the root.
    nodes: u32,
}

/// A rank's place in one of two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoTreesPosition<const CHILDREN: usize> {
    /// None: the root.
    pub parent: Option<u32>,
    /// In the order of sending or of combining.
    pub children: [Option<u32>; CHILDREN],
    /// Whether it is a leaf, or below one, as the ranks of a node are below their leader. Down this tree
    /// segments come to it later than down the other, and up this tree it hands them on earlier.
    pub is_leaf: bool,
}

impl<const CHILDREN: usize> TwoTreesPosition<CHILDREN> {
    /// Whether there is a rank below it.
    pub fn has_children(&self) -> bool {
        self.children.iter().any(Option::is_some)
    }

    /// Whether there is no other rank.
    pub fn is_alone(&self) -> bool {
        self.parent.is_none() && !self.has_children()
    }
}

impl TwoTrees {
    /// Where a rank stands in both.
    pub fn positions(&self, rank: u32) -> [TwoTreesPosition<2>; 2] {
        [0, 1].map(|tree| {
            let (parent, children) = (self.parent(tree, rank), self.children(tree, rank));
            TwoTreesPosition {
                parent,
                children,
                is_leaf: parent.is_some() && children == [None, None],
            }
        })
    }

    /// The trees of a shape.
    pub fn new(shape: TreeShape) -> Self {
        TwoTrees { relative: RelativeRanks::new(shape), nodes: shape.ranks - 1 }
    }

    /// The rank from which `rank` hears in a tree (0 or 1); none for the root.
    pub fn parent(&self, tree: u32, rank: u32) -> Option<u32> {
        let node = self.place(tree, self.relative.relative(rank))?;
        let bit = node & node.wrapping_neg();
        let is_left = node & (bit << 1) == 0 && node + bit <= self.nodes;
        let above = if is_left { node + bit } else { node - bit };
        Some(self.rank_at(tree, above))
    }

    /// The ranks that hear from `rank` in a tree.
    pub fn children(&self, tree: u32, rank: u32) -> [Option<u32>; 2] {
        let Some(node) = self.place(tree, self.relative.relative(rank)) else {
            let head = (self.nodes > 0).then(|| 1 << self.nodes.ilog2());
            return [head.map(|head| self.rank_at(tree, head)), None];
        };
        let bit = node & node.wrapping_neg();
        if bit == 1 {
            return [None, None];
        }
        let room = (self.nodes - node).min(bit - 1);
        let right = (room > 0).then(|| node + (1 << room.ilog2()));
        [Some(node - bit / 2), right].map(|child| child.map(|child| self.rank_at(tree, child)))
    }

    /// Where in the first tree stands what stands in this one at a relative rank; none for the root.
    fn place(&self, tree: u32, relative: u32) -> Option<u32> {
        let node = std::num::NonZero::new(relative)?.get();
        Some(match tree {
            0 => node,
            _ if self.nodes.is_multiple_of(2) => self.nodes + 1 - node,
            _ if node == 1 => self.nodes,
            _ => node - 1,
        })
    }

    /// The rank at a place of the first tree, as it stands in this one; the root at 0.
    fn rank_at(&self, tree: u32, place: u32) -> u32 {
        let relative = match tree {
            _ if place == 0 => 0,
            0 => place,
            _ if self.nodes.is_multiple_of(2) => self.nodes + 1 - place,
            _ => place % self.nodes + 1,
        };
        self.relative.rank(relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_trees_and_nobody_is_within_both() {
        for ranks in 1..=160 {
            for root in [0, ranks / 3, ranks - 1] {
                let trees = TwoTrees::new(TreeShape { ranks, root, fan_out: 2 });
                for tree in 0..2 {
                    let mut edges = 0;
                    for rank in 0..ranks {
                        for child in trees.children(tree, rank).into_iter().flatten() {
                            assert_eq!(trees.parent(tree, child), Some(rank), "{ranks} {root}");
                            edges += 1;
                        }
                        let above = |rank: &u32| trees.parent(tree, *rank);
                        let way: Vec<u32> = std::iter::successors(Some(rank), above).collect();
                        assert_eq!(way.last(), Some(&root), "{ranks} {root} {rank}");
                        assert!(way.len() as u32 <= ranks.ilog2() + 2, "{ranks} {root}: {way:?}");
                    }
                    assert_eq!(edges, ranks - 1, "{ranks} {root}");
                }
                let within = |tree, rank| trees.children(tree, rank) != [None, None];
                let both = (0..ranks).filter(|&rank| within(0, rank) && within(1, rank));
                assert!(both.eq((ranks > 1).then_some(root)), "{ranks} {root}");
            }
        }
    }
}
