//! A tuning from the first batch to what is loaded in the end, on any bench.

use std::collections::BTreeMap;

use records::{
    Method, Point, choices::Chosen, observation::CollectiveCall, plan::Cell, summary::LoadWay,
};
use statistics::quantile;
use tuning::{
    Bench, JobCosts, JobTime, LoadCandidate, WayChoices, Weights,
    confirm::{self, ConfirmingTask},
    measure::{MeasuringTask, TuningMeasurements, run_batches, without_drift_samples},
    plan::Expectation,
    state::TuningState,
};

/// What starting a job takes, and what a call takes beside its own time by its processes, in seconds.
pub type BesideCalls = (f64, fn(u32) -> f64);

/// What a job took that made these calls.
pub fn job_time((start, beside): BesideCalls, rows: &[CollectiveCall]) -> JobTime {
    let of_call = |row: &CollectiveCall| row.seconds + beside(row.point.layout.procs());
    JobTime { start, visits: rows.iter().map(of_call).sum(), waited: 0.0 }
}

/// Choices, all of which can be loaded; `is_slower` says which methods must not be loaded at a point.
pub fn candidate(
    way: LoadWay,
    choices: Vec<Chosen>,
    is_slower: &dyn Fn(Point, &Method) -> bool,
) -> LoadCandidate {
    let chosen = WayChoices { choices, ..WayChoices::default() };
    LoadCandidate::new(way, "loaded".into(), chosen, &|_, method| Ok(method.clone()), is_slower)
}

/// What is to be tuned, and in which time.
pub struct TuningTask<'a> {
    pub cells: &'a [Cell],
    /// The same of sizes between theirs that are not measured.
    pub left_out: &'a [Cell],
    pub expected: Expectation<'a>,
    pub limits: &'a BTreeMap<Point, f64>,
    pub ranks: u32,
    /// Of jobs beside their calls, as it is expected.
    pub costs: JobCosts,
    pub measuring_seconds: f64,
    pub confirming_seconds: f64,
    pub seed: u64,
}

/// What it ends in.
pub struct Tuned {
    /// Every call of the focused measuring.
    pub rows: Vec<CollectiveCall>,
    pub known: TuningState,
    /// What measuring chose where the default was not seen: it may be confirmed, too.
    pub between: Vec<Chosen>,
    /// What confirming leaves.
    pub confirmed: LoadCandidate,
    /// Seconds in which all of what was chosen could be confirmed.
    pub needed_seconds: f64,
}

impl Tuned {
    /// What measuring chose.
    pub fn chosen(&self) -> Vec<Chosen> {
        self.known.beliefs.choices()
    }
}

pub fn tune<B: Bench>(bench: &mut B, task: &TuningTask<'_>) -> Result<Tuned, B::Error> {
    let &TuningTask { cells, expected, ranks, seed, .. } = task;
    let weights = &Weights::default();
    let seconds = task.measuring_seconds;
    let (limits, costs) = (task.limits, task.costs);
    let measuring = MeasuringTask {
        cells,
        expected,
        limits,
        weights,
        wanted: &[],
        ranks,
        costs,
        seconds,
        seed,
    };
    let TuningMeasurements { rows, costs } = run_batches(bench, &measuring)?;
    let all = [cells, task.left_out].concat();
    let seen = without_drift_samples(rows.clone());
    let known = |cells| TuningState::new(cells, expected, &seen).with_limits(limits);
    let believed = known(&all);
    let between = believed.beliefs.interpolated_choices(&|_, _| true);
    let known = known(cells);
    let mut choices = [known.beliefs.choices(), between.clone()].concat();
    choices.sort_by_key(|choice| choice.point);
    let is_slower =
        |point: Point, method: &Method| believed.beliefs.is_surely_slower(point, method);
    let candidate = candidate(LoadWay::Rules, choices, &is_slower);
    let confirming =
        ConfirmingTask { ranks, seconds: task.confirming_seconds, costs, min_turns: 1, seed };
    let (mut ways, needed_seconds) = confirm::run_jobs(bench, vec![candidate], &confirming)?;
    Ok(Tuned { rows, known, between, confirmed: ways.remove(0), needed_seconds })
}

/// Mean and 95th percentile.
pub fn mean_and_95th(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, quantile(values, 0.95).unwrap())
}
