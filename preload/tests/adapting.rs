//! Methods are tried while an application runs, by two ranks on processors of their own.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{env, fs, path::PathBuf, process::Command};

use common::{TestFolder, TestLibrary, assert_success, stderr, stdout};
use records::{
    Collective, Method,
    learned::{Learned, store},
};

const LIBRARIES: [TestLibrary; 2] = [TestLibrary::OpenMpi, TestLibrary::Mpich];
const C: [&str; 2] = ["-Wall", "-Werror"];
const RANKS: u32 = 2;
const LONGEST_SECONDS: u32 = 120;

/// A program, a directory, and a library behind whose broadcast is slow.
struct Adapting {
    bench: TestFolder,
    program: PathBuf,
    directory: PathBuf,
    trace: PathBuf,
}

/// What a job did.
struct Job {
    /// Broadcasts by the library, and by methods.
    by_library: u64,
    by_methods: u64,
    /// Turns in which a rank made a send that had become slow, of all ranks.
    slow: u64,
    said: String,
}

impl Adapting {
    fn new(family: TestLibrary) -> Option<Self> {
        let mut bench = TestFolder::alone(family)?;
        let program = bench.compile("adapting.c", &["-Wall", "-Werror", "-rdynamic"]).unwrap();
        let options = [&C[..], &["-shared", "-fPIC"]].concat();
        bench.behind = bench.compile("slowed.c", &options);
        let directory = bench.folder.path().join("learned here");
        let trace = bench.folder.path().join("usage.json");
        Some(Adapting { bench, program, directory, trace })
    }

    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Job {
        let _ = fs::remove_file(&self.trace);
        let mut all = vec![
            ("COLIBRI_ADAPT", self.directory.to_str().unwrap()),
            ("COLIBRI_TRACE", self.trace.to_str().unwrap()),
        ];
        all.extend(variables);
        let words = [&[self.program.to_str().unwrap()], words].concat();
        let output = self.bench.run_within(LONGEST_SECONDS, RANKS, true, &all, &words);
        assert_success(&output);
        let usage = common::usage(&self.trace);
        let broadcasts =
            usage.calls.iter().filter(|calls| calls.point.collective == Collective::Bcast);
        let (mut by_library, mut by_methods) = (0, 0);
        for calls in broadcasts {
            match calls.method {
                Method::Default => by_library += calls.calls,
                _ => by_methods += calls.calls,
            }
        }
        let printed = stdout(&output);
        let slow = printed.lines().filter_map(|line| line.strip_prefix("slow "));
        let slow = slow.map(|turns| turns.parse::<u64>().unwrap()).sum();
        Job { by_library, by_methods, slow, said: stderr(&output) }
    }

    fn learned(&self) -> Learned {
        let mut store = store::read_all(&self.directory).unwrap();
        assert!(store.unusable.is_empty(), "{:?}", store.unusable);
        assert_eq!(store.learned.len(), 1, "one library on one processor");
        store.learned.remove(0).1
    }
}

/// What depends on times may fail where the machine is disturbed: it must hold in one of so many attempts.
const ATTEMPTS: u32 = 4;

/// The library's broadcast takes a millisecond, any method a hundredth of that.
#[test]
fn a_faster_method_is_found_and_the_next_job_begins_with_it() {
    for family in LIBRARIES {
        let Some(adapting) = Adapting::new(family) else { continue };
        let slow = [("SLOWED_BCAST", "1000"), ("COLIBRI_ADAPT_REPORT", "1")];
        let mut attempts = (0..ATTEMPTS).map(|_| {
            let _ = fs::remove_dir_all(&adapting.directory);
            let first = adapting.run(&["10000"], &slow);
            println!("{family:?}: {} by methods: {}", first.by_methods, first.said);
            first
        });
        let first = attempts.find(|first| first.by_methods > first.by_library).unwrap();
        assert!(first.said.contains("times as fast"), "{}", first.said);
        let learned = adapting.learned();
        assert_eq!(learned.jobs, 1);
        let layout = "1x2".parse().unwrap();
        let class = learned.find(Collective::Bcast, layout, 4096).unwrap();
        assert_ne!(class.chosen, Method::Default);
        assert!(class.evidence().unwrap().ratios.mean < -1.0, "{class:?}");
        assert!(class.default_seconds > 0.8e-3, "{class:?}");
        let second = adapting.run(&["600"], &slow);
        assert!(
            second.by_methods > 9 * second.by_library,
            "{family:?}: {} by methods, {} by the library",
            second.by_methods,
            second.by_library
        );
        assert_eq!(adapting.learned().jobs, 2);
        let third = adapting.run(&["1"], &slow);
        assert!(third.by_methods > 0, "{family:?}");
        assert_eq!(
            third.by_library, 0,
            "{family:?}: what was learned holds from the first call on"
        );
    }
}

/// Where the method that was chosen becomes slow, the library's own is back within a hundred calls.
#[test]
fn a_method_that_becomes_slow_is_left() {
    for family in LIBRARIES {
        let Some(adapting) = Adapting::new(family) else { continue };
        let no_memory = ("COLIBRI_SHARED_MEMORY", "0");
        let holds = (0..ATTEMPTS).any(|_| {
            let _ = fs::remove_dir_all(&adapting.directory);
            let job = adapting.run(
                &["4000"],
                &[
                    ("SLOWED_BCAST", "1000"),
                    ("SLOWED_SENDS", "200"),
                    ("SLOWED_LATER", "5000"),
                    ("SLOWED_FROM", "2500"),
                    no_memory,
                ],
            );
            println!("{family:?}: {} by methods, {} slow turns", job.by_methods, job.slow);
            // Of each rank; now and then it is looked whether the method is still slow.
            job.by_methods > 1000 && job.slow < 2 * 130
        });
        assert!(holds, "{family:?}");
    }
}

