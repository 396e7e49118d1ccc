//! `colibri-mpi measure` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../common/mod.rs"]
mod common;
mod refused;
mod stolen;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use common::{Mpi, PROGRAM, assert_success, compile, skipped, stderr};
use libraries::openmpi;
use records::{
    Collective, Method, Point, document,
    observation::{ClockError, CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    platform::Platform,
    record::{self, Record},
};
use refused::assert_refused;
use runner::mockups::ALL;

const TASK: &str = "measure";

/// A folder with a plan and, later, its record.
struct Run {
    folder: tempfile::TempDir,
    plan: Plan,
}

impl Run {
    fn new(plan: Plan) -> Self {
        let run = Run { folder: tempfile::tempdir().unwrap(), plan };
        document::write(&run.path("plan.json"), &run.plan).unwrap();
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record_path(&self) -> PathBuf {
        self.path("measurements.csv")
    }

    fn args(&self, ranks: u32, deadline_seconds: &str) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let ranks = ranks.to_string();
        ["--ranks", &ranks, "--plan", &path("plan.json"), "--record", &path("measurements.csv")]
            .into_iter()
            .chain(["--deadline-seconds", deadline_seconds])
            .chain(["--launcher", "mpirun of a test", "--testbed", "none"])
            .map(str::to_owned)
            .collect()
    }

    fn measure(&self, mpi: &Mpi) -> Output {
        mpi.run(self.plan.ranks, TASK, &self.args(self.plan.ranks, "3000"))
    }

    fn record(&self) -> Record<CollectiveCall> {
        record::read(&self.record_path()).unwrap()
    }

    /// Every visit has exactly its repetitions, numbered without a gap, all of its own cell.
    #[track_caller]
    fn assert_complete(&self) {
        let record = self.record();
        for (index, visit) in self.plan.visits.iter().enumerate() {
            let rows: Vec<&CollectiveCall> =
                record.rows.iter().filter(|row| row.visit as usize == index).collect();
            let judged = rows.iter().filter(|row| row.status != ObservationStatus::Warmup).count();
            assert_eq!(judged, visit.repetitions as usize, "visit {index}");
            let cell = &self.plan.cells[visit.cell as usize];
            for (row, repetition) in rows.iter().zip(0..) {
                assert_eq!((row.point, &row.method), (cell.point, &cell.method));
                assert_eq!(row.repetition, repetition);
                assert!(row.seconds > 0.0 && row.seconds < 1000.0, "{row:?}");
                assert!(row.last_start_seconds >= row.first_start_seconds, "{row:?}");
            }
        }
    }
}

fn plan(ranks: u32, cells: Vec<Cell>, repetitions: u32) -> Plan {
    let visits =
        (0..cells.len() as u32).map(|cell| Visit { cell, warmups: 1, repetitions, calls: 1 });
    Plan { seed: 1, ranks, visits: visits.collect(), cells }
}

fn cell(collective: Collective, method: &str, procs: u32, bytes: u64) -> Cell {
    Cell { point: Point::flat(collective, procs, bytes), method: method.parse().unwrap() }
}

/// What is tried with all sizes and native methods; one size and the default do for the others.
fn is_usual(collective: Collective) -> bool {
    matches!(collective, Collective::Bcast | Collective::Reduce)
}

fn sizes_for(collective: Collective, sizes: &[u64]) -> &[u64] {
    if is_usual(collective) { sizes } else { &sizes[sizes.len() / 2..][..1] }
}

/// Every native method and the default, at some sizes, on some sub-communicators.
fn wide_plan(ranks: u32, sizes: &[u64]) -> Plan {
    let mut cells = Vec::new();
    for collective in Collective::ALL {
        for &bytes in sizes_for(collective, sizes) {
            for procs in [1, 2, ranks].into_iter().filter(|procs| *procs <= ranks) {
                cells.push(cell(collective, "default", procs, bytes));
                if !is_usual(collective) {
                    continue;
                }
                let natives = openmpi::methods(collective, &[0, 1024], procs, bytes);
                cells.extend(
                    natives.into_iter().map(|method| Cell {
                        point: Point::flat(collective, procs, bytes),
                        method,
                    }),
                );
            }
        }
    }
    plan(ranks, cells, 1)
}

#[test]
fn every_method_is_measured_and_right_on_any_number_of_ranks() {
    let Some(mpi) = Mpi::find() else { return };
    for (ranks, sizes) in [
        (1, &[8][..]),
        (2, &[0, 5, 4096]),
        (3, &[1, 4100]),
        (5, &[7, 12_000]),
        (8, &[1024, 65_536]),
    ] {
        let run = Run::new(wide_plan(ranks, sizes));
        assert_success(&run.measure(&mpi));
        run.assert_complete();
        let record = run.record();
        let platform: Platform = serde_json::from_str(&record.header["platform"]).unwrap();
        assert_eq!(platform.hosts.len(), ranks as usize);
        assert_eq!((&*platform.launcher, &*platform.testbed), ("mpirun of a test", "none"));
        assert!(platform.mpi_library.starts_with("Open MPI"), "{}", platform.mpi_library);
        assert!(record.header["timing"].starts_with("barrier"), "{}", record.header["timing"]);
    }
}

/// The result of the first call of every visit is checked by the program itself.
#[test]
fn own_algorithms_are_right_and_recorded_on_any_number_of_ranks() {
    let Some(mpi) = Mpi::find() else { return };
    for (ranks, sizes) in [
        (1_u32, &[5][..]),
        (2, &[0, 5, 4104]),
        (3, &[1, 4101]),
        (4, &[65_543, 8]),
        (5, &[12_008, 7]),
        (8, &[65_544, 1023]),
    ] {
        let mut cells = Vec::new();
        for collective in Collective::ALL {
            let shared = schedules::SHARED.iter().filter(|entry| entry.collective == collective);
            for entry in schedules::of_collective(collective)
                .chain(shared)
                .filter(|entry| !entry.requirements.even || ranks == 1 || ranks.is_multiple_of(2))
            {
                for segment_bytes in [0, 1000].into_iter().filter(|s| *s == 0 || entry.segmented) {
                    let method = Method::own(entry.algorithm).with_segment(segment_bytes);
                    for &bytes in sizes_for(collective, sizes) {
                        let method = method.clone();
                        cells.push(Cell {
                            point: Point::new(collective, ranks.into(), bytes),
                            method,
                        });
                    }
                }
            }
        }
        let run = Run::new(plan(ranks, cells, 1));
        assert_success(&run.measure(&mpi));
        run.assert_complete();
        for row in run.record().rows {
            assert_eq!(row.ran, row.method.to_string());
        }
    }
}

/// Three sizes: nothing, bytes of which no mock-up can cut equal parts, doubles in several cuts.
#[test]
fn mock_ups_are_right_and_recorded() {
    let Some(mpi) = Mpi::find() else { return };
    let mut cells = Vec::new();
    for mockup in ALL {
        for bytes in [0, 1003, 8000] {
            cells.push(cell(mockup.collective, &mockup.to_string(), 3, bytes));
            // What is forced for one visit is not for the next, on the same processes.
            cells.push(cell(mockup.collective, "default", 3, bytes));
        }
    }
    let run = Run::new(plan(3, cells, 2));
    assert_success(&run.measure(&mpi));
    run.assert_complete();
    for row in run.record().rows {
        let wanted = match row.method {
            Method::Mockup(_) => row.method.to_string(),
            _ => String::new(),
        };
        assert_eq!(row.ran, wanted);
    }
}

#[test]
fn a_killed_run_is_completed_and_its_record_kept() {
    let Some(mpi) = Mpi::find() else { return };
    let cells = (0..300).map(|bytes| cell(Collective::Bcast, "default", 4, bytes)).collect();
    let run = Run::new(plan(4, cells, 3));
    let path = run.record_path();
    mpi.kill_at(4, TASK, &run.args(4, "3000"), &path, 60);
    let before = fs::read(&path).unwrap();

    assert_success(&run.measure(&mpi));
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before), "what was observed has been changed");
    run.assert_complete();

    assert_success(&run.measure(&mpi));
    assert_eq!(fs::read(&path).unwrap(), after, "a finished record is left as it is");
}

