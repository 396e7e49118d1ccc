//! The allocation of Slurm that we run in, and how its `srun` starts MPI programs.

use std::{
    env,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use libraries::MpiLibrary;

use crate::{
    process::{self, ANSWER_TIMEOUT},
    usage,
};

/// The name of its launcher.
pub const SRUN: &str = "srun";

/// Ends the whole job as soon as one rank has failed: the others would wait for it.
pub const END_AT_ONCE: (&str, &str) = ("SLURM_KILL_BAD_EXIT", "1");

/// Has Slurm's PMIx synchronise the nodes around a ring. Where no data is exchanged Slurm 22.05.8 does so by a tree, and
/// makes none of fewer nodes than its `TreeWidth` (50 unless a site sets it): each node goes on alone. Open MPI then
/// crashes now and then, where a rank receives while it still is in `MPI_Init`.
pub const RING_FENCE: (&str, &str) = ("SLURM_PMIX_FENCE", "ring");

/// Hands our own environment to the ranks, whatever a batch script was made to take over: what is forced
/// and loaded is passed on by it.
pub const WHOLE_ENVIRONMENT: (&str, &str) = ("SLURM_EXPORT_ENV", "ALL");

/// What a job has been given, as far as Slurm's variables say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlurmAllocation {
    pub nodes: Option<u32>,
    /// Ranks that were asked for, or one for each part of a node that was.
    pub tasks: Option<u32>,
    /// Processors on all nodes.
    pub processors: Option<u32>,
}

impl SlurmAllocation {
    /// By the variables that Slurm sets.
    ///
    /// # Errors
    /// One is not understood.
    pub fn by(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let number = |name: &str| variable(name).map(|text| number(name, &text)).transpose();
        let sum = |name: &str| variable(name).map(|text| sum(name, &text)).transpose();
        let tasks = match number("SLURM_NTASKS")? {
            // `salloc -N 4` alone sets this and not the one above.
            None => sum("SLURM_TASKS_PER_NODE")?,
            tasks => tasks,
        };
        Ok(SlurmAllocation {
            nodes: number("SLURM_JOB_NUM_NODES")?,
            tasks,
            processors: sum("SLURM_JOB_CPUS_PER_NODE")?,
        })
    }

    /// Whether `srun` would start so many ranks.
    ///
    /// # Errors
    /// It would refuse.
    pub fn check(&self, ranks: u32) -> Result<()> {
        // Processors count, not tasks: srun starts as many ranks as there are of these.
        let Some(most) = self.processors.or(self.tasks) else { return Ok(()) };
        let most = most.max(self.tasks.unwrap_or(0));
        if ranks > most && env::var_os("SLURM_OVERCOMMIT").is_none() {
            usage!(
                "{ranks} ranks do not fit Slurm's allocation of {most} processors; give --ranks \
                 {most} or fewer, or ask salloc or sbatch for more: -n {ranks}"
            );
        }
        Ok(())
    }
}

/// Why a job has ended, in Slurm's word such as `TIMEOUT`; nothing where it runs, or Slurm does not say.
/// One that is about to end is waited for, since its reason is known only then.
pub fn ended(job: &str) -> Option<String> {
    let limit = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let mut show = Command::new("scontrol");
        let said = process::output(show.args(["show", "job", "-o", job]))?;
        match state(&said)? {
            // Slurm starts no more steps when the time is up, and ends the job up to a minute later.
            "RUNNING" | "SUSPENDED" => return is_out_of_time(&said).then(|| "TIMEOUT".to_owned()),
            "COMPLETING" if Instant::now() < limit => thread::sleep(Duration::from_millis(250)),
            other => return Some(other.to_owned()),
        }
    }
}

/// Whether a job runs, or is about to end; nothing where Slurm does not say.
pub fn runs(job: &str) -> Option<bool> {
    let mut show = Command::new("squeue");
    let said = process::output(show.args(["-h", "-j", job, "-o", "%T"]))?;
    match said.trim() {
        "RUNNING" | "COMPLETING" | "SUSPENDED" => Some(true),
        "" => Some(false),
        // Of a job that it has forgotten.
        other => other.contains("Invalid job id").then_some(false),
    }
}

fn state(said: &str) -> Option<&str> {
    value(said, "JobState=")
}

fn is_out_of_time(said: &str) -> bool {
    let seconds = |name: &str| clock_time(value(said, name)?);
    seconds("RunTime=").zip(seconds("TimeLimit=")).is_some_and(|(ran, limit)| ran >= limit)
}

fn value<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.split_whitespace().find_map(|word| word.strip_prefix(name))
}

