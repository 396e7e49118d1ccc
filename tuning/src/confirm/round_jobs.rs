//! The jobs of a round that confirms: what each calls, in which turns.

use std::collections::{BTreeMap, BTreeSet};

use choosing::samples::{MethodTimes, Samples};
use records::{
    Method, Point,
    choices::Chosen,
    confirmed::MIN_PAIRS,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    summary::LoadWay,
};

use super::task::ConfirmingTask;
use crate::{
    bench::{Bench, BenchJob, JobName},
    candidate::{LoadCandidate, gain_of},
    constants::constants,
    costs::JobCosts,
    plan::{self, RepeatedPlan},
    round::{CallsByJob, RoundTimes},
    time_left::{JOB_OVERRUN, TimeLeft, job_order},
};

/// The jobs of a round as they are to be: the default by itself, and with each candidate loaded
/// that replaces it anywhere, all of them in several turns.
pub(super) struct RoundJobs<'a> {
    task: &'a ConfirmingTask,
    round: u32,
    candidates: &'a [LoadCandidate],
    loading: Vec<Option<&'a LoadCandidate>>,
    /// What they may take together, in seconds.
    seconds: f64,
    is_last: bool,
}

/// Share of the time that calls are planned for: what they take is an estimate.
const PLANNED_SHARE: f64 = 0.9;

/// What a call is worth that runs the default in all jobs, as if it gained a hundredth: it tells what jobs differ by.
const CONTROL_WORTH: f64 = 0.01;

/// What a way of loading is believed to gain at all points together.
fn expected_gain(candidate: &LoadCandidate) -> f64 {
    candidate.replaced().map(gain_of).sum()
}

impl<'a> RoundJobs<'a> {
    /// Nothing where nothing is to be confirmed, or by what jobs cost the time is too short to confirm anything. Ways of
    /// loading for which it is too short are left out, those first that are expected to gain least; none that has `begun`. By
    /// what was recorded these are the same ones again, so that a round that was killed goes on with its jobs.
    pub fn new(
        task: &'a ConfirmingTask,
        round: u32,
        is_last: bool,
        seconds: f64,
        candidates: &'a [LoadCandidate],
        costs: &JobCosts,
        begun: &[LoadWay],
    ) -> Option<Self> {
        let mut jobs = RoundJobs { round, seconds, is_last, ..Self::of_all(task, candidates)? };
        // Starting the jobs once more stands for the calls, of which there must be some.
        while jobs.starts_seconds(jobs.min_turns() + 1, costs) > seconds && is_last {
            let may_go = |way: &&LoadCandidate| !begun.contains(&way.loading.way);
            let all = jobs.loading.iter().enumerate();
            let gained = all
                .filter_map(|(place, way)| Some((place, way.filter(may_go).map(expected_gain)?)));
            let Some((least, _)) = gained.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { break };
            jobs.loading.remove(least);
            if jobs.loading.len() < 2 {
                return None;
            }
        }
        Some(jobs)
    }

    /// A last round of all that is to be confirmed, however long it takes; nothing where that is nothing.
    pub fn of_all(task: &'a ConfirmingTask, candidates: &'a [LoadCandidate]) -> Option<Self> {
        let to_load = candidates.iter().filter(|candidate| candidate.replaced().count() > 0);
        let loading: Vec<_> = std::iter::once(None).chain(to_load.map(Some)).collect();
        let seconds = f64::INFINITY;
        let jobs = RoundJobs { task, round: 1, candidates, loading, seconds, is_last: true };
        (jobs.loading.len() > 1).then_some(jobs)
    }

    /// The states that a machine passes through may last for many seconds; were each job made in one
    /// piece, one of them might have the better state to itself. No more than all points can take part in.
    fn turns(&self, seconds: f64, costs: &JobCosts) -> usize {
        let of_turn = self.starts_seconds(1, costs) + self.visits_seconds(costs);
        let turns = seconds / of_turn.max(self.turn_seconds());
        (turns as usize).min(constants().max_turns).max(self.min_turns())
    }

    /// Turns of the round at least.
    pub fn min_turns(&self) -> usize {
        let at_last = self.task.min_turns.max(MIN_PAIRS as usize);
        if self.is_last { at_last } else { 1 }
    }

    /// What a round takes that can confirm everything, in seconds; by what calls took in turns that were `seen`.
    fn needed_seconds_after(&self, costs: &JobCosts, seen: &[CallsByJob]) -> f64 {
        let visits: f64 = self.turn_of_points(costs, seen).into_values().sum();
        let turn = self.starts_seconds(1, costs) + visits;
        self.min_turns() as f64 * turn / PLANNED_SHARE
    }

    /// What a round takes that can confirm everything, in seconds, before any turn was seen.
    pub fn needed_seconds(&self, costs: &JobCosts) -> f64 {
        self.needed_seconds_after(costs, &[])
    }

    /// What the visits take that each point should have in every job of a turn, in seconds.
    pub fn visits_seconds(&self, costs: &JobCosts) -> f64 {
        self.turn_of_points(costs, &[]).into_values().sum()
    }

