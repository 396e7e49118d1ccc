//! Reductions of elements that reach beyond their extent, lie between each other or far apart, by every method
//! of each collective on real libraries; and what memory they take.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::collections::BTreeSet;

use common::{
    TestFolder, TestLibrary,
    aside::{ForcedMethods, TestProgram, force},
    assert_success, methods, stderr, stdout,
};
use records::{Collective, Method};
use runner::{Runnable, mockups::Limits};

const C: [&str; 2] = ["-Wall", "-Werror"];

/// In the order of the program's letters.
const COLLECTIVES: [Collective; 11] = [
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Scan,
    Collective::Exscan,
    Collective::ReduceScatter,
    Collective::ReduceScatterBlock,
    Collective::Bcast,
    Collective::Gather,
    Collective::Allgather,
    Collective::Scatter,
    Collective::Alltoall,
];

/// Methods that have a name of more than an algorithm and segments.
const SHAPED: [(Collective, &[&str]); 3] = [
    (
        Collective::Reduce,
        &[
            "own:fitted,fan-out=3,trip=5,gap=2",
            "own:two-level,segment=64",
            "own:multi-lane",
            "own:binary,order=node",
        ],
    ),
    (
        Collective::Allreduce,
        &["own:two-level,segment=64", "own:multi-lane,segment=64", "own:ring,order=node"],
    ),
    (Collective::ReduceScatterBlock, &["own:two-level", "own:multi-lane", "own:ring,order=node"]),
];

/// Whether ranks combine in memory that they share: elements with gaps don't go through it, so that such calls are
/// the library's. What is only moved is packed.
fn declines_gaps(name: &str) -> bool {
    name.starts_with("own:shared-slices")
}

/// Whether the library may be made to call the program's own operation without elements, of any or of few ones: then such
/// calls are left to it.
fn declines_own_operations(name: &str) -> bool {
    name.contains("_as_reduce_scatter_")
}

/// All that carry out calls of elements with gaps, by operations of the program's own.
fn all_methods(collective: Collective) -> Vec<String> {
    let shaped = SHAPED.iter().filter(|(of, _)| *of == collective).flat_map(|(_, names)| *names);
    let mut all = methods().remove(&collective).unwrap_or_default();
    all.retain(|name| !declines_gaps(name) && !declines_own_operations(name));
    all.extend(shaped.map(|name| (*name).to_owned()));
    all
}

/// A method for each collective, so often that each method comes.
fn rounds() -> Vec<ForcedMethods> {
    let all = COLLECTIVES.map(|collective| (collective, all_methods(collective)));
    let most = all.iter().map(|(_, names)| names.len()).max().unwrap();
    let round = |round: usize| {
        all.iter()
            .map(|(collective, names)| (*collective, names[round % names.len()].clone()))
            .collect()
    };
    (0..most).map(round).collect()
}

/// Whether each collective of a round is carried out by ours alone.
fn letters(round: &ForcedMethods, ranks: u32) -> String {
    let letter = |(collective, name): &(Collective, String)| {
        let runnable = Runnable::new(*collective, &name.parse().unwrap()).unwrap().unwrap();
        let can = runnable.check(ranks, 8, Limits::default()).is_ok();
        let is_ours = matches!(runnable, Runnable::Algorithm(_)) && !declines_gaps(name);
        if is_ours && can { 'o' } else { 'l' }
    };
    round.iter().map(letter).collect()
}

/// The program checks what it gets; gives what was seen to run.
fn holds(
    family: TestLibrary,
    ranks: &[u32],
    rounds: &[ForcedMethods],
    random_types: u32,
) -> Option<BTreeSet<String>> {
    let bench = TestFolder::new(family)?;
    let program = bench.compile("interleaved.c", &C).unwrap();
    let trace = bench.folder.path().join("usage.json");
    let mut seen = BTreeSet::new();
    for &ranks in ranks {
        for (index, round) in rounds.iter().enumerate() {
            let seed = (100 * ranks as usize + index).to_string();
            let (random_types, letters) = (random_types.to_string(), letters(round, ranks));
            let words = [program.to_str().unwrap(), &seed, &random_types, &letters];
            let program = TestProgram { bench: &bench, ranks, words: &words };
            let traced = [("COLIBRI_TRACE", trace.to_str().unwrap())];
            program.holds(round, &traced).unwrap_or_else(|why| panic!("{ranks} ranks: {why}"));
            let usage = common::usage(&trace);
            let ours = usage.calls.iter().filter(|calls| calls.method != Method::Default);
            seen.extend(ours.map(|calls| format!("{} {}", calls.point.collective, calls.method)));
        }
    }
    Some(seen)
}

/// Each method was carried out.
fn all_ran(seen: &BTreeSet<String>) {
    for collective in COLLECTIVES {
        for name in all_methods(collective) {
            let method: Method = name.parse().unwrap();
            let ran = seen.contains(&format!("{collective} {method}"));
            assert!(ran, "{collective} {name} never ran: {seen:?}");
        }
    }
}

/// Collectives of `far_apart.c`.
const FAR_APART: [Collective; 5] = [
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Scan,
    Collective::Exscan,
    Collective::Bcast,
];

