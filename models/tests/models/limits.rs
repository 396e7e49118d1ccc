//! Reference points, limits and identities.

use models::{
    Forms, Model, Point, Predictor, algorithms, closed_forms,
    closed_forms::{CallShape, binomial_segmentation_pays, binomial_segmentation_sides, form},
    parameters::Network,
    presets::preset,
};
use proptest::prelude::*;
use records::{Algorithm, Collective, Layout};

use crate::{numbers::PlainParameters, tables::numbers, unsegmented};

const BCAST: Collective = Collective::Bcast;

#[test]
fn frodo_broadcasts_take_what_is_known() {
    let frodo = preset("frodo").unwrap();
    for forms in Forms::ALL {
        let predictor = Predictor::new(Model::LogGp, forms, &frodo.measured).unwrap();
        let point = Point::flat(BCAST, 8, 64 << 10);
        let pipeline = predictor.predict(point, Algorithm::Pipeline, 1 << 10).unwrap();
        let linear = predictor.predict(point, Algorithm::Linear, 0).unwrap();
        assert!((pipeline - 8058.0e-6).abs() < 0.05e-6, "{pipeline}");
        assert!((linear - 38755.0e-6).abs() < 0.05e-6, "{linear}");
    }
}

/// Boba, P = 31, 64 segments of 1 KiB: the binary broadcast as printed is 8 times too low, the
/// binary reduction as printed about 3 times too high.
#[test]
fn printed_and_corrected_differ_where_they_should() {
    let boba = preset("boba").unwrap();
    let seconds = |forms, collective| {
        let predictor = Predictor::new(Model::LogGp, forms, &boba.measured).unwrap();
        let point = Point::flat(collective, 31, 64 << 10);
        predictor.predict(point, Algorithm::Binary, 1 << 10).unwrap()
    };
    assert!((seconds(Forms::Printed, BCAST) - 427e-6).abs() < 1e-6);
    assert!((seconds(Forms::Corrected, BCAST) - 3372e-6).abs() < 1e-6);
    let reduce = Collective::Reduce;
    let ratio = seconds(Forms::Printed, reduce) / seconds(Forms::Corrected, reduce);
    assert!(ratio > 2.5 && ratio < 3.5, "{ratio}");
}

#[test]
fn one_process_costs_nothing_and_no_process_is_refused() {
    let frodo = preset("frodo").unwrap();
    for model in Model::TABLES {
        let predictor = Predictor::new(model, Forms::Printed, &frodo.measured).unwrap();
        for collective in closed_forms::COLLECTIVES {
            for &algorithm in algorithms(collective) {
                let alone = Point::flat(collective, 1, 0);
                assert_eq!(predictor.predict(alone, algorithm, 0), Ok(0.0));
                let none = Point { layout: Layout::flat(0), ..alone };
                assert!(predictor.predict(none, algorithm, 0).is_err());
            }
        }
    }
}

