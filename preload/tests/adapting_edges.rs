//! Methods are tried while an application runs that does what is rare: refused calls, more communicators than fit a
//! table, threads that wait for each other.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{fs, process::Output};

use common::{TestFolder, TestLibrary, assert_success, stderr, stdout};
use records::{
    Collective, Method, RangeMethod, Ranges, SizeRange, document, profile::Profile, usage::Calls,
};

const LIBRARIES: [TestLibrary; 2] = [TestLibrary::OpenMpi, TestLibrary::Mpich];
const RANKS: u32 = 2;
const LONGEST_SECONDS: u32 = 60;

/// `behind`: a library behind `libcolibri.so`.
fn run(
    family: TestLibrary,
    behind: &str,
    words: &[&str],
    variables: &[(&str, &str)],
) -> Option<Output> {
    let mut bench = TestFolder::alone(family)?;
    let program = bench.compile("adapting_edges.c", &["-Wall", "-Werror", "-rdynamic"]).unwrap();
    bench.behind = bench.compile(behind, &["-Wall", "-Werror", "-shared", "-fPIC"]);
    let directory = bench.folder.path().join("learned");
    let all = [&[("COLIBRI_ADAPT", directory.to_str().unwrap())], variables].concat();
    let words = [&[program.to_str().unwrap()], words].concat();
    let output = bench.run_within(LONGEST_SECONDS, RANKS, true, &all, &words);
    assert_success(&output);
    Some(output)
}

/// The library's broadcast takes a millisecond, any method a hundredth of that.
#[test]
fn a_rank_that_is_refused_calls_stays_in_step() {
    for family in LIBRARIES {
        let slow = [
            ("SLOWED_BCAST", "1000"),
            ("COLIBRI_ADAPT_REPORT", "1"),
            ("COLIBRI_ADAPT_BUDGET", "50%"),
        ];
        let Some(output) = run(family, "slowed.c", &["refused", "2000"], &slow) else { continue };
        let said = stderr(&output);
        assert!(!said.contains("no method is tried any more"), "{family:?}: {said}");
        assert!(said.contains("times as fast"), "{family:?}: {said}");
    }
}

/// No method is tried on them, and nothing is asked there that one group alone would answer.
#[test]
fn inter_communicators_are_left_alone() {
    for family in LIBRARIES {
        run(family, "sums.c", &["inter", "2500"], &[]);
    }
}

/// Each is at another place of the table by handle on each rank.
#[test]
fn methods_by_turns_are_the_same_on_all_ranks() {
    for family in LIBRARIES {
        let turns = [("COLIBRI_ADAPT_TURNS", "1")];
        run(family, "sums.c", &["many", "100", "30"], &turns);
    }
}

/// MPI would write the sums to memory that is another's by then.
#[test]
fn what_is_under_way_ends_before_a_communicator_is_freed() {
    let variables = [("COLIBRI_ADAPT_TURNS", "1"), ("COLIBRI_SHARED_MEMORY", "0")];
    // MPICH has room for fewer than the table.
    let Some(output) = run(TestLibrary::OpenMpi, "sums.c", &["many", "1200", "4"], &variables)
    else {
        return;
    };
    let numbers = stdout(&output);
    let mut numbers = numbers.split_whitespace().map(|number| number.parse::<u32>().unwrap());
    let (begun, left) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert!(begun > 2 * 1200, "only {begun} sums");
    assert_eq!(left, 0, "sums that nobody waited for");
}

/// A job that explores beside a profile of broadcasts: what it said, and its calls.
fn run_beside_profile(
    family: TestLibrary,
    program: &str,
    words: &[&str],
    ranges: Ranges<RangeMethod>,
) -> Option<(String, Vec<Calls>)> {
    let bench = TestFolder::alone(family)?;
    let program = bench.compile(program, &["-Wall", "-Werror", "-rdynamic"]).unwrap();
    let place = |name: &str| bench.folder.path().join(name);
    let [profiles, trace, directory] = ["profiles", "usage.json", "learned"].map(place);
    fs::create_dir(&profiles).unwrap();
    let profile = Profile::new(Collective::Bcast, RANKS, ranges);
    document::write(&profiles.join("bcast.json"), &profile).unwrap();
    let variables = [
        ("COLIBRI_PROFILES", profiles.to_str().unwrap()),
        ("COLIBRI_ADAPT", directory.to_str().unwrap()),
        ("COLIBRI_TRACE", trace.to_str().unwrap()),
    ];
    let words = [&[program.to_str().unwrap()], words].concat();
    let output = bench.run_within(LONGEST_SECONDS, RANKS, true, &variables, &words);
    assert_success(&output);
    Some((stderr(&output), common::usage(&trace).calls))
}

/// Two threads on one communicator: nothing is tried any more, but what was confirmed before is used.
#[test]
fn what_a_profile_names_holds_where_exploring_is_given_up() {
    for family in LIBRARIES {
        let binomial = "own:binomial".parse::<Method>().unwrap();
        let ranges = Ranges::from_starts([(1, binomial.into())].into(), 1 << 20);
        let words = ["4000", "threads"];
        let Some((said, calls)) = run_beside_profile(family, "adapting.c", &words, ranges) else {
            continue;
        };
        assert!(said.contains("no method is tried any more"), "{family:?}: {said}");
        let (mut by_profile, mut others) = (0, 0);
        for calls in calls {
            match calls.method {
                _ if calls.point.collective != Collective::Bcast => {}
                Method::Own(_) => by_profile += calls.calls,
                _ => others += calls.calls,
            }
        }
        assert!(by_profile > 9 * others, "{family:?}: {by_profile} by the profile, {others} not");
    }
}

/// What was confirmed for some sizes is used for these alone, though exploring takes the sizes from one power of two to
/// the next together.
#[test]
fn a_profile_holds_for_its_own_sizes() {
    for family in LIBRARIES {
        let linear: Method = "own:linear".parse().unwrap();
        let ranges = vec![SizeRange::new(3000, 3999, linear.clone())].try_into().unwrap();
        let words = ["sizes", "4000"];
        let Some((_, calls)) = run_beside_profile(family, "adapting_edges.c", &words, ranges)
        else {
            continue;
        };
        let mut profiled = 0;
        for calls in calls {
            let is_profiled = (3000..4000).contains(&calls.point.bytes);
            assert!(is_profiled || calls.method == Method::Default, "{family:?}: {calls:?}");
            profiled += u64::from(is_profiled && calls.method == linear) * calls.calls;
        }
        assert!(profiled > 1900, "{family:?}: {profiled} of 2000 by the profile");
    }
}

#[test]
fn a_new_communicator_does_not_wait_for_a_thread_on_another() {
    for family in LIBRARIES {
        run(family, "sums.c", &["threads"], &[("COLIBRI_ADAPT_TURNS", "1")]);
    }
}
