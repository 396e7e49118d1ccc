//! The refined forms against the schedules, message by message.

use models::{
    Forms, Model, Point, Predictor, closed_forms::refined, parameters::Network,
    simulated::SimulatedCall,
};
use proptest::prelude::*;
use records::{
    Algorithm as A, Collective as C, Method,
    calibration::{Estimate, GapKnot, ManyGap, Parameters, PortSharing},
};

use crate::numbers::PlainParameters;

/// How far a form may be from the schedule, (below, above) relative to that; equal where it is not
/// listed.
fn tolerance(collective: C, algorithm: A, procs: u32, whole: bool) -> (f64, f64) {
    let power = procs.is_power_of_two();
    match (collective, algorithm) {
        // Parts of a message are not rounded to elements.
        (C::Allreduce, A::Ring | A::SegmentedRing) => (0.02, 1e-9),
        (C::Allreduce, A::Circulant) => (0.02, 0.02),
        (C::Allreduce | C::Reduce, A::Rabenseifner) if power => (0.02, 0.02),
        // Nor is it told from how many ranks the root's port comes when it turns to its neighbour.
        (C::Bcast, A::ScatterAllgather | A::ScatterAllgatherRing) => (0.1, 0.05),
        // Ranks beyond a power of two come late to some rounds only, and early to others, where
        // their messages go before those that are awaited.
        (C::Allreduce | C::Reduce, A::Rabenseifner) => (0.25, 0.2),
        // Where the number of ranks is even the root's half for the last one comes late, as on a shared link.
        // The last segment of a half counts as a whole one; in the exchange at the end, a rank may
        // wait for its port, or its partner for it, behind what came earlier.
        // One platform in 1000 was seen at 0.49 above on 4 ranks; why is not known.
        (C::Bcast, A::SplittedBinary) => (0.3, 0.55),
        // Segments that one child sends early hold up another one's that are awaited.
        (C::Reduce, A::Binary | A::InOrderBinary) if !whole => (0.2, 0.2),
        (C::Reduce, A::KChain) if !whole => (0.35, 0.25),
        (C::Reduce, A::Binomial | A::KNomial) if !whole => (0.4, 0.2),
        (C::Allreduce, A::Binomial) if !whole => (0.3, 0.15),
        // A rank hears of some segments by fewer hops than of others; what comes early holds up what
        // is awaited. With as few segments as here no circle of ranks closes that wait for each other.
        (C::Bcast, A::Circulant) => (0.35, 1.4),
        (C::Reduce, A::Circulant) => (0.4, 1.4),
        // On two ranks a half's last segment counts as a whole one, and halves are not rounded to elements.
        (_, A::TwoTrees) if procs == 2 => (0.1, 0.65),
        // Nor need the deepest leaf hear last.
        (_, A::TwoTrees) => (0.4, 0.65),
        // Where P is no power of two the subtrees are others than in a binomial tree.
        (C::Bcast, A::Bine) => (0.3, 0.5),
        (C::Reduce, A::Bine) => (0.4, 0.3),
        // Some messages of a round are shorter than others, some ranks of a group late.
        // Reduce_scatter of 57 ranks by groups of 8 was seen at 0.62 above.
        (_, A::KBruck | A::RecursiveMultiplying | A::Sparbit) => (0.45, 0.75),
        (C::Gather | C::Scatter | C::Alltoall, A::Bine) => (0.5, 0.6),
        // How soon sends follow each other is told by the root's children, for all ranks.
        (_, A::Fitted) => (0.5, 0.6),
        // The slowest rank need not be on the longest way.
        (C::Bcast, A::Binomial | A::KNomial | A::KChain) if !whole => (1e-9, 0.05),
        _ => (1e-9, 1e-9),
    }
}

/// Whether the message falls into as many parts as there are ranks, which may be empty in a small
/// one.
fn in_parts(collective: C, algorithm: A) -> bool {
    use A::{Circulant, Rabenseifner, Ring, ScatterAllgather, ScatterAllgatherRing, SegmentedRing};
    [C::Bcast, C::Reduce, C::Allreduce].contains(&collective)
        && [Rabenseifner, Ring, ScatterAllgather, ScatterAllgatherRing, SegmentedRing]
            .contains(&algorithm)
        || (collective, algorithm) == (C::Allreduce, Circulant)
}

