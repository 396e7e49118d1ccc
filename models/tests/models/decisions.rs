//! The decision function against trying everything.

use models::{
    Forms, Model, Point, Predictor, algorithms,
    closed_forms::refined,
    decide::{AUTO_LIMIT, DecideError, Segments, best_segment, decide, decide_among},
    presets::preset,
};
use proptest::prelude::*;
use records::{Algorithm, Collective, Method, calibration::Estimate};

use crate::tables::numbers;

const BCAST: Collective = Collective::Bcast;

fn frodo() -> Predictor {
    Predictor::new(Model::LogGp, Forms::Corrected, &preset("frodo").unwrap().measured).unwrap()
}

fn bcast(procs: u32, bytes: u64) -> Point {
    Point::flat(BCAST, procs, bytes)
}

fn own(algorithm: Algorithm, segment_bytes: u64) -> Method {
    Method::own(algorithm).with_segment(segment_bytes)
}

#[test]
fn frodo_decides_as_expected() {
    let predictor = frodo();
    let segments = Segments::List(vec![0, 1 << 10, 8 << 10]);
    let all = algorithms(BCAST);
    let small = decide(&predictor, bcast(8, 1), all, &segments).unwrap();
    assert_eq!(small.method, own(Algorithm::Linear, 0), "g is a quarter of a message");
    let large = decide(&predictor, bcast(8, 1 << 20), all, &segments).unwrap();
    assert_eq!(large.method, own(Algorithm::Pipeline, 8 << 10));
    assert_eq!(large.model.as_deref(), Some("loggp"));
    assert_eq!(large.interval(), [large.seconds, large.seconds]);
    assert_eq!(large.ties, []);
    let auto = decide(&predictor, bcast(8, 1 << 20), all, &Segments::Auto).unwrap();
    assert!(auto.seconds <= large.seconds);
}

#[test]
fn the_same_candidate_is_one_candidate() {
    let predictor = frodo();
    let segments = Segments::List(vec![8 << 10, 0, 1 << 20, 8 << 10]);
    let pipeline = [Algorithm::Pipeline];
    let decision = decide(&predictor, bcast(8, 1 << 10), &pipeline, &segments).unwrap();
    assert_eq!((decision.method, decision.ties), (own(Algorithm::Pipeline, 0), vec![]));
    let methods = ["own:pipeline,segment=8KiB", "own:pipeline", "native:openmpi:pipeline"]
        .map(|method| method.parse::<Method>().unwrap());
    let decision = decide_among(&predictor, bcast(8, 1 << 10), &methods).unwrap();
    assert_eq!(decision.method, methods[1]);
    assert_eq!(decision.ties, [methods[2].clone()], "the same time, by the library");
    // On two processes the first of the equal ones is taken.
    let two = decide(&predictor, bcast(2, 1 << 10), algorithms(BCAST), &segments).unwrap();
    assert_eq!(two.method, own(Algorithm::Linear, 0));
    assert!(two.ties.contains(&own(Algorithm::Pipeline, 0)), "{:?}", two.ties);
}

#[test]
fn splitted_binary_begins_at_two_segments() {
    let predictor = frodo();
    let splitted = [Algorithm::SplittedBinary];
    let unsegmented = Segments::List(vec![0, 8 << 10]);
    let error = decide(&predictor, bcast(8, 8 << 10), &splitted, &unsegmented).unwrap_err();
    assert!(error.to_string().contains("two segments"), "{error}");
    let decision = decide(&predictor, bcast(8, 8193), &splitted, &unsegmented).unwrap();
    assert_eq!(decision.method, own(Algorithm::SplittedBinary, 8 << 10));
    for bytes in [0, 1] {
        assert!(decide(&predictor, bcast(8, bytes), &splitted, &Segments::Auto).is_err());
    }
    assert!(decide(&predictor, bcast(8, 2), &splitted, &Segments::Auto).is_ok());
}

