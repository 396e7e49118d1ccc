//! What `colibri-mpi calibrate` is given.

use std::path::PathBuf;

use records::{RankPair, quantity};
use statistics::stopping::Criterion;

use super::{
    cells::SizedExperiment,
    levels::{LevelRanks, levels},
};
use crate::flags::{JobFlags, parse_budget};

/// Measures a platform point to point: raw observations between two ranks
#[derive(Debug, Clone, clap::Args)]
pub struct CalibrateFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    #[command(flatten)]
    pub(super) precision: Precision,
    /// File of the observations of more than two ranks and of combining [default: none are made]
    #[arg(long)]
    pub(super) groups: Option<PathBuf>,
    /// File of the observations between two ranks of one node, where the pair is between-nodes and
    /// nodes hold several ranks [default: none are made]
    #[arg(long)]
    pub(super) inside: Option<PathBuf>,
    /// File of the observations of more than two ranks of one node [default: none are made]
    #[arg(long, requires = "inside")]
    pub(super) inside_groups: Option<PathBuf>,
    /// Message sizes in bytes, such as 0,1,2,4 or 1..1MiB
    #[arg(long, value_parser = parse_sizes)]
    pub(super) sizes: Sizes,
    /// The sending and the receiving rank: two ranks such as 0,1; between-nodes, the first ranks of
    /// the first two nodes (0,1 where there is one); inside-node, the first two of one node
    #[arg(long = "pair")]
    pub(super) choice: RankPair,
    /// Who measures, known when the ranks have reported where they are.
    #[arg(skip)]
    pub(super) level: LevelRanks,
    /// Seconds from the start of MPI to the end, those of the record's earlier runs included
    #[arg(long, value_parser = parse_budget)]
    pub(super) budget_seconds: f64,
    /// Number of this job among those that fill the record: what is cheap is measured in each of
    /// them anew, since jobs differ
    #[arg(long = "job", default_value_t = 0)]
    pub(super) job_number: u32,
    /// How many jobs fill the record: each makes its share of the least number of visits, and the last
    /// one says what the budget did not reach
    #[arg(long = "jobs", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) job_count: u32,
    /// Seed of the order of the measurements
    #[arg(long)]
    pub(super) seed: u64,
}

/// When a cell is certain enough, if the budget lasts.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Precision {
    /// Criterion by which a measurement is precise enough: median-interval, mean-interval, NREP's rse,
    /// cov-mean, cov-median, or OCC's occ
    #[arg(long = "stop-by", default_value = Criterion::MedianInterval.name())]
    pub(super) criterion: Criterion,
    /// Greatest value of that criterion, as a share of the time; far above 1 the least number of
    /// visits is enough
    #[arg(long = "precision", value_parser = parse_precision, default_value = "0.025")]
    pub(super) relative_error: f64,
}

fn parse_precision(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if part > 0.0 && part.is_finite() => Ok(part),
        _ => Err(format!("'{text}' is not a number above 0, such as 0.025")),
    }
}

impl CalibrateFlags {
    /// The greatest message size, in bytes.
    pub(super) fn largest(&self) -> usize {
        self.sizes.0.last().map_or(0, |&size| size as usize)
    }

    pub(super) fn is_last_job(&self) -> bool {
        self.job_number + 1 >= self.job_count
    }

    pub(super) fn group_cells(&self) -> Vec<SizedExperiment> {
        if self.groups.is_none() {
            return Vec::new();
        }
        let (sizes, level) = (&self.sizes.0, &self.level);
        let mut cells = Vec::new();
        let largest = sizes.last().copied().unwrap_or_default();
        if level.shares_memory {
            cells.extend(SizedExperiment::all_of_memory(level.sharing.len() as u32, largest));
        }
        if !level.inside {
            // Before the others of a size: on a slow network there is no time for all.
            let pairs = if level.shares_memory { 0 } else { level.sharing_pairs() };
            cells.extend(SizedExperiment::all_of_ports(pairs, largest));
            // A rank combines alone, wherever it is.
            cells.extend(SizedExperiment::all_of_combining());
        }
        cells.extend(SizedExperiment::all_of_groups(sizes, level.group.len() as u32));
        cells.sort_by_key(|cell| cell.bytes);
        cells
    }

