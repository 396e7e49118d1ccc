//! Two-level broadcast and reduction by two trees of leaders: each half of the message goes through
//! one of them in segments, and between each leader and the others of its node through a binary tree
//! of these, whose head alone costs the leader time.
//!
//! Segment by segment as phases the two trees would wait for each other: who hands on one tree's
//! segments hears of the other's later.

use records::{Algorithm, Collective};

use super::group::{RankGroup, leader};
use crate::{
    Call, NodesOfRanks,
    topology::{Binary, Tree, TreeShape, TwoTrees, TwoTreesPosition},
};

/// Of a leader, two between nodes and the head of the others inside.
pub(super) const CHILDREN: usize = 3;

/// Whether a call is to be served so.
pub(super) fn serve(scheme: Algorithm, collective: Collective, call: &Call<'_>) -> bool {
    let is_one = match collective {
        Collective::Bcast => true,
        Collective::Reduce => call.commutative,
        _ => false,
    };
    is_one
        && scheme == Algorithm::TwoLevel
        && call.nodes.is_some()
        && call.inter == Some(Algorithm::TwoTrees)
        && call.intra.is_none_or(|intra| intra == Algorithm::Binary)
}

/// Where a rank stands in both trees: a leader in those of the leaders, the others below theirs.
pub(super) fn positions(
    call: &Call<'_>,
    nodes: &NodesOfRanks,
    rank: u32,
) -> [TwoTreesPosition<CHILDREN>; 2] {
    let node = nodes.node_of(rank);
    let root = nodes.node_of(call.root);
    let shape = TreeShape { ranks: nodes.count(), root, fan_out: 2 };
    let of_nodes = TwoTrees::new(shape).positions(node);
    let inside = InsideTree::new(call, nodes, node);
    match inside.place(nodes.local(rank)) {
        None => {
            let leader = |node| RankGroup::Leaders.rank(call, nodes, node);
            let head = inside.head();
            of_nodes.map(|TwoTreesPosition { parent, children, is_leaf }| {
                let [left, right] = children.map(|child| child.map(leader));
                let children = [left, right, head];
                TwoTreesPosition { parent: parent.map(leader), children, is_leaf }
            })
        }
        Some(place) => {
            let parent = Some(inside.parent(place));
            let [left, right] = inside.children(place);
            let children = [left, right, None];
            of_nodes.map(|TwoTreesPosition { is_leaf, .. }| TwoTreesPosition {
                parent,
                children,
                is_leaf,
            })
        }
    }
}

/// The binary tree of a node's ranks but its leader.
struct InsideTree<'a> {
    members: &'a [u32],
    /// Of the leader, among the members.
    leader: u32,
    others: u32,
}

impl<'a> InsideTree<'a> {
    fn new(call: &Call<'_>, nodes: &'a NodesOfRanks, node: u32) -> Self {
        let members = nodes.members(node);
        let leader = nodes.local(leader(call, nodes, node));
        InsideTree { members, leader, others: members.len() as u32 - 1 }
    }

    fn tree(&self) -> Binary {
        Binary::new(TreeShape { ranks: self.others, root: 0, fan_out: 2 })
    }

    /// The rank at a place: those after the leader in turn.
    fn rank(&self, place: u32) -> u32 {
        self.members[((self.leader + 1 + place) % (self.others + 1)) as usize]
    }

    /// The place of a member by its number in the node; none for the leader.
    fn place(&self, local: u32) -> Option<u32> {
        let after = (local + self.others + 1 - self.leader) % (self.others + 1);
        after.checked_sub(1)
    }

    fn head(&self) -> Option<u32> {
        (self.others > 0).then(|| self.rank(0))
    }

    fn parent(&self, place: u32) -> u32 {
        let leader = self.members[self.leader as usize];
        self.tree().parent(place).map_or(leader, |above| self.rank(above))
    }

    fn children(&self, place: u32) -> [Option<u32>; 2] {
        let tree = self.tree();
        let child =
            |index| (index < tree.child_count(place)).then(|| self.rank(tree.child(place, index)));
        [child(0), child(1)]
    }
}