/// Late ranks, new communicators all the time, and a second thread: data stay right, and the job ends.
#[test]
fn whatever_the_application_does_its_data_are_right() {
    for family in LIBRARIES {
        let Some(adapting) = Adapting::new(family) else { continue };
        for how in ["late", "communicators", "threads", "refused"] {
            for turns in ["0", "1"] {
                let job = adapting.run(&["1500", how], &[("COLIBRI_ADAPT_TURNS", turns)]);
                assert_eq!(job.by_library + job.by_methods, 1500, "{family:?}, {how}");
                let is_off = job.said.matches("several threads").count();
                assert_eq!(is_off, usize::from(how == "threads" && turns == "0"), "{}", job.said);
            }
        }
    }
}

/// What can't be kept is not explored, and is said once.
#[test]
fn a_directory_that_cannot_be_used_is_said() {
    let Some(adapting) = Adapting::new(TestLibrary::OpenMpi) else { return };
    fs::write(&adapting.directory, "a file").unwrap();
    let job = adapting.run(&["200"], &[("SLOWED_BCAST", "100")]);
    assert_eq!(job.by_methods, 0);
    let said = job.said.matches("no method is tried").count();
    assert_eq!(said, 1, "{}", job.said);
    assert_eq!(fs::read_to_string(&adapting.directory).unwrap(), "a file");
}

/// What a program of `mixes.c` printed.
struct TimedJob {
    seconds: f64,
    /// Nanoseconds of a message each way, before and after the calls.
    messages: [f64; 2],
}

impl TimedJob {
    /// Whether the processors were in one state all the time. On some virtual machines messages take 200 or 400 ns, for
    /// seconds to minutes, and programs two thirds longer.
    fn saw_one_state(jobs: &[TimedJob; 2]) -> bool {
        let messages = jobs.iter().flat_map(|job| job.messages);
        let (least, most) = messages
            .fold((f64::INFINITY, 0.0), |(least, most), one| (one.min(least), one.max(most)));
        most < 1.5 * least
    }
}

/// After so many tries a pair counts though the processors changed their state.
const MOST_TRIES: u32 = 5;

/// Programs that nothing can speed up, in pairs of jobs: with exploring against without, and without against without.
/// `PAIRS` sets their number, `KINDS` which, `TURNS` their length: 20,000 take two thirds of a second.
#[test]
#[ignore = "takes half an hour of a quiet machine: make test-long"]
fn what_cannot_become_faster_does_not_become_slower() {
    let Some(mut adapting) = Adapting::new(TestLibrary::OpenMpi) else { return };
    adapting.bench.has_processors_for_all = true;
    adapting.bench.behind = None;
    let bench = &adapting.bench;
    let program = bench.compile("mixes.c", &C).unwrap();
    let program = program.to_str().unwrap();
    let pairs: u32 = env::var("PAIRS").map_or(200, |pairs| pairs.parse().unwrap());
    let turns = env::var("TURNS").unwrap_or("60000".into());
    let kinds = env::var("KINDS").unwrap_or("mix changing few late busy".into());
    let kinds: Vec<&str> = kinds.split_whitespace().collect();
    let job = |is_exploring: bool, seed: u32, kind: &str| -> TimedJob {
        let _ = fs::remove_dir_all(&adapting.directory);
        let variables = [
            ("COLIBRI_ADAPT", adapting.directory.to_str().unwrap()),
            // Ranks that share memory are faster than the library.
            ("COLIBRI_SHARED_MEMORY", "0"),
        ];
        let variables = if is_exploring { &variables[..] } else { &[] };
        let mut busy = (kind == "busy").then(|| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).spawn().unwrap()
        });
        let kind = if kind == "busy" { "mix" } else { kind };
        let words = [program, &seed.to_string(), kind, &turns];
        let output = bench.run_within(LONGEST_SECONDS, RANKS, is_exploring, variables, &words);
        if let Some(busy) = &mut busy {
            busy.kill().unwrap();
            busy.wait().unwrap();
        }
        assert_success(&output);
        let printed = stdout(&output);
        let numbers: Vec<f64> =
            printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [seconds, before, after] = numbers[..] else { panic!("{printed}") };
        TimedJob { seconds, messages: [before, after] }
    };
    let mut ratios = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let kind = kinds[pair as usize % kinds.len()];
        for (of, is_exploring) in [(0, true), (1, false)] {
            let order = [is_exploring, false];
            let order = if pair % 2 == 0 { order } else { [order[1], order[0]] };
            let mut tries = 0;
            let times = loop {
                let jobs = order.map(|is_exploring| job(is_exploring, pair, kind));
                tries += 1;
                if tries == MOST_TRIES || TimedJob::saw_one_state(&jobs) {
                    break jobs.map(|job| job.seconds);
                }
            };
            let log_ratio = (times[0] / times[1]).ln();
            ratios[of].push(if pair % 2 == 0 { log_ratio } else { -log_ratio });
            println!("{kind} {is_exploring} {times:?} {tries}");
        }
    }
    let [(mean, high, tail), (_, _, untouched_tail)] = ratios.map(|mut of| {
        let (mean, half) = statistics::mean_interval(&of, 0.95).unwrap();
        of.sort_by(f64::total_cmp);
        let tail = statistics::quantile(&of, 0.95).unwrap();
        println!("mean {mean:+.4}, give or take {half:.4}; 95th percentile {tail:+.4}");
        (mean, mean + half, tail)
    });
    assert!(high < 0.02, "slower by {mean:.4}, up to {high:.4}");
    // Two percentiles of as many pairs differ by themselves.
    assert!(tail < untouched_tail + 0.02, "{tail} against {untouched_tail}");
}