#[test]
fn what_has_no_form_is_refused_with_the_nearest() {
    let frodo = preset("frodo").unwrap();
    let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &frodo.measured).unwrap();
    for (collective, bytes, algorithm, segment, wanted) in [
        (BCAST, 8, Algorithm::KNomial, 0, "the nearest is 'binomial'"),
        (BCAST, 8, Algorithm::Ring, 0, "there are for: linear, pipeline"),
        (Collective::Scatter, 8, Algorithm::Linear, 0, "barrier, bcast, reduce, alltoall"),
        (Collective::Alltoall, 8, Algorithm::Pairwise, 4, "no segments"),
        (Collective::Barrier, 8, Algorithm::Bruck, 0, "carries none"),
    ] {
        let point = Point::flat(collective, 4, bytes);
        let error = predictor.predict(point, algorithm, segment).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let point = Point::flat(Collective::Alltoall, 4, 8);
    for (method, wanted) in [
        ("native:openmpi:linear", "posts all messages at once"),
        ("default", "not known"),
        ("mockup:alltoall_as_alltoallv", "other collectives"),
    ] {
        let method = method.parse().unwrap();
        let error = predictor.predict_method(point, &method).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(predictor.predict_method(point, &"own:linear".parse().unwrap()).is_ok());
}

/// The paper's Figure 4 (a), by hand: alpha / m + beta against alpha / m_s + beta.
#[test]
fn the_sides_of_the_condition_are_those_of_the_paper() {
    let frodo = preset("frodo").unwrap().measured;
    let sides = |model, bytes| {
        let network = Network::new(model, &frodo).unwrap();
        binomial_segmentation_sides(&network, Forms::Printed, bytes, 1 << 10)
    };
    let (whole, segmented) = sides(Model::Hockney, 8 << 10).unwrap();
    let alpha = 61.22e-6 + 2.0 * 8.2e-6;
    assert!((whole / (alpha / 8192.0 + 0.084e-6) - 1.0).abs() < 1e-12, "{whole}");
    assert!((segmented / (alpha / 1024.0 + 0.084e-6) - 1.0).abs() < 1e-12, "{segmented}");
    // g = 23.8 us > o, gamma = 0: g against 7 x 1023 G + 8 g.
    let (whole, segmented) = sides(Model::LogGp, 8 << 10).unwrap();
    assert!((whole / 23.8e-6 - 1.0).abs() < 1e-12, "{whole}");
    let wanted = 7.0 * 1023.0 * 0.084e-6 + 8.0 * 23.8e-6;
    assert!((segmented / wanted - 1.0).abs() < 1e-12, "{segmented}");
    // g(8 KiB) = g + 8191 G against 8 g(1 KiB).
    let (whole, segmented) = sides(Model::PLogP, 8 << 10).unwrap();
    assert!((whole / (23.8e-6 + 8191.0 * 0.084e-6) - 1.0).abs() < 1e-12, "{whole}");
    let wanted = 8.0 * (23.8e-6 + 1023.0 * 0.084e-6);
    assert!((segmented / wanted - 1.0).abs() < 1e-12, "{segmented}");
    assert_eq!(sides(Model::PLogP, 1 << 10), None);
}

#[test]
fn the_barriers_bounds_are_apart_by_the_overheads() {
    let boba = preset("boba").unwrap().measured;
    let point = Point::flat(Collective::Barrier, 10, 0);
    for model in [Model::LogP, Model::LogGp, Model::PLogP] {
        let predictor = Predictor::new(model, Forms::Corrected, &boba).unwrap();
        let least = predictor.predict(point, Algorithm::Linear, 0).unwrap();
        let greatest =
            predictor.predict_greatest(point, &unsegmented(Algorithm::Linear)).unwrap().unwrap();
        assert!((greatest - least - 8.0 * 8.15e-6).abs() < 1e-12);
        assert_eq!(predictor.predict_greatest(point, &unsegmented(Algorithm::Bruck)), Ok(None));
    }
}

#[test]
fn broken_parameters_are_refused_by_field() {
    let mut parameters = preset("frodo").unwrap().measured;
    parameters.loggp.gap_seconds.value = f64::NAN;
    let error = Predictor::new(Model::Hockney, Forms::Printed, &parameters).unwrap_err();
    assert_eq!(error.field, "loggp.gap_seconds");
    let mut parameters = preset("frodo").unwrap().measured;
    parameters.plogp.knots.clear();
    let error = Predictor::new(Model::PLogP, Forms::Printed, &parameters).unwrap_err();
    assert!(error.to_string().contains("plogp.knots"), "{error}");
}

/// (collective, algorithm, segment) of every form, at a size.
fn every_form(segment: u64) -> impl Iterator<Item = (Collective, Algorithm, u64)> {
    closed_forms::COLLECTIVES.into_iter().flat_map(move |collective| {
        algorithms(collective).iter().map(move |&algorithm| {
            let segmented = form(collective, algorithm).is_some_and(|form| form.segmented);
            (collective, algorithm, if segmented { segment } else { 0 })
        })
    })
}

fn sized(collective: Collective, procs: u32, bytes: u64) -> Point {
    let bytes = if collective == Collective::Barrier { 0 } else { bytes };
    Point::flat(collective, procs, bytes)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Parameters whose PLogP equals their LogGP, with processors that keep up with the gap.
fn equal_models() -> impl Strategy<Value = PlainParameters> {
    numbers().prop_map(|mut n| {
        n.gamma = 0.0;
        n.gap = n.gap.min(n.latency);
        n.overhead = n.overhead.min(n.gap / 2.0);
        n.with_plogp_of_loggp()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Converted parameters give converted times. Reduce/binomial is the one corrected form that
    /// keeps a difference: its LogGP row counts o where PLogP's counts g, once per round.
    #[test]
    fn corrected_plogp_of_loggp_is_loggp(
        n in equal_models(), procs in 2_u32..200, bytes in 0_u64..1_000_000, segment in 1_u64..300_000,
    ) {
        let parameters = n.parameters();
        let predictor = |model| Predictor::new(model, Forms::Corrected, &parameters).unwrap();
        let (loggp, plogp) = (predictor(Model::LogGp), predictor(Model::PLogP));
        for (collective, algorithm, segment) in every_form(segment) {
            let point = sized(collective, procs, bytes);
            let a = loggp.predict(point, algorithm, segment).unwrap();
            let mut b = plogp.predict(point, algorithm, segment).unwrap();
            if (collective, algorithm) == (Collective::Reduce, Algorithm::Binomial) {
                b -= f64::from(procs).log2().ceil() * (n.overhead - n.gap);
            }
            prop_assert!(near(a, b), "{collective} {algorithm}: {a} {b}");
        }
    }

    /// No time is negative or shrinks with the message, where costs do not shrink with it.
    #[test]
    fn times_grow_with_the_message(
        mut n in numbers(), procs in 2_u32..200, sizes in [0_u64..2_000_000, 0_u64..2_000_000],
        segment in prop_oneof![Just(0_u64), 1_u64..300_000],
    ) {
        for pair in 1..n.knots.len() {
            let (_, send, receive, gap) = n.knots[pair - 1];
            let knot = &mut n.knots[pair];
            *knot = (knot.0, knot.1.max(send), knot.2.max(receive), knot.3.max(gap));
        }
        let (small, large) = (sizes[0].min(sizes[1]), sizes[0].max(sizes[1]));
        let parameters = n.parameters();
        for model in Model::TABLES {
            for forms in Forms::ALL {
                let predictor = Predictor::new(model, forms, &parameters).unwrap();
                for (collective, algorithm, segment) in every_form(segment) {
                    let seconds = |bytes| {
                        let point = sized(collective, procs, bytes);
                        predictor.predict(point, algorithm, segment).unwrap()
                    };
                    let (a, b) = (seconds(small), seconds(large));
                    let grows = a >= 0.0 && a <= b * (1.0 + 1e-12);
                    prop_assert!(grows, "{model} {forms} {collective} {algorithm}: {a} {b}");
                }
            }
        }
    }

    /// Two processes: linear and pipeline are one edge, and one segment is one message. A
    /// reduction without combining costs what the broadcast does.
    #[test]
    fn two_processes_are_point_to_point(
        n in equal_models(), bytes in 0_u64..1_000_000, segment in 0_u64..300_000,
    ) {
        let parameters = n.parameters();
        for model in Model::TABLES {
            let predictor = Predictor::new(model, Forms::Corrected, &parameters).unwrap();
            let seconds = |collective, algorithm, segment| {
                predictor.predict(Point::flat(collective, 2, bytes), algorithm, segment).unwrap()
            };
            let linear = seconds(BCAST, Algorithm::Linear, segment);
            prop_assert!(near(linear, seconds(BCAST, Algorithm::Pipeline, segment)));
            prop_assert!(near(linear, seconds(Collective::Reduce, Algorithm::Linear, segment)));
            prop_assert!(near(linear, seconds(Collective::Reduce, Algorithm::Pipeline, segment)));
            let m = bytes as f64;
            let stream = (m - 1.0).max(0.0) * n.gap_per_byte;
            let message = match model {
                Model::Hockney => n.alpha + n.beta * m,
                Model::LogP => n.latency + 2.0 * n.overhead,
                _ => n.latency + 2.0 * n.overhead + stream,
            };
            for algorithm in [Algorithm::Linear, Algorithm::Pipeline, Algorithm::Binomial] {
                prop_assert!(near(seconds(BCAST, algorithm, 0), message), "{model} {algorithm}");
            }
            prop_assert!(near(seconds(Collective::Alltoall, Algorithm::Pairwise, 0), message));
        }
    }

    /// A segment of the whole message, or a larger one, is none.
    #[test]
    fn large_segments_are_one_segment(
        n in numbers(), procs in 2_u32..200, bytes in 1_u64..1_000_000, more in 0_u64..1_000_000,
    ) {
        let parameters = n.parameters();
        for model in Model::TABLES {
            let predictor = Predictor::new(model, Forms::Printed, &parameters).unwrap();
            for (collective, algorithm, segment) in every_form(bytes + more) {
                let point = sized(collective, procs, bytes);
                prop_assert_eq!(
                    predictor.predict(point, algorithm, segment),
                    predictor.predict(point, algorithm, 0)
                );
            }
        }
    }

    /// The paper's conditions say what the forms say, where segments divide the message; by
    /// Hockney and by LogGP as printed it never pays.
    #[test]
    fn segmentation_pays_where_the_forms_say_so(
        n in numbers(), procs in 2_u32..200, segments in 2_u64..50, segment in 1_u64..50_000,
    ) {
        let parameters = n.parameters();
        let bytes = segments * segment;
        for model in Model::TABLES {
            let network = Network::new(model, &parameters).unwrap();
            let pays = binomial_segmentation_pays(&network, Forms::Corrected, bytes, segment);
            let form = form(Collective::Reduce, Algorithm::Binomial).unwrap();
            let seconds = |segment| {
                form.seconds(&network, &CallShape::new(procs, bytes, segment), Forms::Corrected)
            };
            let (whole, segmented) = (seconds(0), seconds(segment));
            if !near(whole, segmented) {
                prop_assert_eq!(pays, segmented < whole, "{} {} {}", model, whole, segmented);
            }
            if !matches!(model, Model::PLogP) {
                prop_assert!(!binomial_segmentation_pays(&network, Forms::Printed, bytes, segment));
            }
            prop_assert!(!binomial_segmentation_pays(&network, Forms::Corrected, bytes, bytes));
        }
    }
}
