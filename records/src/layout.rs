//! Which ranks of a communicator are on which node.
//!
//! A [`Layout`] says how many nodes there are, how many ranks each holds and how ranks are dealt to them.
//! Nodes are numbered in the order of their first ranks, so that one distribution has one layout.
//!
//! In text: `8x4` is 8 nodes with 4 ranks each, every node filled before the next; `8x4:cyclic` deals
//! one rank to each node in turn; `4+4+3` is the ranks of each node; `list:0*2.1.0` is the node of each
//! rank, `0*2` meaning twice node 0. A plain number `8` is 8 nodes with one rank each, as `8x1`.

mod text;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::number::{check_procs, expected_procs};

/// The most ranks of a layout that is listed rank by rank.
const MAX_LISTED: usize = 1 << 16;

/// In which order ranks are dealt to nodes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum RankPlacement {
    /// Each node is filled before the next one.
    #[default]
    Block,
    /// One to each node in turn.
    Cyclic,
}

/// Which ranks of a communicator are on which node.
///
/// It is small and copied freely: what is listed node by node or rank by rank is kept once per process.
/// Layouts are ordered by their ranks, then by the ranks of their fullest node: 32x1, 16x2, 8x4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    procs: u32,
    nodes: u32,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    /// The same number on every node.
    Even { per_node: u32, placement: RankPlacement },
    /// A number for each node.
    Counts { counts: &'static [u32], placement: RankPlacement },
    /// The node of each rank, where nothing shorter tells it.
    List(&'static [u32]),
}

impl Layout {
    /// One rank on each of `procs` nodes.
    pub const fn flat(procs: u32) -> Self {
        let form = Form::Even { per_node: 1, placement: RankPlacement::Block };
        Layout { procs, nodes: procs, form }
    }

    /// `per_node` ranks on every node.
    ///
    /// # Errors
    /// There are no nodes or no ranks, or more ranks than a communicator may have.
    pub fn even(nodes: u32, per_node: u32, placement: RankPlacement) -> Result<Self, String> {
        let procs = checked_procs(u64::from(nodes) * u64::from(per_node))?;
        let placement = match nodes == 1 || per_node == 1 {
            true => RankPlacement::Block,
            false => placement,
        };
        Ok(Layout { procs, nodes, form: Form::Even { per_node, placement } })
    }

    /// A number of ranks for each node.
    ///
    /// # Errors
    /// There are no nodes, a node without ranks, or more ranks than a communicator may have.
    pub fn from_counts(counts: &[u32], placement: RankPlacement) -> Result<Self, String> {
        let procs = checked_procs(counts.iter().map(|&count| u64::from(count)).sum())?;
        if let Some(empty) = counts.iter().position(|&count| count == 0) {
            return Err(format!("node {empty} has no rank; expected 1 or more on each node"));
        }
        let nodes = counts.len() as u32;
        if counts.iter().all(|count| *count == counts[0]) {
            return Self::even(nodes, counts[0], placement);
        }
        // Where only the last node holds several, both orders are the same.
        let placement = match counts[..counts.len() - 1].iter().all(|count| *count == 1) {
            true => RankPlacement::Block,
            false => placement,
        };
        Ok(Layout { procs, nodes, form: Form::Counts { counts: kept(counts), placement } })
    }

    /// From what tells the ranks' nodes apart (host names, numbers), in rank order.
    ///
    /// # Errors
    /// There are no ranks, or too many for a layout that is listed rank by rank.
    pub fn from_nodes<T: Ord>(of_ranks: &[T]) -> Result<Self, String> {
        checked_procs(of_ranks.len() as u64)?;
        let mut numbers = BTreeMap::new();
        let mut counts: Vec<u32> = Vec::new();
        let list: Vec<u32> = of_ranks
            .iter()
            .map(|name| {
                let node = *numbers.entry(name).or_insert_with(|| {
                    counts.push(0);
                    counts.len() as u32 - 1
                });
                counts[node as usize] += 1;
                node
            })
            .collect();
        for placement in [RankPlacement::Block, RankPlacement::Cyclic] {
            let layout = Self::from_counts(&counts, placement)?;
            if layout.nodes_of_ranks() == list {
                return Ok(layout);
            }
        }
        if list.len() > MAX_LISTED {
            let procs = list.len();
            return Err(format!(
                "{procs} ranks in no regular order on their nodes; expected at most {MAX_LISTED}"
            ));
        }
        let (procs, nodes) = (list.len() as u32, counts.len() as u32);
        Ok(Layout { procs, nodes, form: Form::List(kept(&list)) })
    }

    /// Of the first `procs` of its ranks; nothing where there are not so many.
    pub fn of_first(self, procs: u32) -> Option<Self> {
        if procs == self.procs || (self.is_flat() && procs < self.procs) {
            return Some(Layout { procs, nodes: procs.min(self.nodes), ..self });
        }
        Self::from_nodes(self.nodes_of_ranks().get(..procs as usize)?).ok()
    }

    /// Ranks in all.
    pub const fn procs(self) -> u32 {
        self.procs
    }

    /// Nodes that hold at least one rank.
    pub const fn nodes(self) -> u32 {
        self.nodes
    }

    /// Whether each node holds one rank, so that the number of ranks tells everything.
    pub const fn is_flat(self) -> bool {
        self.procs == self.nodes
    }

    /// Ranks of each node where all hold the same number.
    pub const fn per_node(self) -> Option<u32> {
        match self.form {
            Form::Even { per_node, .. } => Some(per_node),
            Form::Counts { .. } | Form::List(_) => None,
        }
    }

    /// Ranks of the node that holds most.
    pub fn max_per_node(self) -> u32 {
        match self.form {
            Form::Even { per_node, .. } => per_node,
            Form::Counts { counts, .. } => counts.iter().copied().max().unwrap_or(0),
            Form::List(_) => self.counts().into_iter().max().unwrap_or(0),
        }
    }

    /// Ranks of each node.
    pub fn counts(self) -> Vec<u32> {
        match self.form {
            Form::Even { per_node, .. } => vec![per_node; self.nodes as usize],
            Form::Counts { counts, .. } => counts.to_vec(),
            Form::List(list) => {
                let mut counts = vec![0; self.nodes as usize];
                list.iter().for_each(|&node| counts[node as usize] += 1);
                counts
            }
        }
    }

    /// How ranks are dealt to nodes; nothing where only a list of them tells.
    pub const fn placement(self) -> Option<RankPlacement> {
        match self.form {
            Form::Even { placement, .. } | Form::Counts { placement, .. } => Some(placement),
            Form::List(_) => None,
        }
    }

    /// The node of a rank; nothing where there is no such rank.
    pub fn node_of(self, rank: u32) -> Option<u32> {
        if rank >= self.procs {
            return None;
        }
        match self.form {
            Form::Even { per_node, placement: RankPlacement::Block } => Some(rank / per_node),
            Form::Even { placement: RankPlacement::Cyclic, .. } => Some(rank % self.nodes),
            Form::Counts { .. } => self.nodes_of_ranks().get(rank as usize).copied(),
            Form::List(list) => list.get(rank as usize).copied(),
        }
    }

    /// The node of each rank.
    pub fn nodes_of_ranks(self) -> Vec<u32> {
        let counts = match self.form {
            Form::List(list) => return list.to_vec(),
            Form::Even { .. } | Form::Counts { .. } => self.counts(),
        };
        let nodes = 0..self.nodes;
        match self.placement() {
            Some(RankPlacement::Block) | None => nodes
                .flat_map(|node| std::iter::repeat_n(node, counts[node as usize] as usize))
                .collect(),
            Some(RankPlacement::Cyclic) => {
                let counts = &counts;
                let turn = |turn| nodes.clone().filter(move |&node| turn < counts[node as usize]);
                (0..self.max_per_node()).flat_map(turn).collect()
            }
        }
    }
}

fn checked_procs(procs: u64) -> Result<u32, String> {
    let known = u32::try_from(procs).ok().filter(|procs| check_procs(*procs).is_ok());
    known.ok_or_else(|| format!("holds {procs} ranks; expected {}", expected_procs()))
}

/// The same numbers, kept as long as the process runs.
fn kept(numbers: &[u32]) -> &'static [u32] {
    static KEPT: Mutex<BTreeSet<&'static [u32]>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = all.get(numbers) {
        return there;
    }
    let numbers: &'static [u32] = Box::leak(numbers.into());
    all.insert(numbers);
    numbers
}

impl From<u32> for Layout {
    /// One rank on each of so many nodes.
    fn from(procs: u32) -> Self {
        Self::flat(procs)
    }
}

impl Ord for Layout {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |layout: &Self| (layout.procs, layout.max_per_node(), layout.nodes);
        key(self).cmp(&key(other)).then_with(|| self.form.cmp(&other.form))
    }
}

impl PartialOrd for Layout {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
