//! What a job may take of its nodes' memory: a plan asks for no more.

use anyhow::{Result, bail};
use records::{
    document,
    first_job::{FirstJob, NodeFacts},
    plan::Cell,
    quantity::format_bytes,
};
use tuning::plan::{CutSizes, Grid, cells, cut, has_memory_for};

use site::run_directory::RunDirectory;

/// The memory that each rank of a job may use.
#[derive(Debug, Clone, PartialEq)]
pub struct RankMemory {
    /// On the node that has least for each.
    pub bytes: u64,
    host: String,
    ranks: u64,
    share: f64,
}

impl RankMemory {
    /// By what a run's first job reported of its nodes, of which a job may use this share; nothing where
    /// that is not known.
    ///
    /// # Errors
    /// What it reported can't be read.
    pub fn of_run(run: &RunDirectory, share: f64) -> Result<Option<Self>> {
        let path = run.first_job();
        Ok(if path.exists() { Self::from_first_job(&document::read(&path)?, share) } else { None })
    }

    fn from_first_job(first_job: &FirstJob, share: f64) -> Option<Self> {
        let of_node = |node: &NodeFacts| {
            let known = [node.memory_bytes, node.memory_limit_bytes].into_iter().flatten().min()?;
            // The nodes of a virtual cluster are one machine.
            let ranks = match first_job.platform.testbed.is_empty() {
                true => node.ranks.len(),
                false => first_job.platform.hosts.len(),
            };
            let ranks = ranks.max(1) as u64;
            let bytes = (known as f64 * share) as u64 / ranks;
            Some(RankMemory { bytes, host: node.host.clone(), ranks, share })
        };
        first_job.nodes.iter().filter_map(of_node).min_by_key(|memory| memory.bytes)
    }

    /// Why sizes were left out.
    fn note(&self, CutSizes { collective, layout, greatest, asked }: &CutSizes) -> String {
        let left_out = match greatest {
            Some(greatest) => format!("sizes above {}", format_bytes(*greatest)),
            None => format!("all sizes up to {}", format_bytes(*asked)),
        };
        format!(
            "{collective} on {}: {left_out} are left out, as a job takes at most {:.0} % of a node's memory \
             (--memory-share), {} for each of {} ranks on {}",
            layout.in_words(),
            self.share * 100.0,
            format_bytes(self.bytes),
            self.ranks,
            self.host
        )
    }
}

/// Leaves out of a grid what its nodes' memory does not allow, and says so.
///
/// # Errors
/// Nothing is left.
pub fn limit(grid: &mut Grid, run: &RunDirectory, share: f64) -> Result<()> {
    let Some(memory) = RankMemory::of_run(run, share)? else { return Ok(()) };
    grid.rank_bytes = Some(memory.bytes);
    for cut in cut(grid) {
        say!("plan: {}", memory.note(&cut));
    }
    if cells(grid, &grid.sizes).is_empty() {
        bail!("{}", nothing_left(&memory));
    }
    Ok(())
}

/// The cells that the nodes' memory allows; says how many are left out.
///
/// # Errors
/// Nothing is left.
pub fn limited(cells: Vec<Cell>, run: &RunDirectory, share: f64) -> Result<Vec<Cell>> {
    let Some(memory) = RankMemory::of_run(run, share)? else { return Ok(cells) };
    let count = cells.len();
    let mut left = cells;
    left.retain(|cell| has_memory_for(cell.point, Some(memory.bytes)));
    if left.is_empty() {
        bail!("{}", nothing_left(&memory));
    }
    if left.len() < count {
        say!(
            "plan: {} of {count} cells left out: a job takes at most {:.0} % of a node's memory \
             (--memory-share), {} for each of {} ranks on {}",
            count - left.len(),
            share * 100.0,
            format_bytes(memory.bytes),
            memory.ranks,
            memory.host
        );
    }
    Ok(left)
}

fn nothing_left(RankMemory { bytes, host, ranks, share }: &RankMemory) -> String {
    format!(
        "no call fits into {:.0} % of the memory of {host}, {} for each of {ranks} ranks; give a \
         greater --memory-share, or fewer ranks",
        share * 100.0,
        format_bytes(*bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Collective, Layout, platform::Platform};

    fn node(ranks: u32, memory_bytes: Option<u64>, memory_limit_bytes: Option<u64>) -> NodeFacts {
        let host = format!("n{ranks}");
        let ranks = (0..ranks).collect();
        let sees_run = true;
        NodeFacts { host, ranks, processors: 4, memory_bytes, memory_limit_bytes, sees_run }
    }

    fn told(nodes: Vec<NodeFacts>, testbed: &str) -> FirstJob {
        let hosts = nodes.iter().flat_map(|node| vec![node.host.clone(); node.ranks.len()]);
        let testbed = testbed.to_owned();
        let platform = Platform { hosts: hosts.collect(), testbed, ..Platform::default() };
        FirstJob { platform, allowed_processors: Vec::new(), nodes, start_spread: None }
    }

    #[test]
    fn the_node_with_least_for_each_rank_counts_and_its_limits_do() {
        let of = |nodes, testbed| {
            RankMemory::from_first_job(&told(nodes, testbed), 0.25).map(|it| it.bytes)
        };
        let plain = || vec![node(4, Some(64 << 30), None), node(2, Some(64 << 30), Some(16 << 30))];
        assert_eq!(of(plain(), ""), Some(2 << 30));
        assert_eq!(of(plain(), "2 nodes"), Some((16 << 30) / 4 / 6));
        assert_eq!(of(vec![node(4, None, None)], ""), None);
        assert_eq!(of(vec![node(4, None, Some(16)), node(1, None, None)], ""), Some(1));
    }

    #[test]
    fn what_is_left_out_is_told_with_its_reason() {
        let memory =
            RankMemory::from_first_job(&told(vec![node(48, Some(192 << 30), None)], ""), 0.25)
                .unwrap();
        let (collective, layout) = (Collective::Alltoall, Layout::flat(3072));
        let cut = CutSizes { collective, layout, greatest: Some(64 << 10), asked: 1 << 20 };
        assert_eq!(
            memory.note(&cut),
            "alltoall on 3072 ranks: sizes above 64 KiB are left out, as a job takes at most 25 % of \
             a node's memory (--memory-share), 1 GiB for each of 48 ranks on n48"
        );
    }
}
