//! Plans, what was timed by them, and what was made of that.

use super::common::{BCAST, PROCS, SIZES, header, method, platform, record_of, text};
use std::{collections::BTreeMap, sync::OnceLock};

use choosing::{halves, samples::Samples};
use records::{
    Collective, Layout, Method, Point, Root,
    check::{Change, Check, CheckVerdict, CheckedFor, CheckedPoint, PointVerdict},
    choices::{Choices, Chosen, ConfirmedWay, Evidence, TimedMethod},
    confirmed::{Advice, ConfirmedRange, LoadVerdict, LoadedCounts, PairedSpeedUp},
    disturbance::{self, Disturbance, Stretch},
    observation::{CollectiveCall, ObservationStatus},
    penalty::{BusyLinks, Penalties},
    plan::Plan,
    summary::{
        Application, ApplicationRun, ApplicationTurn, Gain, Harm, LoadWay, Loading, NotLoaded,
        Regret, RemovedPoint, RootGain, Slower, TuningSummary, WithheldMethod,
    },
    violations::{
        Class, Count, FasterAlternative, JudgedGuideline, Violation, ViolationCriteria, Violations,
    },
};
use tuning::{
    JobCosts, Weights,
    plan::{Extent, Grid, make},
};
use verification::{functions::DecisionFunction, penalty};

fn methods(_: Point, _: &[u64]) -> Vec<Method> {
    let names = [
        "default",
        "native:openmpi:binomial",
        "native:openmpi:pipeline,segment=1KiB",
        "own:linear",
    ];
    names.map(method).into()
}

fn planned() -> Plan {
    let grid = Grid {
        ranks: 8,
        collectives: vec![BCAST, Collective::Reduce],
        layouts: PROCS.map(Layout::flat).into(),
        sizes: SIZES.into(),
        segments: vec![0, 1024],
        methods: tuning::plan::MethodsOf::new(methods),
        weights: Weights::default(),
        others: Vec::new(),
        rank_bytes: None,
    };
    make(&grid, Extent::Exhaustive { rounds: 2 }, 1, &|_| vec![Some(1e-4)], JobCosts::expected(0.0))
        .plan
}

/// A plan of measurements.
pub fn plan() -> String {
    text(&planned())
}

/// Times as a run of [`plan`] might have given them.
fn timed() -> Vec<CollectiveCall> {
    let plan = planned();
    let mut rows = Vec::new();
    for (visit, asked) in (0..).zip(&plan.visits) {
        let cell = &plan.cells[asked.cell as usize];
        let slow = match cell.method {
            Method::Default => 3.0,
            _ => 1.0 + f64::from(asked.cell % 3),
        };
        for repetition in 0..asked.warmups + asked.repetitions.min(4) {
            let shake = 1.0 + 0.01 * f64::from((visit * 7 + repetition * 13) % 11);
            rows.push(CollectiveCall {
                visit,
                point: cell.point,
                method: cell.method.clone(),
                ran: String::new(),
                repetition,
                first_start_seconds: 0.0,
                last_start_seconds: 1e-6,
                seconds: slow * shake * (1e-5 + cell.point.bytes as f64 * 1e-9),
                status: if repetition < asked.warmups {
                    ObservationStatus::Warmup
                } else {
                    ObservationStatus::Ok
                },
            });
        }
    }
    rows
}

/// Timed collectives, with what others took of the processors meanwhile.
pub fn measurements() -> String {
    let stretch = |stolen, others| {
        let stretch = Stretch {
            seconds: 0.5,
            host: "n1".into(),
            processors: 4,
            ranks: 8,
            stolen,
            others,
            involuntary_switches: 17,
            load: Some(2.5),
        };
        let told = serde_json::to_string(&stretch).expect("numbers are numbers");
        format!("#@{}={told}", disturbance::KEY)
    };
    let told = [
        stretch(Some(0.0), Some(0.01)),
        stretch(Some(0.4), None),
        stretch(None, Some(0.2)),
        format!("#@{}=1.250", disturbance::WAITED),
        "#@placement=n1 0-3 on 2; n2 0-3 on 0".into(),
    ];
    let text = record_of(&header(), &timed());
    let mut lines: Vec<&str> = text.lines().collect();
    let between = lines.len() / (told.len() + 1);
    for (number, line) in told.iter().enumerate().rev() {
        lines.insert((number + 1) * between, line);
    }
    lines.join("\n") + "\n"
}

