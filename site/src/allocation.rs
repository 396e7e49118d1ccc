//! The allocation of a batch system that we run in: Slurm, PBS, LSF or Flux. What it holds, how long it
//! lasts, and whether it has ended.

use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use records::{quantity::format_duration, reading};

use crate::{
    process,
    slurm::{self, SlurmAllocation},
    usage,
};

/// Who has given it to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSystem {
    Slurm,
    /// PBS Pro, OpenPBS or Torque.
    Pbs,
    Lsf,
    Flux,
}

impl BatchSystem {
    /// As people name it.
    pub fn title(self) -> &'static str {
        match self {
            BatchSystem::Slurm => "Slurm",
            BatchSystem::Pbs => "PBS",
            BatchSystem::Lsf => "LSF",
            BatchSystem::Flux => "Flux",
        }
    }
}

/// What we have been given, as far as that is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    pub system: BatchSystem,
    /// The job's number there.
    pub job: String,
    pub nodes: Option<u32>,
    /// Ranks that were asked for, or one for each part of a node that was.
    pub tasks: Option<u32>,
    /// Processors on all nodes.
    pub processors: Option<u32>,
    /// The file that lists the nodes, a line for each rank to be placed, where there is one.
    pub host_file: Option<String>,
}

impl Allocation {
    /// The one that we run in, if any. Flux and LSF may set Slurm's or PBS's variables inside another one of
    /// theirs, so the innermost comes first.
    ///
    /// # Errors
    /// What the batch system says is not understood.
    pub fn at_hand() -> Result<Option<Self>> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if variable("FLUX_URI").is_some() {
            return Self::of_flux(&variable).map(Some);
        }
        if let Some(job) = variable("SLURM_JOB_ID") {
            let SlurmAllocation { nodes, tasks, processors } = SlurmAllocation::by(variable)?;
            let unknown = Allocation::unknown(BatchSystem::Slurm, job);
            return Ok(Some(Allocation { nodes, tasks, processors, ..unknown }));
        }
        for (system, job, file) in [
            (BatchSystem::Pbs, "PBS_JOBID", "PBS_NODEFILE"),
            (BatchSystem::Lsf, "LSB_JOBID", "LSB_DJOB_HOSTFILE"),
        ] {
            if let Some(job) = variable(job) {
                return Self::of_host_file(system, job, file, variable(file)).map(Some);
            }
        }
        Ok(None)
    }

    /// A line of the file for each rank; it is on the job's first node alone.
    fn of_host_file(
        system: BatchSystem,
        job: String,
        name: &str,
        file: Option<String>,
    ) -> Result<Self> {
        let Some(file) = file else {
            return Ok(Allocation::unknown(system, job));
        };
        let text = reading::text(Path::new(&file))
            .with_context(|| format!("{file} ({name}, which {} sets)", system.title()))?;
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        if lines.is_empty() {
            bail!("{file}: lists no node; {} sets {name} to a file that does", system.title());
        }
        let nodes: BTreeSet<&str> = lines.iter().copied().collect();
        Ok(Allocation {
            nodes: Some(nodes.len() as u32),
            tasks: Some(lines.len() as u32),
            host_file: Some(file),
            ..Allocation::unknown(system, job)
        })
    }

    /// Flux tells by its own command what an instance holds.
    fn of_flux(variable: &impl Fn(&str) -> Option<String>) -> Result<Self> {
        let job = variable("FLUX_ENCLOSING_ID").unwrap_or_default();
        let mut command = Command::new("flux");
        command.args(["resource", "list", "-n", "-o", "{nnodes} {ncores}", "-s", "all"]);
        let said = process::output(&mut command).unwrap_or_default();
        let mut numbers = said.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(nodes @ 1..)), Some(Ok(cores @ 1..))) = (numbers.next(), numbers.next())
        else {
            bail!(
                "`flux resource list -n -o '{{nnodes}} {{ncores}}'` says '{}'; expected the numbers of \
                 nodes and of cores",
                said.trim()
            );
        };
        Ok(Allocation {
            nodes: Some(nodes),
            tasks: Some(cores),
            processors: Some(cores),
            ..Allocation::unknown(BatchSystem::Flux, job)
        })
    }

    /// One of which nothing is said.
    pub fn unknown(system: BatchSystem, job: String) -> Self {
        let (nodes, tasks, processors) = (None, None, None);
        Allocation { system, job, nodes, tasks, processors, host_file: None }
    }

    /// Whether Slurm's `srun` would start so many ranks.
    ///
    /// # Errors
    /// It would refuse.
    pub fn check_srun(&self, ranks: u32) -> Result<()> {
        let Allocation { nodes, tasks, processors, .. } = *self;
        SlurmAllocation { nodes, tasks, processors }.check(ranks)
    }

    /// The nodes' names in the order in which ranks are placed.
    ///
    /// # Errors
    /// They are not known.
    pub fn hosts(&self) -> Result<Vec<String>> {
        let said = match (self.system, &self.host_file) {
            (_, Some(file)) => fs::read_to_string(file).with_context(|| file.clone())?,
            (BatchSystem::Slurm, _) => {
                let mut show = Command::new("scontrol");
                process::output(show.args(["show", "hostnames"])).unwrap_or_default()
            }
            _ => String::new(),
        };
        let mut hosts: Vec<String> = Vec::new();
        for host in said.split_whitespace() {
            if !hosts.iter().any(|known| known == host) {
                hosts.push(host.to_owned());
            }
        }
        match self.nodes {
            Some(nodes) if hosts.len() != nodes as usize => bail!(
                "the names of {}'s {nodes} nodes cannot be found out; write them into the launcher in place \
                 of {{hosts}}",
                self.system.title()
            ),
            _ => Ok(hosts),
        }
    }

    /// How long it still lasts; nothing where there is no limit, or none is known.
    pub fn time_left(&self) -> Option<Duration> {
        let job = self.job.as_str();
        let said = |program: &str, arguments: &[&str]| {
            process::output(Command::new(program).args(arguments))
        };
        let seconds = match self.system {
            BatchSystem::Slurm => {
                slurm::clock_time(&said("squeue", &["-h", "-j", job, "-o", "%L"])?)
            }
            BatchSystem::Pbs => pbs_seconds_left(&said("qstat", &["-f", job])?),
            BatchSystem::Lsf => {
                lsf_seconds_left(&said("bjobs", &["-noheader", "-o", "time_left", job])?)
            }
            BatchSystem::Flux => said("flux", &["job", "timeleft"])?.trim().parse().ok(),
        };
        seconds.map(Duration::from_secs)
    }

    /// When it ends; nothing where there is no limit, or none is known.
    pub fn ends(&self) -> Option<Instant> {
        Instant::now().checked_add(self.time_left()?)
    }

    /// How long a job that begins now may take of `wanted`, where the allocation ends in `left`. The error ends with
    /// `kept`: what becomes of the run.
    ///
    /// # Errors
    /// It ends too soon to begin one.
    pub fn time_for_a_job(&self, wanted: Duration, left: Duration, kept: &str) -> Result<Duration> {
        let most = left.saturating_sub(KEPT_FOR_A_JOB);
        if most < SHORTEST_JOB {
            bail!(
                "{}'s job {} ends in {}, too soon for another step{kept}",
                self.system.title(),
                self.job,
                format_duration(left)
            );
        }
        Ok(wanted.min(most))
    }

    /// Why it has ended, in the batch system's word; nothing where it lasts, or that isn't known.
    pub fn ended(&self) -> Option<String> {
        (self.system == BatchSystem::Slurm).then(|| slurm::ended(&self.job)).flatten()
    }
}

