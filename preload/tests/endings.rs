//! How programs begin and end, and what stands beside the library: the same with it as without.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::process::Command;

use common::{TestFolder, TestLibrary, assert_success, stderr, stdout};
use records::Collective;

const FORCE: &str = "bcast=own:binomial;allreduce=own:ring;barrier=own:bruck;\
                     allgather=mockup:allgather_as_gather_bcast";

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Each way of `endings.c`, on so many ranks.
fn ends_alike(family: TestLibrary, ranks: u32, ways: &[&str]) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = bench.compile("endings.c", &["-Wall", "-Werror"]).unwrap();
    let mut aside = 0;
    for way in ways {
        let program = [program.to_str().unwrap(), way];
        let natively = bench.longest_natively_seconds;
        let without = bench.run_within(natively, ranks, false, &[], &program);
        let has_to_fail = ["abort", "fatal"].contains(way);
        if without.status.success() == has_to_fail {
            println!("{family:?} by itself ends '{way}' wrongly: set aside\n{}", stderr(&without));
            aside += 1;
            assert!(aside <= ways.len() / 4, "{family:?}: {aside} of {ways:?} would be set aside");
            continue;
        }
        let with = bench.run(ranks, true, &[("COLIBRI_FORCE", FORCE)], &program);
        let told = format!("{family:?} {way}: {}\n{}", with.status, stderr(&with));
        assert_eq!(with.status.code(), without.status.code(), "{told}");
        if has_to_fail {
            // What the others had printed may be lost.
            assert!(!with.status.success(), "{told}");
            continue;
        }
        let (with, without) = (stdout(&with), stdout(&without));
        assert_eq!(lines(&with), lines(&without), "{told}");
        assert!(!with.is_empty(), "{told}");
    }
}

/// An exception that the program's error handler throws comes to the program, whoever finds the error.
#[test]
fn exceptions_of_error_handlers_reach_the_program() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { return };
        let options = ["-Wall", "-Werror", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-lstdc++"];
        let program = bench.compile("throws.cpp", &options).unwrap();
        let program = [program.to_str().unwrap()];
        let learned = tempfile::tempdir().unwrap();
        let learned = learned.path().to_str().unwrap();
        for set in [
            &[][..],
            &[("COLIBRI_FORCE", FORCE)],
            &[("COLIBRI_FORCE", "allreduce=own:shared-slices;bcast=own:linear")],
            &[("COLIBRI_ADAPT", learned)],
            &[("COLIBRI_ADAPT", learned), ("COLIBRI_ADAPT_TURNS", "1")],
        ] {
            let output = bench.run(2, !set.is_empty(), set, &program);
            assert_success(&output);
            let by_turns = set.iter().any(|(name, _)| *name == "COLIBRI_ADAPT_TURNS");
            let too_long = (!by_turns).then_some("too long: caught");
            let caught = ["no such root: caught", "no operation: caught"].into_iter();
            let wanted: Vec<&str> = caught.chain(too_long).chain(["repeated: right"]).collect();
            assert_eq!(stdout(&output).lines().collect::<Vec<_>>(), wanted, "{family:?} {set:?}");
        }
    }
}

const WAYS: [&str; 7] =
    ["none", "alive", "disconnected", "serialized", "pcontrol", "abort", "fatal"];

#[test]
fn open_mpi() {
    ends_alike(TestLibrary::OpenMpi, 3, &WAYS);
}

#[test]
fn mpich() {
    ends_alike(TestLibrary::Mpich, 2, &WAYS);
}

/// Children that were started without the library don't answer it.
#[test]
fn children_with_and_without_the_library() {
    ends_alike(TestLibrary::OpenMpi, 2, &["spawn", "spawn bare"]);
}

#[test]
#[ignore = "more ranks of MPICH than processors: make test-preload"]
fn children_of_mpich() {
    // Debian's 4.0 can't spawn by itself.
    ends_alike(TestLibrary::Mpich5, 2, &["spawn", "spawn bare"]);
}

/// Programs that never call `MPI_Init`, or that do so beside a session.
#[test]
fn sessions() {
    ends_alike(TestLibrary::Mpich, 2, &["session", "session beside"]);
    ends_alike(TestLibrary::OpenMpi5, 2, &["session", "session beside"]);
}

