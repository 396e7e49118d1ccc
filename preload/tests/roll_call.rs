//! A job in which only some processes have the library runs as without it, and says so once.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::thread;

use common::{TestFolder, TestLibrary, assert_success, stderr, stdout};

/// Ranks of each command, and whether it has the library; the rank that is named as without.
type StartedJob = (&'static [(u32, bool)], &'static str);

const JOBS: [StartedJob; 3] = [
    (&[(1, true), (1, false)], "rank 1"),
    (&[(1, false), (1, true)], "rank 0"),
    (&[(1, false), (2, true), (1, false)], "rank 0"),
];

/// They wait rather than work, so that they run at the same time.
fn runs_untuned(family: TestLibrary) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = bench.compile("roll_call.c", &["-Wall", "-Werror"]).unwrap();
    let program = program.to_str().unwrap();
    thread::scope(|scope| {
        for (commands, missing) in JOBS {
            let bench = &bench;
            scope.spawn(move || {
                let force = ("COLIBRI_FORCE", "allreduce=own:linear;bcast=own:linear");
                let output = bench.run_several(20, commands, &[force], program);
                assert_success(&output);
                let (words, said) = (stdout(&output), stderr(&output));
                let ranks: u32 = commands.iter().map(|(ranks, _)| ranks).sum();
                // Launchers may mix the ends of the ranks' lines.
                assert_eq!(words.replace('\n', ""), "right".repeat(ranks as usize), "{said}");
                let lines: Vec<_> = said.lines().filter(|line| line.contains("colibri")).collect();
                let [line] = lines[..] else { panic!("{said}") };
                assert!(line.contains(&format!("{missing} of the job is without")), "{said}");
            });
        }
    });
}

#[test]
fn open_mpi() {
    runs_untuned(TestLibrary::OpenMpi);
}

/// Intel's errors return by another handle than the ABI's.
#[test]
fn intel_mpi_by_the_abi_of_mpi_5() {
    runs_untuned(TestLibrary::IntelAbi);
}

#[test]
fn mpich() {
    runs_untuned(TestLibrary::Mpich);
}
