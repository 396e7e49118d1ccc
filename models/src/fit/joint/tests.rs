use super::*;
use crate::{Model, Predictor};
use rand_distr::{Distribution as _, Normal};

fn method(text: &str) -> Method {
    text.parse().unwrap()
}

/// Times of a machine whose truth is known, with noise and a factor for one algorithm.
fn made(seed: u128, combining: f64) -> Vec<JobTime> {
    let shapes = Shapes::default();
    let mut random = rand_pcg::Pcg64Mcg::new(seed);
    let noise = Normal::new(0.0, 0.05).unwrap();
    let truth = Shape::from([3e-6, 2e-10, combining, 0.0, 0.0]);
    let methods = [
        (Collective::Bcast, "native:openmpi:binomial", 1.0),
        (Collective::Bcast, "native:openmpi:scatter-allgather-ring", 1.6),
        (Collective::Allgather, "native:openmpi:ring", 1.0),
        (Collective::Allreduce, "native:openmpi:recursive-doubling", 1.0),
        (Collective::Allreduce, "native:openmpi:rabenseifner", 1.0),
    ];
    let mut times = Vec::new();
    for (collective, name, factor) in methods {
        for procs in [8, 16] {
            for bytes in [64, 4096, 262_144, 4 << 20] {
                for job in 0..3 {
                    let point = Point::flat(collective, procs, bytes);
                    let method = method(name);
                    let shape = shapes.look_up(point, &method).unwrap();
                    let error: f64 = noise.sample(&mut random);
                    let seconds = factor * shape.dot(&truth) * error.exp();
                    times.push(JobTime { point, method, seconds, job });
                }
            }
        }
    }
    times
}

#[test]
fn what_was_put_in_is_found_again() {
    for seed in 1..4 {
        let fit = joint(&made(seed, 1e-10)).unwrap();
        for (found, truth) in
            [(fit.start.value, 3e-6), (fit.per_byte.value, 2e-10), (fit.combining.value, 1e-10)]
        {
            assert!((found / truth).ln().abs() < 0.35, "seed {seed}: {found} for {truth}");
        }
        let is_slow = |it: &&AlgorithmFactor| it.start.value > 1.3 && it.per_byte.value > 1.3;
        let slow = fit.factors.iter().find(is_slow).unwrap();
        assert_eq!(slow.method, method("native:openmpi:scatter-allgather-ring"));
        assert!(fit.median_error < 0.1, "{}", fit.median_error);
        let point = Point::flat(Collective::Allgather, 64, 1024);
        assert!(fit.seconds(point, &method("native:openmpi:ring")).unwrap() > 0.0);
        assert_eq!(fit.seconds(point, &Method::Default), None);
    }
}

/// By its constants an algorithm takes about what the fit says that it takes.
#[test]
fn constants_of_algorithms_are_the_fits() {
    let times = made(1, 1e-10);
    let fit = joint(&times).unwrap();
    let constants = fit.constants(&times);
    assert_eq!(constants.len(), 5);
    assert!(
        constants.iter().all(|it| it.points.len() == 8 && it.median_residual < 0.1),
        "{constants:?}"
    );
    let predictor =
        Predictor::of_algorithms(Model::Refined, &constants, &fit.parameters()).unwrap();
    for time in &times {
        let by_constants = predictor.predict_method_seconds(time.point, &time.method).unwrap();
        let by_fit = fit.seconds(time.point, &time.method).unwrap();
        assert!((by_constants / by_fit).ln().abs() < 0.1, "{time:?}: {by_constants} {by_fit}");
    }
}

