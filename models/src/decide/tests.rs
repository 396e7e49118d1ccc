mod as_measured;
mod bounds;

use proptest::prelude::*;
use records::{
    Collective,
    calibration::{Estimate, Parameters},
};

use super::*;
use crate::{Forms, Model, closed_forms::refined, presets::preset};

/// Frodo's parameters, each uncertain by such a part of itself.
fn uncertain(part: f64) -> Parameters {
    let mut parameters = preset("frodo").unwrap().measured;
    let widen = |estimate: &mut Estimate| {
        estimate.low = estimate.value * (1.0 - part);
        estimate.high = estimate.value * (1.0 + part);
    };
    widen(&mut parameters.plogp.latency_seconds);
    for knot in &mut parameters.plogp.knots {
        widen(&mut knot.send_overhead_seconds);
        widen(&mut knot.receive_overhead_seconds);
        widen(&mut knot.gap_seconds);
    }
    parameters
}

/// The algorithms of which every segment size is tried: of what is simulated that would take too long.
fn searched(collective: Collective) -> Vec<Algorithm> {
    let has_form =
        |algorithm| refined::forms(collective).iter().any(|it| it.algorithm == algorithm);
    let is_cut = |algorithm| schedules::find(collective, algorithm).unwrap().segmented;
    let mut algorithms = Model::Refined.algorithms(collective);
    algorithms.retain(|&algorithm| has_form(algorithm) || !is_cut(algorithm));
    algorithms
}

/// Every method at its best segment size, and every end of every interval.
fn all_evaluated(predictor: &Predictor, point: Point) -> (Method, Vec<Method>) {
    let mut spreads = Vec::new();
    let known = searched(point.collective).into_iter();
    for method in known.flat_map(|algorithm| predictor.methods(point.collective, algorithm)) {
        let segment = match predictor.segmented(point.collective, &method).unwrap() {
            true => best_segment(predictor, point, &method).unwrap(),
            false => Some(0),
        };
        let Some(segment) = segment else { continue };
        let candidate =
            CandidateMethod::new(predictor, point, method.with_segment(segment)).unwrap();
        let value = candidate.evaluation.seconds().unwrap();
        let spread = candidate.evaluation.spread(value).unwrap();
        spreads.push((candidate.evaluation.made(point, candidate.method), spread));
    }
    let least = spreads.iter().map(|(_, spread)| spread.value).fold(f64::INFINITY, f64::min);
    let first = spreads.iter().position(|(_, spread)| equal(spread.value, least)).unwrap();
    let (method, best) = spreads.remove(first);
    spreads.retain(|(_, spread)| spread.may_be_as_cheap_as(&best));
    spreads.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    (method, spreads.into_iter().map(|(method, _)| method).collect())
}

/// What the search leaves out is neither the best nor a tie with it.
#[test]
fn decisions_and_ties_are_those_of_all_methods() {
    let mut ties = 0;
    for part in [0.0, 0.01, 0.1, 0.4] {
        let parameters = uncertain(part);
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        for (collective, procs) in [Collective::Bcast, Collective::Reduce]
            .into_iter()
            .flat_map(|collective| [3, 6, 24, 100].map(|procs| (collective, procs)))
        {
            let known = searched(collective);
            for bytes in [1, 8, 4096, 1 << 16, 1 << 20] {
                let point = Point::flat(collective, procs, bytes);
                let got = decide(&predictor, point, &known, &Segments::Auto).unwrap();
                let wanted = all_evaluated(&predictor, point);
                ties += wanted.1.len();
                assert_eq!((got.method, got.ties), wanted, "{point:?}, {part}");
            }
        }
    }
    assert!(ties > 50, "{ties} ties show little");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is told in short of parameters as they are measured is what all sizes of all methods tell.
    #[test]
    fn parameters_as_measured_decide_as_all_methods_do(
        seed in any::<u64>(), procs in 2_u32..90, shift in 0_u32..22, reduced in any::<bool>(),
    ) {
        let collective = if reduced { Collective::Reduce } else { Collective::Bcast };
        let parameters = as_measured::as_measured(preset("frodo").unwrap().measured, seed);
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        let known = searched(collective);
        let point = Point::flat(collective, procs, 1 << shift);
        let got = decide(&predictor, point, &known, &Segments::Auto).unwrap();
        prop_assert_eq!((got.method, got.ties), all_evaluated(&predictor, point));
    }
}
