//! Programs that call all that is caught in every way that MPI allows do the same with the library
//! as without, for every method forced in turn.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{collections::BTreeSet, env, fmt::Display, fs, path::PathBuf, time::Instant};

use common::{
    FORCE_SHARED, TestFolder, TestLibrary,
    aside::{ForcedMethods, NativeRun, TestProgram},
    compared::{Compiled, NativeOutput},
    methods,
};
use records::Method;

const C: [&str; 2] = ["-Wall", "-Werror"];

/// How Fortran programs reach MPI: options of the compiler.
const FORTRAN: [&[&str]; 3] = [&["-DMPIF"], &["-DUSEMPI"], &["-DF08"]];

/// Settings under which each method is forced once.
fn rounds() -> Vec<ForcedMethods> {
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

/// Every method of shared memory at once.
fn sharing() -> ForcedMethods {
    let all = FORCE_SHARED.split(';').map(|part| part.split_once('=').unwrap());
    all.map(|(collective, method)| (collective.parse().unwrap(), method.to_owned())).collect()
}

/// Those of these numbers of ranks that `RANKS` names, where it is set: to go in parts.
fn sizes(all: &[u32]) -> Vec<u32> {
    let Ok(wanted) = env::var("RANKS") else { return all.to_vec() };
    let wanted: Vec<u32> = wanted.split_whitespace().map(|word| word.parse().unwrap()).collect();
    all.iter().copied().filter(|ranks| wanted.contains(ranks)).collect()
}

/// Gives what was seen to run.
fn conforms(
    bench: &TestFolder,
    program: &Compiled,
    ranks: u32,
    rounds: &[ForcedMethods],
) -> BTreeSet<String> {
    let began = Instant::now();
    let trace = bench.folder.path().join("usage.json");
    let mut seen = BTreeSet::new();
    let mut comparison =
        NativeOutput::new(bench, program, ranks).unwrap_or_else(|why| panic!("{why}"));
    for round in rounds {
        let variables = [("COLIBRI_TRACE", trace.to_str().unwrap())];
        comparison.by(round, &variables).unwrap_or_else(|why| panic!("{why}"));
        let usage = common::usage(&trace);
        for calls in usage.calls.iter().filter(|calls| calls.method != Method::Default) {
            seen.insert(format!("{} {}", calls.point.collective, calls.method));
        }
    }
    told(bench.family, &program.source, ranks, rounds.len(), began);
    seen
}

/// For whoever waits (`--nocapture`).
fn told(family: TestLibrary, program: &dyn Display, ranks: u32, rounds: usize, began: Instant) {
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
    family: TestLibrary,
    source: &str,
    ranks: &[u32],
    rounds: &[ForcedMethods],
) -> Option<BTreeSet<String>> {
    let bench = TestFolder::new(family)?;
    let mut options = C.to_vec();
    if family == TestLibrary::IntelAbi {
        // So does libmpi_abi.so of Intel MPI 2021.19, though it says that the handler was set.
        options.push("-DHANDLERS_IGNORED=1");
    }
    let program = Compiled::new(&bench, source, &options).unwrap();
    Some(ranks.iter().flat_map(|ranks| conforms(&bench, &program, *ranks, rounds)).collect())
}

/// The Fortran program by each interface; at each size they take the rounds in turn, others at the
/// next size. Gives what was seen to run.
fn fortran_conforms(
    family: TestLibrary,
    ranks: &[u32],
    rounds: &[ForcedMethods],
) -> Option<BTreeSet<String>> {
    let bench = TestFolder::new(family)?;
    let mut seen = BTreeSet::new();
    for (index, interface) in FORTRAN.iter().enumerate() {
        let mut options = vec!["-fallow-argument-mismatch", "-ffree-line-length-none"];
        options.extend(*interface);
        if family == TestLibrary::Mpich {
            options.push("-DMPICH_CRASHES");
        }
        if family == TestLibrary::Mpich && interface.contains(&"-DF08") {
            options.push("-DLARGE");
        }
        let program = Compiled::new(&bench, "conformance.F90", &options)?;
        for &ranks in ranks {
            let is_its = |round: usize| (round + ranks as usize) % FORTRAN.len() == index;
            let rounds = rounds.iter().enumerate().filter(|(round, _)| is_its(*round));
            let rounds: Vec<ForcedMethods> = rounds.map(|(_, round)| round.clone()).collect();
            seen.extend(conforms(&bench, &program, ranks, &rounds));
        }
    }
    Some(seen)
}

/// Random datatypes, checked by the program itself; another seed for each size and round.
fn layouts_hold(family: TestLibrary, ranks: &[u32], rounds: &[ForcedMethods], calls: u32) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = Compiled::new(&bench, "layouts.c", &C).unwrap();
    for &ranks in ranks {
        let began = Instant::now();
        for (index, round) in rounds.iter().enumerate() {
            let seed = (100 * ranks as usize + index).to_string();
            layout_holds(&bench, &program, ranks, round, [&seed, &calls.to_string()])
                .unwrap_or_else(|why| panic!("{ranks} ranks, seed {seed}: {why}"));
        }
        told(family, &program.source, ranks, rounds.len(), began);
    }
}

