//! Costs by level: inside a node, and between nodes whose ports several ranks share.

use super::Costs;
use crate::NodesOfRanks;

/// Level 0 is inside a node, level 1 between nodes.
pub(super) const LEVELS: usize = 2;

/// What messages cost, by the level of the pair of ranks.
///
/// Any [`Costs`] are those of ranks that each have a port of their own and are all equally far.
pub trait LevelledCosts {
    /// What things cost at one level.
    type LevelCosts: Costs;

    /// The ranks for which the costs are made; none: for any number.
    fn ranks(&self) -> Option<u32>;

    /// Number of nodes whose ports are to be kept; 0 if no rank shares one.
    fn nodes(&self) -> u32;

    /// The node of a rank; all ranks of equal distance are of node 0.
    fn node(&self, rank: u32) -> u32;

    /// The level of a message: 0 or 1.
    fn level(&self, from: u32, to: u32) -> usize;

    /// The costs at a level; combining and copying are of level 0.
    fn of_level(&self, level: usize) -> &Self::LevelCosts;

    /// The node whose port the rank shares with others, if it does.
    fn shared_port(&self, rank: u32) -> Option<u32>;

    /// How long a message takes the outgoing port of its sender's node, in seconds, where its sender
    /// keeps sending to so many destinations.
    fn port_gap(&self, bytes: u64, destinations: u32) -> f64;

    /// How long a message takes the incoming port of its receiver's node, in seconds.
    fn port_receive_gap(&self, bytes: u64) -> f64;
}

impl<C: Costs> LevelledCosts for C {
    type LevelCosts = C;

    #[inline]
    fn ranks(&self) -> Option<u32> {
        None
    }

    #[inline]
    fn nodes(&self) -> u32 {
        0
    }

    #[inline]
    fn node(&self, _rank: u32) -> u32 {
        0
    }

    #[inline]
    fn level(&self, _from: u32, _to: u32) -> usize {
        0
    }

    #[inline]
    fn of_level(&self, _level: usize) -> &C {
        self
    }

    #[inline]
    fn shared_port(&self, _rank: u32) -> Option<u32> {
        None
    }

    fn port_gap(&self, _bytes: u64, _destinations: u32) -> f64 {
        0.0
    }

    fn port_receive_gap(&self, _bytes: u64) -> f64 {
        0.0
    }
}

/// Costs of ranks on their nodes.
///
/// A message inside a node takes its two ranks' ports, at the costs inside. One between nodes takes
/// the ranks' ports at the costs between, and on its way the ports of both nodes, which all ranks of
/// a node share: each for the port's gap. Where that is below the gap between, one rank alone can't
/// fill the port of its node. A rank that is alone on its node has that node's port for its own.
#[derive(Debug, Clone, Copy)]
pub struct NodeCosts<'a, C> {
    /// Who is where.
    pub nodes: &'a NodesOfRanks,
    /// Between ranks of one node, and of combining.
    pub inside: &'a C,
    /// Between ranks of two nodes, as one pair sees it.
    pub between: &'a C,
    /// Its gaps are those of a node's port; nothing else of it is looked at.
    pub port: &'a C,
}

impl<C: Costs> LevelledCosts for NodeCosts<'_, C> {
    type LevelCosts = C;

    fn ranks(&self) -> Option<u32> {
        Some(self.nodes.ranks())
    }

    fn nodes(&self) -> u32 {
        self.nodes.count()
    }

    #[inline]
    fn node(&self, rank: u32) -> u32 {
        self.nodes.node_of(rank)
    }

    #[inline]
    fn level(&self, from: u32, to: u32) -> usize {
        usize::from(self.nodes.node_of(from) != self.nodes.node_of(to))
    }

    #[inline]
    fn of_level(&self, level: usize) -> &C {
        if level == 0 { self.inside } else { self.between }
    }

    #[inline]
    fn shared_port(&self, rank: u32) -> Option<u32> {
        let node = self.nodes.node_of(rank);
        (self.nodes.members(node).len() > 1).then_some(node)
    }

    /// What several destinations do to a rank's own port they do to that of its node.
    #[inline]
    fn port_gap(&self, bytes: u64, destinations: u32) -> f64 {
        let alone = self.between.gap(bytes, 1);
        let effect = match destinations > 1 && alone > 0.0 {
            true => self.between.gap(bytes, destinations) / alone,
            false => 1.0,
        };
        self.port.gap(bytes, 1) * effect
    }

    #[inline]
    fn port_receive_gap(&self, bytes: u64) -> f64 {
        self.port.receive_gap(bytes)
    }
}
