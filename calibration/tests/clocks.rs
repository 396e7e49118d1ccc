//! `colibri-mpi clocks` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::path::Path;

use common::{Mpi, assert_success};
use records::{observation::ClockError, platform::Platform, record};

const TASK: &str = "clocks";

fn args(ranks: u32, record: &Path, further: &[&str]) -> Vec<String> {
    let (ranks, record) = (ranks.to_string(), record.display().to_string());
    ["--ranks", &ranks, "--record", &record, "--seconds", "1"]
        .into_iter()
        .chain(further.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// The clocks are up to 6 ms apart and go apart by up to 40 us a second; what is left is what
/// this machine delays messages by: little at the median, and not more than round trips take.
#[test]
fn false_clocks_are_brought_together() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    for ranks in [2, 4] {
        let path = folder.path().join(format!("{ranks}.csv"));
        assert_success(&mpi.run(ranks, TASK, &args(ranks, &path, &["--false-clocks", "7"])));
        let record = record::read::<ClockError>(&path).unwrap();
        assert!(record.rows.len() >= ranks as usize - 1);
        let mut errors: Vec<f64> =
            record.rows.iter().map(|row| row.true_error_seconds.unwrap().abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let mut round_trips: Vec<f64> =
            record.rows.iter().map(|row| row.round_trip_seconds).collect();
        round_trips.sort_unstable_by(f64::total_cmp);
        let middle = errors.len() / 2;
        assert!(errors[middle] < round_trips[middle].max(500e-6), "{errors:?}");
        assert!(record.rows.iter().any(|row| row.drift_ppm.abs() > 0.1));
        let platform: Platform = serde_json::from_str(&record.header["platform"]).unwrap();
        assert!(platform.clock.contains("made false"), "{}", platform.clock);
        let names: Vec<&str> = platform.clocks.iter().map(|clock| &*clock.name).collect();
        assert!(names.starts_with(&["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "MPI_Wtime"]));
        assert!(platform.clocks.iter().all(|clock| clock.resolution_seconds < 0.1));
    }
}

#[test]
fn a_shared_clock_needs_nothing_unless_it_is_asked_for() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, further, rows) in [("shared", &[][..], 0), ("own", &["--synchronise"], 1)] {
        let path = folder.path().join(name);
        assert_success(&mpi.run(2, TASK, &args(2, &path, further)));
        let record = record::read::<ClockError>(&path).unwrap();
        assert!(record.rows.len() >= rows && record.rows.is_empty() == (rows == 0));
        assert!(record.rows.iter().all(|row| row.true_error_seconds.is_some()));
    }
}

/// A job that failed is tried once more, with the same record.
#[test]
fn a_record_that_is_there_is_put_aside() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clocks.csv");
    std::fs::write(&path, "of a job that failed").unwrap();
    assert_success(&mpi.run(2, TASK, &args(2, &path, &["--synchronise"])));
    assert!(!record::read::<ClockError>(&path).unwrap().rows.is_empty());
    let aside = std::fs::read_to_string(folder.path().join("clocks.failed.csv")).unwrap();
    assert_eq!(aside, "of a job that failed");
}