/// Random calls on random datatypes.
fn layout_holds(
    bench: &TestFolder,
    program: &Compiled,
    ranks: u32,
    round: &ForcedMethods,
    words: [&str; 2],
) -> Result<(), String> {
    let words = [program.path.to_str().unwrap(), words[0], words[1]];
    TestProgram { bench, ranks, words: &words }.holds(round, &[])
}

/// All programs by every method of shared memory, which all have to run at each of these numbers of ranks.
fn shared_memory_conforms(family: TestLibrary, ranks: &[u32], layout_calls: u32) {
    let rounds = [sharing()];
    for &ranks in ranks {
        let Some(seen) = c_conforms(family, "conformance.c", &[ranks], &rounds) else { return };
        for (collective, method) in sharing() {
            let name = format!("{collective} {method}");
            assert!(seen.contains(&name), "{family:?}, {ranks} ranks: {name} never ran");
        }
    }
    c_conforms(family, "edges.c", ranks, &rounds);
    // Intel MPI by itself gives wrong data in more of these cases than may be set aside.
    if family != TestLibrary::Intel {
        layouts_hold(family, ranks, &rounds, layout_calls);
    }
}

#[test]
fn open_mpi() {
    let rounds = rounds();
    let Some(seen) = c_conforms(TestLibrary::OpenMpi, "conformance.c", &[3], &rounds) else {
        return;
    };
    all_ran(&seen);
    c_conforms(TestLibrary::OpenMpi, "conformance.c", &[1, 2, 8], &rounds[..1]);
}

#[test]
fn open_mpi_rare_calls() {
    c_conforms(TestLibrary::OpenMpi, "edges.c", &[3], &rounds());
    c_conforms(TestLibrary::OpenMpi, "edges.c", &[1, 2, 4], &rounds()[1..2]);
}

#[test]
fn open_mpi_fortran() {
    // Methods do not depend on the language: each interface has one set of them.
    fortran_conforms(TestLibrary::OpenMpi, &[3], &rounds()[..3]);
}

#[test]
fn open_mpi_layouts() {
    layouts_hold(TestLibrary::OpenMpi, &[4], &rounds(), 40);
}

