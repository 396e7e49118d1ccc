//! Collectives from C shared libraries, measured by `colibri-mpi measure` under a real `mpirun`.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod common;

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use common::{Mpi, PROGRAM, assert_success, compile, stderr};
use records::{
    Collective, Point, document,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    record,
};

const TASK: &str = "measure";

/// A folder with the library of plug-ins.
struct Folder(tempfile::TempDir);

impl Folder {
    /// Nothing, with a printed reason, where no compiler of the launcher's MPI library is.
    fn new() -> Option<Self> {
        let folder = Folder(tempfile::tempdir().unwrap());
        if !compile("plugin.c", &folder.path("libplugin.so")) {
            return None;
        }
        Some(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn method(&self, function: &str) -> String {
        format!("plugin:{}:{function}", self.path("libplugin.so").display())
    }

    fn measure(&self, mpi: &Mpi, cells: Vec<Cell>) -> Output {
        let visits = (0..cells.len() as u32).map(|cell| Visit {
            cell,
            warmups: 1,
            repetitions: 2,
            calls: 1,
        });
        let visits = visits.clone().chain(visits).collect();
        let plan = Plan { seed: 1, ranks: 4, visits, cells };
        document::write(&self.path("plan.json"), &plan).unwrap();
        let [plan, record] = ["plan.json", "measurements.csv"].map(|name| self.path(name));
        let args = ["--ranks", "4", "--deadline-seconds", "3000", "--plan", plan.to_str().unwrap()];
        let args = args.into_iter().chain(["--record", record.to_str().unwrap()]);
        mpi.run(4, TASK, &args.map(str::to_owned).collect::<Vec<_>>())
    }
}

fn cell(collective: Collective, method: &str, procs: u32, bytes: u64) -> Cell {
    Cell { point: Point::flat(collective, procs, bytes), method: method.parse().unwrap() }
}

/// Each in turn with the library's own, on communicators of different size, for which the library
/// prepares each time anew.
#[test]
fn right_plug_ins_are_measured_like_any_other_method() {
    let Some(mpi) = Mpi::find() else { return };
    let Some(folder) = Folder::new() else { return };
    let mut cells = Vec::new();
    for (procs, bytes) in [(2, 5), (4, 4096), (4, 0), (2, 1024), (1, 8)] {
        for (collective, function) in [
            (Collective::Bcast, "chain_Bcast"),
            (Collective::Bcast, "chain_Bcast,suboptions=other, with a comma"),
            (Collective::Scatter, "flat_Scatter"),
            (Collective::Reduce, "chain_Reduce"),
        ] {
            cells.push(cell(collective, &folder.method(function), procs, bytes));
            cells.push(cell(collective, "default", procs, bytes));
        }
    }
    let count = cells.len();
    assert_success(&folder.measure(&mpi, cells));
    let rows = record::read::<CollectiveCall>(&folder.path("measurements.csv")).unwrap().rows;
    let counted = rows.iter().filter(|row| row.status != ObservationStatus::Warmup).count();
    assert_eq!(counted, 4 * count);
    for row in rows {
        let is_plugin = row.method.to_string().starts_with("plugin:");
        let wanted = if is_plugin { row.method.to_string() } else { String::new() };
        assert_eq!(row.ran, wanted);
    }
}

#[test]
fn a_wrong_plug_in_is_caught_and_one_that_fails_says_so() {
    let Some(mpi) = Mpi::find() else { return };
    let Some(folder) = Folder::new() else { return };
    for (function, procs, wanted) in [
        ("wrong_Bcast", 2, "wrong result: byte 63 on rank 1"),
        ("wrong_Bcast", 4, "wrong result: byte 63 on rank 3"),
        ("chain_Bcast,suboptions=refuse=1", 2, "chain_Bcast failed: MPI_ERR_COUNT"),
        ("chain_Bcast,suboptions=fail=1", 4, "collectives_initialize failed: MPI_ERR_ARG"),
        ("chain_Bcst", 2, "the library has no function chain_Bcst"),
    ] {
        let method = folder.method(function);
        let output = folder.measure(&mpi, vec![cell(Collective::Bcast, &method, procs, 64)]);
        assert_refused(&output, &[wanted, &method]);
    }
    let nowhere = "plugin:/nowhere/libplugin.so:chain_Bcast";
    let output = folder.measure(&mpi, vec![cell(Collective::Bcast, nowhere, 2, 8)]);
    assert_refused(&output, &["cells[0].method", "there is no file /nowhere/libplugin.so"]);
    let unknown = "plugin:libcolibri_nowhere.so:chain_Bcast";
    let output = folder.measure(&mpi, vec![cell(Collective::Bcast, unknown, 2, 8)]);
    assert_refused(&output, &["cells[0].method", "cannot be loaded", "LD_LIBRARY_PATH"]);
    let alone = format!("plugin:{}:MPI_Bcast,suboptions=x", this_program());
    let output = folder.measure(&mpi, vec![cell(Collective::Bcast, &alone, 2, 8)]);
    assert_refused(&output, &["cells[0].method", &alone]);
}

/// Something that is a file and no library of collectives.
fn this_program() -> String {
    Path::new(PROGRAM).to_str().unwrap().to_owned()
}

#[track_caller]
fn assert_refused(output: &Output, parts: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    let text = stderr(output);
    let mut errors = text.lines().filter(|line| line.starts_with("colibri-mpi: error"));
    assert!(errors.any(|line| parts.iter().all(|part| line.contains(part))), "{text}");
}
