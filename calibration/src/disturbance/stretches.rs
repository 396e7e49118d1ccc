//! How much processor time others took on each machine, stretch by stretch of the record.

use std::collections::HashMap;

use records::disturbance::Stretch;

use super::sampling::{ProcessorOfRank, RankSample, Sampler, Used};
use crate::{
    Result,
    clock::{Nanos, now, seconds},
    exchange::Tag,
    polling_pause::PollingPause,
    world::World,
};

/// What others took on all machines since the last stretch; kept by one rank.
#[derive(Debug)]
pub struct Stretches {
    machines: Vec<MachineUse>,
    /// For each rank, in the order of [`begin`], its machine.
    machine_of: Vec<usize>,
    since: Nanos,
}

#[derive(Debug, Default)]
struct MachineUse {
    host: String,
    processors: u32,
    /// Most that took part at one time.
    ranks: u32,
    used: Used,
    /// By rank's place in that order.
    switches: HashMap<usize, u64>,
}

/// What the rank that keeps the stretches gets: these, and the processor of each rank.
pub type StretchesAndProcessors = (Stretches, Vec<ProcessorOfRank>);

/// Finds which ranks share a machine; all ranks must call this. `order` lists all of them: whenever some
/// take part in something, they are its first ones. The very first keeps the stretches and gets the
/// processor of each rank, in this order. Every rank gets its sampler.
///
/// # Errors
/// The MPI library refuses.
pub fn begin(world: &World, order: &[u32]) -> Result<(Sampler, Option<StretchesAndProcessors>)> {
    let control = &world.control;
    let (keeper, others) = (order[0], &order[1..]);
    if world.rank() != keeper {
        control.send_value(&ProcessorOfRank::own(), keeper, Tag::Setup)?;
        let tasks =
            control.receive_value_asleep(keeper, Tag::Setup, PollingPause::for_idle_rank())?;
        return Ok((Sampler::new(tasks), None));
    }
    let mut processors_of_ranks = vec![ProcessorOfRank::own()];
    for &rank in others {
        processors_of_ranks.push(control.receive_value(rank, Tag::Setup)?);
    }
    let mut watched = watched_tasks(&processors_of_ranks);
    for (&rank, tasks) in others.iter().zip(&watched[1..]) {
        control.send_value(tasks, rank, Tag::Setup)?;
    }
    Ok((
        Sampler::new(watched.swap_remove(0)),
        Some((Stretches::new(&processors_of_ranks), processors_of_ranks)),
    ))
}

/// For each machine's first rank, which samples the machine, all threads of the job there; nothing for the
/// other ranks. Threads of another container are invisible: an empty name stands for them.
fn watched_tasks(processors_of_ranks: &[ProcessorOfRank]) -> Vec<Option<Vec<String>>> {
    let mut tasks: HashMap<&String, Vec<String>> = HashMap::new();
    let mut sees: HashMap<&String, &String> = HashMap::new();
    for rank in processors_of_ranks {
        let of_machine = tasks.entry(&rank.machine).or_default();
        match *sees.entry(&rank.machine).or_insert(&rank.processes) == &rank.processes {
            true => of_machine.extend(rank.tasks.iter().cloned()),
            false => of_machine.push(String::new()),
        }
    }
    processors_of_ranks.iter().map(|rank| tasks.remove(&rank.machine)).collect()
}

/// Where the ranks are, for the record: each rank's node, the processors that it may run on, and the one
/// that it ran on.
pub fn placement(processors_of_ranks: &[ProcessorOfRank]) -> String {
    let of = |rank: &ProcessorOfRank| {
        let ran_on = rank.ran_on.map_or_else(|| "?".to_owned(), |processor| processor.to_string());
        format!("{} {} on {ran_on}", rank.host, rank.allowed)
    };
    processors_of_ranks.iter().map(of).collect::<Vec<_>>().join("; ")
}

impl Stretches {
    /// The kernel counts in hundredths of a second: in less no share can be measured well.
    const LENGTH: Nanos = 500_000_000;
    /// Of the last stretch, which may be shorter, no share is reported below this.
    const MIN_SECONDS: f64 = 0.25;

    fn new(processors_of_ranks: &[ProcessorOfRank]) -> Self {
        let mut index: HashMap<&String, usize> = HashMap::new();
        let mut machines: Vec<MachineUse> = Vec::new();
        let mut machine_of = Vec::new();
        for rank in processors_of_ranks {
            let of = *index.entry(&rank.machine).or_insert(machines.len());
            if of == machines.len() {
                let (host, processors) = (rank.host.clone(), rank.processors);
                machines.push(MachineUse { host, processors, ..MachineUse::default() });
            }
            machine_of.push(of);
        }
        Stretches { machines, machine_of, since: now() }
    }

    /// Whether a stretch has lasted long enough to be reported.
    pub fn is_due(&self) -> bool {
        now() - self.since >= Self::LENGTH
    }

