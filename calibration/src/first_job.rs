//! `colibri-mpi platform`: tells where the ranks run, in a job of a second.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use records::{
    document,
    first_job::{FirstJob, NodeFacts, StartSpread},
};
use serde::{Deserialize, Serialize};
use statistics::median;
use timing::scheme::{self, CallReport, Scheme, Start, TimingScheme};

use crate::{
    Error, Result,
    clock::{Nanos, now},
    exchange::{Communicator, Tag},
    flags::JobFlags,
    platform::{self, Survey, processors},
    polling_pause::PollingPause,
    synchronisation::ClockLine,
    world::World,
};

/// Starts that are tried in each way, and how many of the first don't count: they make connections.
const TRIALS: usize = 15;
const NOT_COUNTED: usize = 4;

/// Tells where the ranks run; the record is a document
#[derive(Debug, Clone, clap::Args)]
pub struct FirstJobFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
}

/// What a rank tells of its node and of itself there.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RankFacts {
    allowed: String,
    processors: u32,
    memory_bytes: Option<u64>,
    memory_limit_bytes: Option<u64>,
    sees_run: bool,
}

impl RankFacts {
    fn own(mark: &Path) -> Self {
        let status = read("/proc/self/status");
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let memory_bytes = kilobytes(&read("/proc/meminfo"), "MemTotal:");
        RankFacts {
            allowed: allowed.unwrap_or_default().trim().to_owned(),
            processors: processors(),
            memory_bytes,
            memory_limit_bytes: memory_limit(memory_bytes),
            sees_run: mark.exists(),
        }
    }
}

/// The program on one rank.
///
/// # Errors
/// The document cannot be written; the MPI library refuses.
pub fn run(flags: &FirstJobFlags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let control = &world.control;
    let is_comparable = surroundings.groups.is_one() && control.size() > 1;
    let spread = match is_comparable {
        true => Some(start_spread(control, surroundings.uncrowded)?),
        false => None,
    };
    let Some(platform) = surroundings.platform else {
        let mark: PathBuf =
            control.receive_value_asleep(0, Tag::Command, PollingPause::for_idle_rank())?;
        return control.send_value(&RankFacts::own(&mark), 0, Tag::Report);
    };
    let mark = Mark::make(&flags.job.record)?;
    control.send_value_to_others(&mark.path, Tag::Command)?;
    let mut seen = vec![RankFacts::own(&mark.path)];
    for rank in 1..control.size() {
        seen.push(control.receive_value(rank, Tag::Report)?);
    }
    drop(mark);
    let nodes = nodes(&surroundings.nodes, &platform.hosts, &seen);
    let allowed_processors = seen.into_iter().map(|seen| seen.allowed).collect();
    let start_spread = spread.flatten();
    let first_job = FirstJob { platform, allowed_processors, nodes, start_spread };
    Ok(document::write(&flags.job.record, &first_job)?)
}

/// Brings all ranks together by a barrier and at agreed instants of the clock that they share; rank 0 learns
/// how far apart they started.
fn start_spread(control: &Communicator, watched: bool) -> Result<Option<StartSpread>> {
    let barrier = Scheme { timing: TimingScheme::Barrier, watched };
    let agreed = Scheme { timing: TimingScheme::Global, watched };
    let begun = now();
    let by_barrier = starts(control, barrier, &[Start::default(); TRIALS])?;
    // Rank 0's alone: what each rank computed by itself would be no agreement. Long enough for the barrier after
    // each start, and for rank 0 to tell all of the first one.
    let step = 3 * (now() - begun) / TRIALS as Nanos;
    let from = now() + step * Nanos::from(control.size());
    let mut instants: Vec<Nanos> = (0..TRIALS).map(|trial| from + step * trial as Nanos).collect();
    match control.rank() {
        0 => control.send_value_to_others(&instants, Tag::Setup)?,
        _ => instants = control.receive_value(0, Tag::Setup)?,
    }
    let instants: Vec<Start> = instants.iter().map(|&agreed| Start { agreed, reply: 0 }).collect();
    let at_instants = starts(control, agreed, &instants)?;
    Ok(by_barrier
        .zip(at_instants)
        .map(|(barrier_seconds, agreed_seconds)| StartSpread { barrier_seconds, agreed_seconds }))
}

