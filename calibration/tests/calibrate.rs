//! `colibri-mpi calibrate` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod common;

use std::{fs, path::Path, process::Output, time::Duration};

use colibri_calibration::proc_stat::STAND_IN;
use common::{Mpi, PROGRAM, assert_success, stand_in, stderr};
use records::{
    group_observation::{GroupKind, GroupObservation},
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    record,
};

const TASK: &str = "calibrate";

/// Seconds: what is asked for takes a few of them, but a hundred times as long where every message
/// waits for its turn on an overloaded machine.
const AMPLE: &str = "500";

fn args(ranks: u32, record: &Path, sizes: &str, pair: &str, budget: &str) -> Vec<String> {
    let (ranks, record) = (ranks.to_string(), record.display().to_string());
    ["--ranks", &ranks, "--record", &record, "--sizes", sizes, "--pair", pair]
        .into_iter()
        // What is observed often enough need not be certain here.
        .chain(["--budget-seconds", budget, "--seed", "1", "--precision", "1000"])
        .map(str::to_owned)
        .collect()
}

fn series(rows: &[PointToPoint], kind: PointToPointKind, bytes: u64) -> Vec<&PointToPoint> {
    rows.iter().filter(|row| row.kind == kind && row.bytes == bytes).collect()
}

/// Every kind has its least number of observations at every size, numbered without a gap.
#[track_caller]
fn assert_complete(path: &Path, sizes: &[u64], pair: (u32, u32)) {
    let rows = record::read::<PointToPoint>(path).unwrap().rows;
    assert!(rows.iter().all(|row| (row.sender, row.receiver) == pair && row.seconds >= 0.0));
    assert!(series(&rows, PointToPointKind::Clock, 0).len() >= 20);
    for &bytes in sizes {
        for kind in [
            PointToPointKind::RoundTrip,
            PointToPointKind::SendOverhead,
            PointToPointKind::ReceiveOverhead,
            PointToPointKind::Train,
        ] {
            let all = series(&rows, kind, bytes);
            let mut lengths: Vec<u32> = all.iter().map(|row| row.messages).collect();
            lengths.sort_unstable();
            lengths.dedup();
            match lengths[..] {
                [1] => assert_ne!(kind, PointToPointKind::Train),
                [short, long] => assert_eq!((kind, 2 * short), (PointToPointKind::Train, long)),
                _ => panic!("{kind:?} of {bytes} bytes: lengths {lengths:?}"),
            }
            for length in lengths {
                let all: Vec<_> = all.iter().filter(|row| row.messages == length).collect();
                assert!(all.iter().zip(0..).all(|(row, number)| row.repetition == number));
                let judged = all.iter().filter(|row| row.status == ObservationStatus::Ok).count();
                assert!(judged >= 8, "{kind:?} of {bytes} bytes x {length}: {judged}");
                // What takes long is begun without a warm-up.
                let warms_up = all.iter().any(|row| row.status == ObservationStatus::Warmup);
                assert!(judged == all.len() || warms_up);
            }
        }
    }
}

/// The budget is spent in any case; for a second of it half of the processors is stolen.
#[test]
fn what_is_observed_while_processors_are_stolen_is_marked() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (path, stat) = (folder.path().join("a.csv"), folder.path().join("stat"));
    let second = Duration::from_millis(500)..Duration::from_millis(1500);
    let end = stand_in(stat.clone(), path.clone(), move |_, elapsed| second.contains(&elapsed));
    let mut args = args(3, &path, "0,1,1024", "2,1", "5");
    *args.last_mut().unwrap() = "0.000001".to_owned();
    let mut command = mpi.command(3);
    let output = command.env(STAND_IN, stat).args([PROGRAM, TASK]).args(args).output().unwrap();
    end();
    assert_success(&output);
    let record = record::read::<PointToPoint>(&path).unwrap();
    let (disturbed, calm): (Vec<_>, Vec<_>) =
        record.stretches.iter().partition(|stretch| stretch.is_disturbed());
    assert!(!disturbed.is_empty() && !calm.is_empty(), "{:?}", record.stretches);
    let count = |status| record.rows.iter().filter(|row| row.status == status).count();
    assert!(count(ObservationStatus::Disturbed) > 0 && count(ObservationStatus::Ok) > 0);
}

#[test]
fn every_kind_is_observed_between_any_two_ranks() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (ranks, pair) in [(2, (0, 1)), (3, (1, 0)), (4, (2, 3)), (8, (0, 7))] {
        let path = folder.path().join(format!("{ranks}.csv"));
        let text = format!("{},{}", pair.0, pair.1);
        let args = args(ranks, &path, "0,1,131072", &text, AMPLE);
        assert_success(&mpi.run(ranks, TASK, &args));
        assert_complete(&path, &[0, 1, 131_072], pair);
    }
}

