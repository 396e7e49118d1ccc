//! Applications as Debian has them, under the preload library with methods of shared memory, and with methods that are
//! tried while they run: the same results as without, and their time in collectives beside each other.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{fs, process::Command};

use common::{FORCE_SHARED, TestFolder, TestLibrary, assert_success, skipped, stdout};
use records::{learned::store, usage::Usage};

/// Atoms that repel each other: 4,000 of them, 2,000 steps; what is printed depends on every one.
const LIQUID: &str = "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 10 0 10 0 10\n\
                      create_box 1 box\ncreate_atoms 1 box\nmass 1 1.0\n\
                      velocity all create 1.44 87287 loop geom\npair_style lj/cut 2.5\n\
                      pair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\n\
                      neigh_modify every 20 delay 0 check no\nfix 1 all nve\nthermo 1\nrun 2000\n";

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

/// Runs a program without methods of ours and with them, by turns; its results are the same.
fn compare(name: &str, bench: &TestFolder, run: impl Fn(&[(&str, &str)]) -> Ended) {
    let directory = bench.folder.path().join("learned");
    let adapt = [("COLIBRI_ADAPT", directory.to_str().unwrap())];
    let ways = [&[][..], &[("COLIBRI_FORCE", FORCE_SHARED)], &adapt, &adapt];
    let mut seconds = [const { Vec::new() }; 4];
    for _ in 0..3 {
        let _ = fs::remove_dir_all(&directory);
        let all = ways.map(&run);
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

/// The folder of an application that is installed.
fn folder(program: &str) -> Option<TestFolder> {
    let is_there = Command::new("which").arg(program).output().is_ok_and(|it| it.status.success());
    if !is_there {
        skipped(program, &format!("no {program} here (Debian: lammps)"));
        return None;
    }
    TestFolder::new(TestLibrary::OpenMpi)
}

fn run_in(bench: &TestFolder, variables: &[(&str, &str)], command: &str) -> (String, Usage) {
    let directory = bench.folder.path();
    let trace = directory.join("usage.json");
    let mut variables = variables.to_vec();
    variables.push(("COLIBRI_TRACE", trace.to_str().unwrap()));
    let command = format!("cd '{}' && exec {command}", directory.display());
    let output = bench.run(2, true, &variables, &["sh", "-c", &command]);
    assert_success(&output);
    (stdout(&output), common::usage(&trace))
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn lammps_computes_the_same() {
    let Some(bench) = folder("lmp") else { return };
    fs::write(bench.folder.path().join("in.liquid"), LIQUID).unwrap();
    compare("LAMMPS", &bench, |variables| {
        let (printed, usage) = run_in(&bench, variables, "lmp -in in.liquid");
        // Step, temperature, energies and pressure.
        let is_step = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok())
        };
        let results: Vec<String> = printed.lines().filter(is_step).map(str::to_owned).collect();
        assert_eq!(results.len(), 2001, "{printed}");
        Ended { results, usage }
    });
}
