//! How much others use the processors while something is timed, sampled by each rank.
//!
//! Every rank counts how often it lost its processor before it had finished. The first rank of each
//! machine also reads what the kernel counts of all processors, and what of that the job's own processes
//! used: the rest others took.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    clock::{self, Nanos, now, seconds},
    platform::{host_name, load_average, processors},
    proc_stat::{self, Ticks},
};

/// What a rank saw since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSample {
    /// How often the system took the processor from it (getrusage).
    pub involuntary_switches: u64,
    /// Of its machine, from the rank that looks there, when it has looked.
    pub machine: Option<Used>,
}

/// Processor time that passed on a machine, in seconds summed over its processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// All that passed.
    pub all: f64,
    /// Given to others by the hypervisor; absent where the kernel does not count it.
    pub stolen: Option<f64>,
    /// Used by processes that are not the job's; absent where the job's own cannot be distinguished from them.
    pub others: Option<f64>,
    /// One-minute load average.
    pub load: Option<f64>,
}

/// Where a rank is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorOfRank {
    /// Name of its node.
    pub host: String,
    /// Which machine that is: nodes of a virtual cluster share one.
    pub machine: String,
    /// The machine's processors.
    pub processors: u32,
    /// Those that the rank may run on, as in `0-1`.
    pub allowed: String,
    /// The one that it ran on when it was asked.
    pub ran_on: Option<u32>,
    /// Its threads and those of the process that started it, as directories of /proc.
    pub tasks: Vec<String>,
    /// Which processes it sees under /proc: those of its container.
    pub processes: String,
}

impl ProcessorOfRank {
    /// This process's.
    pub fn own() -> Self {
        // SAFETY: neither call touches memory.
        let (parent, processor) = unsafe { (libc::getppid(), libc::sched_getcpu()) };
        let mut tasks = tasks_of(std::process::id());
        tasks.extend(u32::try_from(parent).map(tasks_of).unwrap_or_default());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        ProcessorOfRank {
            host: host_name(),
            machine: clock::machine(),
            processors: processors(),
            allowed: allowed.unwrap_or_default().trim().to_owned(),
            ran_on: u32::try_from(processor).ok(),
            tasks,
            processes: fs::read_link("/proc/self/ns/pid")
                .map(|name| name.display().to_string())
                .unwrap_or_default(),
        }
    }
}

/// The threads of a process; none where it cannot be seen.
fn tasks_of(process: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

/// The processes that pass a virtual cluster's frames on: they stand for its network.
fn tasks_of_switches() -> Vec<String> {
    const PROGRAM: &str = "colibri-switch";
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_switch = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim_end() == PROGRAM
    };
    processes.filter(is_switch).flat_map(tasks_of).collect()
}

/// Samples what a rank loses to others.
#[derive(Debug)]
pub struct Sampler {
    at: Nanos,
    switches: u64,
    machine: Option<MachineSampler>,
}

/// Samples the machine, at its first rank.
#[derive(Debug)]
struct MachineSampler {
    path: PathBuf,
    /// The job's on this machine; none where one of them cannot be seen.
    tasks: Option<Vec<String>>,
    before: Option<Counters>,
    looked: Nanos,
    cost: Nanos,
}

#[derive(Debug, Clone, PartialEq)]
struct Counters {
    ticks: Ticks,
    /// Of each of the job's threads.
    own_seconds: Vec<f64>,
}

impl Sampler {
    /// After so long without a question what was counted is of no stretch.
    const PAUSE: Nanos = 250_000_000;

    /// `tasks` are all threads of the job on this machine, sent to the rank that is to look at it.
    pub fn new(tasks: Option<Vec<String>>) -> Self {
        let machine = tasks.map(MachineSampler::new);
        let mut sampler = Sampler { at: 0, switches: 0, machine };
        sampler.begin();
        sampler
    }

    /// Before something is timed: what happened in a long pause is not reported.
    pub fn begin(&mut self) {
        if now() - self.at > Self::PAUSE {
            self.switches = involuntary_switches();
            if let Some(machine) = &mut self.machine {
                machine.look();
            }
        }
    }

    pub fn end(&mut self) -> RankSample {
        let switches = involuntary_switches();
        let lost = switches.saturating_sub(std::mem::replace(&mut self.switches, switches));
        self.at = now();
        let machine = self.machine.as_mut().filter(|machine| machine.is_due(self.at));
        RankSample { involuntary_switches: lost, machine: machine.and_then(MachineSampler::look) }
    }
}

impl MachineSampler {
    /// Looking may take this part of the time.
    const PART: Nanos = 100;

    fn new(mut tasks: Vec<String>) -> Self {
        tasks.extend(tasks_of_switches());
        let tasks: BTreeSet<String> = tasks.into_iter().collect();
        let all_seen = tasks.iter().all(|task| ran_seconds(task).is_some());
        let tasks = all_seen.then(|| tasks.into_iter().collect());
        MachineSampler { path: proc_stat::path(), tasks, before: None, looked: 0, cost: 0 }
    }

    fn is_due(&self, now: Nanos) -> bool {
        now - self.looked >= Self::PART * self.cost
    }