/// Overheads from far below the gap to above it; the gap per message to many others less or more
/// than that to one.
fn platform() -> impl Strategy<Value = Parameters> {
    let overheads = (0.05..1.3_f64, 0.05..1.3_f64, prop_oneof![Just(0.0), 1e-11..1e-8_f64]);
    (1e-6..1e-4_f64, 1e-6..1e-4_f64, 1e-10..1e-7_f64, overheads, 0.6..1.3_f64).prop_map(
        |(latency, gap, gap_per_byte, (send, receive, gamma), factor)| {
            let gap_of = move |bytes: u64| gap + bytes as f64 * gap_per_byte;
            let knot = |bytes| {
                let gap = gap_of(bytes);
                (bytes, gap * send, gap * receive, gap)
            };
            let mut parameters = PlainParameters {
                alpha: 0.0,
                beta: 0.0,
                latency,
                overhead: 0.0,
                gap,
                gap_per_byte,
                gamma,
                plogp_latency: latency,
                knots: vec![knot(0), knot(1 << 24)],
            }
            .parameters();
            let many = |bytes| GapKnot {
                bytes,
                gap_seconds: Estimate::exact(16.0 * factor * gap_of(bytes)),
            };
            let knots = vec![many(0), many(1 << 24)];
            parameters.plogp.gap_by_destinations = vec![ManyGap { partners: 16, knots }];
            parameters
        },
    )
}

