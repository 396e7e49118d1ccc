//! Which ranks measure what, where nodes hold several: between nodes, and inside one.

use std::cmp::Reverse;

/// The ranks that measure at one level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelRanks {
    /// The sender and the mirror.
    pub pair: (u32, u32),
    /// Those of the groups: the pair first; the root is the first one.
    pub group: Vec<u32>,
    /// Those that share the ports of the pair's two nodes: a rank of the one, a rank of the other,
    /// and so on; the pair first. On one node those that share its memory, whose processors are enough for all.
    /// Empty where nothing is shared.
    pub sharing: Vec<u32>,
    /// Whether it is memory that is shared.
    pub shares_memory: bool,
    /// Inside a node, beside which there is the level between nodes.
    pub inside: bool,
}

impl LevelRanks {
    /// Of this pair, and groups of all ranks.
    pub fn of_pair(pair: (u32, u32), ranks: u32) -> Self {
        let others = (0..ranks).filter(|rank| ![pair.0, pair.1].contains(rank));
        let group = [pair.0, pair.1].into_iter().chain(others).collect();
        LevelRanks { pair, group, ..LevelRanks::default() }
    }

    /// These ranks where those of the groups are on one node of so many processors.
    #[must_use]
    pub fn on_one_node(self, processors: u32) -> Self {
        // Ranks that wait for a processor tell nothing of memory.
        let shares_memory = self.group.len() <= processors as usize;
        let sharing = if shares_memory { self.group.clone() } else { Vec::new() };
        LevelRanks { sharing, shares_memory, ..self }
    }

    /// All ranks, those that measure at this level first, and how many these are.
    pub fn order(&self, ranks: u32) -> (Vec<u32>, usize) {
        let mut order = self.group.clone();
        order.extend(self.sharing.iter().filter(|rank| !self.group.contains(rank)));
        let attending = order.len();
        let others: Vec<u32> = (0..ranks).filter(|rank| !order.contains(rank)).collect();
        order.extend(others);
        (order, attending)
    }

    /// Pairs of ranks that can send at once through one port.
    pub fn sharing_pairs(&self) -> u32 {
        self.sharing.len() as u32 / 2
    }
}

/// The levels inside a node and between nodes, of ranks that are on these nodes (numbers from 0 on):
/// in the fullest node, and between the first ranks of all nodes, the two fullest first. None where no
/// node holds several ranks, or where there is one node.
pub fn levels(nodes: &[u32]) -> Option<[LevelRanks; 2]> {
    let mut of_nodes = vec![Vec::new(); nodes.iter().max().map_or(0, |last| *last as usize + 1)];
    for (rank, &node) in (0..).zip(nodes) {
        of_nodes[node as usize].push(rank);
    }
    of_nodes.sort_by_key(|ranks| Reverse(ranks.len()));
    let [fullest, next, ..] = &of_nodes[..] else { return None };
    let (&[first, second, ..], &[other, ..]) = (&fullest[..], &next[..]) else { return None };
    let inside = LevelRanks {
        pair: (first, second),
        group: fullest.clone(),
        inside: true,
        ..LevelRanks::default()
    };
    let sharing = fullest.iter().zip(next).flat_map(|(one, other)| [*one, *other]);
    let between = LevelRanks {
        pair: (first, other),
        group: of_nodes.iter().map(|ranks| ranks[0]).collect(),
        sharing: sharing.collect(),
        ..LevelRanks::default()
    };
    Some([inside, between])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_chosen_by_node() {
        let [inside, between] = levels(&[0, 0, 0, 1, 1, 1]).unwrap();
        assert_eq!((inside.pair, inside.group.clone()), ((0, 1), vec![0, 1, 2]));
        assert_eq!((between.pair, between.group.clone()), ((0, 3), vec![0, 3]));
        assert_eq!(between.sharing, [0, 3, 1, 4, 2, 5]);
        assert_eq!((inside.sharing.len(), between.sharing_pairs()), (0, 3));
        assert_eq!(inside.order(6), (vec![0, 1, 2, 3, 4, 5], 3));
        assert_eq!(between.order(7), (vec![0, 3, 1, 4, 2, 5, 6], 6));

        let [inside, between] = levels(&[0, 1, 2, 0, 1, 2]).unwrap();
        assert_eq!((inside.pair, between.pair), ((0, 3), (0, 1)), "dealt in turn");
        assert_eq!((between.group, between.sharing), (vec![0, 1, 2], vec![0, 1, 3, 4]));

        let [inside, between] = levels(&[0, 1, 1, 2, 2, 2]).unwrap();
        assert_eq!((inside.pair, inside.group), ((3, 4), vec![3, 4, 5]), "the fullest node");
        assert_eq!((between.pair, between.group), ((3, 1), vec![3, 1, 0]));
        assert_eq!(between.sharing, [3, 1, 4, 2]);

        assert_eq!(levels(&[0, 1, 2]), None, "one rank on each node");
        assert_eq!(levels(&[0, 0, 0]), None, "one node");
        assert_eq!(levels(&[0]), None);
    }

    #[test]
    fn ranks_of_one_node_share_its_memory_where_each_has_a_processor() {
        let level = LevelRanks::of_pair((1, 2), 4);
        let on_eight = level.clone().on_one_node(8);
        assert!(on_eight.shares_memory);
        assert_eq!(on_eight.sharing, [1, 2, 0, 3], "neighbours are a pair");
        assert_eq!(level.clone().on_one_node(3), level);
    }

    #[test]
    fn a_pair_leads_its_groups() {
        assert_eq!(LevelRanks::of_pair((2, 3), 4).group, [2, 3, 0, 1]);
        assert_eq!(LevelRanks::of_pair((2, 3), 4).order(4), (vec![2, 3, 0, 1], 4));
        assert_eq!(LevelRanks::of_pair((0, 1), 2).sharing_pairs(), 0);
    }
}
