//! A collective's first two calls on a communicator are the MPI library's, and until the third nothing is made
//! for it.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeMap, fs, path::PathBuf};

use common::{TestFolder, TestLibrary, assert_success, stdout};
use records::{Collective, Method, Ranges, document, profile::Profile, usage::Calls};

const LIBRARIES: [TestLibrary; 2] = [TestLibrary::OpenMpi, TestLibrary::Mpich];

const METHODS: [(Collective, &str); 2] =
    [(Collective::Bcast, "own:binomial"), (Collective::Reduce, "own:linear")];

const LONGEST_SECONDS: u32 = 90;

/// One method of each collective on every number of processes up to four.
fn profiles(bench: &TestFolder) -> PathBuf {
    let folder = bench.folder.path().join("profiles");
    fs::create_dir(&folder).unwrap();
    for (collective, method) in METHODS {
        for procs in 1..=4 {
            let method: Method = method.parse().unwrap();
            let ranges = Ranges::from_starts([(1, method.into())].into(), 1 << 20);
            let path = folder.join(format!("{collective}-{procs}.json"));
            document::write(&path, &Profile::new(collective, procs, ranges)).unwrap();
        }
    }
    folder
}

/// Calls of bcast by number of processes: the library's, and by a method.
type CallsByProcs = BTreeMap<u32, (u64, u64)>;

/// However a communicator is made and freed, and whatever its handle was before.
#[test]
fn methods_hold_from_the_third_call_on() {
    for family in LIBRARIES {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("new_communicators.c", &["-Wall", "-Werror"]).unwrap();
        let (profiles, trace) = (profiles(&bench), bench.folder.path().join("usage.json"));
        let words = [program.to_str().unwrap(), "made"];
        let variables = [
            ("COLIBRI_PROFILES", profiles.to_str().unwrap()),
            ("COLIBRI_TRACE", trace.to_str().unwrap()),
        ];
        let ranks = 4;
        let output = bench.run_within(LONGEST_SECONDS, ranks, true, &variables, &words);
        assert_success(&output);
        let wanted: CallsByProcs = stdout(&output)
            .lines()
            .map(|line| {
                let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
                (numbers[0] as u32, (numbers[1], numbers[2]))
            })
            .filter(|(_, calls)| *calls != (0, 0))
            .collect();
        let has_both = |(procs, (first, later)): (&u32, &(u64, u64))| {
            *first > 10 && (*later > 10) != (*procs == 1)
        };
        assert!(wanted.iter().all(has_both), "{wanted:?}");
        let mut seen = CallsByProcs::new();
        let usage = common::usage(&trace);
        for calls in usage.calls.iter().filter(|calls| calls.point.collective == Collective::Bcast)
        {
            let seen = seen.entry(calls.point.layout.procs()).or_default();
            match &calls.method {
                Method::Default => seen.0 += calls.calls,
                method => {
                    assert_eq!(method.to_string(), METHODS[0].1);
                    seen.1 += calls.calls;
                }
            }
        }
        assert_eq!(seen, wanted, "{family:?}");
        // The same where nothing is noted; the program checks the data.
        assert_success(&bench.run_within(LONGEST_SECONDS, ranks, true, &variables[..1], &words));
    }
}

/// The preload library's allreduces and splits: as many as of the world alone.
#[test]
fn nothing_is_made_for_a_communicator_of_two_calls() {
    for family in LIBRARIES {
        let Some(mut bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("new_communicators.c", &["-Wall", "-Werror"]).unwrap();
        let counts = ["-shared", "-fPIC", "-Wall", "-Werror", "-DCOUNTS"];
        bench.behind = bench.compile("shim.c", &counts);
        let profiles = profiles(&bench);
        let made_on = |ranks: u32, number: &str, variable: (&str, &str)| -> (u64, u64) {
            let words = [program.to_str().unwrap(), "few", number];
            let output = bench.run_within(LONGEST_SECONDS, ranks, true, &[variable], &words);
            assert_success(&output);
            let text = stdout(&output);
            let words: Vec<&str> = text.split_whitespace().collect();
            (words[1].parse().unwrap(), words[3].parse().unwrap())
        };
        let made_by = |number: &str, variable| made_on(2, number, variable);
        let profiles = ("COLIBRI_PROFILES", profiles.to_str().unwrap());
        let (none, ten) = (made_by("0", profiles), made_by("10", profiles));
        assert_eq!(ten, (none.0 + 10, none.1 + 10), "{family:?}: those of three calls");
        // What is forced holds at once.
        let forced = ("COLIBRI_FORCE", "bcast=own:binomial");
        let (none, ten) = (made_by("0", forced), made_by("10", forced));
        assert_eq!(ten, (none.0 + 20, none.1 + 20), "{family:?}");
        // Nor for any of one rank but the world.
        for variable in [profiles, forced] {
            let made = ["0", "10"].map(|number| made_on(1, number, variable));
            assert_eq!(made[0], made[1], "{family:?}, {variable:?}");
        }
        // Nor for any at all, where there is nothing to replace.
        let nothing = ("COLIBRI_MEMORY", "1MiB");
        assert_eq!(made_by("10", nothing), made_by("0", nothing), "{family:?}");
    }
}

/// A rank that is refused by the library counts its call when it has repeated it, and never if it goes on with
/// other collectives: these are right on all ranks.
#[test]
fn a_call_that_is_refused_on_one_rank_is_not_counted_there() {
    for family in LIBRARIES {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("new_communicators.c", &["-Wall", "-Werror"]).unwrap();
        let (profiles, trace) = (profiles(&bench), bench.folder.path().join("usage.json"));
        let variables = [
            ("COLIBRI_PROFILES", profiles.to_str().unwrap()),
            ("COLIBRI_TRACE", trace.to_str().unwrap()),
        ];
        for mode in ["repeated", "left"] {
            let words = [program.to_str().unwrap(), mode];
            assert_success(&bench.run_within(LONGEST_SECONDS, 3, false, &[], &words));
            for variables in [&variables[..], &variables[..1]] {
                let output = bench.run_within(LONGEST_SECONDS, 3, true, variables, &words);
                assert_success(&output);
            }
            let usage = common::usage(&trace);
            let by_ours = |calls: &&Calls| calls.method != Method::Default;
            assert!(usage.calls.iter().filter(by_ours).count() > 0, "{family:?}, {mode}");
        }
    }
}

/// A rank that goes on with the same collective is one call behind the others, which may wait for it for ever.
/// But nothing that it receives is wrong.
#[test]
fn what_ranks_agree_on_meets_no_call_of_a_rank_that_is_behind() {
    for family in LIBRARIES {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("new_communicators.c", &["-Wall", "-Werror"]).unwrap();
        let profiles = profiles(&bench);
        let words = [program.to_str().unwrap(), "behind"];
        assert_success(&bench.run_within(LONGEST_SECONDS, 3, false, &[], &words));
        let variables = [("COLIBRI_PROFILES", profiles.to_str().unwrap())];
        let output = bench.run_within(LONGEST_SECONDS, 3, true, &variables, &words);
        assert!(!stdout(&output).contains("WRONG"), "{family:?}: {}", stdout(&output));
    }
}