/// What was timed, to look decisions up in.
pub fn samples() -> Samples {
    static ONCE: OnceLock<Samples> = OnceLock::new();
    ONCE.get_or_init(|| Samples::gather(&timed(), libraries::ran_as_asked)).clone()
}

/// The penalties of following the library's default and what was measured best.
pub fn judged(samples: &Samples) -> Penalties {
    let choices = halves::choose(samples);
    let functions = [DecisionFunction::default(samples), DecisionFunction::measured(&choices)];
    let busy = BusyLinks { procs: 8, bytes: 65_536, seconds: 0.01, slowdown: 1.25 };
    penalty::penalties(samples, &functions, vec![busy], platform(), "barrier")
}

pub fn penalties() -> String {
    text(&judged(&samples()))
}

/// What a run has chosen.
pub fn choices() -> String {
    let one = |choice: &Chosen| {
        let seconds = choice.seconds;
        let [linear, binomial] = ["own:linear", "own:binomial"].map(method);
        let beats_default = Some(true);
        let other = TimedMethod { beats_default, ..TimedMethod::new(binomial, seconds) };
        Chosen {
            rests_on: Evidence::Confirmed,
            doubt: Some(0.1),
            next: Some(TimedMethod::new(linear, 2.0 * seconds)),
            alternatives: vec![other],
            confirmed: Some(CONFIRMED),
            ..choice.clone()
        }
    };
    let choices: Vec<Chosen> = halves::choose(&samples()).iter().map(one).collect();
    let confirmed = [LoadWay::Rules, LoadWay::Preload].map(|way| ConfirmedWay {
        way,
        verdict: verdict(),
        choices: choices.clone(),
    });
    text(&Choices {
        platform: platform(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        prediction: None,
        choices,
        confirmed: confirmed.into(),
    })
}

/// A comparison of two decision functions.
pub fn agreement() -> String {
    let samples = samples();
    let [first, second] = [
        DecisionFunction::default(&samples),
        DecisionFunction::measured(&halves::choose(&samples)),
    ];
    text(&verification::agreement::agreement(&samples, &[], [&first, &second], platform()))
}

const CONFIRMED: PairedSpeedUp = PairedSpeedUp { pairs: 4, speed_up: 2.0, interval: [1.8, 2.2] };

fn verdict() -> LoadVerdict {
    let advice = Advice::Repeat { budget_minutes: Some(12), on_idle_nodes: true };
    LoadVerdict { advice, reason: "why".into() }
}

fn loading(way: LoadWay, file: &str) -> Loading {
    let point = Point::flat(BCAST, 8, 65_536);
    let method = method("own:pipeline,segment=8KiB");
    Loading {
        way,
        file: file.into(),
        gains: vec![Gain {
            point,
            method: method.clone(),
            default_seconds: 0.02,
            tuned_seconds: 0.01,
            alone: CONFIRMED,
        }],
        verdict: verdict(),
        counts: LoadedCounts { points: 5, confirmed: 1, withheld: 2, ..LoadedCounts::default() },
        ranges: vec![ConfirmedRange {
            collective: point.collective,
            layout: point.layout,
            first_bytes: point.bytes,
            last_bytes: point.bytes,
            method: method.clone(),
            confirmed: CONFIRMED,
        }],
        rejected: vec![RemovedPoint {
            point: Point { bytes: 64, ..point },
            method: method.clone(),
            speed_up: 0.9,
        }],
        unexpressed: vec![NotLoaded {
            point: Point { bytes: 8, ..point },
            method: method.clone(),
            reason: "why".into(),
        }],
        mean_speed_up: 1.5,
        mean_interval: Some([1.4, 1.6]),
        calls_observed: 8,
        calls_as_selected: 8,
        harm: Some(Harm {
            points: 1,
            tolerance: 0.05,
            level: 0.05,
            jobs: 4,
            detectable: Some(0.3),
            greatest_slowdown: Some(-0.5),
            slower: vec![Slower {
                point,
                method,
                default_seconds: 0.02,
                loaded_seconds: 0.03,
                slowdown: 0.5,
                p_value: 0.01,
            }],
            too_few: 0,
        }),
        application_seconds: Some(50.0),
        roots: vec![RootGain { root: Root::Rank(3), points: 2, speed_up: 1.5 }],
    }
}

fn application_run(seconds: f64) -> ApplicationRun {
    ApplicationRun { seconds, collective_seconds: 20.0, calls: 100, replaced_calls: 80 }
}

/// What tuning gained.
pub fn summary() -> String {
    text(&TuningSummary {
        platform: platform(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        points: 3,
        loading: loading(LoadWay::Rules, "openmpi.rules"),
        preload: Some(loading(LoadWay::Preload, "profiles")),
        both: None,
        application: Some(Application {
            trace: "usage.json".into(),
            seconds: 60.0,
            collective_seconds: 20.0,
            tunable_seconds: 15.0,
            turns: vec![ApplicationTurn {
                without: application_run(60.0),
                with: application_run(50.0),
            }],
        }),
        regret: Some(Regret { mean: 0.01, greatest: 0.2 }),
        disturbance: Some(Disturbance {
            seconds: 60.0,
            taken: Some(0.09),
            disturbed: 0.3,
            most_taken: 0.05,
            involuntary_switches_per_second: 3.5,
            waited_seconds: 4.0,
        }),
        withheld: vec![WithheldMethod { points: 2, speed_up: 5.5, reason: "a reason".into() }],
        warnings: vec!["a warning".into()],
    })
}

/// What a check of a tuning found.
pub fn check() -> String {
    text(&Check {
        date: "2026-11-27T01:15:00".into(),
        verdict: CheckVerdict::Harm,
        reason: "a reason".into(),
        tune_again: Some("a reason".into()),
        way: LoadWay::Rules,
        file: "openmpi.rules".into(),
        platform: platform(),
        changes: vec![Change { what: "kernel".into(), before: "1".into(), now: "2".into() }],
        points: vec![CheckedPoint {
            point: Point::flat(BCAST, 8, 64),
            method: "own:binomial".parse().unwrap(),
            timed_for: CheckedFor::Confirmed,
            verdict: PointVerdict::NowSlower,
            because: None,
            speed_up_before: Some(1.5),
            speed_up: Some(0.5),
            interval: Some([0.4, 0.6]),
            p_value: Some(0.001),
            pairs: 6,
            default_seconds_before: Some(0.001),
            default_seconds: Some(0.001),
            loaded_seconds: Some(0.002),
        }],
        left_out: 1,
        pairs: 6,
        tolerance: 0.05,
        level: 0.05,
        calls_observed: 8,
        calls_as_selected: 8,
        disturbance: None,
    })
}

fn violation(class: Class, better: FasterAlternative) -> Violation {
    Violation {
        class,
        point: Point::flat(BCAST, 8, 65_536),
        better,
        seconds: 0.02,
        better_seconds: 0.01,
        gain: 1.0,
        p_value: Some(0.001),
        corrected_p_value: Some(0.01),
        calls_seconds: None,
        calls_gain: Some(0.5),
        gains_less_than_a_barrier: Some(false),
    }
}

/// Guidelines that were broken.
pub fn violations() -> String {
    text(&Violations {
        judged: vec![JudgedGuideline {
            class: Class::Pattern,
            collective: Collective::Bcast,
            layout: Layout::flat(8),
            right: "scatter + allgather".into(),
            sizes: vec![8, 65_536],
            violated: vec![65_536],
        }],
        platform: platform(),
        timing: "barrier".into(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        verdict: ViolationCriteria {
            unit: "the median of a job".into(),
            jobs: 5,
            test: "rank-sum".into(),
            level: 0.05,
            least_gain: 0.05,
            split_tolerance: 0.05,
            comparisons: 12,
            least_p_value: 0.004,
        },
        counts: vec![Count { class: Class::Pattern, collective: BCAST, points: 6, violated: 1 }],
        violations: vec![
            violation(
                Class::Pattern,
                FasterAlternative::Method(method("mockup:bcast_as_scatter_allgather")),
            ),
            violation(
                Class::Pattern,
                FasterAlternative::Sum(vec![Collective::Scatter, Collective::Allgather]),
            ),
            violation(Class::Monotony, FasterAlternative::Bytes(131_072)),
            violation(Class::SplitRobustness, FasterAlternative::Calls { calls: 4, bytes: 16_384 }),
        ],
        warnings: vec!["a warning".into()],
    })
}
