//! Whole runs of guidelines, by simulation: how often a library that breaks none is blamed, and how
//! much of what is broken is found. `--nocapture` prints the numbers.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use choosing::samples::Samples;
use colibri_verification::guidelines::{JobMedians, ViolationTest, judge};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64;
use records::{
    Collective, Method, Point,
    observation::{CollectiveCall, ObservationStatus},
    platform::Platform,
    violations::{Class, Violations},
};
use statistics::significance::Test;

const COLLECTIVES: [Collective; 2] = [Collective::Bcast, Collective::Gather];
const PROCS: [u32; 2] = [4, 8];
/// Powers of two from 1 on.
const SIZES: u32 = 10;
/// The default, and mock-ups.
const METHODS: [&str; 4] = ["default", "mockup:x_as_a", "mockup:x_as_b", "mockup:x_as_c"];
/// Calls of a cell in one job.
const CALLS: u32 = 3;

/// Standard deviations of the logarithms of what a job adds to all its times, what it adds to those
/// of one cell, and what single calls add.
const OF_JOBS: f64 = 0.05;
const OF_CELLS: f64 = 0.03;
const OF_CALLS: f64 = 0.1;
/// The share of calls that take up to so many times as long.
const OUTLIERS: (f64, f64) = (0.03, 20.0);

/// A factor whose logarithm is normal with this standard deviation.
fn log_normal(random: &mut Pcg64, deviation: f64) -> f64 {
    LogNormal::new(0.0, deviation).unwrap().sample(random)
}

/// What so many jobs measure of a library that takes `seconds` for a method and a size.
fn measured(seed: u64, jobs: u32, seconds: impl Fn(&Method, u64) -> f64) -> JobMedians {
    let mut random = Pcg64::seed_from_u64(seed);
    let methods = METHODS.map(|method| method.parse::<Method>().unwrap());
    let mut samples = Vec::new();
    for _ in 0..jobs {
        let of_job = log_normal(&mut random, OF_JOBS);
        let mut rows = Vec::new();
        for (collective, procs) in
            COLLECTIVES.into_iter().flat_map(|of| PROCS.map(|procs| (of, procs)))
        {
            for (bytes, method) in
                (0..SIZES).flat_map(|power| methods.iter().map(move |method| (1 << power, method)))
            {
                let of_cell = of_job * log_normal(&mut random, OF_CELLS);
                for repetition in 0..CALLS {
                    let mut noise = of_cell * log_normal(&mut random, OF_CALLS);
                    if random.random::<f64>() < OUTLIERS.0 {
                        noise *= 1.0 + (OUTLIERS.1 - 1.0) * random.random::<f64>();
                    }
                    rows.push(CollectiveCall {
                        visit: 0,
                        point: Point::flat(collective, procs, bytes),
                        method: method.clone(),
                        ran: String::new(),
                        repetition,
                        first_start_seconds: 0.0,
                        last_start_seconds: 0.0,
                        seconds: seconds(method, bytes) * noise,
                        status: ObservationStatus::Ok,
                    });
                }
            }
        }
        samples.push(Samples::gather(&rows, libraries::ran_as_asked));
    }
    JobMedians::new(&samples)
}

fn judged(jobs: &JobMedians, settings: &ViolationTest) -> Violations {
    judge(jobs, settings, Platform::default(), "")
}

/// Whether anything is said to be broken, or something of one class.
fn is_blamed(found: &Violations, class: Option<Class>) -> bool {
    found.violations.iter().any(|violation| class.is_none_or(|class| violation.class == class))
}

/// The share of `runs` runs of six jobs in which a library that breaks nothing is blamed for
/// something.
fn blamed(
    name: &str,
    runs: u32,
    settings: &ViolationTest,
    seconds: impl Fn(&Method, u64) -> f64 + Copy,
) -> f64 {
    let found = (0..runs).map(|seed| judged(&measured(seed.into(), 6, seconds), settings));
    let found: Vec<Violations> = found.collect();
    let share = |class| {
        found.iter().filter(|found| is_blamed(found, class)).count() as f64 / f64::from(runs)
    };
    let of_classes = Class::ALL.map(|class| format!("{} {:.3}", class.name(), share(Some(class))));
    println!(
        "{name}, {}, gains of {} and more: blamed for anything in {:.3} of {runs} runs with {} tests \
         each ({})",
        settings.test.name(),
        settings.least_gain,
        share(None),
        found[0].verdict.comparisons,
        of_classes.join(", ")
    );
    share(None)
}

