//! What `export --record` writes in other tools' forms is imported again as it was.

use std::{
    fs,
    path::{Path, PathBuf},
};

use records::{Point, observation::ObservationStatus};

use crate::{
    importing::{calls, imported, pico, sample, text},
    support::run,
};

/// What a cell's calls were: enough to tell whether a record came back as it was.
type TimedCalls = Vec<(Point, String, String, ObservationStatus)>;

/// Every call of every job of a run, without the order of the jobs.
fn timed_calls(run: &Path) -> TimedCalls {
    let numbered = (2..).map(|job| format!("measurements-{job}.csv"));
    let names = std::iter::once("measurements.csv".to_owned()).chain(numbered);
    let records = names.take_while(|name| run.join(name).exists()).flat_map(|name| {
        let record = calls(run, &name);
        let job = record.header["job"].clone();
        record.rows.into_iter().map(move |row| {
            let seconds = format!("{:.6e} {job}", row.seconds);
            (row.point, row.method.to_string(), seconds, row.status)
        })
    });
    let mut all: TimedCalls = records.collect();
    all.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
    all
}

/// Exports a run and imports all the files again.
fn there_and_back(run_directory: &Path, form: &str, flags: &[&str]) -> TimedCalls {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    run(0, &["export", text(run_directory), "--record", form, "--output", text(&files)]);
    let written = fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path());
    let mut written: Vec<PathBuf> =
        written.filter(|path| !text(path).ends_with(".job.sh")).collect();
    written.sort();
    timed_calls(&imported(folder.path(), form, &written, flags).0)
}

#[test]
fn records_come_back_from_other_tools_forms_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "mare-nostrum-5");
    let (summaries, _) = imported(folder.path(), "pico", &[file], &[]);
    for form in ["csv", "reprompi"] {
        assert_eq!(there_and_back(&summaries, form, &[]), timed_calls(&summaries), "{form}");
    }
    let (_, stderr) = run(1, &["export", text(&summaries), "--record", "osu"]);
    assert!(stderr.contains("holds medians, but OSU's tables hold means"), "{stderr}");
    assert!(!summaries.join("osu").exists());

    let other = tempfile::tempdir().unwrap();
    let file = sample("reprompi/runtimes-made-up.txt");
    let (repetitions, _) = imported(other.path(), "reprompi", &[file], &[]);
    assert_eq!(there_and_back(&repetitions, "reprompi", &[]), timed_calls(&repetitions));

    let osu = tempfile::tempdir().unwrap();
    let names = ["allreduce", "allgather", "alltoall"];
    let files = names.map(|name| sample(&format!("osu/omb-Osu_{name}.txt")));
    let (means, _) = imported(osu.path(), "osu", &files, &[]);
    let without_job = |calls: TimedCalls| -> TimedCalls {
        let short = |seconds: String| seconds.split(' ').next().unwrap().to_owned();
        let calls = calls.into_iter();
        calls.map(|(a, b, seconds, c)| (a, b, short(seconds), c)).collect()
    };
    // A file is a job to OSU.
    assert_eq!(without_job(there_and_back(&means, "osu", &[])), without_job(timed_calls(&means)));
    // What is there is not written over.
    run(0, &["export", text(&means), "--record", "csv"]);
    let (_, stderr) = run(1, &["export", text(&means), "--record", "csv"]);
    assert!(stderr.contains("already exists"), "{stderr}");
}