/// The limit less what is used, by two lines of `qstat -f`.
fn pbs_seconds_left(said: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(name))?;
        slurm::clock_time(line.trim_start().strip_prefix('=')?)
    };
    let limit = value("Resource_List.walltime")?;
    Some(limit.saturating_sub(value("resources_used.walltime").unwrap_or(0)))
}

/// Hours and minutes, and a letter that says whether it is the limit: `1:30 L`.
fn lsf_seconds_left(said: &str) -> Option<u64> {
    let (hours, minutes) = said.split_whitespace().next()?.split_once(':')?;
    Some((hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?) * 60)
}

/// Kept of what is left, to end in good order: this share, and at least this long.
const KEPT_SHARE: f64 = 0.05;
const KEPT_LEAST: Duration = Duration::from_secs(20);
/// Less than this is not worth a start.
const WORTH_A_START: Duration = Duration::from_secs(10);

/// Kept of what is left when a job begins, to start it and to end in good order.
const KEPT_FOR_A_JOB: Duration = Duration::from_secs(8);
/// A job that may take less tells nothing.
const SHORTEST_JOB: Duration = Duration::from_secs(2);

/// What may be spent of a budget before the allocation ends; it is said where that is less.
///
/// # Errors
/// The allocation ends too soon.
pub fn within_allocation(budget: Duration) -> Result<Duration> {
    within_allocation_beside(budget, Duration::ZERO)
}

