//! Made-up results of the shape that real runs have.

use std::collections::BTreeMap;

use colibri_figures::{ComparedPoint, GainPanel, GainPoint};
use records::{
    Algorithm, Collective, Library, Method, Native, Point,
    calibration::{
        AlgorithmFit, Algorithms, Calibration, Estimate, FitPoint, Gamma, GammaKnot, GapKnot,
        HockneyEstimates, HockneyKnot, LineFit, LogGpEstimates, ManyGap, Operation, PLogPEstimates,
        PLogPKnot, Parameters, TimedPoint,
    },
    choices::{Choices, Chosen, PredictionSource},
    pairs::{Finding, Link, Member, PairMap},
    penalty::{Distribution, Penalties, Penalty, PenaltySummary},
    platform::Platform,
};

pub fn sizes(count: u32) -> Vec<u64> {
    (0..count).map(|shift| 1 << shift).collect()
}

pub fn platform(ranks: usize) -> Platform {
    Platform {
        hosts: (0..ranks).map(|rank| format!("node{rank}")).collect(),
        mpi_library: "Open MPI v4.1.4, package: Debian OpenMPI".into(),
        testbed: format!("{ranks} nodes, 100mbit"),
        ..Platform::default()
    }
}

#[expect(clippy::unwrap_used, reason = "the name is a constant")]
fn native(algorithm: Algorithm, segment_bytes: u64) -> Method {
    Method::Native(Native { library: Library::new("openmpi").unwrap(), algorithm, segment_bytes })
}

/// Switches with the size as the paper's Figure 6 does; `shift` moves the switching points.
pub fn method(procs: u32, bytes: u64, shift: i32) -> Method {
    let size = bytes.max(1).ilog2() as i32 + shift - (procs.ilog2() as i32) / 2;
    match size {
        i32::MIN..=3 if procs > 16 => native(Algorithm::Linear, 0),
        i32::MIN..=7 => native(Algorithm::Binomial, 0),
        8..=9 => native(Algorithm::Binary, 0),
        10..=12 => native(Algorithm::SplittedBinary, 1024),
        13..=17 => native(Algorithm::Pipeline, 1024),
        _ => native(Algorithm::Pipeline, 8192),
    }
}

/// A pattern between 0 and 1 without a generator.
fn noise(procs: u32, bytes: u64, salt: u32) -> f64 {
    let mixed = (bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (u64::from(procs) * 977 + u64::from(salt) * 131))
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f64 / (1_u64 << 24) as f64
}

/// The default's times and the tuned ones.
pub fn gains(procs: &[u32], sizes: &[u64]) -> Vec<GainPanel> {
    let panel = |&procs: &u32| {
        let point = |&bytes: &u64| {
            let tuned_seconds = seconds(procs, bytes);
            let default_seconds = tuned_seconds * (1.0 + noise(procs, bytes, 3));
            GainPoint { bytes, default_seconds, tuned_seconds: Some(tuned_seconds), interval: None }
        };
        GainPanel { layout: procs.into(), points: sizes.iter().map(point).collect() }
    };
    procs.iter().map(panel).collect()
}

pub fn seconds(procs: u32, bytes: u64) -> f64 {
    f64::from(procs).log2() * 8e-5 + bytes as f64 * 9e-8
}

pub fn penalties(procs: &[u32], sizes: &[u64]) -> Penalties {
    let functions = [("default", 4), ("hockney", 2), ("loggp", 1), ("plogp", -1)];
    let mut penalties = Vec::new();
    let mut summaries = Vec::new();
    for (salt, (name, shift)) in (0_u32..).zip(functions) {
        let mut values = Vec::new();
        for procs in procs.iter().copied() {
            for bytes in sizes.iter().copied() {
                let best = method(procs, bytes, 0);
                let decided =
                    if name == "default" { Method::Default } else { method(procs, bytes, shift) };
                let penalty = match (decided == best, name) {
                    (true, _) => 0.0,
                    (false, "default") if bytes > 1 << 14 => 2.0 + 4.0 * noise(procs, bytes, salt),
                    _ => 0.9 * noise(procs, bytes, salt).powi(3),
                };
                let best_seconds = seconds(procs, bytes);
                values.push(penalty);
                penalties.push(Penalty {
                    point: Point::flat(Collective::Bcast, procs, bytes),
                    decided_by: name.into(),
                    decided,
                    decided_seconds: best_seconds * (1.0 + penalty),
                    best,
                    best_seconds,
                    penalty,
                    machine_limited: false,
                });
            }
        }
        if values.is_empty() {
            continue;
        }
        values.sort_by(f64::total_cmp);
        summaries.push(PenaltySummary {
            collective: Collective::Bcast,
            decided_by: name.into(),
            points: values.len() as u32,
            not_measured: 0,
            penalty: Distribution {
                mean: values.iter().sum::<f64>() / values.len() as f64,
                median: values[values.len() / 2],
                percentile_95: values[values.len() * 19 / 20],
                greatest: values[values.len() - 1],
            },
        });
    }
    Penalties {
        platform: platform(procs.last().copied().unwrap_or(1) as usize),
        timing: "completion on the last rank, one clock".into(),
        best: "least median of one half of the observations, timed on the other".into(),
        message_size: BTreeMap::from([(Collective::Bcast, "count x type size".into())]),
        summaries,
        regions: Vec::new(),
        prediction_errors: Vec::new(),
        noise: Vec::new(),
        busy_links: Vec::new(),
        penalties,
        warnings: Vec::new(),
    }
}

