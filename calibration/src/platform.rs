//! What is measured on, gathered from all ranks.

use std::{collections::HashMap, env, fs};

use records::platform::{Platform, processor_name};
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    clock::{self, Nanos, now},
    exchange::{self, Tag},
    flags::JobFlags,
    linked,
    polling_pause::PollingPause,
    proc_stat,
    sleep::sleep_until,
    synchronisation::ClockGroups,
    transport,
    world::World,
};

/// What a rank tells about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Introduction {
    host: String,
    machine: String,
    clock: String,
    processors: u32,
}

/// What all ranks know after the introductions, and what rank 0 alone does.
#[derive(Debug)]
pub struct Surroundings {
    /// Which ranks read one clock.
    pub groups: ClockGroups,
    /// For each rank the number of its node, in the order of the nodes' first ranks.
    pub nodes: Vec<u32>,
    /// Every machine has a processor for each of its ranks.
    pub uncrowded: bool,
    /// The platform; on rank 0 alone.
    pub platform: Option<Platform>,
}

/// What rank 0 tells the others.
#[derive(Debug, Serialize, Deserialize)]
struct PlatformFacts {
    groups: ClockGroups,
    nodes: Vec<u32>,
    uncrowded: bool,
}

/// What a survey has time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survey {
    /// Half a second to see what else runs on rank 0's machine.
    WithLoad,
    /// No time: an earlier job has put it into the record.
    InShort,
}

/// Introduces the ranks to each other; all ranks must call this.
///
/// # Errors
/// The MPI library refuses.
pub fn survey(world: &World, job: &JobFlags, survey: Survey) -> Result<Surroundings> {
    let load = load_average().unwrap_or_default();
    let control = &world.control;
    let own = Introduction {
        host: host_name(),
        machine: clock::machine(),
        clock: clock::identity(),
        processors: processors(),
    };
    if world.rank() != 0 {
        control.send_value(&own, 0, Tag::Setup)?;
        // Asleep: rank 0 looks meanwhile at what else is running.
        let PlatformFacts { groups, nodes, uncrowded } =
            control.receive_value_asleep(0, Tag::Setup, PollingPause::for_idle_rank())?;
        return Ok(Surroundings { groups, nodes, uncrowded, platform: None });
    }
    let mut ranks = vec![own];
    for rank in 1..control.size() {
        ranks.push(control.receive_value(rank, Tag::Setup)?);
    }
    let groups = groups(&ranks, job.keeps_own_clock());
    let nodes = numbered(ranks.iter().map(|rank| &rank.host));
    let uncrowded = is_uncrowded(&ranks);
    let busy_processors = match survey {
        Survey::WithLoad => busy_processors(),
        Survey::InShort => 0.0,
    };
    let load = MachineLoad { average: load, busy_processors };
    let facts = PlatformFacts { groups, nodes, uncrowded };
    control.send_value_to_others(&facts, Tag::Setup)?;
    let PlatformFacts { groups, nodes, uncrowded } = facts;
    let hosts = ranks.into_iter().map(|rank| rank.host).collect();
    let platform = Some(describe(hosts, clocks_in_words(&groups, job), load, job)?);
    Ok(Surroundings { groups, nodes, uncrowded, platform })
}

/// Ranks with one name of a clock read one, unless each is to be taken for having its own.
fn groups(ranks: &[Introduction], own: bool) -> ClockGroups {
    let first_of = match own {
        true => (0..ranks.len() as u32).collect(),
        false => first_alike(ranks.iter().map(|rank| &rank.clock)),
    };
    let has_referee = ranks.iter().map(|rank| rank.clock == ranks[0].clock).collect();
    ClockGroups { first_of, has_referee }
}

/// For each name the place of the first that is the same.
fn first_alike<'a>(names: impl Iterator<Item = &'a String>) -> Vec<u32> {
    let mut first = HashMap::new();
    (0..).zip(names).map(|(rank, name)| *first.entry(name).or_insert(rank)).collect()
}

/// Numbers different names in the order in which they come first.
fn numbered<'a>(names: impl Iterator<Item = &'a String>) -> Vec<u32> {
    let mut numbers: HashMap<&String, u32> = HashMap::new();
    names
        .map(|name| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        })
        .collect()
}

fn is_uncrowded(ranks: &[Introduction]) -> bool {
    let mut held: HashMap<&String, u32> = HashMap::new();
    ranks.iter().all(|rank| {
        let count = held.entry(&rank.machine).or_default();
        *count += 1;
        *count <= rank.processors
    })
}