#[test]
fn the_deadline_ends_a_run_in_order() {
    let Some(mpi) = Mpi::find() else { return };
    let cells = (0..100).map(|bytes| cell(Collective::Bcast, "default", 4, bytes)).collect();
    let run = Run::new(plan(4, cells, 1));
    let output = mpi.run(4, TASK, &run.args(4, "0.000001"));
    assert_success(&output);
    assert!(stderr(&output).contains("0 of"), "{}", stderr(&output));
    assert!(run.record().rows.is_empty());

    let output = mpi.run(4, TASK, &run.args(4, "0.05"));
    assert_success(&output);
    assert_success(&run.measure(&mpi));
    run.assert_complete();
}

/// Ranks that are not needed for long must still be there when they are.
#[test]
fn idle_ranks_wake_up_when_they_are_needed() {
    let Some(mpi) = Mpi::find() else { return };
    let mut cells: Vec<Cell> =
        (0..60).map(|bytes| cell(Collective::Reduce, "default", 2, bytes)).collect();
    cells.push(cell(Collective::Reduce, "native:openmpi:binomial", 8, 4096));
    cells.push(cell(Collective::Bcast, "default", 1, 4096));
    let run = Run::new(plan(8, cells, 2));
    assert_success(&run.measure(&mpi));
    run.assert_complete();
}

