//! Point-to-point measurements in several jobs, within one budget.

mod fit;
mod wanted;

use std::{
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use records::{observation::PointToPoint, record};

use crate::headers;
use site::{ranks::Site, run_directory::RunDirectory};

pub use fit::fit;
pub use wanted::{CalibrationOptions, PRECISION};

/// Jobs to measure in: what the same message costs differs more between two starts of the launcher
/// than within one.
const JOBS: u32 = 4;
/// Of the budget, for starting them.
const STARTS_SHARE: f64 = 0.12;
/// Of what is left of the budget, for measuring, however long starting takes.
const LEAST: f64 = 0.5;
/// What a job takes to start and to end where that is not known yet.
const JOB_STARTUP: Duration = Duration::from_secs(1);

/// Whether there are the ranks that are wanted.
///
/// # Errors
/// There are fewer.
pub fn check(site: &Site, wanted: &CalibrationOptions) -> Result<()> {
    let (pair, needed, ranks) = (wanted.pair.to_string(), wanted.pair.ranks(), site.ranks());
    if needed > ranks {
        usage!(
            "the pair {pair} needs {needed} ranks, but {ranks} are to be started; give --ranks or \
             another --pair"
        );
    }
    Ok(())
}

/// Runs the jobs of a calibration one after the other, or goes on with them: they time into the run's observations.
///
/// `budget` is the time of all of them, those of an earlier run of this record included;
/// `starting` what a job takes beside the time that it counts itself, where that is known.
pub fn run_jobs(
    site: &Site,
    run: &RunDirectory,
    wanted: &CalibrationOptions,
    budget: Duration,
    starting: Option<Duration>,
) -> Result<()> {
    let mut starting = starting.unwrap_or(JOB_STARTUP);
    let jobs = jobs(budget, starting);
    let earlier = recorded_seconds(run)?;
    let mut counted = earlier;
    let begun = Instant::now();
    for number in first_job(earlier, budget, jobs)..jobs {
        let left = budget.saturating_sub(earlier + begun.elapsed());
        let ahead = jobs - number;
        let share = left.saturating_sub(starting * ahead).max(left.mul_f64(LEAST)) / ahead;
        let from = Instant::now();
        one_job(site, run, wanted, &CalibrationJob { number, of: jobs, until: counted + share })?;
        let before = counted;
        counted = recorded_seconds(run)?;
        starting = from.elapsed().saturating_sub(counted.saturating_sub(before));
    }
    Ok(())
}

/// As many jobs as can be started within their share of the budget.
fn jobs(budget: Duration, starting: Duration) -> u32 {
    let affordable = budget.as_secs_f64() * STARTS_SHARE / starting.as_secs_f64().max(1e-3);
    (affordable as u32).clamp(1, JOBS)
}

/// The job that was under way when so much of the budget had been spent.
fn first_job(spent: Duration, budget: Duration, jobs: u32) -> u32 {
    let passed = spent.as_secs_f64() / budget.as_secs_f64().max(1e-9) * f64::from(jobs);
    (passed as u32).min(jobs - 1)
}

/// The most seconds that the levels' records say were spent on all; 0 of records that are only begun.
pub fn recorded_seconds(run: &RunDirectory) -> Result<Duration> {
    let paths = [run.observations(), run.inside_observations()];
    let spent = paths.iter().map(|path| seconds_spent(path));
    Ok(spent.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or_default())
}

fn seconds_spent(path: &Path) -> Result<Duration> {
    if !path.exists() {
        return Ok(Duration::ZERO);
    }
    let header = record::read_begun::<PointToPoint>(path)?.header;
    match header.contains_key("spent_seconds") {
        true => headers::spent(&header, path),
        false => Ok(Duration::ZERO),
    }
}

/// One of the jobs that fill a record.
struct CalibrationJob {
    number: u32,
    of: u32,
    /// When the time counted in the record is so much, it ends.
    until: Duration,
}

fn one_job(
    site: &Site,
    run: &RunDirectory,
    wanted: &CalibrationOptions,
    job: &CalibrationJob,
) -> Result<()> {
    let sizes: Vec<String> = wanted.sizes.iter().map(u64::to_string).collect();
    // An exhausted budget is one that is said to be so, by the program.
    let until = job.until.as_secs_f64().max(1e-3);
    let mut arguments: Vec<OsString> = vec![
        "--record".into(),
        run.observations().into(),
        "--sizes".into(),
        sizes.join(",").into(),
        "--pair".into(),
        wanted.pair.to_string().into(),
        "--inside".into(),
        run.inside_observations().into(),
        "--budget-seconds".into(),
        until.to_string().into(),
        "--job".into(),
        job.number.to_string().into(),
        "--jobs".into(),
        job.of.to_string().into(),
        "--stop-by".into(),
        wanted.stop_by.name().into(),
        "--precision".into(),
        wanted.precision.to_string().into(),
        "--seed".into(),
        wanted.seed.to_string().into(),
    ];
    if wanted.groups {
        arguments.extend(["--groups".into(), run.groups().into()]);
        arguments.extend(["--inside-groups".into(), run.inside_groups().into()]);
    }
    site.run("calibrate", site.ranks(), &arguments, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_budget_holds_as_many_jobs_as_start_quickly_in_it() {
        assert_eq!(jobs(seconds(60), seconds(1)), JOBS);
        assert_eq!(jobs(seconds(20), seconds(1)), 2);
        assert_eq!(jobs(seconds(10), seconds(1)), 1);
        assert_eq!(jobs(seconds(60), seconds(10)), 1, "a slow launcher is started once");
        assert_eq!(jobs(seconds(1), Duration::ZERO), JOBS);
    }

    #[test]
    fn a_killed_run_goes_on_with_the_job_it_was_in() {
        let first = |spent| first_job(seconds(spent), seconds(60), 4);
        assert_eq!([0, 14, 16, 31, 59, 90].map(first), [0, 0, 1, 2, 3, 3]);
        assert_eq!(first_job(seconds(3), Duration::ZERO, 1), 0);
    }
}
