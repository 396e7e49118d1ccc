//! Programs that call all that is caught in every way that MPI allows do the same with the library
//! as without, for every method forced in turn.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeSet, path::Path};

use common::{Bench, Family, assert_success, methods, stdout};
use records::{Collective, Method};

type Round = Vec<(Collective, String)>;

const C: [&str; 2] = ["-Wall", "-Werror"];

/// How Fortran programs reach MPI: options of the compiler.
const FORTRAN: [&[&str]; 3] = [&["-DMPIF"], &["-DUSEMPI"], &["-DF08"]];

/// Settings under which each method is forced once.
fn rounds() -> Vec<Round> {
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

/// What a library does wrong by itself, by the name in the programs' output.
fn own_faults(family: Family) -> &'static [&'static str] {
    match family {
        // Wrong data where long blocks are received by another count than they are sent by (2021.18).
        Family::Intel | Family::IntelAbi => &["allgather"],
        _ => &[],
    }
}

/// Lines that only one of the two has.
fn differences<'a>(one: &'a str, other: &'a str) -> Vec<&'a str> {
    let (one, other): (BTreeSet<&str>, BTreeSet<&str>) =
        (one.lines().collect(), other.lines().collect());
    one.symmetric_difference(&other).copied().collect()
}

/// Gives what was seen to run.
fn conforms(bench: &Bench, program: &Path, ranks: &[u32], rounds: &[Round]) -> BTreeSet<String> {
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
            let status = with.status;
            assert!(status.success(), "{ranks} ranks, {force}: {status} {}", common::stderr(&with));
            let with = stdout(&with);
            let mut differences = differences(&without, &with);
            differences.retain(|line| {
                let name = line.split_once(' ').and_then(|(_, rest)| rest.rsplit_once(' '));
                !name.is_some_and(|(name, _)| own_faults(bench.family).contains(&name))
            });
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

/// The program in C named first, on any library.
fn c_conforms(family: Family, source: &str, ranks: &[u32], rounds: &[Round]) {
    let Some(bench) = Bench::new(family) else { return };
    let program = bench.compile(source, &C).unwrap();
    conforms(&bench, &program, ranks, rounds);
}

/// The Fortran program by each interface, which take the rounds in turn.
fn fortran_conforms(family: Family, ranks: &[u32], rounds: &[Round], is_whole: bool) {
    let Some(bench) = Bench::new(family) else { return };
    for (index, interface) in FORTRAN.iter().enumerate() {
        let mut options = vec!["-fallow-argument-mismatch", "-ffree-line-length-none"];
        options.extend(*interface);
        if family == Family::Mpich {
            options.push("-DMPICH_CRASHES");
        }
        if family == Family::Mpich && interface.contains(&"-DF08") {
            options.push("-DLARGE");
        }
        let Some(program) = bench.compile("conformance.F90", &options) else { return };
        let its = |round: &usize| is_whole || round % FORTRAN.len() == index;
        let rounds: Vec<Round> =
            (0..rounds.len()).filter(its).map(|round| rounds[round].clone()).collect();
        conforms(&bench, &program, ranks, &rounds);
    }
}

#[test]
fn open_mpi() {
    let Some(bench) = Bench::new(Family::OpenMpi) else { return };
    let rounds = rounds();
    let program = bench.compile("conformance.c", &C).unwrap();
    let seen = conforms(&bench, &program, &[3], &rounds);
    all_ran(&seen);
    conforms(&bench, &program, &[1, 2, 8], &rounds[..1]);
}

#[test]
fn open_mpi_rare_calls() {
    c_conforms(Family::OpenMpi, "edges.c", &[3], &rounds());
    c_conforms(Family::OpenMpi, "edges.c", &[1, 2, 4], &rounds()[1..2]);
}

#[test]
fn open_mpi_fortran() {
    fortran_conforms(Family::OpenMpi, &[3], &rounds()[..6], false);
}

#[test]
fn mpich() {
    c_conforms(Family::Mpich, "conformance.c", &[1], &rounds()[..1]);
    c_conforms(Family::Mpich, "conformance.c", &[2], &rounds()[..2]);
}

#[test]
fn mpich_rare_calls() {
    c_conforms(Family::Mpich, "edges.c", &[2], &rounds()[2..4]);
}

#[test]
fn mpich_fortran() {
    fortran_conforms(Family::Mpich, &[2], &rounds()[4..7], false);
}

/// One library of PyPI, by a part of the methods: the way in is what differs between libraries.
fn other_library(family: Family, rounds: &[Round]) {
    c_conforms(family, "conformance.c", &[2], &rounds[..1]);
    c_conforms(family, "edges.c", &[2], &rounds[1..2]);
}

#[test]
fn open_mpi_5() {
    other_library(Family::OpenMpi5, &rounds()[..2]);
}

#[test]
fn abi_of_mpi_5() {
    other_library(Family::Mpich5Abi, &rounds()[2..4]);
}

#[test]
fn intel_mpi() {
    other_library(Family::Intel, &rounds()[4..6]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_at_every_size() {
    let Some(bench) = Bench::new(Family::OpenMpi) else { return };
    let program = bench.compile("conformance.c", &C).unwrap();
    let seen = conforms(&bench, &program, &[1, 2, 3, 4, 5, 6, 7, 8], &rounds());
    all_ran(&seen);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_rare_calls_at_every_size() {
    c_conforms(Family::OpenMpi, "edges.c", &[1, 2, 3, 4, 5, 6, 7, 8], &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_fortran_at_every_size() {
    fortran_conforms(Family::OpenMpi, &[1, 2, 3, 4, 8], &rounds(), true);
}

#[test]
#[ignore = "takes minutes, since waiting ranks of MPICH keep the processors: make test-preload"]
fn mpich_at_every_size() {
    c_conforms(Family::Mpich, "conformance.c", &[1, 2, 3, 4], &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_rare_calls_at_every_size() {
    c_conforms(Family::Mpich, "edges.c", &[1, 2, 3, 4], &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_fortran_at_every_size() {
    fortran_conforms(Family::Mpich, &[1, 2, 3], &rounds(), true);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn other_libraries_at_every_size() {
    use Family::{Intel, IntelAbi, Mpich5, Mpich5Abi, OpenMpi5};
    let rounds = rounds();
    for family in [OpenMpi5, Mpich5, Mpich5Abi, Intel, IntelAbi] {
        // By that ABI's header a program can't tell what Intel MPI crashes on.
        let sources = if family == IntelAbi { 1 } else { 2 };
        for source in &["conformance.c", "edges.c"][..sources] {
            c_conforms(family, source, &[1, 2], &rounds);
            c_conforms(family, source, &[3, 4], &rounds[..2]);
        }
    }
}