/// A part of a program that keeps its MPI library to itself.
#[test]
fn mpi_loaded_late() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        let part = bench.compile("caught.c", &["-shared", "-fPIC", "-Dmain=run"]).unwrap();
        let program = bench.folder.path().join("loads");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loads.c");
        let output = Command::new("cc").arg("-o").arg(&program).args([source, "-ldl"]).output();
        assert_success(&output.unwrap());
        let trace = bench.folder.path().join("usage.json");
        let variables = [("COLIBRI_FORCE", FORCE), ("COLIBRI_TRACE", trace.to_str().unwrap())];
        let words = [program.to_str().unwrap(), part.to_str().unwrap()];
        assert_success(&bench.run(2, true, &variables, &words));
        let usage = common::usage(&trace);
        let bcast = usage.calls.iter().find(|calls| calls.point.collective == Collective::Bcast);
        let bcast = bcast.unwrap();
        assert_eq!((bcast.calls, bcast.method.to_string()), (3, "own:binomial".into()));
    }
}

/// A tool before the library sees each call once, as does the library.
#[test]
fn a_tool_of_the_profiling_interface() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        let tool = bench.compile("tool.c", &["-shared", "-fPIC", "-Wall"]).unwrap();
        let program = bench.compile("caught.c", &[]).unwrap();
        let (tool, library) = (tool.display().to_string(), common::library());
        let trace = bench.folder.path().join("usage.json");
        let both = format!("{tool}:{}", library.display());
        let variables = [
            ("LD_PRELOAD", &*both),
            ("COLIBRI_FORCE", FORCE),
            ("COLIBRI_TRACE", trace.to_str().unwrap()),
        ];
        let output = bench.run(2, false, &variables, &[program.to_str().unwrap()]);
        assert_success(&output);
        assert_eq!(lines(&stdout(&output)), ["0 saw 3 3 3", "1 saw 3 3 3"]);
        let usage = common::usage(&trace);
        assert!(usage.calls.iter().all(|calls| calls.calls == 3), "{usage:?}");

        // The other way round the tool misses what is caught here, and nothing breaks.
        let both = format!("{}:{tool}", library.display());
        let variables = [("LD_PRELOAD", &*both), ("COLIBRI_FORCE", FORCE)];
        assert_success(&bench.run(2, false, &variables, &[program.to_str().unwrap()]));
    }
}

/// The trace is gathered where no message of the application's can be.
#[test]
fn a_message_left_behind_does_not_meet_the_trace() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("left_behind.c", &["-Wall", "-Werror"]).unwrap();
        let words = [program.to_str().unwrap()];
        let without = bench.run_within(60, 3, false, &[], &words);
        assert_success(&without);
        let trace = bench.folder.path().join("usage.json");
        let variables = [("COLIBRI_TRACE", trace.to_str().unwrap())];
        let with = bench.run_within(60, 3, true, &variables, &words);
        assert_success(&with);
        // MPICH's transport may tell of the message, too.
        let said = stdout(&with);
        let ended = said.lines().filter(|line| line.ends_with(" ended"));
        assert_eq!(ended.count(), 3, "{said}{}", stderr(&with));
        let usage = common::usage(&trace);
        let barriers =
            usage.calls.iter().filter(|calls| calls.point.collective == Collective::Barrier);
        assert_eq!(barriers.map(|calls| calls.calls).sum::<u64>(), 1, "{usage:?}");
    }
}

/// More than 2^31 bytes in a message.
#[test]
#[ignore = "takes 10 GB of memory and a minute: make test-preload"]
fn long_messages() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("large.c", &["-Wall", "-Werror"]).unwrap();
        for force in [
            "bcast=own:pipeline,segment=1MiB;allgather=own:ring;allreduce=own:ring",
            "bcast=own:linear;allgather=own:bruck;allreduce=own:rabenseifner",
            "bcast=own:scatter-allgather;allgather=own:recursive-doubling;\
             allreduce=own:recursive-doubling",
            "bcast=bcast_as_allgatherv;allgather=allgather_as_allgatherv;\
             allreduce=allreduce_as_reduce_bcast",
        ] {
            let variables = [("COLIBRI_FORCE", force), ("COLIBRI_MEMORY", "8GiB")];
            let output = bench.run(2, true, &variables, &[program.to_str().unwrap()]);
            assert_success(&output);
            let text = stdout(&output);
            assert!(text.lines().count() >= 10, "{family:?} {force}: {text}");
            assert!(!text.contains("WRONG"), "{family:?} {force}: {text}");
        }
    }
}