    /// What passed since the last look; nothing at the first, or where the kernel does not tell.
    fn look(&mut self) -> Option<Used> {
        let begun = now();
        let tasks = self.tasks.as_deref().unwrap_or_default();
        let own = |(task, index): (&String, usize)| {
            // A thread that has ended uses no more.
            let before = self.before.as_ref().and_then(|before| before.own_seconds.get(index));
            ran_seconds(task).or(before.copied()).unwrap_or_default()
        };
        let own_seconds = tasks.iter().zip(0..).map(own).collect();
        let counters = proc_stat::read(&self.path).map(|ticks| Counters { ticks, own_seconds });
        let used = self.before.as_ref().zip(counters.as_ref());
        let used = used.and_then(|(before, after)| passed(before, after));
        let used = used.map(|used| Used {
            others: used.others.filter(|_| self.tasks.is_some()),
            load: load_average(),
            ..used
        });
        self.before = counters;
        self.looked = now();
        self.cost = self.looked - begun;
        used
    }
}

/// What passed between two looks; nothing where the counters stood still.
fn passed(before: &Counters, after: &Counters) -> Option<Used> {
    let tick = proc_stat::tick_seconds();
    let passed =
        |of: fn(&Ticks) -> u64| of(&after.ticks).saturating_sub(of(&before.ticks)) as f64 * tick;
    let stolen = before.ticks.stolen.zip(after.ticks.stolen);
    let stolen = stolen.map(|(before, after)| after.saturating_sub(before) as f64 * tick);
    let own: f64 = after.own_seconds.iter().sum::<f64>() - before.own_seconds.iter().sum::<f64>();
    let all = passed(|ticks| ticks.all);
    let others = Some((passed(|ticks| ticks.used) - own).max(0.0));
    (all > 0.0).then_some(Used { all, stolen, others, load: None })
}

/// How long a thread has run; nothing where it cannot be seen or the kernel does not tell.
fn ran_seconds(task: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("{task}/schedstat")).ok()?;
    Some(seconds(text.split(' ').next()?.parse().ok()?))
}

/// How often the system took the processor from this process.
fn involuntary_switches() -> u64 {
    // SAFETY: an all-zero rusage is a valid one, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;

    fn counters(all: u64, used: u64, stolen: Option<u64>, own: f64) -> Counters {
        let idle = all - used - stolen.unwrap_or_default();
        Counters { ticks: Ticks { all, idle, used, stolen }, own_seconds: vec![own] }
    }

    #[test]
    fn what_is_neither_idle_nor_the_jobs_own_was_taken() {
        let tick = proc_stat::tick_seconds();
        let before = counters(1000, 500, Some(100), 2.0);
        let after = counters(1200, 650, Some(118), 2.0 + 100.0 * tick);
        let used = passed(&before, &after).unwrap();
        assert!((used.all - 200.0 * tick).abs() < 1e-9);
        assert!((used.stolen.unwrap() - 18.0 * tick).abs() < 1e-9);
        assert!((used.others.unwrap() - 50.0 * tick).abs() < 1e-9);
        let old = |all| counters(all, 500, None, 2.0);
        assert_eq!(passed(&old(1000), &old(1100)).unwrap().stolen, None);
        assert_eq!(passed(&before, &before), None, "counters that stand still tell nothing");
    }

    /// A thread that shares the only allowed processor with this one: the system takes the processor away.
    #[test]
    fn a_busy_neighbour_on_the_same_processor_shows_as_involuntary_switches() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let hold = || {
            // SAFETY: the set lives through both calls and the number is of a processor of the set.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &set);
            }
        };
        let spin = move || {
            hold();
            let neighbour = thread::spawn(|| {
                while !ENDED.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let mut sampler = Sampler::new(None);
            sampler.begin();
            let until = now() + 400_000_000;
            while now() < until {
                std::hint::spin_loop();
            }
            let seen = sampler.end();
            ENDED.store(true, Ordering::Relaxed);
            neighbour.join().unwrap();
            seen
        };
        let seen = thread::spawn(spin).join().unwrap();
        assert!(seen.involuntary_switches >= 5, "{seen:?}");
        assert_eq!(seen.machine, None, "another rank looks at the machine");
    }

    /// This process alone keeps a processor busy; as a rank of the job that is its own doing, to any other
    /// job it is taken.
    #[test]
    fn what_the_job_uses_is_its_own() {
        let spin = || {
            // SAFETY: takes nothing and touches no memory.
            let thread = unsafe { libc::gettid() };
            let own = vec![format!("/proc/self/task/{thread}")];
            let mut jobs =
                [own, Vec::new(), vec!["/proc/0/task/0".into()]].map(MachineSampler::new);
            let nothing = jobs.each_mut().map(MachineSampler::look);
            assert_eq!(nothing, [None; 3], "nothing has passed");
            let until = now() + 300_000_000;
            while now() < until {
                std::hint::spin_loop();
            }
            jobs.each_mut().map(|job| job.look().unwrap().others)
        };
        let [own, strange, unseen] = thread::spawn(spin).join().unwrap();
        // On a full machine it got a part of a processor.
        let used = strange.unwrap() - own.unwrap();
        assert!((0.02..0.5).contains(&used), "{used}");
        assert_eq!(unseen, None, "not known, and not 0");
    }

    #[test]
    fn a_seat_tells_where_a_rank_may_run() {
        let seat = ProcessorOfRank::own();
        assert!(!seat.allowed.is_empty() && seat.ran_on.is_some(), "{seat:?}");
        assert!(seat.tasks.iter().any(|task| ran_seconds(task).is_some()), "{seat:?}");
    }
}
