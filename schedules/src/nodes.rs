//! Which ranks are on which node.

/// The nodes of a communicator and the ranks on each.
///
/// Nodes are numbered by their lowest ranks; the ranks of a node have local numbers in rank order.
/// Made once for a communicator: every look-up is then one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodesOfRanks {
    /// By rank.
    node_of: Vec<u32>,
    local_of: Vec<u32>,
    /// All ranks, node by node.
    ranks: Vec<u32>,
    /// Where in `ranks` each node begins; the end of the last one comes last.
    begins: Vec<u32>,
    is_block: bool,
    is_cyclic: bool,
    fewest: u32,
    most: u32,
}

impl NodesOfRanks {
    /// From what tells the nodes of the ranks apart, in rank order: any numbers.
    pub fn new(labels: &[u64]) -> Self {
        let mut numbers = rustc_hash::FxHashMap::default();
        let mut counts: Vec<u32> = Vec::new();
        let mut node_of: Vec<u32> = Vec::with_capacity(labels.len());
        let mut local_of = Vec::with_capacity(labels.len());
        for (rank, label) in labels.iter().enumerate() {
            let next = counts.len() as u32;
            // Most ranks are on the node of the one before.
            let node = match rank.checked_sub(1).filter(|before| labels[*before] == *label) {
                Some(before) => node_of[before],
                None => *numbers.entry(*label).or_insert(next),
            };
            if node == next {
                counts.push(0);
            }
            node_of.push(node);
            local_of.push(counts[node as usize]);
            counts[node as usize] += 1;
        }
        let mut begins = vec![0];
        for count in &counts {
            begins.push(begins[begins.len() - 1] + count);
        }
        let mut ranks = vec![0; labels.len()];
        for (rank, (node, local)) in node_of.iter().zip(&local_of).enumerate() {
            ranks[(begins[*node as usize] + local) as usize] = rank as u32;
        }
        let fewest = counts.iter().copied().min().unwrap_or_default();
        let most = counts.iter().copied().max().unwrap_or_default();
        let count = counts.len() as u32;
        let turns = node_of.iter().zip(0_u32..).all(|(node, rank)| *node == rank % count);
        let (is_block, is_cyclic) = (ranks.is_sorted(), turns && fewest == most);
        NodesOfRanks { node_of, local_of, ranks, begins, is_block, is_cyclic, fewest, most }
    }

    /// So many nodes with the same number of ranks each, one node after the other.
    pub fn block(nodes: u32, per_node: u32) -> Self {
        let ranks = 0..u64::from(nodes) * u64::from(per_node);
        NodesOfRanks::new(&ranks.map(|rank| rank / u64::from(per_node)).collect::<Vec<_>>())
    }

    /// So many nodes with the same number of ranks each, dealt one to each node in turn.
    pub fn cyclic(nodes: u32, per_node: u32) -> Self {
        let ranks = 0..u64::from(nodes) * u64::from(per_node);
        NodesOfRanks::new(&ranks.map(|rank| rank % u64::from(nodes)).collect::<Vec<_>>())
    }

    /// Ranks in all.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Number of nodes.
    pub fn count(&self) -> u32 {
        self.begins.len() as u32 - 1
    }

    /// The node of a rank.
    #[inline]
    pub fn node_of(&self, rank: u32) -> u32 {
        self.node_of[rank as usize]
    }

    /// The place of a rank among those of its node.
    #[inline]
    pub fn local(&self, rank: u32) -> u32 {
        self.local_of[rank as usize]
    }

    /// The ranks of a node, ascending.
    #[inline]
    pub fn members(&self, node: u32) -> &[u32] {
        let (begin, end) = (self.begins[node as usize], self.begins[node as usize + 1]);
        &self.ranks[begin as usize..end as usize]
    }

    /// All ranks, node by node.
    pub fn in_order(&self) -> &[u32] {
        &self.ranks
    }

    /// The place of a rank in [`NodesOfRanks::in_order`].
    #[inline]
    pub fn place(&self, rank: u32) -> u32 {
        self.begins[self.node_of(rank) as usize] + self.local(rank)
    }

    /// Whether the ranks of each node follow each other, so that the order by nodes is that of the
    /// ranks.
    pub fn is_block(&self) -> bool {
        self.is_block
    }

    /// Whether all nodes have the same number of ranks, dealt one to each node in turn.
    pub fn is_cyclic(&self) -> bool {
        self.is_cyclic
    }

    /// The number of ranks of every node, if it is the same.
    pub fn per_node(&self) -> Option<u32> {
        (self.fewest == self.most).then_some(self.most)
    }

    /// The most ranks on a node.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Where in [`NodesOfRanks::in_order`] a node begins.
    pub(crate) fn begin(&self, node: u32) -> u32 {
        self.begins[node as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_lowest_ranks() {
        let nodes = NodesOfRanks::new(&[7, 3, 7, 9, 3, 7]);
        assert_eq!(nodes.count(), 3);
        assert_eq!((0..6).map(|rank| nodes.node_of(rank)).collect::<Vec<_>>(), [0, 1, 0, 2, 1, 0]);
        assert_eq!((0..6).map(|rank| nodes.local(rank)).collect::<Vec<_>>(), [0, 0, 1, 0, 1, 2]);
        assert_eq!(nodes.members(0), [0, 2, 5]);
        assert_eq!(nodes.in_order(), [0, 2, 5, 1, 4, 3]);
        assert!((0..6).all(|rank| nodes.in_order()[nodes.place(rank) as usize] == rank));
        assert_eq!((nodes.per_node(), nodes.most(), nodes.is_block()), (None, 3, false));
        assert!(NodesOfRanks::block(3, 4).is_block() && !NodesOfRanks::cyclic(3, 4).is_block());
        assert!(
            NodesOfRanks::cyclic(3, 4).is_cyclic()
                && !NodesOfRanks::block(3, 4).is_cyclic()
                && !nodes.is_cyclic()
        );
        assert_eq!(NodesOfRanks::cyclic(3, 4).per_node(), Some(4));
        assert_eq!(NodesOfRanks::cyclic(3, 4).members(1), [1, 4, 7, 10]);
    }
}
