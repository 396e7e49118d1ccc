//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

mod round_jobs;
mod task;

use std::collections::BTreeMap;

use records::{
    Point,
    summary::{Gain, Loading},
    usage::Usage,
};
use verification::selection::TimedChoice;

pub use self::task::ConfirmingTask;
use self::{round_jobs::RoundJobs, task::TimeLeft};
use crate::{
    bench::{Bench, JobName},
    candidate::LoadCandidate,
    round::ConfirmingRound,
};

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

/// Loads what was chosen in jobs of its own, in two rounds: what is not faster is taken out, and what the
/// rest gains is told by the jobs of the second, which had no part in choosing, save that what they show to be
/// slower is taken out as well: what is told of the rest flatters by no more than that.
///
/// Where the time is too short for both there is the second alone. Where it is too short for that, the
/// points at which calls take longest are left out: what surely is faster there by what was measured stays, and
/// is not told as a gain.
///
/// # Errors
/// The bench's.
pub fn confirm<B: Bench>(
    bench: &mut B,
    task: &ConfirmingTask<'_>,
) -> Result<ConfirmedWays, B::Error> {
    let mut candidates: Vec<LoadCandidate> = task.ways.iter().map(LoadCandidate::new).collect();
    let mut time = TimeLeft { seconds: task.seconds, costs: task.costs };
    let mut last: Option<ConfirmingRound> = None;
    let rounds = rounds(bench, task, &candidates)?;
    for number in 1..=rounds {
        let is_last = number == rounds;
        // Half of the time at first, what is left of it then.
        let seconds = if is_last { time.seconds } else { time.seconds / f64::from(rounds) };
        let of_round = (number, is_last, seconds.max(0.0));
        let Some(jobs) = RoundJobs::new(task, of_round, &candidates) else { break };
        let round = jobs.run(bench, &mut time)?;
        for candidate in &mut candidates {
            candidate.take_out(&round, is_last);
        }
        last = Some(round);
    }
    Ok(ConfirmedWays { candidates, last })
}

/// Two where the time allows to call everything in a turn of the first and in the fewest of the second, or where
/// the second was begun before.
fn rounds<B: Bench>(
    bench: &mut B,
    task: &ConfirmingTask<'_>,
    candidates: &[LoadCandidate],
) -> Result<u32, B::Error> {
    if bench.planned(JobName::Confirming { round: 2, turn: 1, way: None })?.is_some() {
        return Ok(2);
    }
    let jobs = RoundJobs::new(task, (1, true, task.seconds), candidates);
    let fits = |jobs: RoundJobs<'_>| {
        let starts = jobs.starts_seconds(1 + jobs.least_turns(), &task.costs);
        starts + 2.0 * jobs.fewest_seconds(&task.costs) <= task.seconds
    };
    Ok(if jobs.is_some_and(fits) { 2 } else { 1 })
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
