//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Method, Point,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    summary::{Gain, Loading},
    usage::Usage,
};
use verification::{harm, samples::Samples, selection::TimedChoice};

use crate::{
    bench::{Bench, BenchJob, JobName},
    candidate::{LoadCandidate, WayToLoad},
    constants::constants,
    costs::spent_seconds,
    plan::{self, RepeatedPlan},
    round::{ConfirmingRound, LoadedTimes},
};

/// What the first round leaves is told by the second, which had no part in choosing, save that
/// what it shows to be slower is taken out as well: what is told of the rest flatters by no more
/// than that.
const ROUNDS: [u32; 2] = [1, 2];

/// As older versions planned.
const OLDER_TURN_SECONDS: f64 = 10.0;
const OLDER_MOST_TURNS: usize = 4;

/// How many times what the jobs of a round are expected to take one of them may: each point is seen once
/// in each, however short the time.
const JOB_OVERRUN: f64 = 2.0;

/// What is to be confirmed, and in which time.
pub struct ConfirmingTask<'a> {
    /// The ways to load what was chosen.
    pub ways: &'a [WayToLoad<'a>],
    /// Ranks of a job.
    pub ranks: u32,
    /// What all jobs together may take, in seconds.
    pub seconds: f64,
    /// Whether the last round goes on where its turns leave it open what is gained or harmed. Runs that older
    /// versions began are completed as they were planned, without.
    pub goes_on: bool,
    /// Turns of the last round at least, beside what the engine wants: so that each of a bench's states, if
    /// it goes through some in turn, is seen.
    pub least_turns: usize,
    /// Of the order of the measurements.
    pub seed: u64,
}

/// What is left of the choices, in each way to load them, and what the last round showed of it.
#[derive(Debug, Clone)]
pub struct ConfirmedWays {
    candidates: Vec<LoadCandidate>,
    last: Option<ConfirmingRound>,
}

/// What is left of the choices in one way to load them.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmedWay {
    /// At every point.
    pub choices: Vec<TimedChoice>,
    /// At sizes between these, by what is believed of them.
    pub between: Vec<TimedChoice>,
    /// What it gains, and what was taken out.
    pub loading: Loading,
    /// In each turn of the last round, the default's time without over that with it loaded, where it replaces
    /// the default.
    pub turns: Vec<BTreeMap<Point, f64>>,
}

/// The jobs of a round as they are to be: the default by itself, and with each candidate loaded
/// that replaces it anywhere, all of them in several turns.
struct RoundJobs<'a> {
    task: &'a ConfirmingTask<'a>,
    round: u32,
    candidates: &'a [LoadCandidate],
    loading: Vec<Option<&'a LoadCandidate>>,
    /// What they may take together, in seconds.
    seconds: f64,
    is_last: bool,
}

/// The calls that each job of a round made in one turn.
type CallsByJob = Vec<Vec<CollectiveCall>>;

/// Loads what was chosen in jobs of its own: what is not faster is taken out, and what the rest gains
/// is told by further jobs.
///
/// # Errors
/// The bench's.
pub fn confirm<B: Bench>(
    bench: &mut B,
    task: &ConfirmingTask<'_>,
) -> Result<ConfirmedWays, B::Error> {
    let mut candidates: Vec<LoadCandidate> = task.ways.iter().map(LoadCandidate::new).collect();
    let mut last: Option<ConfirmingRound> = None;
    for number in ROUNDS {
        // Half of the time at first, what is left of it then.
        let seconds = match &last {
            None => task.seconds / ROUNDS.len() as f64,
            Some(round) => (task.seconds - round.spent).max(0.0),
        };
        let is_last = Some(&number) == ROUNDS.last();
        let of_round = (number, is_last, seconds);
        let Some(jobs) = RoundJobs::new(task, of_round, &candidates) else { break };
        let round = jobs.run(bench)?;
        for candidate in &mut candidates {
            candidate.take_out(&round, is_last);
        }
        last = Some(round);
    }
    Ok(ConfirmedWays { candidates, last })
}