/// One element each takes what its data takes, however far the next would be, and no memory that the process
/// doesn't have. `methods` tells which are tried; gives what was seen to run.
fn far_apart(
    family: TestLibrary,
    ranks: u32,
    extent: &str,
    is_tried: impl Fn(&str) -> bool,
) -> Option<()> {
    const MAX_KILOBYTES: u64 = 8 << 10;
    let bench = TestFolder::new(family)?;
    let program = bench.compile("far_apart.c", &C).unwrap();
    let trace = bench.folder.path().join("usage.json");
    let all = FAR_APART.map(|collective| {
        let names = all_methods(collective).into_iter().filter(|name| is_tried(name));
        (collective, names.collect::<Vec<_>>())
    });
    let most = all.iter().map(|(_, names)| names.len()).max().unwrap();
    let mut seen = BTreeSet::new();
    for round in 0..most {
        let round: ForcedMethods = all
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(collective, names)| (*collective, names[round % names.len()].clone()))
            .collect();
        let force = force(&round);
        let variables = [("COLIBRI_FORCE", &*force), ("COLIBRI_TRACE", trace.to_str().unwrap())];
        let output = bench.run(ranks, true, &variables, &[program.to_str().unwrap(), extent]);
        assert_success(&output);
        let text = stdout(&output);
        let grown = text.lines().find_map(|line| line.strip_prefix("grown: "));
        let grown: u64 = grown.unwrap_or_else(|| panic!("{force}: {text}")).parse().unwrap();
        assert!(grown < MAX_KILOBYTES, "{force}: {grown} kB more");
        let usage = common::usage(&trace);
        seen.extend(
            usage.calls.iter().map(|calls| format!("{} {}", calls.point.collective, calls.method)),
        );
    }
    for (collective, names) in all {
        for name in names {
            let method: Method = name.parse().unwrap();
            assert!(seen.contains(&format!("{collective} {method}")), "{collective} {name}");
        }
    }
    Some(())
}

#[test]
fn open_mpi_far_apart() {
    // Of one element and an operation of the program's own no mock-up by reduce_scatter makes parts.
    let is_tried = |name: &str| !name.contains("reduce_scatter");
    far_apart(TestLibrary::OpenMpi, 4, "2000000000", is_tried);
    far_apart(TestLibrary::OpenMpi, 4, "104857600", |name| name.contains("circulant"));
}

/// Its own collectives want as much memory as the extent.
#[test]
fn mpich_far_apart() {
    far_apart(TestLibrary::Mpich, 2, "2000000000", |name| name.starts_with("own:"));
}

/// A rank without memory says so, and has MPI's error for it.
#[test]
fn lack_of_memory_is_told() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        let program = bench.compile("far_apart.c", &C).unwrap();
        let words = [program.to_str().unwrap(), "lacking", "200000000"];
        let run = |variables: &[(&str, &str)]| bench.run(2, true, variables, &words);
        let force = ("COLIBRI_FORCE", "allreduce=own:recursive-doubling");
        let output = run(&[force]);
        assert_success(&output);
        assert!(stdout(&output).contains("error: MPI_ERR_NO_MEM"), "{}", stdout(&output));
        let told = "colibri: MPI_Allreduce by own:recursive-doubling: no memory for 200000000 bytes \
                    of scratch; with a COLIBRI_MEMORY below that such calls are the MPI library's\n";
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
        let output = run(&[force, ("COLIBRI_MEMORY", "64MiB")]);
        assert_success(&output);
        assert!(!stderr(&output).contains("colibri:"), "{}", stderr(&output));
    }
}

#[test]
fn open_mpi() {
    if let Some(seen) = holds(TestLibrary::OpenMpi, &[4], &rounds(), 20) {
        all_ran(&seen);
    }
    holds(TestLibrary::OpenMpi, &[1, 3], &rounds()[..2], 20);
}

#[test]
fn mpich() {
    if let Some(seen) = holds(TestLibrary::Mpich, &[2], &rounds(), 20) {
        all_ran(&seen);
    }
}

/// The library's own collectives, which crash by many a type, are called with some alone.
#[test]
fn reductions_in_shared_memory_leave_elements_with_gaps_to_the_library() {
    let mut round = rounds().swap_remove(0);
    for (collective, name) in &mut round {
        let names = methods().remove(collective).unwrap_or_default();
        if let Some(declining) = names.into_iter().find(|name| declines_gaps(name)) {
            *name = declining;
        }
    }
    assert_eq!(round.iter().filter(|(_, name)| declines_gaps(name)).count(), 3, "{round:?}");
    for (family, ranks) in [(TestLibrary::OpenMpi, 3), (TestLibrary::Mpich, 2)] {
        if let Some(seen) = holds(family, &[ranks], std::slice::from_ref(&round), 5) {
            assert!(
                !seen.iter().any(|name| name.contains("shared-slices")),
                "{family:?}: {seen:?}"
            );
        }
    }
}

/// Those of the first eight numbers of ranks that `RANKS` names, where it is set: to go in parts.
fn sizes() -> Vec<u32> {
    let wanted = std::env::var("RANKS").unwrap_or_else(|_| "1 2 3 4 5 6 7 8".into());
    wanted.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_at_every_size() {
    holds(TestLibrary::OpenMpi, &sizes(), &rounds(), 200);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_at_every_size() {
    holds(TestLibrary::Mpich, &sizes(), &rounds(), 200);
}
