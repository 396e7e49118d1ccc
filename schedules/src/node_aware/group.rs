//! The ranks among whom a phase works.

use crate::{Call, NodesOfRanks};

/// Some of the ranks, in an order of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RankGroup {
    /// Those of a node.
    Node(u32),
    /// The leader of each node.
    Leaders,
    /// Those with one local number; all nodes have as many ranks.
    Lane(u32),
    /// All, node by node.
    InOrder,
    /// All, node by node from the root's on, the root before the others of its node.
    FromRoot,
}

/// The rank of a node that works between the nodes: the root, where it is there. Without a root,
/// the call's is 0, the first rank of its node.
pub(super) fn leader(call: &Call<'_>, nodes: &NodesOfRanks, node: u32) -> u32 {
    match nodes.node_of(call.root) == node {
        true => call.root,
        false => nodes.members(node)[0],
    }
}

impl RankGroup {
    pub fn size(self, nodes: &NodesOfRanks) -> u32 {
        match self {
            RankGroup::Node(node) => nodes.members(node).len() as u32,
            RankGroup::Leaders | RankGroup::Lane(_) => nodes.count(),
            RankGroup::InOrder | RankGroup::FromRoot => nodes.ranks(),
        }
    }

    /// The rank at a place of the group.
    pub fn rank(self, call: &Call<'_>, nodes: &NodesOfRanks, place: u32) -> u32 {
        match self {
            RankGroup::Node(node) => nodes.members(node)[place as usize],
            RankGroup::Leaders => leader(call, nodes, place),
            RankGroup::Lane(local) => nodes.members(place)[local as usize],
            RankGroup::InOrder => nodes.in_order()[place as usize],
            RankGroup::FromRoot => {
                let (first, local) = (nodes.node_of(call.root), nodes.local(call.root));
                // The root and those that it goes before.
                match place {
                    0 => call.root,
                    before if before <= local => nodes.members(first)[before as usize - 1],
                    _ => {
                        let turned = call.after(nodes.begin(first), place);
                        nodes.in_order()[turned as usize]
                    }
                }
            }
        }
    }

    /// The place of a rank that is in the group.
    pub fn place(self, call: &Call<'_>, nodes: &NodesOfRanks, rank: u32) -> u32 {
        match self {
            RankGroup::Node(_) => nodes.local(rank),
            RankGroup::Leaders | RankGroup::Lane(_) => nodes.node_of(rank),
            RankGroup::InOrder => nodes.place(rank),
            RankGroup::FromRoot => {
                let first = nodes.node_of(call.root);
                let before =
                    nodes.node_of(rank) == first && nodes.local(rank) < nodes.local(call.root);
                match (rank == call.root, before) {
                    (true, _) => 0,
                    (_, true) => nodes.local(rank) + 1,
                    _ => call.before(nodes.place(rank), nodes.begin(first)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_place_and_the_root_comes_first() {
        let nodes = NodesOfRanks::new(&[4, 2, 4, 4, 9, 2, 4]);
        for root in 0..7 {
            let call = Call { root, ..Call::new(7, 0) };
            for group in [RankGroup::InOrder, RankGroup::FromRoot] {
                let ranks: Vec<u32> =
                    (0..7).map(|place| group.rank(&call, &nodes, place)).collect();
                let places = ranks.iter().map(|rank| group.place(&call, &nodes, *rank));
                assert_eq!(places.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6], "{group:?} {root}");
                let changes = ranks
                    .windows(2)
                    .filter(|pair| nodes.node_of(pair[0]) != nodes.node_of(pair[1]));
                assert_eq!(changes.count(), 2, "{group:?} {root}: {ranks:?}");
            }
            assert_eq!(RankGroup::FromRoot.rank(&call, &nodes, 0), root);
        }
    }
}
