//! Times again what was chosen, long after: pairs of jobs, one without anything loaded and one with the choices loaded,
//! in turns, as the jobs that confirm.

use std::collections::{BTreeMap, BTreeSet};

use choosing::pairs::PairedTimes;
use records::{
    Method, Point,
    choices::Chosen,
    confirmed::MIN_PAIRS,
    plan::{Cell, Plan},
    summary::LoadWay,
    usage::Usage,
};

use crate::{
    bench::{Bench, BenchJob, JobName, Load},
    candidate::{LoadCandidate, WayChoices, gain_of},
    costs::JobCosts,
    plan,
    round::{CallsByJob, RoundTimes},
    time_left::{JOB_OVERRUN, TimeLeft, job_order},
};

/// What is to be timed again, and in which time.
pub struct CheckingTask<'a> {
    /// How the choices are loaded.
    pub way: LoadWay,
    /// What is loaded, relative to the run's directory.
    pub file: &'a str,
    /// At every point.
    pub choices: &'a [Chosen],
    /// What to time of it if there is time, and at which points that are left to the default; each once.
    pub points: &'a [Chosen],
    /// Ranks of a job.
    pub ranks: u32,
    /// What all jobs together may take, starting them included, in seconds.
    pub seconds: f64,
    /// What jobs cost beside their calls, as it is expected.
    pub costs: JobCosts,
    /// Of the order of the measurements.
    pub seed: u64,
}

/// What the pairs of jobs made.
pub struct CheckedPairs {
    way: LoadWay,
    candidate: LoadCandidate,
    round: RoundTimes,
    points: Vec<Chosen>,
}

/// Turns for which time is looked for: with fewer, points are left out, unless none would be left. Student's t of six pairs has five degrees of
/// freedom; of three pairs two, with which only what is far off is significant among many points.
const WANTED_TURNS: usize = 6;
/// Turns at most: further ones narrow the intervals by less than a twentieth each.
const MAX_TURNS: usize = 12;
/// Share of the time that calls are planned for: what they take is an estimate.
const PLANNED_SHARE: f64 = 0.8;
/// Share of that for points at which something is loaded, before those at which nothing is.
const LOADED_SHARE: f64 = 0.85;
/// Jobs of a turn.
const JOBS: f64 = 2.0;
/// What is loaded in the jobs: the first runs as it is.
const WITHOUT: usize = 0;

/// What a point takes of a turn in both jobs, in seconds.
fn turn_seconds(choice: &Chosen, costs: &JobCosts) -> f64 {
    let of_job = |seconds: f64| costs.turn_seconds(choice.point.procs(), seconds);
    of_job(choice.without_seconds()) + of_job(choice.seconds)
}

/// Of these points those that can be visited in so many seconds in so many turns: of each collective and layout the one first that gains
/// most for its time, and then all others in this order.
fn within<'c>(
    points: impl Iterator<Item = &'c Chosen>,
    seconds: f64,
    turns: usize,
    costs: &JobCosts,
) -> (Vec<&'c Chosen>, f64) {
    let mut order: Vec<(&Chosen, f64)> =
        points.map(|choice| (choice, turns as f64 * turn_seconds(choice, costs))).collect();
    let worth = |(choice, takes): &(&Chosen, f64)| gain_of(choice) / takes;
    // Where nothing is gained the shortest come first.
    order.sort_by(|one, other| worth(other).total_cmp(&worth(one)).then(one.1.total_cmp(&other.1)));
    let mut lines = BTreeMap::new();
    let mut of_line: Vec<(u32, &Chosen, f64)> = Vec::new();
    for (choice, takes) in order {
        let before = lines.entry(choice.point.line()).or_insert(0_u32);
        of_line.push(((*before).min(1), choice, takes));
        *before += 1;
    }
    of_line.sort_by_key(|(before, ..)| *before);
    let mut left = seconds;
    let fits = |(_, choice, takes): (u32, &'c Chosen, f64)| {
        let fits = takes <= left;
        left -= if fits { takes } else { 0.0 };
        fits.then_some(choice)
    };
    let fitting = of_line.into_iter().filter_map(fits).collect();
    (fitting, left)
}

/// The points that are timed within the time, ascending.
fn timed(task: &CheckingTask<'_>) -> Vec<Chosen> {
    let within = [WANTED_TURNS, MIN_PAIRS as usize].map(|turns| timed_in(turns, task));
    within.into_iter().find(|points| !points.is_empty()).unwrap_or_default()
}

