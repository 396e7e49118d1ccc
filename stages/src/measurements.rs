//! What a run's jobs have timed: their plans and records, batch after batch.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use choosing::samples::Samples;
use records::{
    FileError, document, number,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan},
    reading,
    record::{self, Record},
};

use crate::progress::{self, ProgressGuard, WorkDone};
use site::run_directory::RunDirectory;
use tuning::JobTime;

/// The files of a batch: the first is `plan.json` with `measurements.csv`.
pub struct Files {
    pub plan: PathBuf,
    pub record: PathBuf,
    pub done: PathBuf,
}

/// The files of a batch by its number, from 1 on.
pub fn files(run: &RunDirectory, batch: usize) -> Files {
    let numbered = |name: &str, end: &str| run.file(&format!("{name}-{batch}.{end}"));
    match batch {
        1 => Files {
            plan: run.plan(),
            record: run.measurements(),
            done: run.file("measurements.done"),
        },
        _ => Files {
            plan: numbered("plan", "json"),
            record: numbered("measurements", "csv"),
            done: numbered("measurements", "done"),
        },
    }
}

/// How many batches were planned.
pub fn batches_planned(run: &RunDirectory) -> u32 {
    (1_u32..).take_while(|&batch| files(run, batch as usize).plan.exists()).count() as u32
}

/// A plan with its record.
pub struct RecordedPlan {
    /// Of the record's file.
    pub name: String,
    pub plan: Plan,
    pub record: Record<CollectiveCall>,
    /// What its job took, where that is known.
    pub took: Option<JobTime>,
}

impl RecordedPlan {
    /// Reads it from its files.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(files: &Files) -> Result<Self> {
        let record = record::read(&files.record)?;
        let name = record::name(&files.record);
        let took = match files.done.exists() {
            true => job_time(done_seconds(&files.done)?, &record),
            false => None,
        };
        Ok(RecordedPlan { name, plan: document::read(&files.plan)?, record, took })
    }
}

/// What a job took from its start to its end, in seconds, as it was written when it ended.
pub fn done_seconds(path: &Path) -> Result<f64> {
    let seconds = reading::text_file(path)?;
    let seconds = seconds.trim().parse().ok();
    let is_time = |seconds: &f64| *seconds >= 0.0 && number::check(*seconds).is_ok();
    Ok(seconds
        .filter(is_time)
        .ok_or_else(|| FileError::new(path, "expected the seconds that the job took, e.g. 5.25"))?)
}

/// The parts of what a job took from its start to its end, in seconds, by its record; nothing where the record does not
/// tell how long the visits took. Of a job that was killed and begun anew the record tells of more than `seconds`.
fn job_time(seconds: f64, record: &Record<CollectiveCall>) -> Option<JobTime> {
    let visits: f64 = record.stretches.iter().map(|stretch| stretch.seconds).sum();
    let waited = record.waited_seconds();
    let start = seconds - visits - waited;
    (visits > 0.0 && start > 0.0).then_some(JobTime { start, visits, waited })
}

/// Every batch of a run, in the order in which they were made.
///
/// # Errors
/// There is none, or one cannot be read.
pub fn batches(run: &RunDirectory) -> Result<Vec<RecordedPlan>> {
    let _shown = show_reading(run);
    let mut all = Vec::new();
    for batch in 1.. {
        let files = files(run, batch);
        if batch > 1 && !files.record.exists() {
            break;
        }
        all.push(RecordedPlan::read(&files)?);
    }
    Ok(all)
}

/// Shows how much of all batches is read.
fn show_reading(run: &RunDirectory) -> ProgressGuard {
    let sizes = (1..).map_while(|batch| fs::metadata(files(run, batch).record).ok());
    let (before, of) = (record::bytes_read(), sizes.map(|file| file.len()).sum());
    progress::show("reading", "bytes", move || {
        WorkDone::Part(record::bytes_read().saturating_sub(before).min(of), of)
    })
}

