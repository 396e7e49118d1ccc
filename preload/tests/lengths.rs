//! Lengths that differ between ranks are an error that ends in bounded time on every rank, under every
//! method of ours, and leaves nothing that a later call could take for its own.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use common::{
    TestFolder, TestLibrary,
    aside::{ForcedMethods, force},
    methods, stderr, stdout,
};
use records::Collective;

const RANKS: u32 = 4;

/// A job by one set of methods takes a second or two.
const LONGEST_RUN_SECONDS: u32 = 30;

const COLLECTIVES: [Collective; 7] = [
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Allgather,
    Collective::Alltoall,
];

/// Sets of methods in which each of ours is once, in segments as given. Those by memory that ranks share are left out:
/// there is no message whose length would tell that another rank meant another one.
fn rounds(segment: &str) -> Vec<ForcedMethods> {
    let own = |collective: Collective| -> Vec<String> {
        let names = methods().remove(&collective).unwrap_or_default();
        let own = names.into_iter().filter(|name| name.starts_with("own:"));
        let own = own.filter(|name| !name.starts_with("own:shared-"));
        own.map(|name| name.replace(",segment=64", segment)).collect()
    };
    let all = COLLECTIVES.map(|collective| (collective, own(collective)));
    let most = all.iter().map(|(_, names)| names.len()).max().unwrap();
    let round = |round: usize| {
        all.iter().map(move |(collective, names)| (*collective, names[round % names.len()].clone()))
    };
    (0..most).map(|index| round(index).collect()).collect()
}

/// Runs the program by each set of methods.
fn all_end(family: TestLibrary, way: &str, rounds: &[ForcedMethods]) {
    let Some(bench) = TestFolder::alone(family) else { return };
    let program = bench.compile("lengths.c", &["-Wall", "-Werror"]).unwrap();
    for round in rounds {
        let mut words = vec![program.to_str().unwrap(), way];
        words.extend(round.iter().map(|(collective, _)| collective.name()));
        let force = force(round);
        let trace = bench.folder.path().join("usage.json");
        let variables = [("COLIBRI_FORCE", &*force), ("COLIBRI_TRACE", trace.to_str().unwrap())];
        let output = bench.run_within(LONGEST_RUN_SECONDS, RANKS, true, &variables, &words);
        let text = stdout(&output);
        assert!(output.status.success(), "{family:?} {force}: {text}{}", stderr(&output));
        let usage = common::usage(&trace);
        for (collective, method) in round {
            let is_it = |line: &&str| line.starts_with(&format!("{collective}, "));
            let told: Vec<&str> = text.lines().filter(is_it).collect();
            assert!(told.len() >= 4, "{force}: {text}");
            // Who gets less than it has room for may not notice.
            assert!(told.iter().any(|line| !line.contains("truncated 0")), "{force}: {told:#?}");
            // What a function inside a mock-up calls it is the library's choice.
            let is_told = |line: &&str| line.ends_with("other 0") || method.contains("_as_");
            assert!(told.iter().all(is_told), "{force}: {told:#?}");
            let name = method.strip_prefix("mockup:").unwrap_or(method);
            let ran = usage.calls.iter().filter(|calls| calls.point.collective == *collective);
            assert!(
                ran.clone().all(|calls| calls.method.to_string().ends_with(name)),
                "{method}: {:?}",
                ran.collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn open_mpi() {
    all_end(TestLibrary::OpenMpi, "returned", &rounds(",segment=1KiB"));
}

#[test]
fn mpich() {
    all_end(TestLibrary::Mpich, "returned", &rounds(",segment=1KiB"));
}

/// Open MPI 4.1 writes such a message beyond its place, by itself.
#[test]
#[ignore = "takes minutes: make test-preload"]
fn mpich_by_long_messages() {
    all_end(TestLibrary::Mpich, "long", &rounds(""));
}

/// Where a mock-up calls a function of the library, it ends as that does.
#[test]
fn a_gather_as_allgather_ends_where_the_librarys_allgather_does() {
    let method = "mockup:gather_as_allgather".to_owned();
    all_end(TestLibrary::Mpich, "returned", &[vec![(Collective::Gather, method)]]);
}

/// Calls inside a mock-up follow each other on a rank that has failed, too.
#[test]
fn a_mock_up_goes_through_all_of_its_calls() {
    let method = "mockup:allreduce_as_reduce_bcast".to_owned();
    all_end(TestLibrary::Mpich, "returned", &[vec![(Collective::Allreduce, method)]]);
}

#[test]
fn by_the_default_error_handler_the_job_ends() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::alone(family) else { continue };
        let program = bench.compile("lengths.c", &["-Wall", "-Werror"]).unwrap();
        let words = [program.to_str().unwrap(), "fatal", "bcast"];
        let variables = [("COLIBRI_FORCE", "bcast=own:binomial")];
        let output = bench.run_within(LONGEST_RUN_SECONDS, RANKS, true, &variables, &words);
        let said = stderr(&output);
        assert!(!output.status.success() && !said.contains("hangs"), "{family:?}: {said}");
    }
}