/// The choices that can be timed in so many turns at least.
fn timed_in(turns: usize, task: &CheckingTask<'_>) -> Vec<Chosen> {
    let starts = turns as f64 * JOBS * task.costs.start_seconds();
    let seconds = PLANNED_SHARE * (task.seconds - starts).max(0.0);
    let is_loaded = |choice: &&Chosen| choice.method != Method::Default;
    let loaded = task.points.iter().filter(is_loaded);
    let (mut timed, left) = within(loaded, LOADED_SHARE * seconds, turns, &task.costs);
    let others = task.points.iter().filter(|choice| !is_loaded(choice));
    let left = left + (1.0 - LOADED_SHARE) * seconds;
    timed.extend(within(others, left, turns, &task.costs).0);
    let timed: BTreeSet<Point> = timed.into_iter().map(|choice| choice.point).collect();
    let mut points: Vec<Chosen> =
        task.points.iter().filter(|choice| timed.contains(&choice.point)).cloned().collect();
    points.sort_by_key(|choice| choice.point);
    points
}

/// Starts pairs of jobs until the time is over, or there are enough; three at least, so that anything can be concluded.
///
/// # Errors
/// The bench's.
pub fn check<B: Bench>(bench: &mut B, task: &CheckingTask<'_>) -> Result<CheckedPairs, B::Error> {
    let way = task.way;
    let loaded = |_: Point, method: &Method| Ok(method.clone());
    let chosen = WayChoices { choices: task.choices.to_vec(), ..WayChoices::default() };
    let candidate = LoadCandidate::new(way, task.file.into(), chosen, &loaded, &|_, _| false);
    let points = timed(task);
    let mut time = TimeLeft { seconds: task.seconds, costs: task.costs };
    let mut turns: Vec<CallsByJob> = Vec::new();
    while !points.is_empty() && turns.len() < MAX_TURNS {
        let starts = JOBS * time.costs.start_seconds();
        let visits: f64 = points.iter().map(|choice| turn_seconds(choice, &time.costs)).sum();
        let needed = starts + visits;
        let further = (time.seconds / needed) as usize;
        let fewest = (MIN_PAIRS as usize).saturating_sub(turns.len());
        if further == 0 && fewest == 0 {
            break;
        }
        let more = further.max(fewest).min(MAX_TURNS - turns.len()).max(1);
        let seconds = (time.seconds / more as f64 - starts).max(0.0);
        let plans = plans(&points, PLANNED_SHARE * seconds, turns.len(), task, &time.costs);
        let limit = JOB_OVERRUN * needed.max(time.seconds / more as f64);
        let turn = turn(bench, &mut time, turns.len(), &plans, candidate.load(), limit)?;
        turns.push(turn);
    }
    let round = RoundTimes::of_turns(&[None, Some(way)], &turns);
    Ok(CheckedPairs { way, candidate, round, points })
}

/// The default at all points, as often as fits in both jobs of a turn, and once at least.
fn plans(
    points: &[Chosen],
    seconds: f64,
    turn: usize,
    task: &CheckingTask<'_>,
    costs: &JobCosts,
) -> Vec<Plan> {
    let cell = |choice: &Chosen| Cell { point: choice.point, method: Method::Default };
    let cells: Vec<Cell> = points.iter().map(cell).collect();
    let without = points.iter().map(|choice| Some(choice.without_seconds())).collect();
    let with = points.iter().map(|choice| Some(choice.seconds)).collect();
    let seed = task.seed.wrapping_add(turn as u64);
    plan::repeat(&cells, &[without, with], task.ranks, seconds, seed, costs).plans
}

/// Both jobs once.
fn turn<B: Bench>(
    bench: &mut B,
    time: &mut TimeLeft,
    turn: usize,
    plans: &[Plan],
    load: Load<'_>,
    seconds: f64,
) -> Result<CallsByJob, B::Error> {
    let mut rows = vec![Vec::new(); plans.len()];
    for index in job_order(plans.len(), turn) {
        let load = (index != WITHOUT).then_some(load);
        let way = load.map(|load| load.way);
        let name = JobName::Confirming { round: 1, turn: turn as u32 + 1, way };
        rows[index] = time.run(bench, &BenchJob { name, plan: &plans[index], load, seconds })?;
    }
    Ok(rows)
}

impl CheckedPairs {
    /// The points that were timed, ascending.
    pub fn points(&self) -> &[Chosen] {
        &self.points
    }

    /// Pairs of jobs.
    pub fn count(&self) -> usize {
        self.round.turns.len()
    }

    /// What was seen of each point that was timed, in the same order.
    pub fn timed(&self) -> Vec<PairedTimes> {
        self.points.iter().map(|choice| self.round.paired(self.way, choice)).collect()
    }

    /// The default's time at a point without and with the choices loaded, in seconds: midmeans over the pairs of jobs;
    /// nothing where others disturbed each of them.
    pub fn times(&self, point: Point) -> Option<(f64, f64)> {
        self.round.times(self.way, point)
    }

