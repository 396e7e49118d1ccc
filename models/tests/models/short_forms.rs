//! Switching points, compressed decision functions and explanations.

use models::{
    Forms, Model, Point, Predictor,
    compress::{Bounds, CompressionForm, DecisionGrid},
    decide::{self, decide_among, switching_points},
    explain::Explainer,
    presets::preset,
};
use proptest::prelude::*;
use records::{Algorithm, Collective, Method};

use crate::tables::numbers;

const BCAST: Collective = Collective::Bcast;

fn methods(predictor: &Predictor, collective: Collective, segments: &[u64]) -> Vec<Method> {
    let known = predictor.model().algorithms(collective);
    decide::methods(predictor, collective, &known, segments).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Between two switching points every byte is decided as said.
    #[test]
    fn every_byte_is_decided_as_its_stretch(
        n in numbers(), procs in 2_u32..40, segment in 200_u64..2_000, first in 1_u64..300,
    ) {
        let parameters = n.parameters();
        for model in Model::TABLES {
            for collective in [BCAST, Collective::Reduce] {
                let predictor = Predictor::new(model, Forms::Corrected, &parameters).unwrap();
                let methods = methods(&predictor, collective, &[0, segment, 3 * segment]);
                let last = first + 3_000;
                let found =
                    switching_points(&predictor, (collective, procs), &methods, first..=last)
                        .unwrap();
                prop_assert_eq!(found[0].from_bytes, first);
                prop_assert!(found.windows(2).all(|pair| pair[0].from_bytes < pair[1].from_bytes));
                for bytes in (first..=last).step_by(3) {
                    let point = Point::flat(collective, procs, bytes);
                    let best = decide_among(&predictor, point, &methods).unwrap();
                    let stretch = found.iter().rev().find(|one| one.from_bytes <= bytes).unwrap();
                    let taken = predictor.predict_method_seconds(point, &stretch.method).unwrap();
                    prop_assert!(
                        taken <= best.seconds * (1.0 + 1e-11),
                        "{model} {point:?}: {stretch:?} {taken}, {best:?}"
                    );
                }
            }
        }
    }

    /// The terms of a time sum to it; nearly, in a schedule in which messages meet that come in an order
    /// that the last digit decides.
    #[test]
    fn terms_sum_to_the_time(n in numbers(), procs in 2_u32..40, bytes in 1_u64..100_000) {
        let parameters = n.parameters();
        for model in Model::ALL {
            let predictor = Predictor::new(model, Forms::Corrected, &parameters).unwrap();
            let explainer = Explainer::new(&predictor, &parameters, None, false).unwrap();
            for method in methods(&predictor, BCAST, &[0, 1 << 10]) {
                let point = Point::flat(BCAST, procs, bytes);
                let time = predictor.predict_method_seconds(point, &method).unwrap();
                let terms = explainer.terms(point, &method).unwrap();
                let sum: f64 = terms.iter().map(|term| term.seconds).sum();
                let is_of_forms = !(matches!(model, Model::Refined | Model::Simulated)
                    && method.to_string() == "own:scatter-allgather"
                    && !procs.is_power_of_two());
                let tolerance = if is_of_forms { 1e-4 } else { 0.03 };
                let off = (sum / time - 1.0).abs();
                prop_assert!(off < tolerance, "{model} {method} {point:?}: {sum} {time} {terms:?}");
            }
        }
    }
}

#[test]
fn the_terms_of_a_pipeline_are_those_of_its_form() {
    let frodo = preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &frodo).unwrap();
    let explainer = Explainer::new(&predictor, &frodo, None, false).unwrap();
    let method = Method::own(Algorithm::Pipeline).with_segment(1 << 10);
    let point = Point::flat(BCAST, 8, 64 << 10);
    // (P - 1) (L + 2 o + (m_s - 1) G) + (n_s - 1) (g + (m_s - 1) G)
    let wanted = [("L", 7.0), ("o", 14.0), ("g", 63.0), ("G", 70.0 * 1023.0)];
    let terms = explainer.terms(point, &method).unwrap();
    assert_eq!(terms.len(), wanted.len());
    for (term, (parameter, count)) in terms.iter().zip(wanted) {
        assert_eq!(term.parameter, parameter);
        assert!((term.count.unwrap() / count - 1.0).abs() < 1e-6, "{term:?}");
    }
}