    /// Takes in what the first ranks saw while they took part in something.
    pub fn take_in(&mut self, samples: &[RankSample]) {
        let mut ranks = vec![0; self.machines.len()];
        for (rank, (sample, &of)) in samples.iter().zip(&self.machine_of).enumerate() {
            ranks[of] += 1;
            let machine = &mut self.machines[of];
            *machine.switches.entry(rank).or_default() += sample.involuntary_switches;
            if let Some(used) = sample.machine {
                let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
                    (Some(one), Some(other)) => Some(one + other),
                    (one, other) => one.or(other),
                };
                let before = &mut machine.used;
                before.all += used.all;
                before.stolen = sum(before.stolen, used.stolen);
                before.others = sum(before.others, used.others);
                before.load = used.load.or(before.load);
            }
        }
        for (machine, ranks) in self.machines.iter_mut().zip(ranks) {
            machine.ranks = machine.ranks.max(ranks);
        }
    }

    /// What there is to tell of the time since the last stretch, if that is long enough, or at the `end`.
    pub fn close(&mut self, end: bool) -> Option<Stretch> {
        if !self.is_due() && !end {
            return None;
        }
        let lasted = now() - self.since;
        self.since += lasted;
        let stretch = self.stretch(seconds(lasted));
        for machine in &mut self.machines {
            (machine.ranks, machine.used) = (0, Used::default());
            machine.switches.clear();
        }
        stretch
    }

    /// Forgets what was seen, as nothing was measured meanwhile.
    pub fn forget(&mut self) {
        self.close(true);
    }

    /// Of the machine from which most was taken.
    fn stretch(&self, seconds: f64) -> Option<Stretch> {
        let taking_part = || self.machines.iter().filter(|machine| machine.ranks > 0);
        let load = taking_part().filter_map(|machine| machine.used.load).reduce(f64::max);
        let of_machines = taking_part().map(|machine| Stretch { load, ..machine.stretch(seconds) });
        let taken = |stretch: &Stretch| stretch.taken().unwrap_or(-1.0);
        let mut worst = of_machines.max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
        let switches = taking_part().flat_map(|machine| machine.switches.values());
        worst.involuntary_switches = switches.copied().max().unwrap_or_default();
        Some(worst)
    }
}

impl MachineUse {
    fn stretch(&self, seconds: f64) -> Stretch {
        let Used { all, stolen, others, .. } = self.used;
        let is_long = seconds >= Stretches::MIN_SECONDS;
        let share = |part: f64| ((part / all).clamp(0.0, 1.0) * 1e4).round() / 1e4;
        let share = |part: Option<f64>| part.filter(|_| is_long).map(share);
        Stretch {
            seconds: (seconds * 1e3).round() / 1e3,
            host: self.host.clone(),
            processors: self.processors,
            ranks: self.ranks,
            stolen: share(stolen),
            others: share(others),
            involuntary_switches: 0,
            load: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(host: &str, machine: &str, task: &str) -> ProcessorOfRank {
        ProcessorOfRank {
            host: host.into(),
            machine: machine.into(),
            processors: 4,
            allowed: "0-3".into(),
            ran_on: Some(2),
            tasks: vec![task.into()],
            processes: "pid:[1]".into(),
        }
    }

    fn sample(switches: u64, stolen: Option<f64>, others: Option<f64>) -> RankSample {
        let machine = Some(Used { all: 2.0, stolen, others, load: Some(1.5) });
        RankSample { involuntary_switches: switches, machine }
    }

    #[test]
    fn one_rank_looks_at_each_machine_for_all_that_are_there() {
        let processors_of_ranks =
            [processor("a", "x", "1"), processor("b", "x", "2"), processor("c", "y", "3")];
        let looked = watched_tasks(&processors_of_ranks);
        assert_eq!(looked[0], Some(vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!((&looked[1], &looked[2]), (&None, &Some(vec!["3".to_owned()])));
        let contained = ProcessorOfRank { processes: "pid:[2]".into(), ..processor("a", "x", "1") };
        let looked = watched_tasks(&[processors_of_ranks[0].clone(), contained]);
        assert_eq!(looked[0], Some(vec!["1".to_owned(), String::new()]), "unseen, so not known");
        assert_eq!(placement(&processors_of_ranks[..2]), "a 0-3 on 2; b 0-3 on 2");
    }

    #[test]
    fn the_machine_from_which_most_was_taken_is_told() {
        let processors_of_ranks =
            [processor("a", "x", "1"), processor("b", "y", "2"), processor("c", "z", "3")];
        let mut stretches = Stretches::new(&processors_of_ranks);
        let calm = sample(2, Some(0.0), Some(0.02));
        stretches.take_in(&[calm, sample(1, Some(0.2), None)]);
        stretches.take_in(&[calm, sample(9, Some(0.4), None)]);
        assert_eq!(stretches.close(false), None, "too short to tell");
        stretches.since -= 400_000_000;
        let told = stretches.close(true).unwrap();
        assert_eq!((told.host.as_str(), told.stolen, told.others), ("b", Some(0.15), None));
        assert_eq!((told.involuntary_switches, told.ranks, told.load), (10, 1, Some(1.5)));
        assert!(told.is_disturbed());
        assert_eq!(stretches.close(true), None, "nobody took part in anything");
        let unseen = RankSample { involuntary_switches: 1, machine: None };
        stretches.take_in(&[unseen]);
        assert_eq!(stretches.close(true).unwrap().taken(), None);
    }
}