/// Times that no structure fits leave the factors around 1: the prior holds them together.
#[test]
fn factors_do_not_run_away_together() {
    for seed in 1..4 {
        let mut times = made(seed, 1e-10);
        for (index, time) in times.iter_mut().enumerate() {
            time.seconds *= [0.3, 1.0, 4.0, 1.5, 0.6][index % 5];
        }
        let fit = joint(&times).unwrap();
        let factors = || fit.factors.iter();
        let starts: f64 = factors().map(|it| it.start.value.ln()).sum();
        let bytes: f64 = factors().map(|it| it.per_byte.value.ln()).sum();
        assert!(starts.abs().max(bytes.abs()) < 0.2, "seed {seed}: {:?}", fit.factors);
        assert!((fit.start.value / 3e-6).ln().abs() < 1.0, "seed {seed}: {:?}", fit.start);
    }
}

#[test]
fn what_the_times_do_not_hold_is_told() {
    let mut times = made(1, 1e-10);
    times.retain(|time| time.point.collective != Collective::Allreduce);
    let fit = joint(&times).unwrap();
    assert!(fit.undetermined.iter().any(|it| it.starts_with("gamma cannot be determined")));
    times.retain(|time| time.method == Method::Default);
    assert!(joint(&times).is_err());
}

/// Where jobs had several ranks on each node, messages inside are told from those between.
#[test]
fn levels_are_told_apart() {
    let shapes = Shapes::default();
    let truth = Shape::from([3e-6, 2e-10, 1e-10, 5e-7, 5e-11]);
    let mut times = Vec::new();
    for (collective, name) in [
        (Collective::Allgather, "native:openmpi:ring"),
        (Collective::Bcast, "native:openmpi:binomial"),
        (Collective::Allreduce, "native:openmpi:recursive-doubling"),
    ] {
        for layout in ["8x1", "4x4", "8x4"] {
            for bytes in [64, 4096, 262_144, 4 << 20] {
                let point = Point { collective, layout: layout.parse().unwrap(), bytes };
                let seconds = shapes.look_up(point, &method(name)).unwrap().dot(&truth);
                times.push(JobTime { point, method: method(name), seconds, job: 0 });
            }
        }
    }
    let fit = joint(&times).unwrap();
    let near = |found: f64, truth: f64| (found / truth).ln().abs() < 0.35;
    assert!(near(fit.start.value, 3e-6) && near(fit.per_byte.value, 2e-10), "{fit:?}");
    let [start, per_byte] = fit.inside.unwrap();
    assert!(start.value < 1.5e-6 && per_byte.value < 1e-10, "{fit:?}");
    assert!(fit.inside_node().is_some());
    times.retain(|time| time.point.layout.is_flat());
    assert_eq!(joint(&times).unwrap().inside, None);
}

/// A node takes the time of its messages inside, where others are known between nodes.
#[test]
fn messages_of_one_node_are_inside() {
    let mut times = Vec::new();
    for (layout, start, per_byte) in [("8x4", 3e-6, 2e-10), ("1x8", 4e-7, 5e-11)] {
        for bytes in [64, 4096, 262_144, 4 << 20] {
            let layout = layout.parse().unwrap();
            let point = Point { collective: Collective::Bcast, layout, bytes };
            let seconds = 7.0 * (start + per_byte * bytes as f64);
            times.push(JobTime {
                point,
                method: method("native:openmpi:pipeline"),
                seconds: if layout.nodes() == 1 {
                    seconds
                } else {
                    seconds + 24.0 * (4e-7 + 5e-11 * bytes as f64)
                },
                job: 0,
            });
        }
    }
    let fit = joint(&times).unwrap();
    let [start, per_byte] = fit.inside.unwrap();
    let near = |found: f64, truth: f64| (found / truth).ln().abs() < 0.5;
    assert!(near(start.value, 4e-7) && near(per_byte.value, 5e-11), "{fit:?}");
    assert!(near(fit.start.value, 3e-6) && near(fit.per_byte.value, 2e-10), "{fit:?}");
    for JobTime { point, method, seconds, .. } in times {
        let told = fit.seconds(point, &method).unwrap();
        assert!((told / seconds).ln().abs() < 0.05, "{point:?}: {told}, {seconds}");
    }
}