/// What may be spent of a budget where what runs afterwards takes `later` of the allocation.
///
/// # Errors
/// The allocation ends too soon.
pub fn within_allocation_beside(budget: Duration, later: Duration) -> Result<Duration> {
    let Some(allocation) = Allocation::at_hand()? else { return Ok(budget) };
    let Some(left) = allocation.time_left() else { return Ok(budget) };
    let most = usable(left).saturating_sub(later);
    if most < WORTH_A_START {
        let beside = match later {
            Duration::ZERO => String::new(),
            later => format!(" and the application's further runs take {}", format_duration(later)),
        };
        usage!(
            "{}'s job {} ends in {}{beside}; ask for an allocation with more time",
            allocation.system.title(),
            allocation.job,
            format_duration(left)
        );
    }
    if most < budget {
        say!(
            "budget: {} in place of {}, since {}'s job {} ends in {}",
            format_duration(most),
            format_duration(budget),
            allocation.system.title(),
            allocation.job,
            format_duration(left)
        );
    }
    Ok(budget.min(most))
}

fn usable(left: Duration) -> Duration {
    left.saturating_sub(KEPT_LEAST.max(left.mul_f64(KEPT_SHARE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_ranks_are_counted_in_a_host_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nodes");
        fs::write(&path, "b\nb\na\na\n").unwrap();
        let file = path.to_str().unwrap().to_owned();
        let of = |file: &str| {
            let file = Some(file.to_owned());
            Allocation::of_host_file(BatchSystem::Pbs, "1".into(), "PBS_NODEFILE", file)
        };
        let held = of(&file).unwrap();
        assert_eq!((held.nodes, held.tasks, held.processors), (Some(2), Some(4), None));
        assert_eq!(held.hosts().unwrap(), ["b", "a"]);
        fs::write(&path, "\n").unwrap();
        let error = of(&file).unwrap_err().to_string();
        assert!(error.contains("lists no node") && error.contains("PBS_NODEFILE"), "{error}");
        let error = format!("{:#}", of("/no/such").unwrap_err());
        assert!(error.contains("/no/such (PBS_NODEFILE, which PBS sets)"), "{error}");
    }

    #[test]
    fn what_is_left_is_read_from_what_each_says() {
        let said = "Job Id: 7.head\n    Job_Name = x\n    resources_used.walltime = 00:10:30\n    \
                    Resource_List.walltime = 01:00:00\n";
        assert_eq!(pbs_seconds_left(said), Some(49 * 60 + 30));
        assert_eq!(pbs_seconds_left("Resource_List.walltime = 00:01:00"), Some(60));
        assert_eq!(pbs_seconds_left("qstat: Unknown Job Id 7"), None);
        assert_eq!(lsf_seconds_left("1:30 L\n"), Some(90 * 60));
        assert_eq!(lsf_seconds_left("-\n"), None);
    }

    #[test]
    fn no_job_goes_beyond_the_allocations_end() {
        let seconds = Duration::from_secs;
        let held = Allocation::unknown(BatchSystem::Slurm, "7".into());
        assert_eq!(held.time_for_a_job(seconds(30), seconds(600), "").unwrap(), seconds(30));
        assert_eq!(held.time_for_a_job(seconds(30), seconds(20), "").unwrap(), seconds(12));
        let error =
            held.time_for_a_job(seconds(30), seconds(9), "; it is kept").unwrap_err().to_string();
        assert_eq!(error, "Slurm's job 7 ends in 9s, too soon for another step; it is kept");
    }

    #[test]
    fn some_of_what_is_left_is_kept() {
        let seconds = Duration::from_secs;
        assert_eq!(usable(seconds(60)), seconds(40));
        assert_eq!(usable(seconds(3600)), seconds(3420));
        assert_eq!(usable(seconds(5)), seconds(0));
    }
}