/// Everything that a run has timed.
pub struct Measurements {
    /// Of the first record.
    pub header: BTreeMap<String, String>,
    /// Of all plans, each once: with a greater budget further sizes were planned.
    pub cells: Vec<Cell>,
    /// What the plans asked for and the records do not hold.
    pub unreached: Vec<String>,
    pub samples: Samples,
    /// The samples job by job: each batch is one.
    pub jobs: Vec<Samples>,
}

impl Measurements {
    /// # Errors
    /// As [`batches`].
    pub fn read(run: &RunDirectory) -> Result<Self> {
        Ok(Self::of_batches(batches(run)?)?.0)
    }

    /// What was read, or made, batch by batch; with all calls in the order in which they were made.
    ///
    /// # Errors
    /// There is none.
    pub fn of_batches(batches: Vec<RecordedPlan>) -> Result<(Self, Vec<CollectiveCall>)> {
        let first = batches.first().context("the run has no measurements")?;
        let (header, cells) = (first.record.header.clone(), cells(&batches));
        let unreached = batches.iter().filter_map(unreached).collect();
        let jobs = batches
            .iter()
            .map(|batch| Samples::gather(&batch.record.rows, libraries::ran_as_asked))
            .collect();
        let rows: Vec<CollectiveCall> =
            batches.into_iter().flat_map(|batch| batch.record.rows).collect();
        let samples = Samples::gather(&rows, libraries::ran_as_asked);
        Ok((Measurements { header, cells, unreached, samples, jobs }, rows))
    }
}

fn cells(batches: &[RecordedPlan]) -> Vec<Cell> {
    let mut seen = BTreeSet::new();
    let all = batches.iter().flat_map(|batch| &batch.plan.cells);
    all.filter(|cell| seen.insert((cell.point, &cell.method))).cloned().collect()
}

fn unreached(RecordedPlan { plan, record, .. }: &RecordedPlan) -> Option<String> {
    let wanted: u64 = plan.visits.iter().map(|visit| u64::from(visit.repetitions)).sum();
    let counts = |row: &&CollectiveCall| {
        !matches!(row.status, ObservationStatus::Warmup | ObservationStatus::Disturbed)
    };
    let made = record.rows.iter().filter(counts).count() as u64;
    let disturbed =
        record.rows.iter().filter(|row| row.status == ObservationStatus::Disturbed).count();
    (made < wanted).then(|| match disturbed {
        0 => format!("{made} of {wanted} planned observations were made"),
        _ => format!(
            "{made} of {wanted} planned observations were made undisturbed; {disturbed} disturbed ones, \
             repetitions included, do not count"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("measurements-1.done");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            done_seconds(&path)
        };
        assert_eq!(read("5.25\n").unwrap(), 5.25);
        for text in ["inf", "1e400", "nan", "-1", "", "soon"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("expected the seconds"), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_job_took_is_told_apart_from_its_visits() {
        let stretch = |seconds: f64| {
            format!(
                "#@disturbance={{\"seconds\":{seconds},\"host\":\"n1\",\"processors\":2,\"ranks\":8,\
                 \"stolen\":null,\"others\":null,\"involuntary_switches\":0,\"load\":null}}\n"
            )
        };
        let record = |lines: &str| {
            let columns = <CollectiveCall as record::Row>::COLUMNS.join(",");
            let text = format!("#@schema=colibri/measurements/1\n{columns}\n{lines}");
            record::parse::<CollectiveCall>(&text, Path::new("measurements.csv")).unwrap()
        };
        let lines = format!("{}#@waited_seconds=2.000\n{}", stretch(3.0), stretch(1.5));
        let took = job_time(10.0, &record(&lines)).unwrap();
        assert_eq!((took.start, took.visits, took.waited), (3.5, 4.5, 2.0));
        assert_eq!(took.seconds(), 10.0);
        assert_eq!(job_time(5.0, &record(&lines)), None, "it was begun twice");
        assert_eq!(job_time(10.0, &record("")), None, "the record does not tell");
    }
}