fn clocks_in_words(groups: &ClockGroups, job: &JobFlags) -> &'static str {
    match (job.false_clocks, groups.is_one()) {
        (Some(_), _) => "made false on every rank, for a trial of their synchronisation",
        (None, true) => "shared by all ranks (same boot of the kernel, same time namespace)",
        (None, false) if job.synchronise => "every rank taken to have its own",
        (None, false) => "not shared by all ranks",
    }
}

/// What else runs on rank 0's machine.
struct MachineLoad {
    average: f64,
    busy_processors: f64,
}

fn describe(
    hosts: Vec<String>,
    sharing: &str,
    load: MachineLoad,
    job: &JobFlags,
) -> Result<Platform> {
    Ok(Platform {
        hosts,
        mpi_library: linked::library_version()?,
        kernel: read_line("/proc/sys/kernel/osrelease"),
        processor: processor_name(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: processors(),
        load: load.average,
        busy_processors: load.busy_processors,
        clock: format!("CLOCK_MONOTONIC, {sharing}"),
        clock_resolution_seconds: clock::resolution_seconds(),
        clocks: clock::survey(exchange::wtime),
        governor: read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        transport: transport::in_use()?,
        settings: settings(env::vars()),
        launcher: job.launcher.clone(),
        testbed: job.testbed.clone(),
    })
}

/// Processors of this machine, whichever of them this rank is bound to.
pub(crate) fn processors() -> u32 {
    // SAFETY: sysconf takes a number and touches no memory.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// The first line of a file of the kernel; empty where there is none: the record then says that
/// it is not known.
fn read_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

pub(crate) fn host_name() -> String {
    read_line("/proc/sys/kernel/hostname")
}

/// The one-minute load average; nothing where the kernel does not tell.
pub(crate) fn load_average() -> Option<f64> {
    let line = read_line("/proc/loadavg");
    line.split(' ').next().and_then(|load| load.parse().ok()).filter(|load: &f64| load.is_finite())
}

/// How many processors are busy while all ranks of the job sleep; 0 where the kernel doesn't tell.
fn busy_processors() -> f64 {
    const LOOK: Nanos = 500_000_000;
    let path = proc_stat::path();
    let before = proc_stat::read(&path);
    sleep_until(now() + LOOK);
    let after = proc_stat::read(&path);
    match (before, after) {
        (Some(before), Some(after)) if after.all > before.all => {
            // The time spent waiting for disks may go back a little (proc_stat(5)).
            let idle = after.idle.saturating_sub(before.idle) as f64;
            let busy = 1.0 - idle / (after.all - before.all) as f64;
            f64::from(processors()) * busy.max(0.0)
        }
        _ => 0.0,
    }
}

/// The user's settings of MPI libraries; what a launcher passes to its own ranks is left out.
fn settings(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    const PREFIXES: [&str; 7] =
        ["OMPI_MCA_", "MPIR_CVAR_", "I_MPI_", "UCX_", "FI_", "COLIBRI_", "LD_PRELOAD"];
    const INTERNAL: [&str; 6] = [
        "OMPI_MCA_orte_",
        "OMPI_MCA_ess_",
        "OMPI_MCA_pmix",
        "OMPI_MCA_shmem_RUNTIME",
        "OMPI_MCA_initial_wdir",
        "I_MPI_HYDRA_",
    ];
    let mut settings: Vec<String> = variables
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(name, _)| !INTERNAL.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    settings.sort();
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_are_kept_and_the_launchers_are_not() {
        let variables = [
            ("PATH", "/bin"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
            ("OMPI_MCA_orte_hnp_uri", "x"),
            ("OMPI_MCA_btl", "tcp,self"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            settings(variables.into_iter()),
            ["OMPI_MCA_btl=tcp,self", "OMPI_MCA_mpi_yield_when_idle=1"]
        );
    }

    #[test]
    fn ranks_are_put_together_by_clock_node_and_machine() {
        let rank = |host: &str, machine: &str, processors| Introduction {
            host: host.into(),
            machine: machine.into(),
            clock: format!("{machine} 0"),
            processors,
        };
        let ranks = [rank("b", "x", 2), rank("b", "x", 2), rank("a", "y", 1), rank("b", "x", 2)];
        assert_eq!(groups(&ranks, false).first_of, [0, 0, 2, 0]);
        assert_eq!(groups(&ranks, true).first_of, [0, 1, 2, 3]);
        assert_eq!(groups(&ranks, true).has_referee, [true, true, false, true]);
        assert_eq!(numbered(ranks.iter().map(|rank| &rank.host)), [0, 0, 1, 0]);
        assert!(is_uncrowded(&ranks[..3]) && !is_uncrowded(&ranks));
    }

    #[test]
    fn no_more_processors_are_busy_than_there_are() {
        assert!((0.0..=f64::from(processors())).contains(&busy_processors()));
    }
}