#[test]
fn what_cannot_be_decided_is_an_error() {
    let predictor = frodo();
    let segments = Segments::Auto;
    let decide = |point, algorithms: &[Algorithm]| {
        decide(&predictor, point, algorithms, &segments).unwrap_err()
    };
    assert!(matches!(decide(bcast(8, 8), &[]), DecideError::NoCandidate { .. }));
    assert!(matches!(decide(bcast(8, 8), &[Algorithm::Bruck]), DecideError::Predict(_)));
    assert!(matches!(decide(bcast(0, 8), &[]), DecideError::Predict(_)));
    let huge = bcast(8, AUTO_LIMIT + 1);
    assert!(matches!(decide(huge, &[Algorithm::Pipeline]), DecideError::TooLarge { .. }));
    let default = [Method::Default];
    assert!(decide_among(&predictor, bcast(8, 8), &default).is_err());
    assert!(!predictor.knows(BCAST, &default[0]));
    assert!(predictor.knows(BCAST, &own(Algorithm::Binary, 0)));
}

/// An error that two methods share does not make them a tie; one that tells them apart does.
#[test]
fn ties_are_told_by_the_difference() {
    let tied = |of: fn(&mut records::calibration::Parameters) -> &mut Estimate, points: &[u64]| {
        let mut parameters = preset("frodo").unwrap().measured;
        let estimate = of(&mut parameters);
        *estimate = Estimate {
            value: estimate.value,
            low: estimate.value * 0.5,
            high: estimate.value * 1.5,
        };
        let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &parameters).unwrap();
        let two = [Algorithm::Linear, Algorithm::Binomial];
        let segments = Segments::List(vec![0]);
        let decide = |bytes: &u64| decide(&predictor, bcast(4, *bytes), &two, &segments).unwrap();
        points
            .iter()
            .map(decide)
            .map(|decision| {
                let [low, high] = decision.interval();
                assert!(low < decision.seconds && decision.seconds < high);
                decision.ties.len()
            })
            .collect::<Vec<_>>()
    };
    // Linear: one message and two gaps; binomial: two messages. G takes part in the first as
    // three streams, in the second as two: at 1 MiB an error of G never turns the order.
    assert_eq!(tied(|p| &mut p.loggp.gap_seconds_per_byte, &[1 << 20]), [0]);
    // At 1 byte: L + 2 o against 2 g, 77.6 us against 47.6 us; half of g is not enough, but
    // half of L is.
    assert_eq!(tied(|p| &mut p.loggp.latency_seconds, &[1]), [1]);
    assert_eq!(tied(|p| &mut p.loggp.gap_seconds, &[1]), [0]);
}