pub fn decisions(procs: &[u32], sizes: &[u64]) -> Choices {
    let mut decisions = Vec::new();
    for (model, shift) in [("hockney", 2), ("loggp", 1), ("plogp", -1)] {
        for procs in procs.iter().copied() {
            for bytes in sizes.iter().copied() {
                let ties = match noise(procs, bytes, 7) < 0.1 {
                    true => vec![native(Algorithm::KNomial, 0)],
                    false => Vec::new(),
                };
                let seconds = seconds(procs, bytes);
                let point = Point::flat(Collective::Bcast, procs, bytes);
                let method = method(procs, bytes, shift);
                decisions.push(Chosen {
                    interval_seconds: Some([seconds * 0.9, seconds * 1.1]),
                    ties,
                    ..Chosen::predicted(point, model, method, seconds)
                });
            }
        }
    }
    Choices {
        platform: Platform::default(),
        prediction: Some(PredictionSource {
            calibration: "calibration.json".into(),
            forms: "corrected".into(),
            parameters: "measured".into(),
        }),
        message_size: BTreeMap::from([(Collective::Bcast, "count x type size".into())]),
        choices: decisions,
        confirmed: Vec::new(),
    }
}

/// Two decision functions that switch at different sizes.
pub fn differences(procs: &[u32], sizes: &[u64]) -> Vec<ComparedPoint> {
    let mut differences = Vec::new();
    for procs in procs.iter().copied() {
        for bytes in sizes.iter().copied() {
            let cost = 0.5 + 1.5 * noise(procs, bytes, 3);
            let time = seconds(procs, bytes);
            differences.push(ComparedPoint {
                layout: procs.into(),
                bytes,
                methods: [method(procs, bytes, 0), method(procs, bytes, 1)],
                seconds: (bytes != 1 << 10).then_some([time, time * cost]),
            });
        }
    }
    differences
}

fn about(value: f64) -> Estimate {
    Estimate { value, low: value * 0.9, high: value * 1.15 }
}

pub fn calibration() -> Calibration {
    let knots = sizes(21).into_iter().map(|bytes| {
        let m = bytes as f64;
        PLogPKnot {
            bytes,
            send_overhead_seconds: about(4e-6 + 1e-9 * m),
            receive_overhead_seconds: about(6e-6 + 2e-9 * m),
            gap_seconds: about(1.2e-5 + 8.4e-8 * m),
        }
    });
    Calibration {
        source: "runs/2026-11-21/point-to-point.csv".into(),
        platform: platform(8),
        measured: Parameters {
            gamma_seconds_per_byte: about(3e-10),
            ..Parameters::new(
                HockneyEstimates {
                    alpha_seconds: about(7.1e-5),
                    beta_seconds_per_byte: about(8.42e-8),
                },
                LogGpEstimates {
                    latency_seconds: about(5.2e-5),
                    overhead_seconds: about(6e-6),
                    gap_seconds: about(1.3e-5),
                    gap_seconds_per_byte: about(8.42e-8),
                },
                PLogPEstimates::new(about(5.5e-5), knots.collect()),
            )
        },
        fitted: None,
        fits: Vec::new(),
        inside: None,
        algorithms: None,
        warnings: Vec::new(),
    }
}

