//! What the jobs of a run have taken so far.

use std::{fs, path::Path, time::Duration};

use anyhow::Result;
use records::{FileError, observation::CollectiveCall, reading, record};

use crate::calibrating;
use site::run_directory::RunDirectory;

/// What calibrating, measuring and confirming have taken.
///
/// # Errors
/// A record cannot be read.
pub fn by_tuning(run: &RunDirectory) -> Result<Duration> {
    let jobs = by_jobs(run, "measurements")? + by_jobs(run, "confirmation-")?;
    Ok(calibrating::recorded_seconds(run)? + jobs)
}

/// What the jobs have taken whose records' names begin so.
///
/// # Errors
/// A record cannot be read.
pub fn by_jobs(run: &RunDirectory, beginning: &str) -> Result<Duration> {
    let mut all = Duration::ZERO;
    let fault = |error: &std::io::Error| FileError::io(run.path(), "read the directory", error);
    for entry in fs::read_dir(run.path()).map_err(|error| fault(&error))? {
        let path = entry.map_err(|error| fault(&error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A part's calls stand in the whole record, too.
        let is_whole = name.starts_with(beginning) && !name.contains(".part-");
        if is_whole && name.ends_with(".csv") {
            all += by_job(&path)?;
        }
    }
    Ok(all)
}

/// From its start to its end, where that was written down: of a job that was killed, as of one of `verify`,
/// its visits, and waiting for others to leave the processors alone.
fn by_job(record: &Path) -> Result<Duration> {
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let whole = reading::text(&record.with_extension("done")).ok();
    let whole = whole.and_then(|text| duration(text.trim().parse().ok()?));
    if let Some(whole) = whole {
        return Ok(whole);
    }
    let record = record::read::<CollectiveCall>(record)?;
    let visits: f64 = record.stretches.iter().map(|stretch| stretch.seconds).sum();
    Ok(duration(visits + record.waited_seconds()).unwrap_or_default())
}