/// A segment of a reduction holds whole elements, also of those that tie.
#[test]
fn segments_of_a_reduction_hold_whole_elements() {
    let parameters = preset("frodo").unwrap().measured;
    let mut segmented = 0;
    for model in [Model::Hockney, Model::LogGp, Model::PLogP, Model::Refined] {
        let predictor = Predictor::new(model, Forms::Corrected, &parameters).unwrap();
        let algorithms = model.algorithms(Collective::Reduce);
        for procs in [4, 49, 300] {
            for bytes in [8, 1000, 64 << 10, 1 << 20, (1 << 20) + 8] {
                let point = Point::flat(Collective::Reduce, procs, bytes);
                let decision = decide(&predictor, point, &algorithms, &Segments::Auto).unwrap();
                for method in decision.ties.iter().chain([&decision.method]) {
                    assert!(method.segment_bytes().is_multiple_of(8), "{point:?}: {method}");
                    segmented += u32::from(method.segment_bytes() > 0);
                }
            }
        }
    }
    assert!(segmented > 10, "{segmented}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Auto is what trying every segment size gives, however the costs rise and fall.
    #[test]
    fn auto_is_exact(n in numbers(), procs in 2_u32..40, bytes in 0_u64..700, scale in 1_u64..60) {
        let mut n = n;
        // Knots within the message, so that falling costs matter.
        for (index, knot) in n.knots.iter_mut().enumerate() {
            knot.0 = index as u64 * scale * 5 + knot.0 % (scale * 5);
        }
        n.knots.dedup_by_key(|knot| knot.0);
        let parameters = n.parameters();
        for model in Model::TABLES {
            for forms in Forms::ALL {
                let predictor = Predictor::new(model, forms, &parameters).unwrap();
                for collective in [BCAST, Collective::Reduce, Collective::Alltoall] {
                    for &algorithm in algorithms(collective) {
                        let point = Point::flat(collective, procs, bytes);
                        let seconds = |segment| predictor.predict(point, algorithm, segment);
                        // What is combined is combined in whole elements.
                        let element = collective.element_bytes(bytes);
                        let sizes = if seconds(1).is_ok() { 1..bytes.max(1) } else { 0..0 };
                        let sizes = sizes.filter(|size| size.is_multiple_of(element));
                        let splitted = algorithm == Algorithm::SplittedBinary;
                        let least = sizes
                            .map(|segment| seconds(segment).unwrap())
                            .chain((!splitted).then(|| seconds(0).unwrap()))
                            .reduce(f64::min);
                        let found = best_segment(&predictor, point, &Method::own(algorithm)).unwrap();
                        let found = found.map(|segment| seconds(segment).unwrap());
                        match (found, least.filter(|_| !splitted || bytes >= 2)) {
                            (Some(a), Some(b)) => prop_assert!(
                                (a - b).abs() <= 1e-11 * b, "{model} {forms} {algorithm}: {a} {b}"
                            ),
                            (a, b) => prop_assert_eq!(a, b),
                        }
                    }
                }
            }
        }
    }

    /// Leaving out what is surely no match for another changes no decision: it is the first of the
    /// least of all, each with its best segments, what is simulated included.
    #[test]
    fn comparing_changes_no_decision(
        procs in 2_u32..150, bytes in prop_oneof![0_u64..2000, 0_u64..1 << 22], boba in any::<bool>(),
    ) {
        let parameters = preset(if boba { "boba" } else { "frodo" }).unwrap().measured;
        let predictor =
            Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        for collective in [BCAST, Collective::Reduce, Collective::Allreduce] {
            let point = Point::flat(collective, procs, bytes);
            // Of what is simulated not every segment size is tried.
            let is_searched = |algorithm: &Algorithm| {
                let mut forms = refined::forms(collective).iter();
                forms.any(|form| form.algorithm == *algorithm)
                    || !schedules::find(collective, *algorithm).unwrap().segmented
            };
            let mut algorithms = Model::Refined.algorithms(collective);
            algorithms.retain(is_searched);
            let decision = decide(&predictor, point, &algorithms, &Segments::Auto).unwrap();
            let mut all = Vec::new();
            let serves = |algorithm: &&Algorithm| {
                Model::Refined.serves(collective, **algorithm, procs)
            };
            let of = |&algorithm: &Algorithm| predictor.methods(collective, algorithm);
            for plain in algorithms.iter().filter(serves).flat_map(of) {
                let best = match predictor.segmented(collective, &plain).unwrap() {
                    true => best_segment(&predictor, point, &plain).unwrap(),
                    false => Some(0),
                };
                if let Some(segment) = best {
                    let method = plain.with_segment(segment);
                    let seconds = predictor.predict_method_seconds(point, &method).unwrap();
                    all.push((method, seconds));
                }
            }
            let least = all.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            let first = all.iter().find(|(_, seconds)| *seconds <= least * (1.0 + 1e-12)).unwrap();
            // A fitted tree is told with what it was made for.
            let names = |method: &Method| (method.algorithm(), method.segment_bytes());
            prop_assert_eq!(
                (names(&decision.method), decision.seconds),
                (names(&first.0), first.1)
            );
        }
    }

    /// The decision is the least of all, and no candidate is both.
    #[test]
    fn the_least_is_decided_for(n in numbers(), procs in 1_u32..64, bytes in 0_u64..1 << 20) {
        let predictor = Predictor::new(Model::PLogP, Forms::Corrected, &n.parameters()).unwrap();
        let sizes = vec![0, 1 << 10, 8 << 10];
        let point = bcast(procs, bytes);
        let decision =
            decide(&predictor, point, algorithms(BCAST), &Segments::List(sizes.clone())).unwrap();
        for &algorithm in algorithms(BCAST) {
            for &segment in &sizes {
                let one = algorithm == Algorithm::SplittedBinary && (segment == 0 || segment >= bytes);
                let seconds = predictor.predict(point, algorithm, segment).unwrap();
                prop_assert!(one || seconds >= decision.seconds * (1.0 - 1e-11));
            }
        }
        prop_assert!(!decision.ties.contains(&decision.method));
    }
}
