use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::document;

pub fn trials(method: &str, log_ratios: &[f64]) -> LearnedMethod {
    let trials = log_ratios.len() as f64;
    let mean = log_ratios.iter().sum::<f64>() / trials.max(1.0);
    let squares = log_ratios.iter().map(|of| (of - mean).powi(2)).sum();
    let ratios = LogRatios { trials: log_ratios.len() as u64, mean, squares };
    LearnedMethod { method: method.parse().unwrap(), ratios }
}

pub fn class(layout: &str, bytes: u64, calls: u64, tried: Vec<LearnedMethod>) -> LearnedClass {
    LearnedClass {
        point: Point::new(Collective::Bcast, layout.parse().unwrap(), bytes),
        last_bytes: bytes.saturating_mul(2).saturating_sub(1),
        calls,
        default_seconds: 1e-3,
        chosen: tried.first().map_or(Method::Default, |tried| tried.method.clone()),
        tried,
    }
}

pub fn learned(classes: Vec<LearnedClass>) -> Learned {
    let new = Learned::new("Open MPI 4.1.4".into(), "AMD EPYC 7543 32-Core Processor".into());
    Learned { jobs: 1, classes, ..new }
}

fn sample() -> Learned {
    let tried = vec![trials("own:binomial", &[-0.7, -0.6]), trials("own:linear", &[0.5])];
    learned(vec![class("8x4", 1024, 500, tried), class("8", 0, 20, Vec::new())])
}

#[test]
fn what_is_written_reads_back() {
    let text = document::text(&sample()).unwrap();
    assert_eq!(document::parse::<Learned>(&text, Path::new("x")).unwrap(), sample());
    let largest = LearnedClass { last_bytes: u64::MAX, ..class("8", 1 << 63, 1, Vec::new()) };
    let text = document::text(&learned(vec![largest.clone()])).unwrap();
    let read = document::parse::<Learned>(&text, Path::new("x")).unwrap();
    assert_eq!(read.classes, [largest]);
}

/// What is wrong in a file, which is the sample with one text for another.
fn refused(from: &str, to: &str) -> String {
    let text = document::text(&sample()).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    let text = text.replacen(from, to, 1);
    document::parse::<Learned>(&text, Path::new("l.json")).unwrap_err().to_string()
}

#[test]
fn faults_are_named_with_field_and_what_would_be_right() {
    for (from, to, wanted) in [
        (
            "Open MPI 4.1.4",
            " ",
            "field library: is empty; expected the MPI library and its version",
        ),
        ("\"jobs\"", "\"jbos\"", "line 5, field jbos: unknown field `jbos`"),
        (
            "\"bcast\"",
            "\"bcats\"",
            "field classes[0].collective: unknown variant `bcats`, expected one of",
        ),
        ("\"8x4\"", "\"8x\"", "field classes[0].procs: "),
        ("\"8x4\"", "0", "field classes[0].procs: "),
        ("\"bytes\": 1024", "\"bytes\": -1", "field classes[0].bytes: "),
        (
            "\"last_bytes\": 2047",
            "\"last_bytes\": 1023",
            "field classes[0].last_bytes: is 1023; expected 1024",
        ),
        ("\"calls\": 500", "\"calls\": 0.5", "line 12, field classes[0].calls: "),
        (
            "\"default_seconds\": 0.001",
            "\"default_seconds\": -1.0",
            "classes[0].default_seconds: is -1; expected a number of 0 or more",
        ),
        (
            "\"default_seconds\": 0.001",
            "\"default_seconds\": 1e300",
            "line 13, field classes[0].default_seconds: is 1e300",
        ),
        (
            "\"chosen\": \"own:binomial\"",
            "\"chosen\": \"own:binominal\"",
            "classes[0].chosen: method 'own:binominal'",
        ),
        (
            "\"chosen\": \"own:binomial\"",
            "\"chosen\": \"mockup:scan_as_x\"",
            "classes[0].chosen: is scan_as_x; a mock-up of bcast begins",
        ),
        (
            "\"method\": \"own:linear\"",
            "\"method\": \"own:binomial\"",
            "classes[0].tried[1].method: is own:binomial, a second time",
        ),
        (
            "\"method\": \"own:linear\"",
            "\"method\": \"default\"",
            "classes[0].tried[1].method: is default, which methods are compared with",
        ),
        (
            "\"method\": \"own:linear\"",
            "\"method\": \"other:x\"",
            "classes[0].tried[1].method: is other:x, which was timed elsewhere",
        ),
        (
            "\"log_ratio\": 0.5",
            "\"log_ratio\": 70.0",
            "classes[0].tried[1].log_ratio: is 70; expected a logarithm of a ratio",
        ),
        (
            "\"squares\": 0.0\n",
            "\"squares\": -1.0\n",
            "classes[0].tried[1].squares: is -1; expected a number of 0 or more",
        ),
        ("\"trials\": 1", "\"trials\": -1", "classes[0].tried[1].trials: "),
    ] {
        let error = refused(from, to);
        assert!(error.starts_with("l.json") && error.contains(wanted), "{to}: {error}");
    }
    let fault = |change: fn(&mut Learned)| {
        let mut changed = sample();
        change(&mut changed);
        changed.validate().unwrap_err().0
    };
    assert_eq!(fault(|of| of.classes[0].default_seconds = f64::NAN), "classes[0].default_seconds");
    assert_eq!(
        fault(|of| of.classes[0].tried[0].ratios.squares = f64::INFINITY),
        "classes[0].tried[0].squares"
    );
    assert_eq!(
        fault(|of| of.classes[0].tried[1].ratios.mean = f64::NAN),
        "classes[0].tried[1].log_ratio"
    );
}