/// Links at 100 Mbit/s, but node 3 receives at 50.
pub fn pairs(count: u32) -> PairMap {
    let mut links = Vec::new();
    for (sender, receiver) in (0..count).flat_map(|one| (0..count).map(move |other| (one, other))) {
        if sender != receiver {
            let slower = if receiver == 3 { 2.0 } else { 1.0 };
            links.push(Link {
                sender,
                receiver,
                empty_seconds: about(8e-5),
                seconds_per_byte: about(8.4e-8 * slower),
            });
        }
    }
    PairMap {
        platform: platform(count as usize),
        one_per_node: true,
        bytes: 65_536,
        at_once: 1,
        members: (0..count).map(|rank| Member { rank, host: format!("node{rank}") }).collect(),
        links,
        findings: vec![Finding {
            sender: None,
            receiver: Some(3),
            factor: 2.0,
            text: "node 3 receives at half the rate of the others".into(),
        }],
        warnings: Vec::new(),
    }
}

/// Adds what a calibration of more than two ranks has besides.
pub fn complete(calibration: &mut Calibration) {
    let gap = |bytes: u64| 1.2e-5 + 8.4e-8 * bytes as f64;
    let many = |partners: u32, each: f64| ManyGap {
        partners,
        knots: [1, 1024, 65_536]
            .map(|bytes| {
                let crowd = 1.0 + each * f64::from(partners) / (1.0 + bytes as f64 / 1024.0);
                let seconds = f64::from(partners) * gap(bytes) * crowd;
                GapKnot { bytes, gap_seconds: about(seconds) }
            })
            .into(),
    };
    let measured = &mut calibration.measured;
    measured.plogp.gap_by_destinations = vec![many(2, 0.1), many(7, 0.1)];
    measured.plogp.gap_by_sources = vec![many(2, 0.05), many(7, 0.05)];
    let operations = [Operation::SumDouble, Operation::BxorByte];
    measured.gamma = operations
        .map(|operation| Gamma {
            operation,
            knots: [8, 1024, 1 << 20]
                .map(|bytes| GammaKnot {
                    bytes,
                    seconds_per_byte: about(3e-10 + 2e-8 / bytes as f64),
                })
                .into(),
        })
        .into();
    measured.hockney_by_size = sizes(21)
        .into_iter()
        .map(|bytes| HockneyKnot {
            bytes,
            alpha_seconds: about(7.1e-5),
            beta_seconds_per_byte: about(8.4e-8),
        })
        .collect();
    let fit = |(experiment, bytes): (&str, u64)| {
        let (intercept, slope) = (1e-4, 5e-5 + gap(bytes));
        let points = (2..=8).map(|procs| FitPoint {
            procs,
            seconds: intercept + slope * f64::from(procs) * (1.0 + 0.01 * f64::from(procs % 3)),
            residual_seconds: slope * f64::from(procs) * 0.01 * f64::from(procs % 3),
        });
        LineFit {
            experiment: experiment.into(),
            bytes,
            intercept_seconds: intercept,
            slope_seconds: slope,
            r_squared: 0.99,
            points: points.collect(),
        }
    };
    let chains = sizes(17).into_iter().map(|bytes| ("pipelined bcast", bytes));
    calibration.fits = std::iter::once(("flat-tree barrier", 0)).chain(chains).map(fit).collect();
    calibration.fitted = Some(calibration.measured.clone());
    calibration.algorithms = Some(algorithms());
}

/// Of two algorithms, one of which bends a little more than its forms do.
fn algorithms() -> Algorithms {
    let point = |off: f64, bytes: u64| {
        let form = 1e-4 + 8.4e-8 * bytes as f64;
        TimedPoint {
            procs: 8,
            bytes,
            segment_bytes: 0,
            seconds: form * (1.0 + off),
            residual_seconds: form * off,
        }
    };
    let fit = |model: &str, method: &Method, off: f64| AlgorithmFit {
        collective: Collective::Bcast,
        method: method.clone(),
        model: model.into(),
        alpha_seconds: about(5e-5),
        beta_seconds_per_byte: about(8.4e-8),
        r_squared: 0.99,
        median_residual: off,
        points: [16, 1024, 65_536, 1 << 19]
            .map(|bytes| point(if bytes > 1024 { off } else { -off }, bytes))
            .into(),
    };
    let both = |(method, off)| ["hockney", "refined"].map(|model| fit(model, &method, off));
    let own = Method::own(Algorithm::Binomial);
    Algorithms {
        records: vec!["algorithms.csv".into()],
        fits: [(own, 0.02), (native(Algorithm::Pipeline, 0), 0.04)]
            .into_iter()
            .flat_map(both)
            .collect(),
    }
}
