//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

use std::collections::BTreeMap;

use records::{
    Method, Point,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    summary::Loading,
    usage::Usage,
};
use verification::{samples::Samples, selection::Choice};

use crate::constants::constants;
use crate::{
    bench::{Bench, BenchJob, JobName},
    candidate::{Candidate, WayToLoad},
    costs::spent,
    plan::{self, Repeated},
    round::{ConfirmingRound, LoadedTimes},
};

/// What the first round leaves is told by the second, which had no part in choosing, save that
/// what it shows to be slower is taken out as well: what is told of the rest flatters by no more
/// than that.
const ROUNDS: [u32; 2] = [1, 2];

/// How many times what the jobs of a round are expected to take one of them may: each point is seen once
/// in each, however short the time.
const OVERRUN: f64 = 2.0;

/// What is to be confirmed, and in which time.
pub struct ConfirmingTask<'a> {
    /// What was chosen at every point, ascending.
    pub choices: &'a [Choice],
    /// Standard deviations of the logarithms of what it is believed to gain.
    pub doubts: &'a BTreeMap<Point, f64>,
    /// The ways to load it.
    pub ways: &'a [WayToLoad<'a>],
    /// Ranks of a job.
    pub ranks: u32,
    /// What all jobs together may take, in seconds.
    pub seconds: f64,
    /// Of the order of the measurements.
    pub seed: u64,
}

/// What is left of the choices, in each way to load them, and what the last round showed of it.
#[derive(Debug, Clone)]
pub struct ConfirmedWays {
    candidates: Vec<Candidate>,
    last: Option<ConfirmingRound>,
}

/// What is left of the choices in one way to load them.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmedWay {
    /// At every point.
    pub choices: Vec<Choice>,
    /// What it gains, and what was taken out.
    pub loading: Loading,
}

/// The jobs of a round as they are to be: the default by itself, and with each candidate loaded
/// that replaces it anywhere, all of them in several turns.
struct RoundJobs<'a> {
    task: &'a ConfirmingTask<'a>,
    round: u32,
    candidates: &'a [Candidate],
    loading: Vec<Option<&'a Candidate>>,
    /// What they may take together, in seconds.
    seconds: f64,
}

/// Loads what was chosen in jobs of its own: what is not faster is taken out, and what the rest gains
/// is told by further jobs.
///
/// # Errors
/// The bench's.
pub fn confirm<B: Bench>(
    bench: &mut B,
    task: &ConfirmingTask<'_>,
) -> Result<ConfirmedWays, B::Error> {
    let candidate = |way| Candidate::new(way, task.choices, task.doubts);
    let mut candidates: Vec<Candidate> = task.ways.iter().map(candidate).collect();
    let mut last: Option<ConfirmingRound> = None;
    for number in ROUNDS {
        // Half of the time at first, what is left of it then.
        let seconds = match &last {
            None => task.seconds / ROUNDS.len() as f64,
            Some(round) => (task.seconds - round.spent).max(0.0),
        };
        let Some(jobs) = RoundJobs::new(task, number, &candidates, seconds) else { break };
        let round = jobs.run(bench)?;
        for candidate in &mut candidates {
            candidate.take_out(&round, Some(&number) == ROUNDS.last());
        }
        last = Some(round);
    }
    Ok(ConfirmedWays { candidates, last })
}

impl ConfirmedWays {
    /// What the last jobs show of each way, with what a reader must know. `usage` is what the preload
    /// library saw.
    pub fn tell(self, usage: Option<&Usage>) -> (Vec<ConfirmedWay>, Vec<String>) {
        let mut warnings = Vec::new();
        let told = self.candidates.into_iter().map(|mut candidate| {
            if let Some(round) = &self.last {
                warnings.extend(candidate.tell(round, usage));
            }
            ConfirmedWay { choices: candidate.choices, loading: candidate.loading }
        });
        (told.collect(), warnings)
    }
}

/// Adds the rows of a job's next turn, as later visits.
fn append(rows: &mut Vec<CollectiveCall>, turn: Vec<CollectiveCall>) {
    let before = rows.iter().map(|row| row.visit + 1).max().unwrap_or(0);
    rows.extend(turn.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }));
}