    /// What starting the jobs of so many turns takes, in seconds.
    pub fn starts_seconds(&self, turns: usize, costs: &JobCosts) -> f64 {
        (turns * self.loading.len()) as f64 * costs.start_seconds()
    }

    /// What all jobs of a turn take together at least, in seconds.
    fn turn_seconds(&self) -> f64 {
        constants().turn_seconds * self.loading.len() as f64
    }

    /// What each point takes of a turn in all jobs together, in seconds: short calls, which are noisy, are to be visited
    /// several times.
    fn turn_of_points(&self, costs: &JobCosts, seen: &[CallsByJob]) -> BTreeMap<Point, f64> {
        let mut all: BTreeMap<Point, f64> = BTreeMap::new();
        for (point, seconds) in self.times(seen).into_iter().flatten() {
            *all.entry(point).or_default() += costs.turn_seconds(point.procs(), seconds);
        }
        all
    }

    /// Of some points those that can be visited in so many turns of every job in so many seconds, as often as they should
    /// be: those first that are expected to gain most for what they take.
    fn points_within(
        &self,
        among: &dyn Fn(Point) -> bool,
        seconds: f64,
        turns: usize,
        costs: &JobCosts,
        seen: &[CallsByJob],
    ) -> BTreeSet<Point> {
        let mut left = seconds;
        let mut gains: BTreeMap<Point, f64> = BTreeMap::new();
        for (point, _, of_point) in self.loading.iter().flatten().flat_map(|one| one.timed()) {
            let gain = gains.entry(point).or_default();
            *gain = gain.max(of_point);
        }
        let worth = |point: &Point, seconds: f64| {
            // At controls nothing is gained; they are cheap.
            gains.get(point).copied().unwrap_or(CONTROL_WORTH) / seconds.max(f64::MIN_POSITIVE)
        };
        let all = self.turn_of_points(costs, seen).into_iter().filter(|(point, _)| among(*point));
        let mut points: Vec<(Point, f64)> = all.collect();
        points.sort_by(|(a, of_a), (b, of_b)| worth(b, *of_b).total_cmp(&worth(a, *of_a)));
        let fits = |(_, seconds): &(Point, f64)| {
            let needed = turns as f64 * seconds;
            let fits = needed <= left;
            left -= if fits { needed } else { 0.0 };
            fits
        };
        points.into_iter().filter(fits).map(|(point, _)| point).collect()
    }

    /// Runs the default's jobs and those of each way, turn after turn. Each turn is planned by what the calls took in those
    /// before: what is in the first is in all that are planned, as long as there is time. In the last round there are
    /// then further turns at the points at which those so far leave it open whether what is loaded is faster. Gives what they
    /// show, and the seconds in which everything could be confirmed, as it is known then.
    pub fn run<B: Bench>(
        &self,
        bench: &mut B,
        time: &mut TimeLeft,
    ) -> Result<(RoundTimes, f64), B::Error> {
        let kept = if self.is_last { self.kept_seconds(&time.costs) } else { 0.0 };
        let planned = self.turns(self.seconds - kept, &time.costs);
        let end = time.seconds - self.seconds;
        let mut points: BTreeSet<Point> =
            self.times(&[]).into_iter().flat_map(BTreeMap::into_keys).collect();
        let mut turns: Vec<CallsByJob> = Vec::new();
        let is_over = self.is_over(bench)?;
        loop {
            let left = time.seconds - end;
            let costs = &time.costs;
            let (keep, seconds) = match planned.checked_sub(turns.len()).filter(|more| *more > 0) {
                Some(more) => {
                    let starts = self.starts_seconds(more, &time.costs);
                    let fewest = self.min_turns().saturating_sub(turns.len()).max(1);
                    // What was begun is left out only if it takes much longer than was expected.
                    let share = if turns.is_empty() { PLANNED_SHARE } else { 1.0 };
                    let of_points = share * left - starts;
                    let is_kept = |point| points.contains(&point);
                    points = self.points_within(&is_kept, of_points, fewest, costs, &turns);
                    (points.clone(), (left - kept - starts).max(0.0) / more as f64)
                }
                None if self.is_last => {
                    let open = self.open(&self.gathered(&turns));
                    let starts = self.starts_seconds(1, &time.costs);
                    let seconds = left.min(self.turn_seconds()) - starts;
                    let of_points = PLANNED_SHARE * seconds;
                    let is_open = |point| open.contains(&point);
                    (self.points_within(&is_open, of_points, 1, costs, &turns), seconds)
                }
                None => break,
            };
            let plans = match self.planned(bench, turns.len())? {
                Some(planned) => planned,
                None if keep.is_empty() || is_over => break,
                None => self.repeated(seconds, &keep, &time.costs, &turns).plans,
            };
            turns.push(self.turn(bench, time, turns.len(), &plans)?);
        }
        Ok((self.gathered(&turns), self.needed_seconds_after(&time.costs, &turns)))
    }

