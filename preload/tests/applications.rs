//! Applications as Debian has them, under the preload library with methods of shared memory, and with methods that are
//! tried while they run: the same results as without, and their time in collectives beside each other.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{fs, path::Path, process::Command};

use common::{FORCE_SHARED, TestFolder, TestLibrary, assert_success, skipped, stdout};
use records::{learned::store, usage::Usage};

/// An application as Debian has it.
struct Application {
    name: &'static str,
    package: &'static str,
    /// Name and text of the file that it reads from its working directory.
    input: (&'static str, &'static str),
    command: &'static str,
    /// What it computed, without times, of its output and its working directory.
    results: fn(&str, &Path) -> Vec<String>,
}

/// What an application ended with.
struct Ended {
    results: Vec<String>,
    usage: Usage,
}

/// Seconds of all collectives, the mean of the ranks.
fn in_collectives(usage: &Usage) -> f64 {
    usage.calls.iter().map(|calls| calls.seconds).sum()
}

/// Calls that went through shared memory.
fn shared(usage: &Usage) -> u64 {
    let calls = usage.calls.iter();
    calls.filter(|calls| calls.method.shares_memory()).map(|calls| calls.calls).sum()
}

/// Runs an application without methods of ours and with them, by turns; its results are the same.
fn compare(application: &Application) {
    let Application { name, package, input, command, .. } = application;
    let program = command.split(' ').next().unwrap();
    if !Command::new("which").arg(program).output().is_ok_and(|it| it.status.success()) {
        skipped(name, &format!("no {program} here (Debian: {package})"));
        return;
    }
    let Some(mut bench) = TestFolder::alone(TestLibrary::OpenMpi) else { return };
    // As users run them; random updates of HPCC would take minutes where each look for a message yields.
    bench.has_processors_for_all = true;
    fs::write(bench.folder.path().join(input.0), input.1).unwrap();
    let directory = bench.folder.path().join("learned");
    let adapt = [("COLIBRI_ADAPT", directory.to_str().unwrap())];
    let ways = [&[][..], &[("COLIBRI_FORCE", FORCE_SHARED)], &adapt, &adapt];
    let mut seconds = [const { Vec::new() }; 4];
    for _ in 0..3 {
        let _ = fs::remove_dir_all(&directory);
        let all = ways.map(|variables| run(application, &bench, variables));
        let [theirs, ours, ..] = &all;
        assert!(!theirs.results.is_empty(), "{name}");
        assert_eq!(shared(&theirs.usage), 0);
        assert!(shared(&ours.usage) > 0, "{:?}", ours.usage);
        assert!(!store::read_all(&directory).unwrap().learned.is_empty(), "{name}");
        for (all, ended) in seconds.iter_mut().zip(&all) {
            assert_eq!(theirs.results, ended.results, "{name}");
            all.push((ended.usage.seconds, in_collectives(&ended.usage)));
        }
    }
    let names = ["the library", "shared memory", "a first job that tries", "a second one"];
    for (who, all) in names.into_iter().zip(&seconds) {
        println!("{name} by {who}: (seconds in all, in collectives) {all:.3?}");
    }
}

fn run(application: &Application, bench: &TestFolder, variables: &[(&str, &str)]) -> Ended {
    let directory = bench.folder.path();
    let trace = directory.join("usage.json");
    let mut variables = variables.to_vec();
    variables.extend([("COLIBRI_TRACE", trace.to_str().unwrap()), ("OMP_NUM_THREADS", "1")]);
    let command = format!("cd '{}' && exec {}", directory.display(), application.command);
    let output = bench.run(2, true, &variables, &["sh", "-c", &command]);
    assert_success(&output);
    Ended {
        results: (application.results)(&stdout(&output), directory),
        usage: common::usage(&trace),
    }
}

/// Reads a file that an application has written, and removes it: the next run writes its own.
fn take(directory: &Path, file: &str) -> String {
    let path = directory.join(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(path).unwrap();
    text
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn lammps_computes_the_same() {
    compare(&Application {
        name: "LAMMPS",
        package: "lammps",
        input: ("in.liquid", include_str!("applications/in.liquid")),
        command: "lmp -in in.liquid",
        // Step, temperature, energies and pressure.
        results: |printed, _| {
            let is_step = |line: &&str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok())
            };
            let steps: Vec<String> = printed.lines().filter(is_step).map(str::to_owned).collect();
            assert_eq!(steps.len(), 2001, "{printed}");
            steps
        },
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn hpcc_computes_the_same() {
    compare(&Application {
        name: "HPCC",
        package: "hpcc",
        input: ("hpccinf.txt", include_str!("applications/hpccinf.txt")),
        command: "hpcc",
        // Residuals of the linear equations, of the transposed matrix and of Fourier's transform, errors found in
        // random updates: the summary at the end of what it writes.
        results: |_, directory| {
            const NAMES: [&str; 11] = [
                "Success",
                "HPL_RnormI",
                "HPL_Anorm1",
                "HPL_AnormI",
                "HPL_Xnorm1",
                "HPL_XnormI",
                "HPL_BnormI",
                "PTRANS_residual",
                "MPIRandomAccess_LCG_Errors",
                "MPIRandomAccess_Errors",
                "MPIFFT_maxErr",
            ];
            let written = take(directory, "hpccoutf.txt");
            let is_result =
                |line: &&str| line.split_once('=').is_some_and(|(name, _)| NAMES.contains(&name));
            let results: Vec<String> =
                written.lines().filter(is_result).map(str::to_owned).collect();
            assert_eq!(results.len(), NAMES.len(), "{written}");
            assert_eq!(results[0], "Success=1", "{written}");
            results
        },
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn cp2k_computes_the_same() {
    compare(&Application {
        name: "CP2K",
        package: "cp2k",
        input: ("water.inp", include_str!("applications/water.inp")),
        command: "cp2k.psmp water.inp",
        // Where the atoms of two molecules of water are after each step, and the energy there.
        results: |printed, directory| {
            let places = take(directory, "water-pos-1.xyz");
            let _ = fs::remove_file(directory.join("water-RESTART.wfn"));
            let is_energy = |line: &&str| line.contains("ENERGY| Total FORCE_EVAL");
            let energies = printed.lines().filter(is_energy);
            let results: Vec<String> = energies.chain(places.lines()).map(str::to_owned).collect();
            assert!(results.len() > 40, "{printed}");
            results
        },
    });
}
