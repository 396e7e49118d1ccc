//! A program that calls all that is caught in every way that MPI allows does the same with the
//! library as without, for every method forced in turn.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::collections::BTreeSet;

use common::{Bench, Family, assert_success, methods, stdout};
use records::{Collective, Method};

/// Settings under which each method is forced once.
fn rounds() -> Vec<Vec<(Collective, String)>> {
    let methods = methods();
    let most = methods.values().map(Vec::len).max().unwrap();
    (0..most)
        .map(|round| {
            methods
                .iter()
                .map(|(collective, names)| (*collective, names[round % names.len()].clone()))
                .collect()
        })
        .collect()
}

/// Lines that only one of the two has.
fn differences<'a>(one: &'a str, other: &'a str) -> Vec<&'a str> {
    let (one, other): (BTreeSet<&str>, BTreeSet<&str>) =
        (one.lines().collect(), other.lines().collect());
    one.symmetric_difference(&other).copied().collect()
}

/// Gives what was seen to run.
fn conforms(
    bench: &Bench,
    ranks: &[u32],
    rounds: &[Vec<(Collective, String)>],
) -> BTreeSet<String> {
    let program = bench.compile("conformance.c", &["-Wall", "-Werror"]).unwrap();
    let program = program.to_str().unwrap();
    let trace = bench.folder.path().join("usage.json");
    let mut seen = BTreeSet::new();
    for &ranks in ranks {
        let without = bench.run(ranks, false, &[], &[program]);
        assert_success(&without);
        let without = stdout(&without);
        assert!(without.lines().count() > 50 * ranks as usize, "{without}");
        for round in rounds {
            let force: Vec<String> =
                round.iter().map(|(collective, name)| format!("{collective}={name}")).collect();
            let force = force.join(";");
            let variables =
                [("COLIBRI_FORCE", &*force), ("COLIBRI_TRACE", trace.to_str().unwrap())];
            let with = bench.run(ranks, true, &variables, &[program]);
            assert!(with.status.success(), "{ranks} ranks, {force}: {}", common::stderr(&with));
            let with = stdout(&with);
            let differences = differences(&without, &with);
            assert!(differences.is_empty(), "{ranks} ranks, {force}: {differences:#?}");
            let usage = common::usage(&trace);
            for calls in usage.calls.iter().filter(|calls| calls.method != Method::Default) {
                seen.insert(format!("{} {}", calls.collective, calls.method));
            }
        }
    }
    seen
}

fn all_ran(seen: &BTreeSet<String>) {
    for (collective, names) in methods() {
        for name in names {
            let method: Method = name.parse().unwrap();
            let name = format!("{collective} {method}");
            assert!(seen.contains(&name), "{name} never ran");
        }
    }
}

#[test]
fn open_mpi() {
    let Some(bench) = Bench::new(Family::OpenMpi) else { return };
    let rounds = rounds();
    let seen = conforms(&bench, &[3], &rounds);
    all_ran(&seen);
    conforms(&bench, &[1, 2, 8], &rounds[..1]);
}

#[test]
fn mpich() {
    let Some(bench) = Bench::new(Family::Mpich) else { return };
    let rounds = rounds();
    conforms(&bench, &[1], &rounds[..1]);
    conforms(&bench, &[2], &rounds[..2]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_at_every_size() {
    let Some(bench) = Bench::new(Family::OpenMpi) else { return };
    let seen = conforms(&bench, &[1, 2, 3, 4, 5, 6, 7, 8], &rounds());
    all_ran(&seen);
}

#[test]
#[ignore = "takes minutes, since waiting ranks of MPICH keep the processors: make test-preload"]
fn mpich_at_every_size() {
    let Some(bench) = Bench::new(Family::Mpich) else { return };
    conforms(&bench, &[1, 2, 3, 4], &rounds());
}