/// Seconds of a time as Slurm and PBS write it: `1-02:03:04`, `02:03:04`, `03:04`; nothing where it is
/// another word, such as `UNLIMITED`.
pub fn clock_time(text: &str) -> Option<u64> {
    let (days, rest) = text.trim().split_once('-').unwrap_or(("0", text.trim()));
    let parts: Vec<u64> = rest.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let seconds = match parts[..] {
        [minutes, seconds] => minutes * 60 + seconds,
        [hours, minutes, seconds] => (hours * 60 + minutes) * 60 + seconds,
        _ => return None,
    };
    Some(days.parse::<u64>().ok()?.checked_mul(86400)?.saturating_add(seconds))
}

fn number(name: &str, text: &str) -> Result<u32> {
    match text.trim().parse() {
        Ok(number @ 1..) => Ok(number),
        _ => bail!("{name}, which Slurm sets, is '{text}'; expected a number above 0"),
    }
}

/// The sum of such as `2(x3),1`: three times two, and one.
fn sum(name: &str, text: &str) -> Result<u32> {
    let item = |item: &str| -> Option<u32> {
        let (number, times) = match item.trim().strip_suffix(')') {
            Some(item) => item.split_once("(x")?,
            None => (item.trim(), "1"),
        };
        number.parse::<u32>().ok()?.checked_mul(times.parse().ok()?)
    };
    let sum = text.split(',').try_fold(0_u32, |sum, next| sum.checked_add(item(next)?));
    match sum {
        Some(sum @ 1..) => Ok(sum),
        _ => bail!("{name}, which Slurm sets, is '{text}'; expected numbers, as in 2(x3),1"),
    }
}

/// The kinds of process management that `srun` offers to MPI libraries, by the names that `--mpi`
/// takes; none where it does not say.
pub fn offered() -> Vec<String> {
    let said = process::output(Command::new(SRUN).arg("--mpi=list"));
    kinds(&said.unwrap_or_default())
}

/// Each kind stands on a line of its own; what heads them, and what goes into details, ends or begins
/// with more words. Before Slurm 21.08 each line begins with `srun: `.
fn kinds(said: &str) -> Vec<String> {
    let lines = said.lines().map(|line| line.trim_start_matches("srun:").trim());
    let kinds = lines.filter(|line| !line.is_empty() && !line.contains(char::is_whitespace));
    kinds.map(Into::into).collect()
}

/// Whether ranks are started without any process management where nothing is asked for.
fn default_is_none() -> bool {
    configured("MpiDefault").is_some_and(|value| value == "none")
}

/// Slurm's name of the cluster, where it says it.
pub fn cluster_name() -> Option<String> {
    configured("ClusterName")
}

/// A setting of Slurm's, where it says it.
fn configured(name: &str) -> Option<String> {
    let mut show = Command::new("scontrol");
    let said = process::output(show.args(["show", "config"]))?;
    setting(&said, name).map(Into::into)
}

fn setting<'a>(configuration: &'a str, wanted: &str) -> Option<&'a str> {
    let mut settings = configuration.lines().filter_map(|line| line.split_once('='));
    settings.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim())
}

/// What `--mpi` is to be for an MPI library; nothing where Slurm's own setting or the user's is left
/// alone.
///
/// What takes one kind alone is given that, whatever else is there. What takes it as a rule is left
/// to a site that has set anything, which knows better.
pub fn kind_for(library: Option<&'static dyn MpiLibrary>) -> Option<&'static str> {
    if env::var_os("SLURM_MPI_TYPE").is_some() {
        return None;
    }
    let (kind, alone) = library.map_or(("pmi2", false), |library| library.process_management());
    let wanted = alone || default_is_none();
    (wanted && offered().iter().any(|offered| offered == kind)).then_some(kind)
}

/// The options by which `srun` may be given other kinds than what is taken first, the likeliest first. What
/// a user has set is not passed by.
pub fn other_kinds() -> Vec<String> {
    if env::var_os("SLURM_MPI_TYPE").is_some() {
        return Vec::new();
    }
    let offered = offered();
    let known = ["pmix", "pmi2", "cray_shasta"].into_iter();
    let there = known.filter(|kind| offered.iter().any(|offered| offered == kind));
    there.map(|kind| format!("--mpi={kind}")).collect()
}

/// Words by which a job shows that `srun` has started its ranks without the process management that
/// their MPI library needs: the libraries', and our programs' that find themselves alone.
pub fn apart() -> Vec<&'static str> {
    let theirs = libraries::ALL.iter().flat_map(|library| library.started_apart());
    theirs.copied().chain(["the job has 1 ranks"]).collect()
}

