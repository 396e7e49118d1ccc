//! What is measured on, gathered from all ranks.

use std::{env, fs};

use records::platform::Platform;
use serde::{Deserialize, Serialize};

use crate::{
    Result, clock,
    exchange::{self, Tag},
    world::{JobFlags, World},
};

/// What a rank tells about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Introduction {
    host: String,
    clock: String,
}

/// What rank 0 knows after the introductions, and what all ranks know.
#[derive(Debug)]
pub struct Surroundings {
    /// All ranks read one clock.
    pub shared_clock: bool,
    /// Processors of rank 0's machine.
    pub processors: u32,
    /// The platform; on rank 0 alone.
    pub platform: Option<Platform>,
}

/// Introduces the ranks to each other; all ranks must call this.
///
/// # Errors
/// The MPI library refuses.
pub fn survey(world: &World, job: &JobFlags) -> Result<Surroundings> {
    let load = load_average();
    let control = &world.control;
    let own = Introduction { host: host_name(), clock: clock::identity() };
    if world.rank() != 0 {
        control.tell(&own, 0, Tag::Setup)?;
        let (shared_clock, processors) = control.hear(0, Tag::Setup)?;
        return Ok(Surroundings { shared_clock, processors, platform: None });
    }
    let mut ranks = vec![own];
    for rank in 1..control.size() {
        ranks.push(control.hear(rank, Tag::Setup)?);
    }
    let shared_clock = ranks.iter().all(|rank| rank.clock == ranks[0].clock);
    let processors = processors();
    for rank in 1..control.size() {
        control.tell(&(shared_clock, processors), rank, Tag::Setup)?;
    }
    let hosts = ranks.into_iter().map(|rank| rank.host).collect();
    let platform = Some(describe(hosts, shared_clock, load, job)?);
    Ok(Surroundings { shared_clock, processors, platform })
}

fn describe(hosts: Vec<String>, shared_clock: bool, load: f64, job: &JobFlags) -> Result<Platform> {
    let sharing = if shared_clock { "shared by all ranks" } else { "not shared by all ranks" };
    Ok(Platform {
        hosts,
        mpi_library: exchange::library_version()?,
        kernel: read_line("/proc/sys/kernel/osrelease"),
        processor: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: processors(),
        load,
        clock: format!("CLOCK_MONOTONIC, {sharing}"),
        clock_resolution_seconds: clock::resolution_seconds(),
        settings: settings(env::vars()),
        launcher: job.launcher.clone(),
        testbed: job.testbed.clone(),
    })
}

/// Processors of this machine, whichever of them this rank is bound to.
fn processors() -> u32 {
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

fn host_name() -> String {
    read_line("/proc/sys/kernel/hostname")
}

/// The one-minute load average; NaN is no JSON, so an unknown load is 0.
fn load_average() -> f64 {
    let line = read_line("/proc/loadavg");
    line.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

/// The processor's name in /proc/cpuinfo, whose key differs between architectures.
fn processor(cpuinfo: &str) -> String {
    ["model name", "cpu model", "cpu", "CPU part"]
        .iter()
        .find_map(|wanted| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == *wanted).then(|| value.trim().to_owned())
            })
        })
        .unwrap_or_default()
}

/// The user's settings of MPI libraries; what a launcher passes to its own ranks is left out.
fn settings(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    const PREFIXES: [&str; 5] = ["OMPI_MCA_", "MPIR_CVAR_", "I_MPI_", "UCX_", "LD_PRELOAD"];
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
    fn the_processor_is_found_on_several_architectures() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Xeon 5\n"), "Xeon 5");
        assert_eq!(processor("processor : 0\ncpu : POWER9\n"), "POWER9");
        assert_eq!(processor(""), "");
    }
}