    /// Calls of which it was seen what ran, and those that ran what was chosen; `usage` is what the preload library
    /// saw.
    pub fn ran_as_selected(&self, usage: Option<&Usage>) -> (u64, u64) {
        match self.way {
            LoadWay::Rules | LoadWay::Both => self.candidate.ran_by_rules(&self.round),
            LoadWay::Preload => usage.map_or((0, 0), |usage| self.candidate.ran_by_profiles(usage)),
        }
    }
}

#[cfg(test)]
mod tests {
    use records::{Collective, observation::CollectiveCall, record};

    use super::*;
    use crate::bench::FinishedJob;

    /// Calls take what they are said to, but those with something loaded at this size, which take thrice that.
    struct MadeUp {
        slow: u64,
        jobs: Vec<(Option<LoadWay>, usize)>,
    }

    impl Bench for MadeUp {
        type Error = String;

        fn run(&mut self, job: &BenchJob<'_>) -> Result<FinishedJob, String> {
            let JobName::Confirming { way, turn, .. } = job.name else {
                return Err("no batch".into());
            };
            self.jobs.push((way, job.plan.cells.len()));
            let mut lines = String::new();
            for (index, visit) in job.plan.visits.iter().enumerate() {
                let point = job.plan.cells[visit.cell as usize].point;
                let factor = match way {
                    Some(_) if point.bytes == self.slow => 3.0,
                    Some(_) => 0.5,
                    None => 1.0,
                };
                let strays = 1.0 + 0.001 * f64::from((turn * 7 + visit.cell * 3) % 5);
                let seconds = factor * strays * 1e-3;
                let bytes = point.bytes;
                lines += &format!("{index},bcast,default,,8,{bytes},0,0,0,{seconds},ok\n");
            }
            let columns = <CollectiveCall as record::Row>::COLUMNS;
            let schema = <CollectiveCall as record::Row>::SCHEMA;
            let text = format!("#@schema={schema}\n{}\n{lines}", columns.join(","));
            let parsed = record::parse::<CollectiveCall>(&text, "record.csv".as_ref());
            let rows = parsed.map_err(|error| error.to_string())?.rows;
            Ok(FinishedJob { rows, took: None })
        }
    }

    fn choices() -> Vec<Chosen> {
        let choice = |power: u32| {
            let point = Point::flat(Collective::Bcast, 8, 1 << power);
            let method = if power < 2 { "default" } else { "own:binomial" };
            let seconds = if power < 2 { 1e-3 } else { 5e-4 };
            Chosen::measured(point, method.parse().unwrap(), seconds, 1e-3)
        };
        (0..8).map(choice).collect()
    }

    fn checked(seconds: f64, bench: &mut MadeUp) -> CheckedPairs {
        let choices = choices();
        let costs = JobCosts::expected(1e-5);
        let task = CheckingTask {
            way: LoadWay::Preload,
            file: "profiles",
            choices: &choices,
            points: &choices,
            ranks: 8,
            seconds,
            costs,
            seed: 1,
        };
        check(bench, &task).unwrap()
    }

    #[test]
    fn jobs_come_in_pairs_that_time_all_points_and_find_the_slow_one() {
        let mut bench = MadeUp { slow: 16, jobs: Vec::new() };
        let pairs = checked(60.0, &mut bench);
        assert_eq!(pairs.points().len(), 8);
        assert!((6..=MAX_TURNS).contains(&pairs.count()), "{}", pairs.count());
        let ways: Vec<bool> = bench.jobs.iter().map(|(way, _)| way.is_some()).collect();
        assert_eq!(ways[..4], [false, true, true, false]);
        let timed = pairs.timed();
        assert!(timed.iter().all(|one| one.turns.len() == pairs.count()), "{timed:?}");
        let (default, loaded) = pairs.times(timed[4].point).unwrap();
        assert!((loaded / default - 3.0).abs() < 0.1, "{default} {loaded}");
    }

    #[test]
    fn a_short_time_leaves_points_out_and_still_makes_three_pairs() {
        let mut bench = MadeUp { slow: 0, jobs: Vec::new() };
        let pairs = checked(0.5, &mut bench);
        assert!(pairs.points().is_empty() && pairs.count() == 0 && bench.jobs.is_empty());
        let starts = WANTED_TURNS as f64 * JOBS * JobCosts::expected(1e-5).start_seconds();
        let pairs = checked(starts + 0.5, &mut bench);
        let loaded = pairs.points().iter().filter(|one| one.method != Method::Default).count();
        assert!((1..6).contains(&loaded) && pairs.count() >= 3, "{loaded}, {}", pairs.count());
        // There is time for half of the turns alone.
        let pairs = checked(0.5 * starts + 2.0, &mut bench);
        assert!(!pairs.points().is_empty() && pairs.count() >= 3, "{}", pairs.count());
    }
}
