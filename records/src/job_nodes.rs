//! Which ranks of the job make up a communicator of a layout.

use std::{cmp::Reverse, collections::HashMap};

use crate::{Layout, layout::RankPlacement};

/// The job's ranks, by node.
#[derive(Debug, Clone)]
pub struct JobNodes {
    ranks: Vec<Vec<u32>>,
}

impl JobNodes {
    /// Of the node of each rank.
    pub fn new(of_ranks: &[u32]) -> Self {
        let mut nodes: Vec<Vec<u32>> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        for (rank, node) in (0..).zip(of_ranks) {
            let place = *places.entry(*node).or_insert_with(|| {
                nodes.push(Vec::new());
                nodes.len() - 1
            });
            nodes[place].push(rank);
        }
        JobNodes { ranks: nodes }
    }

    /// The job's ranks that make up a communicator, in its order; rank 0 of the job is its first.
    ///
    /// Each node of the layout is a node of the job, of which it takes the first ranks. A number of
    /// processes that is more than there are nodes means the job's first ranks.
    ///
    /// # Errors
    /// The job has no such nodes; says which it has.
    pub fn members(&self, layout: Layout) -> Result<Vec<u32>, String> {
        let all: usize = self.ranks.iter().map(Vec::len).sum();
        if layout.is_flat() && layout.nodes() as usize > self.ranks.len() {
            return match layout.procs() as usize <= all {
                true => Ok((0..layout.procs()).collect()),
                false => Err(format!("{layout} ranks are more than the job's {all}")),
            };
        }
        let nodes = self.nodes(&layout.counts()).ok_or_else(|| {
            let held: Vec<u32> = self.ranks.iter().map(|node| node.len() as u32).collect();
            let held = Layout::from_counts(&held, RankPlacement::Block);
            let held = held.map_or_else(|_| String::new(), |held| format!(" ({held:#})"));
            format!("layout {layout:#} is more than the job's nodes{held} hold")
        })?;
        let mut next = vec![0; nodes.len()];
        let rank = |node: u32| {
            let place = &mut next[node as usize];
            *place += 1;
            self.ranks[nodes[node as usize]][*place - 1]
        };
        Ok(layout.nodes_of_ranks().into_iter().map(rank).collect())
    }

    /// A node of the job for each number of ranks: its first for the first, for the others the
    /// smallest that hold them, the largest numbers first; of equal ones the first.
    fn nodes(&self, counts: &[u32]) -> Option<Vec<usize>> {
        let holds = |node: usize, count: u32| self.ranks[node].len() >= count as usize;
        let mut order: Vec<usize> = (1..counts.len()).collect();
        order.sort_by_key(|&index| Reverse(counts[index]));
        let mut free: Vec<usize> = (1..self.ranks.len()).collect();
        free.sort_by_key(|&node| self.ranks[node].len());
        let mut nodes = vec![0; counts.len()];
        if !holds(0, *counts.first()?) {
            return None;
        }
        for index in order {
            let place = free.iter().position(|&node| holds(node, counts[index]))?;
            nodes[index] = free.remove(place);
        }
        Some(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(job: &[u32], layout: &str) -> Result<Vec<u32>, String> {
        JobNodes::new(job).members(layout.parse().unwrap())
    }

    #[test]
    fn communicators_take_the_first_ranks_of_whole_nodes() {
        let block = [0, 0, 0, 1, 1, 1, 2, 2, 2];
        for (layout, ranks) in [
            ("2x2", vec![0, 1, 3, 4]),
            ("2x2:cyclic", vec![0, 3, 1, 4]),
            ("3", vec![0, 3, 6]),
            ("1x3", vec![0, 1, 2]),
            ("2+1+3", vec![0, 1, 6, 3, 4, 5]),
            ("list:0.1.1.0", vec![0, 3, 4, 1]),
        ] {
            assert_eq!(members(&block, layout).unwrap(), ranks, "{layout}");
        }
        assert_eq!(members(&[0, 1, 2, 0, 1, 2], "2x2").unwrap(), [0, 3, 1, 4]);
        // The third node alone holds three.
        assert_eq!(members(&[0, 0, 1, 1, 2, 2, 2], "2+2+2").unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(members(&[0, 0, 1, 1, 2, 2, 2], "1+3+2").unwrap(), [0, 4, 5, 6, 2, 3]);
    }

    /// On one machine, as on any with fewer nodes than processes.
    #[test]
    fn a_number_of_more_processes_than_nodes_is_the_first_ranks() {
        assert_eq!(members(&[7, 7, 7, 7], "3").unwrap(), [0, 1, 2]);
        assert_eq!(members(&[0, 0, 1, 1], "2").unwrap(), [0, 2]);
        assert_eq!(members(&[0, 0, 1, 1], "3").unwrap(), [0, 1, 2]);
    }

    #[test]
    fn what_the_nodes_cannot_hold_is_refused_in_words() {
        for (layout, part) in [
            ("2x3", "layout 2x3 is more than the job's nodes (2+3) hold"),
            ("3x1:cyclic", ""),
            ("3+2", "layout 3+2 is more than"),
            ("9", "9 ranks are more than the job's 5"),
        ] {
            match members(&[0, 0, 1, 1, 1], layout) {
                Err(error) => assert!(error.contains(part) && !part.is_empty(), "{error}"),
                Ok(ranks) => assert_eq!((ranks.len(), part), (3, ""), "{layout}"),
            }
        }
        let of_one = members(&[0; 4], "2x2").unwrap_err();
        assert_eq!(of_one, "layout 2x2 is more than the job's nodes (1x4) hold");
    }
}
