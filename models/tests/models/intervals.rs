//! The interval of a prediction against a draw of the parameters.

use models::{
    Forms, Model, Point, Predictor, algorithms, closed_forms::COLLECTIVES, presets::preset,
};
use rand::SeedableRng as _;
use rand_distr::{Distribution as _, Normal};
use records::{
    Algorithm, Collective,
    calibration::{Estimate, Parameters},
};

use crate::unsegmented;

const RELATIVE: f64 = 0.04;

/// Every parameter that LogGP has, through `change`.
fn change(parameters: &mut Parameters, mut change: impl FnMut(&mut Estimate)) {
    let loggp = &mut parameters.loggp;
    for estimate in [
        &mut loggp.latency_seconds,
        &mut loggp.overhead_seconds,
        &mut loggp.gap_seconds,
        &mut loggp.gap_seconds_per_byte,
    ] {
        change(estimate);
    }
}

#[test]
fn nineteen_of_twenty_drawn_platforms_lie_in_the_interval() {
    let mut parameters = preset("frodo").unwrap().measured;
    change(&mut parameters, |estimate| {
        let Estimate { value, .. } = *estimate;
        *estimate =
            Estimate { value, low: value * (1.0 - RELATIVE), high: value * (1.0 + RELATIVE) };
    });
    let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &parameters).unwrap();
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    // An interval of 95 % is 1.96 standard deviations to either side.
    let error = Normal::new(1.0, RELATIVE / 1.96).unwrap();
    let drawn: Vec<Predictor> = (0..1000)
        .map(|_| {
            let mut drawn = parameters.clone();
            change(&mut drawn, |estimate| {
                *estimate = Estimate::exact(estimate.value * error.sample(&mut random));
            });
            Predictor::new(Model::LogGp, Forms::Corrected, &drawn).unwrap()
        })
        .collect();
    for collective in COLLECTIVES {
        for &algorithm in algorithms(collective) {
            let bytes = if collective == Collective::Barrier { 0 } else { 10_000 };
            let point = Point::flat(collective, 13, bytes);
            let interval = predictor.predict_method(point, &unsegmented(algorithm)).unwrap();
            let inside = drawn.iter().filter(|platform| {
                let seconds = platform.predict(point, algorithm, 0).unwrap();
                (interval.low..=interval.high).contains(&seconds)
            });
            let share = inside.count() as f64 / drawn.len() as f64;
            assert!((0.93..=0.97).contains(&share), "{collective} {algorithm}: {share}");
        }
    }
}

/// Once for the time and once for each end of each parameter: what could be simulated alone is
/// refused where all of them together take too long.
#[test]
fn simulations_for_an_interval_are_counted_together() {
    let mut parameters = preset("frodo").unwrap().measured;
    let widen = |estimate: &mut Estimate| {
        estimate.low = estimate.value * 0.9;
        estimate.high = estimate.value * 1.1;
    };
    widen(&mut parameters.plogp.latency_seconds);
    for knot in &mut parameters.plogp.knots {
        widen(&mut knot.send_overhead_seconds);
        widen(&mut knot.receive_overhead_seconds);
        widen(&mut knot.gap_seconds);
    }
    let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
    let point = Point::flat(Collective::Allreduce, 1 << 24, 1024);
    let error =
        predictor.predict_method(point, &unsegmented(Algorithm::Bine)).unwrap_err().to_string();
    assert!(error.contains("allreduce by bine on 16777216 ranks is too much"), "{error}");
    let point = Point::flat(Collective::Allreduce, 1 << 10, 1024);
    assert!(predictor.predict_method(point, &unsegmented(Algorithm::Bine)).is_ok());
}