/// The calls of which forms are compared with schedules, on `procs` processes: by every method that has a form,
/// with so many segments of 8 `segment` bytes.
fn calls(
    predictor: &Predictor,
    procs: u32,
    (segments, segment): (u64, u64),
) -> Vec<(Point, Method)> {
    let mut calls = Vec::new();
    for collective in C::ALL {
        let bytes = if collective == C::Barrier { 0 } else { 8 * segments * segment };
        let point = Point::flat(collective, procs, bytes);
        for form in refined::forms(collective) {
            let algorithm = form.algorithm;
            let serves = Model::Refined.serves(collective, algorithm, procs);
            // A part of fewer elements is longer by more than the tolerance when rounded up.
            let few = in_parts(collective, algorithm) && bytes < 512 * u64::from(procs);
            if !serves || !form.holds(procs) || few {
                continue;
            }
            let segment_bytes = if form.segmented { 8 * segment } else { 0 };
            let methods = predictor.methods(collective, algorithm).into_iter();
            let mut methods: Vec<Method> =
                methods.map(|it| it.with_segment(segment_bytes)).collect();
            // Such as more streams or halves than segments: nothing decides for it.
            methods.retain(|method| predictor.is_candidate(point, method).unwrap());
            calls.extend(methods.into_iter().map(|method| (point, method)));
        }
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn refined_forms_are_what_the_schedules_take(
        parameters in platform(), procs in 2_u32..70, segments in 1_u64..6, segment in 1_u64..5_000,
    ) {
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        let simulated = Predictor::new(Model::Simulated, Forms::Corrected, &parameters).unwrap();
        let network = Network::new(Model::PLogP, &parameters).unwrap();
        for (point, method) in calls(&predictor, procs, (segments, segment)) {
            let (collective, bytes) = (point.collective, point.bytes);
            let (algorithm, segment_bytes) = (method.algorithm().unwrap(), method.segment_bytes());
            let wanted = simulated.predict_method_seconds(point, &method).unwrap();
            let got = predictor.predict_method_seconds(point, &method).unwrap();
            let error = got / wanted - 1.0;
            let whole = segment_bytes == 0 || segments == 1;
            let (below, mut above) = tolerance(collective, algorithm, procs, whole);
            if algorithm == A::Circulant && method.fan_out() > 1 {
                // Rounds in which few segments leave a stream idle take no time.
                above = 1.8;
            }
            prop_assert!(
                -below <= error && error <= above,
                "{collective} {method}, {procs} of {bytes}: {error}"
            );
            let entry = schedules::find(collective, algorithm).unwrap();
            let Method::Own(own) = method else { panic!("{method}") };
            let run =
                SimulatedCall { entry, procs, root: 0, bytes, method: own, layout: None, rendezvous: None };
            // A fitted tree is simulated as it is made for the network.
            if algorithm != A::Fitted {
                prop_assert_eq!(run.seconds(&network).unwrap(), wanted);
            }
        }
    }
}

/// How far a form may be from the schedule where messages leave by frames, (below, above) relative to that.
fn tolerance_by_frames(collective: C, algorithm: A, procs: u32, whole: bool) -> (f64, f64) {
    let in_turn = tolerance(collective, algorithm, procs, whole);
    let (below, above) = match (collective, algorithm) {
        // A first message is alone until the processor has handed over the next one.
        (C::Bcast, A::Linear | A::Binary | A::Binomial | A::KNomial | A::KChain) => (0.05, 0.05),
        (C::Scatter, A::Linear | A::Binomial) => (0.1, 0.1),
        // In one piece it is told by messages in turn.
        (C::Bcast | C::Reduce, A::Circulant) | (C::Alltoall, A::Linear) if whole => (0.8, 0.1),
        // Messages that come at different times share the receiver's port as long as both pass.
        _ => (0.45, 0.3),
    };
    (in_turn.0.max(below), in_turn.1.max(above))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// As above, where messages that leave at once share ports by frames. The processors' part is small: with
    /// large ones sends begin far apart, and leave in turn more or less.
    #[test]
    fn refined_forms_know_frames(
        parameters in platform(), procs in 2_u32..70, segments in 1_u64..6, segment in 1_u64..5_000,
        frame in 64_u64..9_000,
    ) {
        let mut parameters = parameters;
        for knot in &mut parameters.plogp.knots {
            knot.send_overhead_seconds = Estimate::exact(0.01 * knot.send_overhead_seconds.value);
            knot.receive_overhead_seconds =
                Estimate::exact(0.01 * knot.receive_overhead_seconds.value);
        }
        let frame_bytes = Some(Estimate::exact(frame as f64));
        parameters.port_sharing = Some(PortSharing { frame_bytes, knots: Vec::new() });
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        let simulated = Predictor::new(Model::Simulated, Forms::Corrected, &parameters).unwrap();
        for (point, method) in calls(&predictor, procs, (segments, segment)) {
            let (collective, bytes) = (point.collective, point.bytes);
            let algorithm = method.algorithm().unwrap();
            let wanted = simulated.predict_method_seconds(point, &method).unwrap();
            let limit = simulated.limit(point).unwrap().seconds;
            prop_assert!(limit <= wanted * (1.0 + 1e-9), "{method}: {limit} {wanted}");
            let got = predictor.predict_method_seconds(point, &method).unwrap();
            let error = got / wanted - 1.0;
            let whole = method.segment_bytes() == 0 || segments == 1;
            let (below, above) = tolerance_by_frames(collective, algorithm, procs, whole);
            prop_assert!(
                -below <= error && error <= above,
                "{collective} {method}, {procs} of {bytes}, frames of {frame}: {error}"
            );
        }
    }
}

/// What libraries call linear posts all messages at once.
#[test]
fn the_libraries_alltoall_is_another_one_than_the_papers() {
    let frodo = models::presets::preset("frodo").unwrap().measured;
    let method = "native:openmpi:linear".parse().unwrap();
    let point = Point::flat(C::Alltoall, 8, 1000);
    let seconds = [Model::Refined, Model::Simulated].map(|model| {
        let predictor = Predictor::new(model, Forms::Corrected, &frodo).unwrap();
        let paper = predictor.predict(point, A::Linear, 0).unwrap();
        let library = predictor.predict_method(point, &method).unwrap().value;
        assert!(library < paper / 3.0, "{model}: {library} {paper}");
        library
    });
    assert!((seconds[0] / seconds[1] - 1.0).abs() < 1e-9, "{seconds:?}");
}

#[test]
fn every_scheduled_algorithm_is_predicted_and_nothing_else() {
    let frodo = models::presets::preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::Refined, Forms::Corrected, &frodo).unwrap();
    for entry in schedules::ENTRIES {
        let bytes = if entry.collective == C::Barrier { 0 } else { 4096 };
        let point = Point::flat(entry.collective, 6, bytes);
        let listed = Model::Refined.algorithms(entry.collective).contains(&entry.algorithm);
        assert_eq!(listed, entry.algorithm.plain().is_none(), "{entry:?}");
        let seconds = predictor.predict(point, entry.algorithm, 0).unwrap();
        assert!(seconds > 0.0, "{entry:?}");
        let nothing = Point { bytes: 0, ..point };
        if ![C::Barrier, C::Gatherv, C::Scatterv].contains(&entry.collective) {
            assert_eq!(predictor.predict(nothing, entry.algorithm, 0), Ok(0.0), "{entry:?}");
        }
    }
    let odd = Point::flat(C::Allgather, 7, 8);
    let error = predictor.predict(odd, A::NeighborExchange, 0).unwrap_err().to_string();
    assert!(error.contains("even number"), "{error}");
    let error = predictor.predict(odd, A::Binary, 0).unwrap_err().to_string();
    assert!(error.contains("has no algorithm 'binary'"), "{error}");
}

