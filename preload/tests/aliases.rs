//! Calls that are wrong by MPI but that libraries answer end in bounded time under every method,
//! with the library's own error classes; what comes out right without the library does so with it.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{slice, time::Instant};

use common::{FORCE_SHARED, TestFolder, TestLibrary, assert_success, methods, stderr, stdout};
use records::Method;
use runner::ScheduledMethod;

/// Names of calls and ranks, each with its error class and whether the data is right.
fn outcomes(text: &str) -> Vec<(&str, &str, bool)> {
    let outcomes: Vec<_> = text
        .lines()
        .map(|line| {
            let (call, outcome) = line.rsplit_once(": class ").unwrap();
            let (class, right) = outcome.split_once(' ').unwrap();
            (call, class, right == "right")
        })
        .collect();
    assert!(outcomes.len() > 100, "{text}");
    outcomes
}

/// The collectives whose methods do not carry out the calls of the program: then they are the
/// library's with all that it makes of them, a crash and a hang included.
fn left(family: TestLibrary, ranks: u32, force: &str) -> String {
    let forced = force.split(';').filter_map(|forced| forced.split_once('='));
    let is_left = |collective: &str, method: &str| match method.parse() {
        Ok(Method::Own(own)) => ScheduledMethod::new(collective.parse().unwrap(), &own)
            .is_ok_and(|own| own.check_ranks(ranks).is_err()),
        _ => family == TestLibrary::Mpich && method == "mockup:gather_as_reduce",
    };
    let names = forced.filter(|(collective, method)| is_left(collective, method));
    names.map(|(collective, _)| collective).collect::<Vec<_>>().join(" ")
}

/// What a job may take that carries out every call by one set of methods: a hang is longer.
const LONGEST_RUN_SECONDS: u32 = 20;

/// Forces every method of each collective at each of these numbers of ranks.
fn answered(family: TestLibrary, sizes: &[u32]) {
    let methods = methods();
    let most = methods.values().map(Vec::len).max().unwrap();
    let round = |round: usize| {
        let each = methods
            .iter()
            .map(|(collective, names)| format!("{collective}={}", names[round % names.len()]));
        each.collect::<Vec<_>>().join(";")
    };
    answered_by(family, sizes, &(0..most).map(round).collect::<Vec<_>>());
}

/// Forces each of these sets of methods at each of these numbers of ranks.
fn answered_by(family: TestLibrary, sizes: &[u32], sets: &[String]) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = bench.compile("aliases.c", &["-Wall", "-Werror"]).unwrap();
    let program = program.to_str().unwrap();
    for &ranks in sizes {
        let began = Instant::now();
        let longest = LONGEST_RUN_SECONDS;
        let native = bench.run_within(longest, ranks, false, &[], &[program, "native"]);
        assert_success(&native);
        let native = stdout(&native);
        let native = outcomes(&native);
        for force in sets {
            let left = left(family, ranks, force);
            let words = [program, &left];
            let forced = [("COLIBRI_FORCE", &**force)];
            let with = bench.run_within(longest, ranks, true, &forced, &words);
            assert!(with.status.success(), "{ranks} ranks, {force}: {}", stderr(&with));
            let with = stdout(&with);
            let with = outcomes(&with);
            assert_eq!(native.len(), with.len(), "{ranks} ranks, {force}");
            // What the library makes of one buffer may hang on whose message comes first.
            let is_left = |call: &str| left.split(' ').any(|of| call.split(' ').next() == Some(of));
            let is_worse = |(native, with): &(&(&str, &str, bool), &(&str, &str, bool))| {
                native.1 != with.1 || (native.2 && !with.2 && !is_left(native.0))
            };
            let worse: Vec<_> = native.iter().zip(&with).filter(is_worse).collect();
            assert!(worse.is_empty(), "{ranks} ranks, {force}: {worse:#?}");
        }
        let seconds = began.elapsed().as_secs();
        println!("{family:?}, {ranks} ranks: {} sets of methods, {seconds} s", sets.len());
    }
}

#[test]
fn open_mpi() {
    answered(TestLibrary::OpenMpi, &[3]);
}

#[test]
fn mpich() {
    answered(TestLibrary::Mpich, &[3]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_by_every_method() {
    answered(TestLibrary::OpenMpi, &[2, 4]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_by_every_method() {
    answered(TestLibrary::Mpich, &[2, 4]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn by_shared_memory_at_every_size() {
    use TestLibrary::{Intel, Mpich, Mpich5, OpenMpi, OpenMpi5};
    // What has no method of shared memory is not left to the library, which crashes in some of these calls.
    let all = format!("{FORCE_SHARED};scan=own:linear;exscan=own:linear;reduce_scatter=own:ring");
    for family in [OpenMpi, Mpich, OpenMpi5, Mpich5, Intel] {
        answered_by(family, &[2, 3, 4, 5, 6, 7, 8], slice::from_ref(&all));
    }
}