impl<'a> RoundJobs<'a> {
    /// Nothing where nothing is to be confirmed.
    fn new(
        task: &'a ConfirmingTask<'a>,
        round: u32,
        candidates: &'a [Candidate],
        seconds: f64,
    ) -> Option<Self> {
        let to_load = candidates.iter().filter(|candidate| candidate.replaced().count() > 0);
        let loading: Vec<_> = std::iter::once(None).chain(to_load.map(Some)).collect();
        (loading.len() > 1).then_some(RoundJobs { task, round, candidates, loading, seconds })
    }

    /// The states that a machine passes through may last for many seconds; were each job made in one
    /// piece, one of them might have the better state to itself.
    fn turns(&self) -> usize {
        let turns = self.seconds / (constants().turn_seconds * self.loading.len() as f64);
        (turns as usize).clamp(1, constants().most_turns)
    }

    /// The order of the jobs in a turn: drift must favour none.
    fn order(&self, turn: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.loading.len()).collect();
        if (self.round as usize + turn).is_multiple_of(2) {
            order.reverse();
        }
        order
    }

    /// Runs the default's jobs and those of each way.
    fn run<B: Bench>(&self, bench: &mut B) -> Result<ConfirmingRound, B::Error> {
        let repeated = self.repeated();
        let seconds = OVERRUN * self.seconds.max(repeated.expected_seconds);
        let mut rows = vec![Vec::new(); self.loading.len()];
        for turn in 0..repeated.plans[0].len() {
            for index in self.order(turn) {
                let plan: &Plan = &repeated.plans[index][turn];
                if plan.visits.is_empty() {
                    continue;
                }
                let (round, load) = (self.round, self.loading[index].map(Candidate::load));
                let way = load.map(|load| load.way);
                let name = JobName::Confirming { round, turn: turn as u32 + 1, way };
                append(&mut rows[index], bench.run(&BenchJob { name, plan, load, seconds })?);
            }
        }
        let mut round = ConfirmingRound::default();
        for (candidate, rows) in self.loading.iter().zip(rows) {
            let samples = Samples::gather(&rows);
            round.spent += spent(&rows);
            match candidate {
                None => round.default = samples,
                Some(Candidate { loading, .. }) => {
                    round.loaded.push(LoadedTimes { way: loading.way, samples, rows });
                }
            }
        }
        Ok(round)
    }

    /// The default, where it is replaced and at the controls, as often as fits in all jobs of a
    /// round together: each job by what runs in it, which is short where what it replaces may be
    /// long.
    fn repeated(&self) -> Repeated {
        let replaced = self.loading.iter().flatten().flat_map(|candidate| candidate.replaced());
        let controls = self.controls();
        let default: BTreeMap<Point, f64> = replaced
            .chain(controls.iter().copied())
            .map(|choice| (choice.point, choice.default_seconds))
            .collect();
        let cell = |&Point { collective, procs, bytes }: &Point| Cell {
            collective,
            method: Method::Default,
            procs,
            bytes,
        };
        let cells: Vec<Cell> = default.keys().map(cell).collect();
        let seconds = |candidate: &Option<&Candidate>| {
            let times = match candidate {
                None => default.clone(),
                Some(loaded) => {
                    let controls = controls.iter().map(|of| (of.point, of.default_seconds));
                    let replaced = loaded.replaced().map(|choice| (choice.point, choice.seconds));
                    replaced.chain(controls).collect()
                }
            };
            cells.iter().map(|cell| times.get(&cell.point()).copied()).collect()
        };
        let seconds: Vec<Vec<Option<f64>>> = self.loading.iter().map(seconds).collect();
        let seed = self.task.seed.wrapping_add(self.round.into());
        plan::repeat(&cells, &seconds, self.task.ranks, self.seconds, (self.turns(), seed))
    }

    /// Points at which no candidate replaces the default, so that all jobs run the same: what they
    /// differ by there is the machine's. Only short calls differ much from job to job.
    fn controls(&self) -> Vec<&Choice> {
        let Some(first) = self.candidates.first() else { return Vec::new() };
        let is_left = |point: Point| {
            let mut replaced = self.candidates.iter().flat_map(Candidate::replaced);
            replaced.all(|choice| choice.point != point)
        };
        let controls: Vec<&Choice> = first
            .choices
            .iter()
            .filter(|of| of.default_seconds < constants().very_short_seconds && is_left(of.point))
            .collect();
        let every = controls.len().div_ceil(constants().most_controls).max(1);
        controls.into_iter().step_by(every).collect()
    }
}
