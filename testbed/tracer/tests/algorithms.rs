//! What Open MPI runs when an algorithm is forced: seen by the tracer in a C program.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
};

#[path = "../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;

const PROCS: usize = 5;
const SEGMENT: &str = "1024";
/// In elements of 8 bytes: fewer than the processes, about two segments, many segments.
const COUNTS: [&str; 6] = ["1", "3", "4", "254", "256", "10000"];

/// The preloaded library, built beside this test.
fn tracer() -> PathBuf {
    let test = env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let library = folder.join("libcolibri_tracer.so");
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// The program, compiled; none where there is no Open MPI to compile and run it.
fn observed(folder: &Path) -> Option<PathBuf> {
    let family = Command::new("mpirun").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&family.stdout).contains("Open MPI") {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observed.c");
    let program = folder.join("observed");
    let built = Command::new("mpicc").arg("-o").arg(&program).arg(source).arg("-ldl").output();
    let built = built.ok()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

/// Runs the collective with each of [`COUNTS`]; `parameters` are MCA parameters and their values.
/// All ranks have to tell the same.
fn run(program: &Path, collective: &str, parameters: &[(&str, &str)]) -> BTreeMap<usize, String> {
    let mut command = Command::new("mpirun");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .args(["--oversubscribe", "--bind-to", "none", "-np", &PROCS.to_string()])
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .args(["--mca", "coll_tuned_use_dynamic_rules", "1"]);
    for (name, value) in parameters {
        command.args(["--mca", name, value]);
    }
    command
        .args(["-x", &format!("LD_PRELOAD={}", tracer().display()), "-x", "COLIBRI_TRACER_FILE"])
        .env("COLIBRI_TRACER_FILE", program.with_file_name("summary"))
        .arg(program)
        .arg(collective)
        .args(COUNTS);
    let output = command.output().unwrap();
    let (text, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");

    let mut seen: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let (who, calls) = line.split_once(": ").unwrap();
        let count = who.rsplit(' ').next().unwrap().parse().unwrap();
        seen.entry(count).or_default().push(calls.into());
    }
    assert_eq!(seen.len(), COUNTS.len(), "{text}");
    let same = seen.into_iter().map(|(count, mut calls)| {
        assert_eq!(calls.len(), PROCS, "{text}");
        calls.dedup();
        assert_eq!(calls.len(), 1, "the ranks differ: {text}");
        (count, calls.remove(0))
    });
    same.collect()
}

fn forced(program: &Path, collective: &str, algorithm: usize) -> BTreeMap<usize, String> {
    let number = format!("coll_tuned_{collective}_algorithm");
    let segment = format!("{number}_segmentsize");
    run(program, collective, &[(&number, &algorithm.to_string()), (&segment, SEGMENT)])
}

macro_rules! program_or_skip {
    ($folder:ident) => {{
        match observed($folder.path()) {
            Some(program) => program,
            None => {
                return skipped("the tracer", "needs Open MPI's mpicc and mpirun");
            }
        }
    }};
}

#[test]
fn every_broadcast_is_seen_with_its_segments_and_its_fall_back() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_or_skip!(folder);
    let own = [
        "bcast_intra_basic_linear",
        "bcast_intra_chain,segment=1KiB,fan-out=4",
        "bcast_intra_pipeline,segment=1KiB",
        "bcast_intra_split_bintree,segment=1KiB",
        "bcast_intra_bintree,segment=1KiB",
        "bcast_intra_binomial,segment=1KiB",
        "bcast_intra_knomial,segment=1KiB,fan-out=4",
        "bcast_intra_scatter_allgather,segment=1KiB",
        "bcast_intra_scatter_allgather_ring,segment=1KiB",
    ];
    for (algorithm, own) in (1..).zip(own) {
        for (count, seen) in forced(&program, "bcast", algorithm) {
            let fall_back = match algorithm {
                4 if count / 2 * 8 < 1024 => ">bcast_intra_chain,segment=1KiB,fan-out=1",
                8 | 9 if count < PROCS => ">bcast_intra_basic_linear",
                _ => "",
            };
            assert_eq!(seen, format!("{own}{fall_back}"), "algorithm {algorithm}, count {count}");
        }
    }
}

#[test]
fn every_reduction_is_seen_with_its_segments_and_its_fall_back() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_or_skip!(folder);
    let own = [
        "reduce_intra_basic_linear",
        "reduce_intra_chain,segment=1KiB,fan-out=4,requests=0",
        "reduce_intra_pipeline,segment=1KiB,requests=0",
        "reduce_intra_binary,segment=1KiB,requests=0",
        "reduce_intra_binomial,segment=1KiB,requests=0",
        "reduce_intra_in_order_binary,segment=1KiB,requests=0",
        "reduce_intra_redscat_gather",
    ];
    for (algorithm, own) in (1..).zip(own) {
        for (count, seen) in forced(&program, "reduce", algorithm) {
            // 4 is the largest power of two among 5 processes.
            let fall_back = match algorithm {
                7 if count < 4 => ">reduce_intra_basic_linear",
                _ => "",
            };
            assert_eq!(seen, format!("{own}{fall_back}"), "algorithm {algorithm}, count {count}");
        }
    }
}

#[test]
fn a_summary_is_appended_when_a_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_or_skip!(folder);
    forced(&program, "bcast", 8);
    let text = std::fs::read_to_string(folder.path().join("summary")).unwrap();
    for rank in 0..PROCS {
        let lines: Vec<&str> =
            text.lines().filter(|line| line.starts_with(&format!("rank={rank} pid="))).collect();
        let name = "bcast_intra_scatter_allgather,segment=1KiB";
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].ends_with(&format!(" {name}>bcast_intra_basic_linear 3")), "{text}");
        assert!(lines[1].ends_with(&format!(" {name} 3")), "{text}");
    }
}

#[test]
fn a_function_that_is_missing_is_named_when_it_is_called_and_not_before() {
    if Command::new("cc").arg("--version").output().is_err() {
        return skipped("the tracer", "needs a C compiler");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("missing.c");
    let program = folder.path().join("missing");
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        int main(int argc, char **argv) {\n\
        int (*call)(void *, long, void *, int, void *, void *) =\n\
        dlsym(RTLD_DEFAULT, \"ompi_coll_base_bcast_intra_basic_linear\");\n\
        return argc > 1 ? call(0, 0, 0, 0, 0, 0) : call == 0; }\n";
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc").arg("-o").arg(&program).arg(&source).arg("-ldl").status();
    assert!(built.unwrap().success());

    let quiet = Command::new(&program).env("LD_PRELOAD", tracer()).output().unwrap();
    assert!(quiet.status.success() && quiet.stderr.is_empty());
    let calling = Command::new(&program).arg("call").env("LD_PRELOAD", tracer()).output().unwrap();
    let errors = String::from_utf8_lossy(&calling.stderr);
    assert!(!calling.status.success());
    assert!(errors.contains("has no ompi_coll_base_bcast_intra_basic_linear"), "{errors}");
}