#[test]
fn a_size_is_in_one_class_only() {
    let of = |first: [u64; 2], second: [u64; 2]| {
        let [first, second] = [first, second].map(|[bytes, last_bytes]| LearnedClass {
            last_bytes,
            ..class("8x4", bytes, 1, Vec::new())
        });
        learned(vec![first, second]).validate()
    };
    assert_eq!(of([8, 15], [16, 31]), Ok(()));
    let (field, problem) = of([16, 31], [8, 16]).unwrap_err();
    assert_eq!(field, "classes[0].bytes");
    assert!(
        problem.starts_with("is 16, which is in another class of bcast on 8x4 (8 to 16 bytes)"),
        "{problem}"
    );
    assert_eq!(of([8, 15], [8, 15]).unwrap_err().0, "classes[1].bytes");
    let mut other = sample();
    other.classes[1].point = Point { collective: Collective::Reduce, ..other.classes[0].point };
    other.classes[1].last_bytes = other.classes[0].last_bytes;
    assert_eq!(other.validate(), Ok(()));
}

fn is_near(one: &LearnedMethod, other: &LearnedMethod) -> bool {
    let (a, b) = (one.ratios, other.ratios);
    one.method == other.method
        && a.trials == b.trials
        && (a.mean - b.mean).abs() < 1e-9
        && (a.squares - b.squares).abs() < 1e-9
}

proptest! {
    /// Two parts together are the whole, and the whole without the first is the second.
    #[test]
    fn parts_of_the_evidence_make_the_whole(
        first in proptest::collection::vec(-3.0_f64..3.0, 0..40),
        second in proptest::collection::vec(-3.0_f64..3.0, 0..40),
    ) {
        let [one, two] = [&first, &second].map(|of| trials("own:linear", of));
        let all = trials("own:linear", &[first, second.clone()].concat());
        let mut pooled = one.clone();
        pooled.ratios.pool(two.ratios);
        prop_assert!(is_near(&pooled, &all), "{pooled:?} {all:?}");
        let since = LearnedMethod { ratios: all.ratios.since(one.ratios), ..all };
        let is_none = two.ratios.trials == 0 && since.ratios.trials == 0;
        prop_assert!(is_none || is_near(&since, &two), "{since:?} {two:?}");
        let mut each = one;
        second.iter().for_each(|log_ratio| each.ratios.add(*log_ratio));
        prop_assert!(is_near(&each, &pooled), "{each:?} {pooled:?}");
    }

    /// However jobs come, what is merged can be written and read.
    #[test]
    fn what_is_merged_is_right(
        jobs in proptest::collection::vec(
            proptest::collection::vec((0_u32..6, 0_u64..200, 1_u64..1000, -2.0_f64..2.0, 0_u64..100), 0..5), 1..6)
    ) {
        let mut all = learned(Vec::new());
        for job in jobs {
            let mut newer = learned(Vec::new());
            for (power, more, calls, log_ratio, count) in job {
                let ratios = LogRatios { trials: count, mean: log_ratio, squares: 1.0 };
                let tried = LearnedMethod { ratios, ..trials("own:linear", &[]) };
                let cut = LearnedClass { last_bytes: (1 << power) + more, ..class("8x4", 1 << power, calls, vec![tried]) };
                if !newer.classes.iter().any(|there| there.point.bytes <= cut.last_bytes && cut.point.bytes <= there.last_bytes) {
                    newer.pool(cut);
                }
            }
            all.merge(&newer);
            prop_assert_eq!(all.validate(), Ok(()));
            prop_assert!(newer.classes.iter().all(|class| all.classes.iter().any(|there| there.point == class.point)));
            let is_bounded = |class: &LearnedClass| class.tried.iter().all(|of| of.ratios.trials <= MOST_TRIALS);
            prop_assert!(all.classes.iter().all(is_bounded));
        }
    }
}

