//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

mod round_jobs;
mod task;

use records::usage::Usage;

use self::round_jobs::RoundJobs;
pub use self::task::ConfirmingTask;
pub(crate) use self::task::TimeLeft;
pub use crate::candidate::ConfirmedWay;
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
    /// Seconds in which every point could have been confirmed in all ways.
    pub needed_seconds: f64,
}

/// What of the time the first of two rounds has: it drops what seems no faster, and the last alone confirms.
const FIRST_SHARE: f64 = 1.0 / 3.0;

/// Loads what was chosen in jobs of its own, in two rounds: what seems no faster is taken out, and what is left is
/// [confirmed](choosing::evidence) by the jobs of the second, which had no part in choosing. What they don't confirm is
/// left to the default.
///
/// Where the time is too short for both there is the second alone. Where it is too short for enough turns of that at all
/// points, those are tried that are expected to gain most for their time; where it is too short for any, no job
/// is started, and nothing is confirmed.
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
    let all = RoundJobs::of_all(task, &candidates);
    let mut needed_seconds = all.map_or(0.0, |jobs| jobs.needed_seconds(&task.costs));
    for number in 1..=rounds {
        let is_last = number == rounds;
        let seconds = if is_last { time.seconds } else { FIRST_SHARE * time.seconds };
        let seconds = seconds.max(0.0);
        let jobs = RoundJobs::new(task, number, is_last, seconds, &candidates, &time.costs);
        let Some(jobs) = jobs else { break };
        let (round, needed) = jobs.run(bench, &mut time)?;
        needed_seconds = needed_seconds.max(needed);
        match is_last {
            true => last = Some(round),
            false => candidates.iter_mut().for_each(|candidate| candidate.reject(&round)),
        }
    }
    Ok(ConfirmedWays { candidates, last, needed_seconds })
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
    let jobs = RoundJobs::of_all(task, candidates);
    let fits = |jobs: RoundJobs<'_>| {
        let first = jobs.starts_seconds(1, &task.costs) + jobs.visits_seconds(&task.costs);
        first <= FIRST_SHARE * task.seconds
            && jobs.needed_seconds(&task.costs) <= (1.0 - FIRST_SHARE) * task.seconds
    };
    Ok(if jobs.is_some_and(fits) { 2 } else { 1 })
}

impl ConfirmedWays {
    /// What the last jobs show of each way, with what a reader must know. `usage` is what the preload
    /// library saw.
    pub fn into_results(self, usage: Option<&Usage>) -> (Vec<ConfirmedWay>, Vec<String>) {
        let ConfirmedWays { candidates, last, .. } = self;
        let settled = candidates.into_iter().map(|one| one.settle(last.as_ref(), usage));
        let mut all: Vec<ConfirmedWay> = settled.collect();
        let told = all.iter_mut().flat_map(|way| std::mem::take(&mut way.warnings)).collect();
        (all, told)
    }
}