    /// Whether the next round was begun: what it confirms follows from this one, which stays as it was, though there
    /// is more time now.
    fn is_over<B: Bench>(&self, bench: &mut B) -> Result<bool, B::Error> {
        let next = JobName::Confirming { round: self.round + 1, turn: 1, way: None };
        Ok(bench.planned(next)?.is_some())
    }

    /// What of the last round's time is kept for further turns: nothing where it would go to starting jobs, or all of it
    /// is needed for the first.
    fn kept_seconds(&self, costs: &JobCosts) -> f64 {
        let kept = (1.0 - constants().share_at_last) * self.seconds;
        let starts = self.starts_seconds(1, costs);
        let is_short = self.needed_seconds(costs) > self.seconds - kept;
        if is_short || kept < constants().min_further_starts * starts { 0.0 } else { kept }
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
        bench: &mut B,
        time: &mut TimeLeft,
        turn: usize,
        plans: &[Plan],
    ) -> Result<CallsByJob, B::Error> {
        let mut rows = vec![Vec::new(); plans.len()];
        for index in job_order(self.loading.len(), self.round as usize + turn + 1) {
            let plan = &plans[index];
            if plan.visits.is_empty() {
                continue;
            }
            let (name, load) =
                (self.name(turn, index), self.loading[index].map(LoadCandidate::load));
            let seconds = JOB_OVERRUN * self.seconds;
            rows[index] = time.run(bench, &BenchJob { name, plan, load, seconds })?;
        }
        Ok(rows)
    }

    fn open(&self, round: &RoundTimes) -> BTreeSet<Point> {
        self.loading.iter().flatten().flat_map(|candidate| candidate.open(round)).collect()
    }

    /// What all turns show together.
    fn gathered(&self, turns: &[CallsByJob]) -> RoundTimes {
        let ways = self.loading.iter().map(|one| one.map(|candidate| candidate.load().way));
        RoundTimes::of_turns(&ways.collect::<Vec<_>>(), turns)
    }

    /// What a call of each point takes in each job, in seconds: of the default, where it is replaced and at
    /// the controls, and with each candidate loaded. What replaces it may be much shorter. Where calls were seen in
    /// turns before, as long as these took.
    fn times(&self, seen: &[CallsByJob]) -> Vec<BTreeMap<Point, f64>> {
        let controls = self.controls();
        let default = |choice: &Chosen| (choice.point, choice.without_seconds());
        let of_controls = || controls.iter().map(|choice| default(choice));
        let of_calls = |(index, candidate): (usize, &Option<&LoadCandidate>)| {
            let mut times: BTreeMap<Point, f64> = match candidate {
                None => {
                    let timed = self.loading.iter().flatten().flat_map(|one| one.timed());
                    let timed = timed.map(|(point, [without, _], _)| (point, without));
                    timed.chain(of_controls()).collect()
                }
                Some(loaded) => {
                    let timed = loaded.timed().into_iter();
                    let timed = timed.map(|(point, [_, with], _)| (point, with));
                    timed.chain(of_controls()).collect()
                }
            };
            let rows: Vec<CollectiveCall> =
                seen.iter().flat_map(|turn| turn[index].iter().cloned()).collect();
            let samples = Samples::gather(&rows, libraries::ran_as_asked);
            for (point, seconds) in &mut times {
                let took = samples.get(*point, &Method::Default).and_then(MethodTimes::midmean);
                *seconds = took.filter(|took| *took > 0.0).unwrap_or(*seconds);
            }
            times
        };
        self.loading.iter().enumerate().map(of_calls).collect()
    }

    /// The default at these points, as often as fits in all jobs of a turn of `seconds`, starting them not counted, and once at
    /// least: each job by what runs in it.
    fn repeated(
        &self,
        seconds: f64,
        keep: &BTreeSet<Point>,
        costs: &JobCosts,
        seen: &[CallsByJob],
    ) -> RepeatedPlan {
        let times = self.times(seen);
        let cell = |&point: &Point| Cell { point, method: Method::Default };
        let cells: Vec<Cell> =
            times[0].keys().filter(|point| keep.contains(point)).map(cell).collect();
        let of_job = |times: &BTreeMap<Point, f64>| {
            cells.iter().map(|cell| times.get(&cell.point).copied()).collect()
        };
        let of_calls: Vec<Vec<Option<f64>>> = times.iter().map(of_job).collect();
        let seed = self.task.seed.wrapping_add(self.round.into()).wrapping_add(seen.len() as u64);
        plan::repeat(&cells, &of_calls, self.task.ranks, seconds, seed, costs)
    }

    /// Points at which no candidate replaces the default, so that all jobs run the same: what they
    /// differ by there is the machine's. Only short calls differ much from job to job.
    fn controls(&self) -> Vec<&Chosen> {
        let Some(first) = self.candidates.first() else { return Vec::new() };
        let is_left = |point| self.candidates.iter().all(|one| one.leaves_alone(point));
        let controls: Vec<&Chosen> = first
            .load()
            .choices
            .iter()
            .filter(|of| of.without_seconds() < constants().very_short_seconds && is_left(of.point))
            .collect();
        let every = controls.len().div_ceil(constants().max_controls).max(1);
        controls.into_iter().step_by(every).collect()
    }
}
