//! `colibri-mpi links` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Mpi, assert_success, stderr};
use records::{
    group_observation::{GroupKind, GroupObservation},
    observation::ObservationStatus,
    record,
};

const TASK: &str = "links";

fn args(ranks: &str, nodes: &str, record: &Path) -> Vec<String> {
    let record = record.display().to_string();
    ["--ranks", ranks, "--nodes", nodes, "--record", &record, "--sizes", "1KiB,64KiB"]
        .into_iter()
        .chain(["--budget-seconds", "60", "--seed", "1"])
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_ring_is_observed_once_to_warm_up_and_seven_times_after() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("links.csv");
    assert_success(&mpi.run(4, TASK, &args("4", "2,3,4", &path)));
    let record = record::read::<GroupObservation>(&path).unwrap();
    let mut seen: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for row in &record.rows {
        assert!(row.kind == GroupKind::Ring && row.seconds > 0.0, "{row:?}");
        assert_eq!(row.status == ObservationStatus::Warmup, row.repetition == 0);
        *seen.entry((row.procs, row.bytes)).or_default() += 1;
    }
    let rings = [2, 3, 4].into_iter().flat_map(|procs| [(procs, 1 << 10), (procs, 1 << 16)]);
    assert_eq!(seen, rings.map(|ring| (ring, 8)).collect());

    let before = fs::read(&path).unwrap();
    assert_success(&mpi.run(4, TASK, &args("4", "2,3,4", &path)));
    assert!(fs::read(&path).unwrap().starts_with(&before));
    let after = record::read::<GroupObservation>(&path).unwrap();
    assert_eq!(after.rows, record.rows, "a finished record is left as it is");

    let output = mpi.run(2, TASK, &args("2", "2,3", &folder.path().join("other.csv")));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--nodes asks for 3 of 2 nodes"), "{}", stderr(&output));
}