    /// What is measured at each level, one after the other, by ranks that are on these nodes; else
    /// what is wrong.
    /// Each node has so many processors.
    pub(super) fn levels(
        &self,
        nodes: &[u32],
        processors: u32,
    ) -> Result<Vec<CalibrateFlags>, String> {
        let of = |level| CalibrateFlags { level, ..self.clone() };
        let record = self.inside.as_ref().filter(|_| self.choice == RankPair::BetweenNodes);
        if let (Some(record), Some([inside, between])) = (record, levels(nodes)) {
            let job = JobFlags { record: record.clone(), ..self.job.clone() };
            let groups = self.inside_groups.clone();
            let inside = of(inside.on_one_node(processors));
            return Ok(vec![CalibrateFlags { job, groups, ..inside }, of(between)]);
        }
        let pair = ranks_of(self.choice, nodes)?;
        let level = LevelRanks::of_pair(pair, self.job.ranks);
        Ok(vec![of(match nodes.iter().all(|node| *node == nodes[0]) {
            true => level.on_one_node(processors),
            false => level,
        })])
    }
}

/// A list of sizes as one flag (clap takes a bare `Vec` for a repeated one).
#[derive(Debug, Clone)]
pub(super) struct Sizes(pub(super) Vec<u64>);

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    const MOST: u64 = i32::MAX as u64;
    let sizes = quantity::parse_sizes(text)?;
    match sizes.last() {
        Some(&size) if size > MOST => {
            Err(format!("{size} bytes; one message holds at most {MOST}"))
        }
        _ => Ok(Sizes(sizes)),
    }
}

/// The pair in a job whose ranks are on these nodes; else what is wrong.
fn ranks_of(choice: RankPair, nodes: &[u32]) -> Result<(u32, u32), String> {
    let last = nodes.len() - 1;
    let with = |same: bool| {
        let found = (0..nodes.len()).find_map(|one| {
            let other = (one + 1..nodes.len()).find(|two| (nodes[one] == nodes[*two]) == same);
            Some((one as u32, other? as u32))
        });
        found.filter(|_| last > 0)
    };
    match choice {
        RankPair::These(one, other) => {
            match [one, other].iter().find(|rank| **rank > last as u32) {
                None => Ok((one, other)),
                Some(rank) => {
                    Err(format!("--pair names rank {rank}; the job has ranks 0 to {last}"))
                }
            }
        }
        _ if last == 0 => Err("a pair needs two ranks; the job has one".into()),
        RankPair::BetweenNodes => Ok(with(false).unwrap_or((0, 1))),
        RankPair::InsideNode => with(true).ok_or_else(|| {
            "--pair inside-node needs a node with two ranks; every node has one".into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_chosen_by_node() {
        let nodes = [0, 0, 1, 1];
        let pair = |text: &str, nodes: &[u32]| ranks_of(text.parse().unwrap(), nodes);
        assert_eq!(pair("between-nodes", &nodes), Ok((0, 2)));
        assert_eq!(pair("inside-node", &nodes), Ok((0, 1)));
        assert_eq!(pair("inside-node", &[0, 1, 1]), Ok((1, 2)));
        assert_eq!(pair("between-nodes", &[0, 0]), Ok((0, 1)));
        assert_eq!(pair("3,1", &nodes), Ok((3, 1)));
        assert!(pair("inside-node", &[0, 1]).unwrap_err().contains("every node has one"));
        assert!(pair("0,4", &nodes).unwrap_err().contains("ranks 0 to 3"));
        assert!(pair("between-nodes", &[0]).unwrap_err().contains("has one"));
        assert!("1,1".parse::<RankPair>().unwrap_err().contains("two different ranks"));
    }
}
