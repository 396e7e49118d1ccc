//! Measures what could still change a decision: batch after batch, each planned from what the
//! ones before it showed.

use std::collections::BTreeMap;

use choosing::{drift::without_drift, samples::Samples};
use records::{Point, observation::CollectiveCall, plan::Cell};

use crate::{
    Weights,
    bench::{Bench, BenchJob, JobName},
    constants::constants,
    costs::{JobCosts, spent_seconds},
    plan::Expectation,
    state::TuningState,
    time_left::TimeLeft,
};

/// What is to be measured, and in which time.
pub struct MeasuringTask<'a> {
    /// Every method at every point.
    pub cells: &'a [Cell],
    /// What the models say of them.
    pub expected: Expectation<'a>,
    /// Below how many seconds no method can get; see [`TuningState::with_limits`].
    pub limits: &'a BTreeMap<Point, f64>,
    /// How much each point matters.
    pub weights: &'a Weights,
    /// Cells, by index, that are to be seen at least once if there is time.
    pub wanted: &'a [u32],
    /// Ranks of a job.
    pub ranks: u32,
    /// What jobs cost beside their calls, as far as is known before the first.
    pub costs: JobCosts,
    /// What all jobs together may take, in seconds.
    pub seconds: f64,
    /// Of the order of the measurements.
    pub seed: u64,
}

/// What was measured.
pub struct TuningMeasurements {
    /// Every call, in the order in which they were made.
    pub rows: Vec<CollectiveCall>,
    /// What jobs cost beside their calls.
    pub costs: JobCosts,
}

/// Runs batch after batch until nothing is in doubt or the time is used up.
///
/// # Errors
/// The bench's.
pub fn run_batches<B: Bench>(
    bench: &mut B,
    task: &MeasuringTask<'_>,
) -> Result<TuningMeasurements, B::Error> {
    let mut rows = Vec::new();
    let mut time = TimeLeft { seconds: task.seconds, costs: task.costs };
    for number in 1.. {
        let name = JobName::Batch(number);
        let plan = match bench.planned(name)? {
            Some(plan) => plan,
            None => {
                let seen = without_drift_samples(rows.clone());
                let batch = TuningState::new(task.cells, task.expected, &seen)
                    .with_weights(task.weights.clone())
                    .with_limits(task.limits)
                    .with_wanted_cells(task.wanted.iter().copied())
                    .with_costs(time.costs)
                    .with_spent(task.seconds - time.seconds)
                    .next(time.seconds - time.costs.start_seconds());
                bench.receive_batch(number, &batch);
                if batch.visits.is_empty() {
                    break;
                }
                let seed = task.seed.wrapping_add(number.into());
                batch.plan(task.cells.to_vec(), task.ranks, seed)
            }
        };
        let seconds = time.seconds.max(time.costs.start_seconds());
        let job = BenchJob { name, plan: &plan, load: None, seconds };
        rows.extend(time.run(bench, &job)?);
    }
    Ok(TuningMeasurements { rows, costs: time.costs })
}

/// What measuring takes at least, in seconds: a job's start, and the time of which the shortest batch is a share.
pub fn min_seconds(costs: JobCosts) -> f64 {
    costs.start_seconds() + constants().min_batch_seconds / constants().batch_share
}

/// The samples of all calls that were made, in their order, without what the machine's state of the moment added to them.
pub fn without_drift_samples(rows: Vec<CollectiveCall>) -> Samples {
    let calm = without_drift(rows, libraries::ran_as_asked, spent_seconds);
    Samples::gather(&calm, libraries::ran_as_asked)
}