impl ConfirmedWays {
    /// What the last jobs show of each way, with what a reader must know. `usage` is what the preload
    /// library saw.
    pub fn into_results(self, usage: Option<&Usage>) -> (Vec<ConfirmedWay>, Vec<String>) {
        let mut warnings = Vec::new();
        let told = self.candidates.into_iter().map(|mut candidate| {
            if let Some(round) = &self.last {
                warnings.extend(candidate.record_gains(round, usage));
            }
            let LoadCandidate { choices, between, loading, .. } = candidate;
            let point = |&Gain { collective, layout, bytes, .. }: &Gain| Point {
                collective,
                layout,
                bytes,
            };
            let replaced = loading.gains.iter().map(point).collect();
            let turns = self.last.as_ref().map(|last| last.speed_ups(loading.way, &replaced));
            ConfirmedWay { choices, between, loading, turns: turns.unwrap_or_default() }
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
        (round, is_last, seconds): (u32, bool, f64),
        candidates: &'a [LoadCandidate],
    ) -> Option<Self> {
        let to_load = candidates.iter().filter(|candidate| candidate.replaced().count() > 0);
        let loading: Vec<_> = std::iter::once(None).chain(to_load.map(Some)).collect();
        let jobs = RoundJobs { task, round, candidates, loading, seconds, is_last };
        (jobs.loading.len() > 1).then_some(jobs)
    }

    /// The states that a machine passes through may last for many seconds; were each job made in one
    /// piece, one of them might have the better state to itself.
    fn turns(&self, seconds: f64) -> usize {
        if !self.task.goes_on {
            let turns = seconds / (OLDER_TURN_SECONDS * self.loading.len() as f64);
            return (turns as usize).clamp(1, OLDER_MOST_TURNS);
        }
        let turns = seconds / self.turn_seconds();
        let at_last = constants().least_turns_at_last.max(self.task.least_turns);
        let least = if self.is_last { at_last } else { 1 };
        (turns as usize).min(constants().most_turns).max(least)
    }

    /// What all jobs of a turn take together, in seconds.
    fn turn_seconds(&self) -> f64 {
        constants().turn_seconds * self.loading.len() as f64
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
        let goes_on = self.is_last && self.task.goes_on;
        let seconds = if goes_on { self.seconds - self.kept_seconds() } else { self.seconds };
        let repeated = self.repeated((seconds, self.turns(seconds)), 0, &|_| true);
        let most = JOB_OVERRUN * self.seconds.max(repeated.expected_seconds);
        let mut turns = Vec::new();
        for turn in 0..repeated.plans[0].len() {
            let plans: Vec<&Plan> = repeated.plans.iter().map(|plans| &plans[turn]).collect();
            turns.push(self.turn(bench, turn, &plans, most)?);
        }
        if goes_on {
            self.go_on(bench, &mut turns, most)?;
        }
        Ok(self.gathered(&turns))
    }

    /// What of the last round's time is kept for further turns: nothing where it would go to starting jobs.
    fn kept_seconds(&self) -> f64 {
        let kept = (1.0 - constants().share_at_last) * self.seconds;
        let turn = self.turn_seconds() + self.starting_seconds();
        if kept < constants().least_further_turns * turn { 0.0 } else { kept }
    }

    /// What starting all jobs of a turn takes, in seconds.
    fn starting_seconds(&self) -> f64 {
        constants().start_seconds * self.loading.len() as f64
    }

    /// Each job once.
    fn turn<B: Bench>(
        &self,
        bench: &mut B,
        turn: usize,
        plans: &[&Plan],
        seconds: f64,
    ) -> Result<CallsByJob, B::Error> {
        let mut rows = vec![Vec::new(); plans.len()];
        for index in self.order(turn) {
            let plan = plans[index];
            if plan.visits.is_empty() {
                continue;
            }
            let (round, load) = (self.round, self.loading[index].map(LoadCandidate::load));
            let way = load.map(|load| load.way);
            let name = JobName::Confirming { round, turn: turn as u32 + 1, way };
            rows[index] = bench.run(&BenchJob { name, plan, load, seconds })?;
        }
        Ok(rows)
    }

    /// Further turns at the points where those so far leave it [open](harm::is_open) what is gained or
    /// harmed, as long as there is time.
    fn go_on<B: Bench>(
        &self,
        bench: &mut B,
        turns: &mut Vec<CallsByJob>,
        most: f64,
    ) -> Result<(), B::Error> {
        let mut left = self.seconds - self.gathered(turns).spent;
        let starting = self.starting_seconds();
        loop {
            let open = self.open(&self.gathered(turns));
            let seconds = self.turn_seconds().min(left - starting);
            if open.is_empty() || seconds <= 0.0 {
                break;
            }
            let number = turns.len();
            let further = self.repeated((seconds, 1), number, &|point| open.contains(&point));
            if further.expected_seconds > left - starting {
                break;
            }
            let plans: Vec<&Plan> = further.plans.iter().map(|plans| &plans[0]).collect();
            let turn = self.turn(bench, number, &plans, most)?;
            left -= starting + turn.iter().map(|rows| spent_seconds(rows)).sum::<f64>();
            turns.push(turn);
        }
        Ok(())
    }

    fn open(&self, round: &ConfirmingRound) -> BTreeSet<Point> {
        let of = |candidate: &LoadCandidate| -> Vec<Point> {
            let way = candidate.load().way;
            let points = candidate.replaced().map(|choice| choice.point);
            points.filter(|&point| harm::is_open(&round.turns_at(way, point))).collect()
        };
        self.loading.iter().flatten().flat_map(|candidate| of(candidate)).collect()
    }

    /// What all turns show together.
    fn gathered(&self, turns: &[CallsByJob]) -> ConfirmingRound {
        let mut round = ConfirmingRound::default();
        for (index, candidate) in self.loading.iter().enumerate() {
            let mut rows = Vec::new();
            turns.iter().for_each(|turn| append(&mut rows, turn[index].clone()));
            let turns = turns.iter().map(|turn| Samples::gather(&turn[index])).collect();
            let samples = Samples::gather(&rows);
            round.spent += spent_seconds(&rows);
            match candidate {
                None => (round.default, round.turns) = (samples, turns),
                Some(LoadCandidate { loading, .. }) => {
                    round.loaded.push(LoadedTimes { way: loading.way, samples, turns, rows });
                }
            }
        }
        round
    }

    /// The default, where it is replaced and at the controls, as often as fits in all jobs of a
    /// `seconds`, in so many turns: each job by what runs in it, which is short where what it replaces may be
    /// long. Points are left out for which `keep` says no.
    fn repeated(
        &self,
        (seconds, turns): (f64, usize),
        further: usize,
        keep: &dyn Fn(Point) -> bool,
    ) -> RepeatedPlan {
        let replaced = self.loading.iter().flatten().flat_map(|candidate| candidate.replaced());
        let controls = self.controls();
        let default: BTreeMap<Point, f64> = replaced
            .chain(controls.iter().copied())
            .map(|choice| (choice.point, choice.default_seconds))
            .filter(|(point, _)| keep(*point))
            .collect();
        let cell = |&Point { collective, layout, bytes }: &Point| Cell {
            collective,
            method: Method::Default,
            layout,
            bytes,
        };
        let cells: Vec<Cell> = default.keys().map(cell).collect();
        let of_calls = |candidate: &Option<&LoadCandidate>| {
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
        let of_calls: Vec<Vec<Option<f64>>> = self.loading.iter().map(of_calls).collect();
        let seed = self.task.seed.wrapping_add(self.round.into()).wrapping_add(further as u64);
        plan::repeat(&cells, &of_calls, self.task.ranks, seconds, (turns, seed))
    }

    /// Points at which no candidate replaces the default, so that all jobs run the same: what they
    /// differ by there is the machine's. Only short calls differ much from job to job.
    fn controls(&self) -> Vec<&TimedChoice> {
        let Some(first) = self.candidates.first() else { return Vec::new() };
        let is_left = |point: Point| {
            let mut replaced = self.candidates.iter().flat_map(LoadCandidate::replaced);
            replaced.all(|choice| choice.point != point)
        };
        let controls: Vec<&TimedChoice> = first
            .choices
            .iter()
            .filter(|of| of.default_seconds < constants().very_short_seconds && is_left(of.point))
            .collect();
        let every = controls.len().div_ceil(constants().most_controls).max(1);
        controls.into_iter().step_by(every).collect()
    }
}
