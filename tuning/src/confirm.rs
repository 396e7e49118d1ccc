//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

mod round_jobs;
mod task;

use self::round_jobs::RoundJobs;
pub use self::task::ConfirmingTask;
use crate::{
    bench::{Bench, JobName},
    candidate::LoadCandidate,
    round::RoundTimes,
    time_left::TimeLeft,
};

/// What of the time the first of two rounds has: it drops what seems no faster, and the last alone confirms.
const FIRST_SHARE: f64 = 1.0 / 3.0;

/// Loads what was chosen in jobs of its own, in two rounds: what seems no faster is taken out, and what is left is
/// [confirmed](choosing::evidence) by the jobs of the second, which had no part in choosing. What they don't confirm is
/// left to the default.
///
/// Where the time is too short for both there is the second alone. Where it is too short for enough turns of that at all
/// points, those are tried that are expected to gain most for their time; where it is too short for any, no job
/// is started, and nothing is confirmed. Tells in how many seconds every point could have been confirmed in all ways.
///
/// # Errors
/// The bench's.
pub fn run_jobs<B: Bench>(
    bench: &mut B,
    mut candidates: Vec<LoadCandidate>,
    task: &ConfirmingTask,
) -> Result<(Vec<LoadCandidate>, f64), B::Error> {
    let mut time = TimeLeft { seconds: task.seconds, costs: task.costs };
    let mut last: Option<RoundTimes> = None;
    let rounds = rounds(bench, task, &candidates)?;
    let all = RoundJobs::of_all(task, &candidates);
    let mut needed_seconds = all.map_or(0.0, |jobs| jobs.needed_seconds(&task.costs));
    for number in 1..=rounds {
        let is_last = number == rounds;
        let seconds = if is_last { time.seconds } else { FIRST_SHARE * time.seconds };
        let seconds = seconds.max(0.0);
        let mut begun = Vec::new();
        for way in candidates.iter().map(|candidate| candidate.loading.way) {
            let first = JobName::Confirming { round: number, turn: 1, way: Some(way) };
            if bench.planned(first)?.is_some() {
                begun.push(way);
            }
        }
        let jobs = RoundJobs::new(task, number, is_last, seconds, &candidates, &time.costs, &begun);
        let Some(jobs) = jobs else { break };
        let (round, needed) = jobs.run(bench, &mut time)?;
        needed_seconds = needed_seconds.max(needed);
        match is_last {
            true => last = Some(round),
            false => candidates.iter_mut().for_each(|candidate| candidate.reject(&round)),
        }
    }
    let usage = bench.usage()?;
    let concluded = candidates.into_iter().map(|one| one.conclude(last.as_ref(), usage.as_ref()));
    Ok((concluded.collect(), needed_seconds))
}

/// Two where the time allows to call everything in a turn of the first and in the fewest of the second, or where
/// the second was begun before.
fn rounds<B: Bench>(
    bench: &mut B,
    task: &ConfirmingTask,
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
