//! Programs in C that time exchanges with `libcolibri_bench.so`, on Open MPI and MPICH.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[path = "../../tests/skipped.rs"]
mod skipped;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

use skipped::skipped;

/// Jobs run one after the other: they share the cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// By what Debian ends the names of each library's compiler and launcher.
const LIBRARIES: [&str; 2] = ["openmpi", "mpich"];

/// Compiles a program of this folder; nothing, with a printed reason, where there is no compiler.
fn compile(library: &str, source: &str, folder: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = env::current_exe().unwrap().with_file_name("libcolibri_bench.so");
    assert!(built.is_file(), "{} is not there", built.display());
    let program = folder.join(format!("{source}.{library}"));
    let mut compiler = Command::new(format!("mpicc.{library}"));
    compiler.args(["-Wall", "-Wextra", "-Werror", "-O1"]).arg("-I").arg(here.join("include"));
    compiler.arg(here.join("tests").join(source)).arg("-o").arg(&program).arg(&built);
    compiler.arg(format!("-Wl,-rpath,{}", built.parent().unwrap().display()));
    match compiler.output() {
        Ok(output) => assert_success(&output),
        Err(error) => {
            skipped(source, &format!("no mpicc.{library}: {error}"));
            return None;
        }
    }
    Some(program)
}

fn run(library: &str, ranks: u32, program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", &format!("mpirun.{library}"), "-np", &ranks.to_string()]);
    if library == "openmpi" {
        command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(name, "1");
        }
    }
    command.arg(program).args(arguments).output().unwrap()
}

#[track_caller]
fn assert_success(output: &Output) {
    let [out, error] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{}\n{out}{error}", output.status);
}

#[test]
fn a_program_times_its_own_exchange_by_every_scheme() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for library in LIBRARIES {
        let Some(program) = compile(library, "own_exchange.c", folder.path()) else { continue };
        for ranks in [2, 4] {
            let output = run(library, ranks, &program, &["1024"]);
            assert_success(&output);
            let text = String::from_utf8(output.stdout).unwrap();
            let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
            assert_eq!(names, ["barrier", "global", "max", "root", "bcast"], "{library} {ranks}");
            for line in text.lines() {
                let numbers: Vec<f64> =
                    line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
                let [repetitions, calls, precise, median, mean, low, high, tick] = numbers[..]
                else {
                    panic!("{line}");
                };
                assert!((8.0..=40.0).contains(&repetitions), "{line}");
                // One goes before; by the scheme bcast each repetition calls once for every other rank.
                let each = if line.starts_with("bcast") { f64::from(ranks) - 1.0 } else { 1.0 };
                assert_eq!(calls, repetitions * each + 1.0, "{library} {ranks}: {line}");
                assert!(median >= 0.0 && low <= mean && mean <= high && tick > 0.0, "{line}");
                let half_width = high - mean;
                let is_narrow = half_width <= 0.05 * mean || half_width <= tick;
                assert_eq!(precise == 1.0, is_narrow, "{library} {ranks}: {line}");
                assert!(precise == 1.0 || repetitions == 40.0, "{library} {ranks}: {line}");
            }
        }
    }
}

#[test]
fn every_function_does_what_the_header_says() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for (library, ranks) in [("openmpi", 3), ("mpich", 2)] {
        let Some(program) = compile(library, "functions.c", folder.path()) else { continue };
        let factors = folder.path().join(format!("factors.{ranks}"));
        fs::write(&factors, ["1 0 # of two\n", "2.5\n"][..ranks as usize - 1].concat()).unwrap();
        assert_success(&run(library, ranks, &program, &[factors.to_str().unwrap()]));
    }
}

/// It serves every MPI library, so it must need none.
#[test]
fn the_library_links_no_mpi() {
    let built = env::current_exe().unwrap().with_file_name("libcolibri_bench.so");
    let output = Command::new("readelf").arg("-d").arg(&built).output();
    let Ok(output) = output else { return skipped("links", "there is no readelf") };
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("NEEDED") && !text.contains("libmp"), "{text}");
}