fn equal(_: &Method, _: u64) -> f64 {
    1e-4
}

fn with_start_up(_: &Method, bytes: u64) -> f64 {
    1e-4 + bytes as f64 * 1e-6
}

#[test]
fn a_library_that_breaks_no_guideline_is_seldom_blamed_for_anything() {
    // Where nothing is broken every discovery is false: in 5 % of the runs at most, 7.5 of 150, and
    // hardly ever in 15.
    for test in [Test::RankSum, Test::KolmogorovSmirnov] {
        let strict = ViolationTest { test, least_gain: 0.0, ..ViolationTest::default() };
        let share = blamed("equal times", 150, &strict, equal);
        assert!(share < 0.1, "{}: {share}", test.name());
    }
    let share = blamed("equal times", 150, &ViolationTest::default(), equal);
    assert!(share < 0.1, "{share}");
    let share = blamed("start-up and bytes", 150, &ViolationTest::default(), with_start_up);
    assert!(share < 0.1, "{share}");
    blamed("in proportion", 150, &ViolationTest::default(), in_proportion);
}

/// k calls on a part take just as long as one on the whole.
fn in_proportion(_: &Method, bytes: u64) -> f64 {
    bytes as f64 * 1e-6
}

/// Sizes at which the default takes a tenth longer than it should.
const SLOW: [u64; 3] = [4, 32, 256];

/// Of one class: the share of the slow points that are found, and the share of what is found that
/// is elsewhere.
fn found(class: Class, jobs: u32, seconds: impl Fn(&Method, u64) -> f64) -> (f64, f64) {
    const RUNS: u32 = 30;
    let slow = |method: &Method, bytes: u64| {
        let is_slow = *method == Method::Default && SLOW.contains(&bytes);
        seconds(method, bytes) * if is_slow { 1.1 } else { 1.0 }
    };
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..RUNS {
        let found =
            judged(&measured(1000 + u64::from(seed), jobs, slow), &ViolationTest::default());
        let mut points: Vec<_> = found.violations.iter().filter(|one| one.class == class).collect();
        points.dedup_by_key(|one| one.point);
        right += points.iter().filter(|one| SLOW.contains(&one.point.bytes)).count();
        wrong += points.iter().filter(|one| !SLOW.contains(&one.point.bytes)).count();
    }
    let all = RUNS as usize * COLLECTIVES.len() * PROCS.len() * SLOW.len();
    let (power, false_share) =
        (right as f64 / all as f64, wrong as f64 / (right + wrong).max(1) as f64);
    println!(
        "a tenth slower, {jobs} jobs, {}: {power:.2} found, {false_share:.3} of these false",
        class.name()
    );
    (power, false_share)
}

#[test]
fn a_tenth_is_mostly_found() {
    // Few jobs find little: what they add to all their times is noise to a test of two samples.
    for (class, jobs, wanted) in [
        (Class::Pattern, 6, 0.01),
        (Class::Pattern, 12, 0.4),
        (Class::Monotony, 12, 0.2),
        (Class::Pattern, 20, 0.7),
        (Class::Monotony, 20, 0.6),
    ] {
        let (power, false_share) = found(class, jobs, equal);
        assert!(power > wanted, "{}, {jobs} jobs: {power}", class.name());
        assert!(false_share < 0.1, "{}, {jobs} jobs: {false_share}", class.name());
    }
    // Judged by its tolerance alone, where k parts take as long as the whole: much is found, and
    // with it what is false, until it is run.
    let (power, _) = found(Class::SplitRobustness, 12, in_proportion);
    assert!(power > 0.9, "{power}");
}