/// Every call gets another method than the one before, as when methods are tried while the application runs.
fn by_turns(family: TestLibrary, source: &str, ranks: &[u32]) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = Compiled::new(&bench, source, &C).unwrap();
    let (trace, kept) = (bench.folder.path().join("usage.json"), bench.folder.path().join("kept"));
    let variables = [
        ("COLIBRI_TRACE", trace.to_str().unwrap()),
        ("COLIBRI_ADAPT", kept.to_str().unwrap()),
        ("COLIBRI_ADAPT_TURNS", "1"),
    ];
    for &ranks in ranks {
        let began = Instant::now();
        let mut comparison =
            NativeOutput::new(&bench, &program, ranks).unwrap_or_else(|why| panic!("{why}"));
        for variables in [&variables[..], &variables[1..]] {
            comparison.by(&Vec::new(), variables).unwrap_or_else(|why| panic!("{why}"));
        }
        let ran: BTreeSet<String> = common::usage(&trace)
            .calls
            .iter()
            .filter(|calls| calls.method != Method::Default && calls.point.layout.procs() == ranks)
            .map(|calls| format!("{} {}", calls.point.collective, calls.method))
            .collect();
        // Two or more methods of most collectives.
        assert!(ran.len() > 15, "{source}, {ranks} ranks: {ran:?}");
        told(family, &source, ranks, 2, began);
    }
}