/// What to do about that.
pub fn advice() -> String {
    let offered = offered();
    let has = |kind: &str| offered.iter().any(|offered| offered == kind);
    let kind = ["pmix", "pmi2"].into_iter().find(|kind| has(kind));
    let what = "srun started each rank as an MPI job of its own, without the process management \
                that the library needs";
    let list = match offered.is_empty() {
        true => "`srun --mpi=list` lists none".to_owned(),
        false => format!("`srun --mpi=list` offers {}", offered.join(", ")),
    };
    match kind {
        Some(kind) => format!(
            "{what}: name it by --mpi, as in --launcher 'srun --mpi={kind} -n {{np}}' ({list}; \
             Open MPI takes pmix, MPICH and Intel MPI take pmi2)"
        ),
        None => format!(
            "{what}, and {list}: use the MPI library's own launcher, as in --launcher 'mpirun -np \
             {{np}}'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(variables: &[(&str, &str)]) -> Result<SlurmAllocation> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        SlurmAllocation::by(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn tasks_are_those_asked_for_or_one_for_each_part_of_a_node() {
        let nodes = ("SLURM_JOB_NUM_NODES", "4");
        let per_node = ("SLURM_TASKS_PER_NODE", "2(x3),1");
        let counted = held(&[nodes, per_node]).unwrap();
        assert_eq!((counted.nodes, counted.tasks), (Some(4), Some(7)));
        let asked = held(&[nodes, per_node, ("SLURM_NTASKS", "5")]).unwrap();
        assert_eq!(asked.tasks, Some(5));
        let silent = held(&[]).unwrap();
        assert_eq!((silent.nodes, silent.tasks), (None, None));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for wrong in ["", "two", "2(x3", "2(x)", "4294967295(x2)", "2(x3),"] {
            let error = held(&[("SLURM_TASKS_PER_NODE", wrong)]).unwrap_err().to_string();
            assert!(error.contains("SLURM_TASKS_PER_NODE") && error.contains(wrong), "{error}");
        }
        let error = held(&[("SLURM_NTASKS", "0")]).unwrap_err().to_string();
        assert!(error.contains("SLURM_NTASKS") && error.contains("'0'"), "{error}");
    }

    #[test]
    fn more_ranks_than_processors_are_refused() {
        let tasks = ("SLURM_TASKS_PER_NODE", "1(x4)");
        let full = held(&[tasks, ("SLURM_JOB_CPUS_PER_NODE", "2(x4)")]).unwrap();
        assert!(full.check(8).is_ok());
        let error = full.check(9).unwrap_err().to_string();
        assert!(error.contains("9 ranks") && error.contains("--ranks 8"), "{error}");
        assert!(held(&[tasks]).unwrap().check(5).is_err());
        assert!(held(&[]).unwrap().check(5).is_ok());
    }

    #[test]
    fn kinds_are_read_from_both_forms_of_the_list() {
        let new = "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions \
                   available: pmix_v4\n";
        assert_eq!(kinds(new), ["pmix", "none", "pmi2"]);
        let old = "srun: MPI types are...\nsrun: pmix_v3\nsrun: none\n";
        assert_eq!(kinds(old), ["pmix_v3", "none"]);
        assert_eq!(kinds("srun: error: no such option\n"), Vec::<String>::new());
    }

    #[test]
    fn times_are_read_as_slurm_writes_them() {
        assert_eq!(clock_time("1-02:03:04\n"), Some(93_784));
        assert_eq!(clock_time("2:59"), Some(179));
        assert_eq!(clock_time("00:10:00"), Some(600));
        for other in ["UNLIMITED", "NOT_SET", "INVALID", "", "5", "x-1:00"] {
            assert_eq!(clock_time(other), None, "{other}");
        }
    }

    #[test]
    fn a_jobs_state_is_read_from_what_is_shown_of_it() {
        let said = "JobId=4 JobName=x UserId=root(0) JobState=TIMEOUT Reason=TimeLimit";
        assert_eq!(state(said), Some("TIMEOUT"));
        assert_eq!(state("slurm_load_jobs error: Invalid job id specified"), None);
    }

    #[test]
    fn a_job_that_still_runs_may_be_out_of_time() {
        for (said, is_out) in [
            ("JobState=RUNNING RunTime=00:01:03 TimeLimit=00:01:00", true),
            ("JobState=RUNNING RunTime=00:00:59 TimeLimit=00:01:00", false),
            ("JobState=RUNNING RunTime=1-00:00:01 TimeLimit=1-00:00:00", true),
            ("JobState=RUNNING RunTime=00:01:03 TimeLimit=UNLIMITED", false),
        ] {
            assert_eq!(is_out_of_time(said), is_out, "{said}");
        }
    }

    #[test]
    fn settings_are_read_from_the_configuration() {
        let said = "ClusterName             = hal\nMpiDefault              = none\n";
        assert_eq!(setting(said, "MpiDefault"), Some("none"));
        assert_eq!(setting(said, "ClusterName"), Some("hal"));
        assert_eq!(setting("", "MpiDefault"), None);
    }
}