#[test]
fn jobs_add_up_by_class() {
    let mut all = learned(vec![class("8x4", 1024, 100, vec![trials("own:linear", &[0.5, 0.3])])]);
    let both = vec![trials("own:binomial", &[-0.5]), trials("own:linear", &[0.4])];
    all.merge(&learned(vec![class("8x4", 1024, 50, both), class("8", 1024, 7, Vec::new())]));
    assert_eq!(all.jobs, 2);
    assert_eq!(all.classes.len(), 2, "another layout is another class");
    let merged = all.find(Collective::Bcast, "8x4".parse().unwrap(), 2000).unwrap();
    assert_eq!(merged.calls, 150);
    assert_eq!(merged.chosen.to_string(), "own:binomial", "what the newer job uses");
    let linear = trials("own:linear", &[0.5, 0.3, 0.4]);
    assert!(is_near(&merged.tried[0], &linear), "{:?}", merged.tried);
    assert_eq!(merged.tried[1].ratios.trials, 1);
    assert_eq!(all.find(Collective::Bcast, "8x4".parse().unwrap(), 2048), None);
}

/// A job that tried nothing, as one with several threads, knows nothing against what is chosen.
#[test]
fn a_job_that_compared_nothing_leaves_the_choice() {
    let mut all = learned(vec![class("8x4", 1024, 100, vec![trials("own:linear", &[-0.5, -0.3])])]);
    all.merge(&learned(vec![class("8x4", 1024, 100, Vec::new())]));
    assert_eq!(all.classes[0].chosen.to_string(), "own:linear");
    let mut told = class("8x4", 1024, 100, vec![trials("own:linear", &[0.5])]);
    told.chosen = Method::Default;
    all.merge(&learned(vec![told]));
    assert_eq!(all.classes[0].chosen, Method::Default);
}

/// After a hundred jobs that say one thing, some that say another are believed.
#[test]
fn a_cluster_that_changes_is_learnt_anew() {
    let mut all = learned(Vec::new());
    let job = |log_ratio: f64, seconds: f64| {
        let tried =
            vec![trials("own:linear", &[log_ratio - 0.1, log_ratio, log_ratio, log_ratio + 0.1])];
        learned(vec![LearnedClass { default_seconds: seconds, ..class("8x4", 1024, 1000, tried) }])
    };
    (0..100).for_each(|_| all.merge(&job(-0.5, 1e-3)));
    let tried = all.classes[0].tried[0].ratios;
    assert_eq!(tried.trials, MOST_TRIALS);
    assert!((tried.squares - 64.0 * 0.005).abs() < 1e-9, "the scatter stays: {tried:?}");
    (0..16).for_each(|_| all.merge(&job(0.5, 1.2e-3)));
    let class = &all.classes[0];
    assert!(class.tried[0].ratios.mean > 0.1, "{class:?}");
    assert!((1.19e-3..=1.2e-3).contains(&class.default_seconds), "{class:?}");
    all.merge(&job(0.5, 3e-3));
    assert_eq!(all.classes[0].default_seconds, 3e-3, "not the mean of two clusters");
    let untimed = LearnedClass { default_seconds: 0.0, ..all.classes[0].clone() };
    all.merge(&learned(vec![untimed]));
    assert_eq!(all.classes[0].default_seconds, 3e-3);
}

/// A job writes several times what it has learned so far, of several communicators: each trial counts once.
#[test]
fn what_a_job_adds_again_and_again_counts_once() {
    let on = |calls, log_ratios: &[f64]| {
        class("8x4", 1024, calls, vec![trials("own:linear", log_ratios)])
    };
    let mut first = learned(vec![on(10, &[-0.5])]);
    first.pool(on(30, &[-0.3]));
    assert_eq!(first.classes.len(), 1);
    assert_eq!(first.classes[0].calls, 40);
    let mut second = learned(vec![on(20, &[-0.5, -0.7])]);
    second.pool(on(30, &[-0.3]));
    second.pool(class("8x4", 4, 9, Vec::new()));
    let mut there = learned(Vec::new());
    there.jobs = 0;
    there.merge(&first);
    let since = second.since(&first);
    assert_eq!((since.jobs, since.classes[0].tried[0].ratios.trials), (0, 1));
    there.merge(&since);
    there.merge(&second.since(&second));
    let merged = there.find(Collective::Bcast, "8x4".parse().unwrap(), 1024).unwrap();
    assert_eq!((there.jobs, merged.calls), (1, 50));
    assert!(is_near(&merged.tried[0], &trials("own:linear", &[-0.5, -0.7, -0.3])), "{merged:?}");
}

#[test]
fn the_file_keeps_what_takes_most_time() {
    let classes = |from: u32| {
        (from..from + 6000)
            .map(|procs| class(&procs.to_string(), 1, procs.into(), Vec::new()))
            .collect()
    };
    let mut all = learned(classes(1));
    all.merge(&learned(classes(6001)));
    assert_eq!(all.classes.len(), MOST_CLASSES);
    assert_eq!(all.classes[0].calls, 2001);
}
