//! The jobs of a round that confirms: what each calls, in which turns.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Method, Point,
    observation::CollectiveCall,
    plan::{Cell, Plan},
};
use verification::{harm, samples::Samples, selection::TimedChoice};

use super::task::{ConfirmingTask, TimeLeft};
use crate::{
    bench::{Bench, BenchJob, JobName},
    candidate::LoadCandidate,
    constants::constants,
    costs::{JobCosts, calls},
    plan::{self, RepeatedPlan},
    round::{ConfirmingRound, LoadedTimes},
};

/// How many times what the jobs of a round are expected to take one of them may: each of its points is seen
/// once in each, however short the time.
const JOB_OVERRUN: f64 = 2.0;

/// The jobs of a round as they are to be: the default by itself, and with each candidate loaded
/// that replaces it anywhere, all of them in several turns.
pub(super) struct RoundJobs<'a> {
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

/// Adds the rows of a job's next turn, as later visits.
fn append(rows: &mut Vec<CollectiveCall>, turn: Vec<CollectiveCall>) {
    let before = rows.iter().map(|row| row.visit + 1).max().unwrap_or(0);
    rows.extend(turn.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }));
}

impl<'a> RoundJobs<'a> {
    /// Nothing where nothing is to be confirmed.
    pub fn new(
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
    /// piece, one of them might have the better state to itself. Where the time is too short for all points in
    /// several turns there is one, of as many points as it allows.
    fn turns(&self, seconds: f64, costs: &JobCosts) -> usize {
        let least = self.least_turns();
        let visits = f64::max(1.0, least as f64 / f64::from(self.least_visits()));
        let needed = self.starts_seconds(least, costs) + visits * self.fewest_seconds(costs);
        if needed > self.seconds {
            return self.task.least_turns.max(1);
        }
        let turns = seconds / self.turn_seconds();
        (turns as usize).min(constants().most_turns).max(least)
    }

    /// Turns of the round at least.
    pub fn least_turns(&self) -> usize {
        let at_last = constants().least_turns_at_last.max(self.task.least_turns);
        if self.is_last { at_last } else { 1 }
    }

    /// What the fewest visits of each point in every job take, in seconds.
    pub fn fewest_seconds(&self, costs: &JobCosts) -> f64 {
        f64::from(self.least_visits()) * self.visit_seconds(costs).into_values().sum::<f64>()
    }

    /// Visits of each point at least: of the last round in each of the states that a bench goes through.
    fn least_visits(&self) -> u32 {
        if self.is_last { self.task.least_turns.max(1) as u32 } else { 1 }
    }

    /// What starting the jobs of so many turns takes, in seconds.
    pub fn starts_seconds(&self, turns: usize, costs: &JobCosts) -> f64 {
        (turns * self.loading.len()) as f64 * costs.start_seconds()
    }

    /// What all jobs of a turn take together at least, in seconds.
    fn turn_seconds(&self) -> f64 {
        constants().turn_seconds * self.loading.len() as f64
    }

    /// What a visit of each point costs in all jobs together, in seconds.
    fn visit_seconds(&self, costs: &JobCosts) -> BTreeMap<Point, f64> {
        let mut all: BTreeMap<Point, f64> = BTreeMap::new();
        for (point, seconds) in self.times().into_iter().flatten() {
            let visit = costs.visit_seconds(point.procs(), seconds, calls(seconds));
            *all.entry(point).or_default() += visit;
        }
        all
    }

    /// The points that can be visited as often as is needed in so many seconds in every job. Those at which it takes longest are left
    /// out; never ones that together take less than starting the jobs does.
    fn points_within(&self, seconds: f64, costs: &JobCosts) -> BTreeSet<Point> {
        let mut left = seconds.max(self.starts_seconds(1, costs));
        let mut points: Vec<(Point, f64)> = self.visit_seconds(costs).into_iter().collect();
        points.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let fits = |(_, seconds): &(Point, f64)| {
            left -= f64::from(self.least_visits()) * seconds;
            left >= 0.0
        };
        points.into_iter().take_while(fits).map(|(point, _)| point).collect()
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
    pub fn run<B: Bench>(
        &self,
        bench: &mut B,
        time: &mut TimeLeft,
    ) -> Result<ConfirmingRound, B::Error> {
        let seconds = self.seconds - if self.is_last { self.kept_seconds() } else { 0.0 };
        let turns = self.turns(seconds, &time.costs);
        let starts = self.starts_seconds(turns, &time.costs);
        let within = (seconds - starts).max(0.0);
        // Each point once comes before further turns.
        let points = self.points_within(self.seconds - starts, &time.costs);
        let keep = |point: Point| points.contains(&point);
        let least = self.least_visits();
        let repeated = self.repeated((within, turns, least), 0, (&keep, &time.costs));
        let most = JOB_OVERRUN * self.seconds.max(repeated.expected_seconds);
        let end = time.seconds - self.seconds;
        let mut turns = Vec::new();
        let is_over = self.is_over(bench)?;
        for turn in 0.. {
            let plans = match self.planned(bench, turn)? {
                Some(planned) => planned,
                None if turn >= repeated.plans[0].len() || is_over => break,
                None => repeated.plans.iter().map(|plans| plans[turn].clone()).collect(),
            };
            turns.push(self.turn((bench, time), turn, &plans, most)?);
        }
        if self.is_last {
            self.go_on((bench, time), &mut turns, (&points, end, most))?;
        }
        Ok(self.gathered(&turns))
    }

    /// Whether the next round was begun: what it confirms follows from this one, which stays as it was, though there
    /// is more time now.
    fn is_over<B: Bench>(&self, bench: &mut B) -> Result<bool, B::Error> {
        let next = JobName::Confirming { round: self.round + 1, turn: 1, way: None };
        Ok(bench.planned(next)?.is_some())
    }

    /// What of the last round's time is kept for further turns: nothing where it would go to starting jobs.
    fn kept_seconds(&self) -> f64 {
        let kept = (1.0 - constants().share_at_last) * self.seconds;
        if kept < constants().least_further_turns * self.turn_seconds() { 0.0 } else { kept }
    }

    /// The plans of a turn of which each job was begun before: they are completed as they were planned then. Those
    /// of a turn that was begun in part follow anew, and are the same, from what was recorded.
    fn planned<B: Bench>(&self, bench: &mut B, turn: usize) -> Result<Option<Vec<Plan>>, B::Error> {
        let all = 0..self.loading.len();
        let plans: Result<Vec<Option<Plan>>, B::Error> =
            all.map(|index| bench.planned(self.name(turn, index))).collect();
        Ok(plans?.into_iter().collect())
    }

    fn name(&self, turn: usize, index: usize) -> JobName {
        let way = self.loading[index].map(|candidate| candidate.load().way);
        JobName::Confirming { round: self.round, turn: turn as u32 + 1, way }
    }

    /// Each job once.
    fn turn<B: Bench>(
        &self,
        (bench, time): (&mut B, &mut TimeLeft),
        turn: usize,
        plans: &[Plan],
        seconds: f64,
    ) -> Result<CallsByJob, B::Error> {
        let mut rows = vec![Vec::new(); plans.len()];
        for index in self.order(turn) {
            let plan = &plans[index];
            if plan.visits.is_empty() {
                continue;
            }
            let (name, load) =
                (self.name(turn, index), self.loading[index].map(LoadCandidate::load));
            rows[index] = time.run(bench, &BenchJob { name, plan, load, seconds })?;
        }
        Ok(rows)
    }

    /// Further turns at the points where those so far leave it [open](harm::is_open) what is gained or
    /// harmed, as long as there is time.
    fn go_on<B: Bench>(
        &self,
        (bench, time): (&mut B, &mut TimeLeft),
        turns: &mut Vec<CallsByJob>,
        (points, end, most): (&BTreeSet<Point>, f64, f64),
    ) -> Result<(), B::Error> {
        loop {
            let mut open = self.open(&self.gathered(turns));
            open.retain(|point| points.contains(point));
            let left = time.seconds - end;
            let seconds = left.min(self.turn_seconds()) - self.starts_seconds(1, &time.costs);
            if open.is_empty() || seconds <= 0.0 {
                break;
            }
            let number = turns.len();
            let keep = |point: Point| open.contains(&point);
            let further = self.repeated((seconds, 1, 1), number, (&keep, &time.costs));
            if further.expected_seconds + self.starts_seconds(1, &time.costs) > left {
                break;
            }
            let plans: Vec<Plan> = further.plans.iter().map(|plans| plans[0].clone()).collect();
            let turn = self.turn((&mut *bench, &mut *time), number, &plans, most)?;
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
            match candidate {
                None => (round.default, round.turns) = (samples, turns),
                Some(LoadCandidate { loading, .. }) => {
                    round.loaded.push(LoadedTimes { way: loading.way, samples, turns, rows });
                }
            }
        }
        round
    }

    /// What a call of each point takes in each job, in seconds: of the default, where it is replaced and at
    /// the controls, and with each candidate loaded. What replaces it may be much shorter.
    fn times(&self) -> Vec<BTreeMap<Point, f64>> {
        let controls = self.controls();
        let default = |choice: &TimedChoice| (choice.point, choice.default_seconds);
        let of_controls = || controls.iter().map(|choice| default(choice));
        let of_calls = |candidate: &Option<&LoadCandidate>| match candidate {
            None => {
                let loaded = self.loading.iter().flatten();
                loaded.flat_map(|one| one.replaced().map(default)).chain(of_controls()).collect()
            }
            Some(loaded) => {
                let replaced = loaded.replaced().map(|choice| (choice.point, choice.seconds));
                replaced.chain(of_controls()).collect()
            }
        };
        self.loading.iter().map(of_calls).collect()
    }

    /// The default at the points for which `keep` says yes, as often as fits in all jobs of a round of
    /// `seconds`, starting them not counted, in so many turns, and so often at least: each job by what runs in it.
    fn repeated(
        &self,
        (seconds, turns, least): (f64, usize, u32),
        further: usize,
        (keep, costs): (&dyn Fn(Point) -> bool, &JobCosts),
    ) -> RepeatedPlan {
        let times = self.times();
        let cell = |&Point { collective, layout, bytes }: &Point| Cell {
            collective,
            method: Method::Default,
            layout,
            bytes,
        };
        let cells: Vec<Cell> = times[0].keys().filter(|point| keep(**point)).map(cell).collect();
        let of_job = |times: &BTreeMap<Point, f64>| {
            cells.iter().map(|cell| times.get(&cell.point()).copied()).collect()
        };
        let of_calls: Vec<Vec<Option<f64>>> = times.iter().map(of_job).collect();
        let seed = self.task.seed.wrapping_add(self.round.into()).wrapping_add(further as u64);
        plan::repeat(&cells, &of_calls, self.task.ranks, seconds, (turns, least, seed), costs)
    }

    /// Points at which no candidate replaces the default, so that all jobs run the same: what they
    /// differ by there is the machine's. Only short calls differ much from job to job.
    fn controls(&self) -> Vec<&TimedChoice> {
        let Some(first) = self.candidates.first() else { return Vec::new() };
        let is_left = |point| self.candidates.iter().all(|one| one.leaves_alone(point));
        let controls: Vec<&TimedChoice> = first
            .choices
            .iter()
            .filter(|of| of.default_seconds < constants().very_short_seconds && is_left(of.point))
            .collect();
        let every = controls.len().div_ceil(constants().most_controls).max(1);
        controls.into_iter().step_by(every).collect()
    }
}