/// Chains, barriers, many partners and combining, led by ranks other than the first.
#[test]
fn groups_are_observed_within_the_same_budget() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (path, groups) = (folder.path().join("pair.csv"), folder.path().join("groups.csv"));
    let mut args = args(4, &path, "0,1,1024,131072", "2,3", AMPLE);
    args.extend(["--groups".to_owned(), groups.display().to_string()]);
    assert_success(&mpi.run(4, TASK, &args));
    let rows = record::read::<GroupObservation>(&groups).unwrap().rows;
    assert!(rows.iter().all(|row| row.seconds > 0.0));
    for (kind, procs, bytes, lengths) in [
        (GroupKind::FlatBarrier, 2, 0, 1),
        (GroupKind::FlatBarrier, 4, 0, 1),
        (GroupKind::PostedBarrier, 3, 0, 1),
        (GroupKind::ChainBcast, 3, 131_072, 1),
        (GroupKind::FanOut, 3, 1024, 2),
        (GroupKind::FanIn, 4, 1024, 2),
        (GroupKind::Combine, 1, 64, 1),
    ] {
        let is_asked = |row: &&GroupObservation| {
            (row.kind, row.procs, row.bytes) == (kind, procs, bytes)
                && row.status == ObservationStatus::Ok
        };
        let mut found: Vec<u32> = rows.iter().filter(is_asked).map(|row| row.messages).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), lengths, "{kind:?} of {procs}: lengths {found:?}");
    }
    let rows = record::read::<PointToPoint>(&path).unwrap().rows;
    assert!(!series(&rows, PointToPointKind::SpacedTrain, 1).is_empty());
}

#[test]
fn a_killed_run_goes_on_and_its_record_is_kept() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observations.csv");
    let args = args(3, &path, "0,8,4096", "0,1", AMPLE);
    mpi.kill_at(3, TASK, &args, &path, 150);
    let before = fs::read(&path).unwrap();

    assert_success(&mpi.run(3, TASK, &args));
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before), "what was observed has been changed");
    assert_complete(&path, &[0, 8, 4096], (0, 1));
    let record = record::read::<PointToPoint>(&path).unwrap();
    assert!(record.header["spent_seconds"].parse::<f64>().unwrap() > 0.0);

    assert_success(&mpi.run(3, TASK, &args));
    assert_eq!(fs::read(&path).unwrap(), after, "a finished record is left as it is");

    let next: Vec<String> = args.into_iter().chain(["--job".into(), "1".into()]).collect();
    assert_success(&mpi.run(3, TASK, &next));
    let rows = record::read::<PointToPoint>(&path).unwrap().rows;
    let of_next: Vec<_> = rows.iter().filter(|row| row.job == 1).collect();
    assert!(of_next.len() > 3 * 4 * 4, "{} observations", of_next.len());
    assert!(of_next.iter().all(|row| row.bytes < 4096), "only what is small is measured anew");
    assert!(rows.is_sorted_by_key(|row| (row.job, row.visit)));
}

#[test]
fn a_budget_too_small_is_said_and_small_sizes_come_first() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observations.csv");
    let output = mpi.run(2, TASK, &args(2, &path, "0,8,64MiB", "0,1", "0.2"));
    assert_success(&output);
    let text = stderr(&output);
    assert!(text.contains("fewer than 8 visits"), "{text}");
    let rows = record::read::<PointToPoint>(&path).unwrap().rows;
    assert!(!series(&rows, PointToPointKind::RoundTrip, 0).is_empty());
    assert!(series(&rows, PointToPointKind::RoundTrip, 64 << 20).is_empty());
}

#[track_caller]
fn assert_refused(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let Some(mpi) = Mpi::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("observations.csv");
    let run = |ranks, args: &[String]| mpi.run(ranks, TASK, args);
    let output = run(2, &args(3, &path, "8", "0,1", "1"));
    assert_refused(&output, 1, "the job has 2 ranks, --ranks says 3");
    let output = run(2, &args(2, &path, "8", "0,2", "1"));
    assert_refused(&output, 1, "--pair names rank 2; the job has ranks 0 to 1");
    let output = run(2, &args(2, &path, "8", "1,1", "1"));
    assert_refused(&output, 2, "two different ranks");
    let output = run(2, &args(2, &path, "8", "0,1", "0"));
    assert_refused(&output, 2, "seconds above 0");

    assert!(!path.exists());
    fs::write(&path, "#@schema=colibri/measurements/1\n").unwrap();
    let output = run(2, &args(2, &path, "8", "0,1", "1"));
    assert_refused(&output, 1, "expected colibri/observations/2");
}
