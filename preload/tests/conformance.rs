//! Programs that call all that is caught in every way that MPI allows do the same with the library
//! as without, for every method forced in turn.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeSet, env, fmt::Display, path::Path, time::Instant};

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

/// `COLIBRI_FORCE` for a round.
fn force(round: &Round) -> String {
    let each: Vec<String> =
        round.iter().map(|(collective, name)| format!("{collective}={name}")).collect();
    each.join(";")
}

/// Those of these numbers of ranks that `RANKS` names, where it is set: to go in parts.
fn sizes(all: &[u32]) -> Vec<u32> {
    let Ok(wanted) = env::var("RANKS") else { return all.to_vec() };
    let wanted: Vec<u32> = wanted.split_whitespace().map(|word| word.parse().unwrap()).collect();
    all.iter().copied().filter(|ranks| wanted.contains(ranks)).collect()
}

/// Gives what was seen to run.
fn conforms(bench: &Bench, program: &Path, ranks: u32, rounds: &[Round]) -> BTreeSet<String> {
    let began = Instant::now();
    let name = program.file_stem().unwrap().display();
    let program = program.to_str().unwrap();
    let trace = bench.folder.path().join("usage.json");
    let mut seen = BTreeSet::new();
    let without = bench.run(ranks, false, &[], &[program]);
    assert_success(&without);
    let without = stdout(&without);
    assert!(without.lines().count() > 50 * ranks as usize, "{without}");
    for round in rounds {
        let force = force(round);
        let variables = [("COLIBRI_FORCE", &*force), ("COLIBRI_TRACE", trace.to_str().unwrap())];
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
    told(bench.family, &name, ranks, rounds.len(), began);
    seen
}

/// For whoever waits (`--nocapture`).
fn told(family: Family, program: &dyn Display, ranks: u32, rounds: usize, began: Instant) {
    let seconds = began.elapsed().as_secs();
    println!("{family:?}, {program}, {ranks} ranks: {rounds} sets of methods, {seconds} s");
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

/// The program in C named first, on any library. Gives what was seen to run.
fn c_conforms(
    family: Family,
    source: &str,
    ranks: &[u32],
    rounds: &[Round],
) -> Option<BTreeSet<String>> {
    let bench = Bench::new(family)?;
    let program = bench.compile(source, &C).unwrap();
    Some(ranks.iter().flat_map(|ranks| conforms(&bench, &program, *ranks, rounds)).collect())
}

/// The Fortran program by each interface; at each size they take the rounds in turn, others at the
/// next size. Gives what was seen to run.
fn fortran_conforms(family: Family, ranks: &[u32], rounds: &[Round]) -> Option<BTreeSet<String>> {
    let bench = Bench::new(family)?;
    let mut seen = BTreeSet::new();
    for (index, interface) in FORTRAN.iter().enumerate() {
        let mut options = vec!["-fallow-argument-mismatch", "-ffree-line-length-none"];
        options.extend(*interface);
        if family == Family::Mpich {
            options.push("-DMPICH_CRASHES");
        }
        if family == Family::Mpich && interface.contains(&"-DF08") {
            options.push("-DLARGE");
        }
        let program = bench.compile("conformance.F90", &options)?;
        for &ranks in ranks {
            let is_its = |round: usize| (round + ranks as usize) % FORTRAN.len() == index;
            let rounds = rounds.iter().enumerate().filter(|(round, _)| is_its(*round));
            let rounds: Vec<Round> = rounds.map(|(_, round)| round.clone()).collect();
            seen.extend(conforms(&bench, &program, ranks, &rounds));
        }
    }
    Some(seen)
}

/// Random datatypes, checked by the program itself; another seed for each size and round.
fn layouts_hold(family: Family, ranks: &[u32], rounds: &[Round], calls: u32) {
    let Some(bench) = Bench::new(family) else { return };
    let program = bench.compile("layouts.c", &C).unwrap();
    let (program, calls) = (program.to_str().unwrap(), calls.to_string());
    for &ranks in ranks {
        let began = Instant::now();
        for (index, round) in rounds.iter().enumerate() {
            let (force, seed) = (force(round), (100 * ranks as usize + index).to_string());
            let words = [program, &seed, &calls];
            let output = bench.run(ranks, true, &[("COLIBRI_FORCE", &*force)], &words);
            let why = common::stderr(&output);
            assert!(output.status.success(), "{ranks} ranks, seed {seed}, {force}: {why}");
        }
        told(family, &"layouts", ranks, rounds.len(), began);
    }
}

#[test]
fn open_mpi() {
    let rounds = rounds();
    let Some(seen) = c_conforms(Family::OpenMpi, "conformance.c", &[3], &rounds) else { return };
    all_ran(&seen);
    c_conforms(Family::OpenMpi, "conformance.c", &[1, 2, 8], &rounds[..1]);
}

#[test]
fn open_mpi_rare_calls() {
    c_conforms(Family::OpenMpi, "edges.c", &[3], &rounds());
    c_conforms(Family::OpenMpi, "edges.c", &[1, 2, 4], &rounds()[1..2]);
}

#[test]
fn open_mpi_fortran() {
    let seen = fortran_conforms(Family::OpenMpi, &[3], &rounds());
    seen.iter().for_each(all_ran);
}

#[test]
fn open_mpi_layouts() {
    layouts_hold(Family::OpenMpi, &[4], &rounds(), 40);
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
    fortran_conforms(Family::Mpich, &[2], &rounds()[4..7]);
}

#[test]
fn mpich_layouts() {
    layouts_hold(Family::Mpich, &[2], &rounds()[7..9], 40);
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

/// Where every method can run at all.
fn all_ran_at(ranks: &[u32], seen: Option<BTreeSet<String>>) {
    if ranks.contains(&3) || ranks.contains(&4) {
        seen.iter().for_each(all_ran);
    }
}

const SIZES: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_at_every_size() {
    let ranks = sizes(&SIZES);
    all_ran_at(&ranks, c_conforms(Family::OpenMpi, "conformance.c", &ranks, &rounds()));
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_rare_calls_at_every_size() {
    c_conforms(Family::OpenMpi, "edges.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_fortran_at_every_size() {
    let ranks = sizes(&SIZES);
    all_ran_at(&ranks, fortran_conforms(Family::OpenMpi, &ranks, &rounds()));
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_layouts_at_every_size() {
    layouts_hold(Family::OpenMpi, &sizes(&SIZES), &rounds(), 300);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_at_every_size() {
    c_conforms(Family::Mpich, "conformance.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_rare_calls_at_every_size() {
    c_conforms(Family::Mpich, "edges.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_fortran_at_every_size() {
    fortran_conforms(Family::Mpich, &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_layouts_at_every_size() {
    layouts_hold(Family::Mpich, &sizes(&SIZES), &rounds(), 300);
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
            c_conforms(family, source, &sizes(&[1, 2]), &rounds);
            c_conforms(family, source, &sizes(&[3, 4]), &rounds[..2]);
        }
    }
}