/// The median of how far apart the ranks start, in seconds; on rank 0 alone.
fn starts(control: &Communicator, scheme: Scheme, all: &[Start]) -> Result<Option<f64>> {
    let begin = |start: &Start| {
        scheme::call(scheme, control, control.size(), &ClockLine::EXACT, *start, || Ok(()))
    };
    let own: Vec<CallReport> = all.iter().map(begin).collect::<Result<_>>()?;
    if control.rank() != 0 {
        control.send_value(&own, 0, Tag::Report)?;
        return Ok(None);
    }
    let mut reports = vec![own];
    for rank in 1..control.size() {
        reports.push(control.receive_value(rank, Tag::Report)?);
    }
    let spread = |(trial, start): (usize, &Start)| {
        let of_trial: Vec<CallReport> =
            reports.iter().filter_map(|of| of.get(trial)).copied().collect();
        let timed = scheme::combine(scheme, *start, &[], &of_trial)?;
        Some(timed.last_start_seconds - timed.first_start_seconds)
    };
    let spreads: Vec<f64> = all.iter().enumerate().skip(NOT_COUNTED).filter_map(spread).collect();
    Ok(median(&spreads))
}

/// A file beside the document that is made new, so that no node remembers that it was not there.
struct Mark {
    path: PathBuf,
}

impl Mark {
    fn make(record: &Path) -> Result<Self> {
        let path = record.with_extension(format!("{}.mark", std::process::id()));
        fs::write(&path, "").map_err(|error| records::FileError::io(&path, "write", &error))?;
        // Ranks elsewhere may work in another directory.
        let path = path
            .canonicalize()
            .map_err(|error| Error::from(records::FileError::io(&path, "find", &error)))?;
        Ok(Mark { path })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // One that stays does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// `node_of` gives each rank's node by number.
fn nodes(node_of: &[u32], hosts: &[String], seen: &[RankFacts]) -> Vec<NodeFacts> {
    let mut nodes: Vec<NodeFacts> = Vec::new();
    for (rank, (&node, (host, seen))) in (0..).zip(node_of.iter().zip(hosts.iter().zip(seen))) {
        if nodes.len() == node as usize {
            nodes.push(NodeFacts {
                host: host.clone(),
                ranks: Vec::new(),
                processors: seen.processors,
                memory_bytes: seen.memory_bytes,
                memory_limit_bytes: None,
                sees_run: true,
            });
        }
        let facts = &mut nodes[node as usize];
        facts.ranks.push(rank);
        facts.sees_run &= seen.sees_run;
        let limits = [facts.memory_limit_bytes, seen.memory_limit_bytes];
        facts.memory_limit_bytes = limits.into_iter().flatten().min();
    }
    nodes
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least of what control groups and Slurm allow, where that is less than there is.
fn memory_limit(memory_bytes: Option<u64>) -> Option<u64> {
    let mut limits = control_group_limits(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    limits.extend(env::var("SLURM_MEM_PER_NODE").ok().and_then(|mebibytes| {
        mebibytes.parse::<u64>().ok().filter(|it| *it > 0)?.checked_mul(1 << 20)
    }));
    let least = limits.into_iter().min()?;
    memory_bytes.is_none_or(|memory| least < memory).then_some(least)
}

/// `memory.max` of version 2, `memory.limit_in_bytes` of version 1, of the group and of all above it.
fn control_group_limits(groups: &str, root: &Path) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (base, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            it if it.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = base.join(path.trim_start_matches('/'));
        for folder in group.ancestors().take_while(|folder| folder.starts_with(&base)) {
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            limits.extend(text.trim().parse::<u64>());
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_put_to_their_nodes() {
        let seen = |limit, sees_run| RankFacts {
            allowed: "0-1".into(),
            processors: 2,
            memory_bytes: Some(100),
            memory_limit_bytes: limit,
            sees_run,
        };
        let hosts = ["b", "a", "b"].map(str::to_owned);
        let all = [seen(None, true), seen(Some(50), true), seen(Some(70), false)];
        let nodes = nodes(&[0, 1, 0], &hosts, &all);
        assert_eq!(nodes.len(), 2);
        assert_eq!((&*nodes[0].host, &*nodes[0].ranks), ("b", &[0, 2][..]));
        assert_eq!((nodes[0].memory_limit_bytes, nodes[0].sees_run), (Some(70), false));
        assert_eq!((&*nodes[1].host, nodes[1].memory_limit_bytes), ("a", Some(50)));
    }

    #[test]
    fn limits_of_both_versions_of_control_groups_are_read_with_those_above() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("job/step/memory.max", "max\n");
        write("job/memory.max", "4096\n");
        write("memory/old/memory.limit_in_bytes", "8192\n");
        let groups = "0::/job/step\n4:cpu:/old\n3:memory,hugetlb:/old\n";
        assert_eq!(control_group_limits(groups, root.path()), [4096, 8192]);
        assert_eq!(control_group_limits("", root.path()), Vec::<u64>::new());
        assert_eq!(kilobytes("MemFree: 1 kB\nMemTotal:  16 kB\n", "MemTotal:"), Some(16384));
    }
}
