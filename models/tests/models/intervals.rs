//! The interval of a prediction against a draw of the parameters.

use models::{
    Forms, Model, Point, Predictor, algorithms, closed_forms::COLLECTIVES, presets::preset,
};
use rand::SeedableRng as _;
use rand_distr::{Distribution as _, Normal};
use records::{
    Collective,
    calibration::{Estimate, Parameters},
};

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
            let point = Point { collective, procs: 13, bytes };
            let interval = predictor.predict_with_interval(point, algorithm, 0).unwrap();
            let inside = drawn.iter().filter(|platform| {
                let seconds = platform.predict(point, algorithm, 0).unwrap();
                (interval.low..=interval.high).contains(&seconds)
            });
            let share = inside.count() as f64 / drawn.len() as f64;
            assert!((0.93..=0.97).contains(&share), "{collective} {algorithm}: {share}");
        }
    }
}