#[test]
fn open_mpi_by_turns() {
    by_turns(TestLibrary::OpenMpi, "conformance.c", &[2, 3, 8]);
    by_turns(TestLibrary::OpenMpi, "edges.c", &[3]);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn others_by_turns() {
    for family in [TestLibrary::OpenMpi5, TestLibrary::Mpich5Abi, TestLibrary::Intel] {
        by_turns(family, "conformance.c", &[2]);
        by_turns(family, "edges.c", &[2]);
    }
}

#[test]
fn mpich_by_turns() {
    by_turns(TestLibrary::Mpich, "conformance.c", &[2]);
    by_turns(TestLibrary::Mpich, "edges.c", &[2]);
}

#[test]
fn mpich() {
    c_conforms(TestLibrary::Mpich, "conformance.c", &[1], &rounds()[..1]);
    c_conforms(TestLibrary::Mpich, "conformance.c", &[2], &rounds()[..2]);
}

#[test]
fn mpich_rare_calls() {
    c_conforms(TestLibrary::Mpich, "edges.c", &[2], &rounds()[2..4]);
}

#[test]
fn mpich_fortran() {
    fortran_conforms(TestLibrary::Mpich, &[2], &rounds()[4..7]);
}

#[test]
fn mpich_layouts() {
    layouts_hold(TestLibrary::Mpich, &[2], &rounds()[7..9], 40);
}

#[test]
fn open_mpi_by_shared_memory() {
    shared_memory_conforms(TestLibrary::OpenMpi, &[2, 5], 40);
    // Each interface to Fortran has its turn.
    fortran_conforms(TestLibrary::OpenMpi, &[2], &[sharing(), sharing(), sharing()]);
}

#[test]
fn mpich_by_shared_memory() {
    shared_memory_conforms(TestLibrary::Mpich, &[2], 40);
    fortran_conforms(TestLibrary::Mpich, &[2], &[sharing(), sharing(), sharing()]);
}

/// One library of PyPI, by a part of the methods: the way in is what differs between libraries.
fn other_library(family: TestLibrary, rounds: &[ForcedMethods]) {
    c_conforms(family, "conformance.c", &[2], &rounds[..1]);
    c_conforms(family, "edges.c", &[2], &rounds[1..2]);
}

#[test]
fn open_mpi_5() {
    other_library(TestLibrary::OpenMpi5, &rounds()[..2]);
}

#[test]
fn abi_of_mpi_5() {
    other_library(TestLibrary::Mpich5Abi, &rounds()[2..4]);
}

#[test]
fn intel_mpi() {
    other_library(TestLibrary::Intel, &rounds()[4..6]);
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
    all_ran_at(&ranks, c_conforms(TestLibrary::OpenMpi, "conformance.c", &ranks, &rounds()));
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_rare_calls_at_every_size() {
    c_conforms(TestLibrary::OpenMpi, "edges.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_fortran_at_every_size() {
    let ranks = sizes(&SIZES);
    all_ran_at(&ranks, fortran_conforms(TestLibrary::OpenMpi, &ranks, &rounds()));
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn open_mpi_layouts_at_every_size() {
    layouts_hold(TestLibrary::OpenMpi, &sizes(&SIZES), &rounds(), 300);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_at_every_size() {
    c_conforms(TestLibrary::Mpich, "conformance.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_rare_calls_at_every_size() {
    c_conforms(TestLibrary::Mpich, "edges.c", &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_fortran_at_every_size() {
    fortran_conforms(TestLibrary::Mpich, &sizes(&SIZES), &rounds());
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_layouts_at_every_size() {
    layouts_hold(TestLibrary::Mpich, &sizes(&SIZES), &rounds(), 300);
}

#[test]
#[ignore = "takes minutes: make test-preload"]
fn other_libraries_at_every_size() {
    use TestLibrary::{Intel, IntelAbi, Mpich5, Mpich5Abi, OpenMpi5};
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

#[test]
#[ignore = "takes minutes: make test-preload"]
fn other_libraries_by_shared_memory_at_every_size() {
    use TestLibrary::{Intel, Mpich5, Mpich5Abi, OpenMpi5};
    for family in [OpenMpi5, Mpich5, Mpich5Abi, Intel] {
        shared_memory_conforms(family, &sizes(&SIZES), 300);
    }
}

/// A library that crashes or hangs by itself in one case, and a fault of ours put in by hand.
#[test]
fn what_a_library_does_wrong_by_itself_is_set_aside_and_nothing_else() {
    let Some(mut bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = Compiled::new(&bench, "edges.c", &C).unwrap();
    let made = |kind: &str| Some(shim(&bench, kind));
    let [crashes, hangs, forgets] = ["-DCRASHES", "-DHANGS", "-DFORGETS"].map(made);
    let round = &rounds()[1];
    let whole = NativeOutput::new(&bench, &program, 2).unwrap().native;
    assert!(whole.aside.is_empty(), "{:?}", whole.aside);

    bench.behind = crashes;
    let mut comparison = NativeOutput::new(&bench, &program, 2).unwrap();
    let aside: Vec<&str> = comparison.native.aside.iter().map(String::as_str).collect();
    assert_eq!(aside, ["edge allreduce"]);
    let all = |native: &NativeRun| native.text.lines().count();
    assert_eq!(all(&comparison.native), all(&whole) - 2, "on each rank that case alone is missing");
    comparison.by(round, &[]).unwrap();

    bench.before = forgets;
    let mut comparison = NativeOutput::new(&bench, &program, 2).unwrap();
    let why = comparison.by(round, &[]).unwrap_err();
    assert!(why.contains("\"edge scan\"") && !why.contains("\"edge allreduce\""), "{why}");

    bench.before = None;
    bench.behind = hangs;
    bench.longest_natively_seconds = 10;
    let comparison = NativeOutput::new(&bench, &program, 2).unwrap();
    assert!(comparison.native.aside.contains("edge allreduce"), "{:?}", comparison.native.aside);
}

#[test]
fn a_library_with_more_faults_than_may_be_set_aside_fails_the_test() {
    let Some(mut bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = Compiled::new(&bench, "layouts.c", &C).unwrap();
    bench.behind = Some(shim(&bench, "-DBREAKS"));
    let why = layout_holds(&bench, &program, 2, &rounds()[0], ["1", "100"]).unwrap_err();
    assert!(why.contains("cases would be set aside"), "{why}");
}

fn shim(bench: &TestFolder, kind: &str) -> PathBuf {
    let compiled =
        bench.compile("shim.c", &["-shared", "-fPIC", "-Wall", "-Werror", kind]).unwrap();
    let path = bench.folder.path().join(format!("shim{kind}.so"));
    fs::rename(compiled, &path).unwrap();
    path
}
