//! What the jobs of a run have taken so far.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use records::{observation::CollectiveCall, record};

use crate::{calibrating, measurements};
use site::run_directory::RunDirectory;

/// How the names of the records of timed collectives begin: those of measurements, and of what confirmed them.
pub const TIMED: [&str; 2] = ["measurements", "confirmation-"];

/// What calibrating, measuring and confirming have taken.
///
/// # Errors
/// A record cannot be read.
pub fn by_tuning(run: &RunDirectory) -> Result<Duration> {
    Ok(calibrating::recorded_seconds(run)? + by_jobs(run, &TIMED)?)
}

/// What the jobs have taken whose records' names begin so.
///
/// # Errors
/// A record cannot be read.
pub fn by_jobs(run: &RunDirectory, beginnings: &[&str]) -> Result<Duration> {
    // A part's calls stand in the whole record, too.
    let name =
        |record: &Path| record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_whole = |record: &&PathBuf| !name(record).contains(".part-");
    run.records(beginnings)?.iter().filter(is_whole).map(|record| by_job(record)).sum()
}

/// From its start to its end, where that was written down: of a job that was killed, as of one of `verify`,
/// its visits, and waiting for others to leave the processors alone.
fn by_job(record: &Path) -> Result<Duration> {
    let done = record.with_extension("done");
    if done.exists() {
        return Ok(Duration::from_secs_f64(measurements::done_seconds(&done)?));
    }
    let record = record::read::<CollectiveCall>(record)?;
    let visits: f64 = record.stretches.iter().map(|stretch| stretch.seconds).sum();
    Ok(Duration::try_from_secs_f64(visits + record.waited_seconds()).unwrap_or_default())
}
