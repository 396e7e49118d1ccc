//! What a first short job reported of where the ranks run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{document::Document, platform::Platform};

/// The ranks, their nodes and their MPI library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirstJob {
    /// What it ran on.
    pub platform: Platform,
    /// The processors that each rank may use, in rank order, as the kernel lists them: `0-3,8`.
    pub allowed_processors: Vec<String>,
    /// The nodes, in the order of their first ranks.
    pub nodes: Vec<NodeFacts>,
    /// How far apart the ranks start; nothing where their clocks are not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<StartSpread>,
}

/// How far apart ranks that were brought together start: the last start less the first in seconds, medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StartSpread {
    /// After a barrier.
    pub barrier_seconds: f64,
    /// At an agreed instant of the clock.
    pub agreed_seconds: f64,
}

/// A node that holds ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub host: String,
    /// The ranks on it, ascending.
    pub ranks: Vec<u32>,
    /// Its processors that are online.
    pub processors: u32,
    /// Its memory; nothing where the kernel does not say.
    pub memory_bytes: Option<u64>,
    /// What the ranks may use of it together, where a control group or the batch system limits them.
    pub memory_limit_bytes: Option<u64>,
    /// Whether its ranks see the directory of the run, which they need not.
    pub sees_run: bool,
}

/// The processors of a list as the kernel writes it: `0-3,8`; what is none is left out.
pub fn processors(list: &str) -> impl Iterator<Item = u32> {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        })
        .flatten()
}

impl Document for FirstJob {
    const SCHEMA: &'static str = "colibri/first-job/1";
}

impl FirstJob {
    /// Whether the ranks of each node may run on at least as many processors as they are: who waits for another by
    /// looking at memory again and again takes its processor away from it otherwise. A virtual cluster's nodes share
    /// one machine.
    pub fn gives_each_rank_a_processor(&self) -> bool {
        let allowed = |ranks: &[u32]| {
            let lists = ranks.iter().filter_map(|rank| self.allowed_processors.get(*rank as usize));
            lists.flat_map(|list| processors(list)).collect::<BTreeSet<u32>>().len()
        };
        let all: Vec<u32> = self.nodes.iter().flat_map(|node| node.ranks.iter().copied()).collect();
        match self.platform.testbed.is_empty() {
            true => self.nodes.iter().all(|node| allowed(&node.ranks) >= node.ranks.len()),
            false => allowed(&all) >= all.len(),
        }
    }

    /// Whether the ranks of each node follow each other: none is elsewhere between two of them.
    pub fn is_in_blocks(&self) -> bool {
        self.nodes.iter().all(|node| node.ranks.windows(2).all(|pair| pair[1] == pair[0] + 1))
    }
}