/// Trees of one message, by the forms and message by message.
#[test]
fn a_fitted_tree_is_never_worse_than_the_best_of_the_list() {
    const TREES: [A; 7] =
        [A::Linear, A::Pipeline, A::Binomial, A::Binary, A::KChain, A::KNomial, A::Bine];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases = (platform(), 2_u32..200, 1_u64..20_000);
    for _ in 0..60 {
        let tree = Strategy::new_tree(&cases, &mut runner).unwrap();
        let (mut parameters, procs, count) = proptest::strategy::ValueTree::current(&tree);
        // A gap that is the same to however many ranks: as LogP has it.
        parameters.plogp.gap_by_destinations.clear();
        for collective in [C::Bcast, C::Reduce] {
            let point = Point::flat(collective, procs, 8 * count);
            // The times that a tree is made for are whole nanoseconds.
            for (model, rounding) in [(Model::Refined, 1e-9), (Model::Simulated, 2e-3)] {
                let predictor = Predictor::new(model, Forms::Corrected, &parameters).unwrap();
                let seconds = |algorithm: A| predictor.predict(point, algorithm, 0).unwrap();
                let fitted = seconds(A::Fitted);
                for tree in
                    TREES.into_iter().filter(|tree| schedules::find(collective, *tree).is_some())
                {
                    assert!(
                        fitted <= seconds(tree) * (1.0 + rounding),
                        "{model}, {point:?}: {fitted}, {tree} {}",
                        seconds(tree)
                    );
                }
                let known = Model::Refined.algorithms(collective);
                let decided = models::decide::decide(
                    &predictor,
                    point,
                    &known,
                    &models::decide::Segments::List(vec![0]),
                );
                let decided = decided.unwrap();
                assert!(decided.seconds <= fitted * (1.0 + 1e-9));
                if decided.method.algorithm() == Some(A::Fitted) {
                    // What a profile holds makes the same tree.
                    let written: Method = decided.method.to_string().parse().unwrap();
                    let simulated = Predictor::new(Model::Simulated, Forms::Corrected, &parameters);
                    let held = simulated.unwrap().predict_method_seconds(point, &written).unwrap();
                    assert!(held <= decided.seconds * 1.002, "{written}: {held}");
                }
            }
        }
    }
}

/// A chain is the fitted tree in which nobody has two children.
#[test]
fn with_segments_fitted_trees_are_never_worse_than_the_trees_of_the_list() {
    const LISTED: [A; 7] =
        [A::Linear, A::Pipeline, A::Binomial, A::Binary, A::KChain, A::KNomial, A::Bine];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases = (platform(), 2_u32..=64, 1_u64..200_000);
    for _ in 0..100 {
        let tree = Strategy::new_tree(&cases, &mut runner).unwrap();
        let (mut parameters, procs, count) = proptest::strategy::ValueTree::current(&tree);
        parameters.plogp.gap_by_destinations.clear();
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        for collective in [C::Bcast, C::Reduce] {
            let point = Point::flat(collective, procs, 8 * count);
            let best = |algorithms: &[A]| {
                let segments = models::decide::Segments::Auto;
                models::decide::decide(&predictor, point, algorithms, &segments).unwrap()
            };
            let there = |tree: &A| schedules::find(collective, *tree).is_some();
            let listed = best(&LISTED.into_iter().filter(there).collect::<Vec<A>>());
            let fitted = best(&[A::Fitted]);
            let ratio = fitted.seconds / listed.seconds;
            assert!(ratio <= 1.001, "{point:?}: {} {}, {ratio}", fitted.method, listed.method);
        }
    }
}

/// On a network whose latency is far above the gap of a segment.
#[test]
fn circulant_rounds_take_half_of_a_latency_unless_streams_take_turns() {
    let parameters = PlainParameters {
        alpha: 0.0,
        beta: 0.0,
        latency: 1.16e-3,
        overhead: 35e-6,
        gap: 71e-6,
        gap_per_byte: 0.837e-6,
        gamma: 0.0,
        plogp_latency: 1.16e-3,
        knots: vec![(0, 35e-6, 35e-6, 71e-6), (1 << 24, 35e-6, 35e-6, 14.04)],
    }
    .parameters();
    let [refined, simulated] = [Model::Refined, Model::Simulated]
        .map(|model| Predictor::new(model, Forms::Corrected, &parameters).unwrap());
    for collective in [C::Bcast, C::Reduce] {
        for (procs, segment) in [(8, 256), (16, 512), (40, 1024), (64, 4096)] {
            let point = Point::flat(collective, procs, 64 * segment);
            let seconds = |predictor: &Predictor, streams: u32| {
                let method = format!("own:circulant,fan-out={streams}").parse().unwrap();
                let method = Method::with_segment(method, segment);
                predictor.predict_method_seconds(point, &method).unwrap()
            };
            let streams = [1, 2, 4, 8];
            let [forms, truths] =
                [&refined, &simulated].map(|of| streams.map(|number| seconds(of, number)));
            for (form, truth) in forms.iter().zip(truths) {
                let ratio = form / truth;
                assert!((0.85..1.25).contains(&ratio), "{point:?}: {forms:?} {truths:?}");
            }
            let least = |times: [f64; 4]| times.into_iter().fold(f64::INFINITY, f64::min);
            let chosen = forms.iter().position(|form| *form == least(forms)).unwrap();
            assert!(truths[chosen] < 1.1 * least(truths), "{point:?}: {forms:?} {truths:?}");
            if segment <= 512 {
                assert!(truths[0] > 1.5 * least(truths), "{point:?}: {truths:?}");
            }
        }
    }
}
