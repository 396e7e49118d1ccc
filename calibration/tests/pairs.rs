//! `colibri-mpi pairs` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeSet, fs, path::Path};

use common::{Mpi, assert_success, stderr};
use records::{
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    record::{self, Writer},
};

const TASK: &str = "pairs";

fn args(ranks: u32, record: &Path, budget: &str, at_once: &str) -> Vec<String> {
    let (ranks, record) = (ranks.to_string(), record.display().to_string());
    ["--ranks", &ranks, "--record", &record, "--bytes", "8KiB", "--budget-seconds", budget]
        .into_iter()
        .chain(["--at-once", at_once, "--seed", "1"])
        .map(str::to_owned)
        .collect()
}

/// All ranks of one host take part; each link is observed in both directions at both sizes.
#[test]
fn every_link_is_observed_in_both_directions() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (ranks, at_once) in [(2, "1"), (3, "1"), (4, "2")] {
        let path = folder.path().join(format!("{ranks}.csv"));
        // Ample: it ends when all is known well enough or observed often enough.
        let args = args(ranks, &path, "600", at_once);
        assert_success(&mpi.run(ranks, TASK, &args));
        let record = record::read::<PointToPoint>(&path).unwrap();
        let mut seen = BTreeSet::new();
        for row in &record.rows {
            assert!(row.kind == PointToPointKind::RoundTrip && row.seconds > 0.0);
            assert_eq!(row.status == ObservationStatus::Warmup, row.repetition == 0);
            seen.insert((row.sender, row.receiver, row.bytes));
        }
        let links = (0..ranks).flat_map(|one| (0..ranks).map(move |other| (one, other)));
        let wanted: BTreeSet<_> = links
            .filter(|(one, other)| one != other)
            .flat_map(|(one, other)| [(one, other, 0), (one, other, 8192)])
            .collect();
        assert_eq!(seen, wanted);
        assert!(record.rows.len() >= 7 * wanted.len());

        let before = fs::read(&path).unwrap();
        assert_success(&mpi.run(ranks, TASK, &args));
        let after = record::read::<PointToPoint>(&path).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(&before));
        assert_eq!(after.rows, record.rows, "a finished record is left as it is");
    }
}

/// One link was slow whenever it was looked at, and no longer is: what is seen of it last makes it
/// less certain than it was, so it is looked at until that is known as well.
#[test]
fn what_looking_again_made_uncertain_is_looked_at_further() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [path, begun] = ["whole.csv", "begun.csv"].map(|name| folder.path().join(name));
    assert_success(&mpi.run(3, TASK, &args(3, &path, "600", "1")));
    let whole = record::read::<PointToPoint>(&path).unwrap();
    let of_link = |row: &&PointToPoint| (row.sender, row.receiver, row.bytes) == (1, 2, 0);
    let first = whole.rows.iter().find(of_link).unwrap();

    let mut writer = Writer::open(&begun, &whole.header).unwrap();
    whole.rows.iter().filter(|row| !of_link(row)).for_each(|row| writer.append(row).unwrap());
    for repetition in 0..13 {
        let status =
            if repetition == 0 { ObservationStatus::Warmup } else { ObservationStatus::Ok };
        let slow = PointToPoint { repetition, status, seconds: 1.0, ..first.clone() };
        writer.append(&slow).unwrap();
    }
    drop(writer);
    assert_success(&mpi.run(3, TASK, &args(3, &begun, "600", "1")));
    let after = record::read::<PointToPoint>(&begun).unwrap();
    // 12 slow of 20 leave the median anywhere between; 24 are the most that a link is given.
    assert_eq!(after.rows.iter().filter(of_link).count(), 1 + 24);
}

#[test]
fn a_budget_is_kept_and_another_record_refused() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.csv");
    assert_success(&mpi.run(3, TASK, &args(3, &path, "0.001", "1")));
    let record = record::read::<PointToPoint>(&path).unwrap();
    assert!(record.rows.is_empty(), "it was over before anything was begun");
    assert!(record.header["spent_seconds"].parse::<f64>().unwrap() > 0.0);
    let output = mpi.run(2, TASK, &args(2, &path, "1", "1"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("field members: is 0,1,2, this run's is 0,1;"),
        "{}",
        stderr(&output)
    );
}