/// A rank in a time namespace of its own reads another clock.
#[test]
fn ranks_without_a_common_clock_are_synchronised() {
    let Some(mpi) = Mpi::find() else { return };
    let unshare = ["--time", "--monotonic", "100000"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|s| s.success()) {
        return skipped("ranks_without_a_common_clock", "no time namespace can be made here");
    }
    let cells = [8, 4096].map(|bytes| cell(Collective::Bcast, "default", 3, bytes));
    let run = Run::new(plan(3, cells.into(), 3));
    let args = run.args(3, "3000");
    let output = mpi
        .command(2)
        .args([PROGRAM, TASK])
        .args(&args)
        .args([":", "-np", "1", "unshare"])
        .args(unshare)
        .args([PROGRAM, TASK])
        .args(&args)
        .output()
        .unwrap();
    assert_success(&output);
    run.assert_complete();
    let record = run.record();
    assert!(record.header["timing"].contains("synchronised clocks"), "{}", record.header["timing"]);
    // The clocks themselves are 100000 s apart.
    assert!(record.rows.iter().all(|row| row.last_start_seconds.abs() < 10.0));
    for when in ["start", "end"] {
        let errors = &record.header[&format!("clock_errors_at_{when}")];
        let errors: Vec<ClockError> = serde_json::from_str(errors).unwrap();
        assert_eq!(errors.iter().map(|error| error.rank).collect::<Vec<_>>(), [2]);
        assert_eq!(errors[0].true_error_seconds, None, "there is no referee");
    }
}

#[test]
fn every_timing_scheme_times_and_says_what_it_is() {
    let Some(mpi) = Mpi::find() else { return };
    let cells = |collective| {
        [(2, 8), (4, 4096)].map(|(procs, bytes)| cell(collective, "default", procs, bytes))
    };
    for timing in ["barrier", "global", "max", "root", "bcast"] {
        let run = Run::new(plan(4, cells(Collective::Bcast).into(), 3));
        let mut args = run.args(4, "3000");
        args.extend(["--timing".to_owned(), timing.to_owned()]);
        assert_success(&mpi.run(4, TASK, &args));
        let record = run.record();
        assert!(record.header["timing"].starts_with(timing), "{}", record.header["timing"]);
        assert!(record.rows.len() >= 6);
        assert!(record.rows.iter().all(|row| (0.0..100.0).contains(&row.seconds)));
    }
    let run = Run::new(plan(4, cells(Collective::Reduce).into(), 1));
    let mut args = run.args(4, "3000");
    args.extend(["--timing".to_owned(), "bcast".to_owned()]);
    let output = mpi.run(4, TASK, &args);
    assert_refused(&output, "cells[0].collective: is reduce, but the timing scheme bcast");
}

/// It would take processors and links from that one.
#[test]
fn no_rank_looks_for_what_comes_next_while_another_is_calling() {
    // One warms up.
    const CALLS: u32 = 5;
    let Some(mpi) = Mpi::find() else { return };
    for (timing, broadcasts) in
        [("global", CALLS), ("barrier", CALLS), ("max", CALLS), ("bcast", 3 * CALLS)]
    {
        let watched = cell(Collective::Bcast, "default", 4, 4321);
        let run = Run::new(plan(4, vec![watched], CALLS - 1));
        let (library, ends) = (run.path("libwatcher.so"), run.path("ends"));
        if !compile("watcher.c", &library) {
            return;
        }
        let mut args = run.args(4, "3000");
        args.extend(["--timing".to_owned(), timing.to_owned()]);
        let mut command = mpi.command(4);
        command.args(["-x", &format!("LD_PRELOAD={}", library.display())]);
        command.args(["-x", &format!("WATCHER_FILE={}", ends.display())]);
        assert_success(&command.args([PROGRAM, TASK]).args(args).output().unwrap());
        let counts: Vec<u32> = fs::read(&ends)
            .unwrap()
            .chunks_exact(4)
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(counts[..4], [broadcasts; 4], "{timing}: calls watched on each rank");
        assert_eq!(counts[4], 0, "{timing}: looks while another was calling");
    }
}

/// With the tracer, which another package builds into the same folder.
#[test]
fn what_was_forced_is_what_ran() {
    let Some(mpi) = Mpi::find() else { return };
    let tracer = Path::new(PROGRAM).with_file_name("libcolibri_tracer.so");
    if !tracer.exists() {
        return skipped("what_was_forced_is_what_ran", "no tracer is built beside the program");
    }
    let run = Run::new(wide_plan(4, &[8, 65_536]));
    let output = mpi
        .command(4)
        .arg("-x")
        .arg(format!("LD_PRELOAD={}", tracer.display()))
        .args([PROGRAM, TASK])
        .args(run.args(4, "3000"))
        .output()
        .unwrap();
    assert_success(&output);
    run.assert_complete();
    for row in run
        .record()
        .rows
        .iter()
        .filter(|row| row.point.layout.procs() > 1 && is_usual(row.point.collective))
    {
        assert!(!row.ran.is_empty(), "{row:?}");
        assert!(libraries::ran_as_asked(row.point.collective, &row.method, &row.ran), "{row:?}");
        let method = row.method.to_string();
        let segment = method.split_once(",segment=").map_or("", |(_, segment)| segment);
        assert!(row.ran.contains(segment), "{row:?}");
    }
}