#[test]
fn short_forms_keep_their_bounds_and_state_their_penalty() {
    let frodo = preset("frodo").unwrap().measured;
    let procs: Vec<u32> = (3..=32).collect();
    let bytes: Vec<u64> = (0..=23).map(|shift| 1 << shift).collect();
    for model in [Model::LogGp, Model::Refined] {
        let predictor = Predictor::new(model, Forms::Corrected, &frodo).unwrap();
        let methods = methods(&predictor, BCAST, &[0, 1 << 10, 8 << 10]);
        let map = DecisionGrid::new(&predictor, BCAST, (&procs, &bytes), &methods).unwrap();
        let compress = |shape, depth, penalty| {
            map.compress(&predictor, shape, Bounds { depth, penalty }).unwrap()
        };
        for shape in [CompressionForm::Table, CompressionForm::Tree, CompressionForm::Quadtree] {
            let exact = compress(shape, 64, 0.0);
            assert!(exact.greatest_penalty < 1e-9, "{model} {shape:?}");
            let mut worst: f64 = 0.0;
            for &procs in &procs {
                for &bytes in &bytes {
                    let point = Point::flat(BCAST, procs, bytes);
                    let best = decide_among(&predictor, point, &methods).unwrap().seconds;
                    let taken = predictor
                        .predict_method_seconds(point, exact.decide(procs, bytes))
                        .unwrap();
                    worst = worst.max(taken / best - 1.0);
                }
            }
            assert!(worst < 1e-9, "{model} {shape:?}: {worst}");
        }
        let within = compress(CompressionForm::Tree, 64, 0.05);
        assert!(within.greatest_penalty <= 0.05);
        assert!(within.entries < compress(CompressionForm::Tree, 64, 0.0).entries);
        assert_eq!(compress(CompressionForm::Tree, 0, 0.0).entries, 1);
        assert!(compress(CompressionForm::Tree, 3, 0.0).entries <= 8);
        assert!(compress(CompressionForm::Quadtree, 2, 0.0).entries <= 16);
        assert!(compress(CompressionForm::Quadtree, 2, 0.0).mean_penalty > 0.0);
    }
}

#[test]
fn the_largest_size_there_is_has_a_decision() {
    let frodo = preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::Hockney, Forms::Corrected, &frodo).unwrap();
    let all = methods(&predictor, BCAST, &[0]);
    let ranges = switching_points(&predictor, (BCAST, 8), &all, 1..=u64::MAX).unwrap();
    assert_eq!(ranges[0].from_bytes, 1);
    let last = decide_among(&predictor, Point::flat(BCAST, 8, u64::MAX), &all).unwrap();
    assert_eq!(ranges.last().unwrap().method, last.method);
}

#[test]
fn what_has_no_short_form_says_so() {
    let frodo = preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::Refined, Forms::Corrected, &frodo).unwrap();
    let all = methods(&predictor, BCAST, &[0]);
    let error = switching_points(&predictor, (BCAST, 8), &all, 1..=8).unwrap_err().to_string();
    assert!(error.contains("model refined") && error.contains("loggp"), "{error}");
    assert!(DecisionGrid::new(&predictor, BCAST, (&[4, 2], &[1]), &all).is_err());
    let loggp = Predictor::new(Model::LogGp, Forms::Corrected, &frodo).unwrap();
    let tiny = methods(&loggp, BCAST, &[1]);
    let error = switching_points(&loggp, (BCAST, 8), &tiny, 1..=1 << 30).unwrap_err().to_string();
    assert!(error.contains("too many"), "{error}");
}
