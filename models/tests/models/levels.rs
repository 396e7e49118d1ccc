//! Predictions and decisions where nodes hold several ranks.

use models::{
    Forms, Model, Point, Predictor, Reach,
    decide::{decide_among, methods},
    explain::Explainer,
    presets::preset,
    simulated::{LevelledNetwork, SimulatedCall},
};
use records::{
    Algorithm, Collective, Layout, Method, Root,
    calibration::{Estimate, GapKnot, InsideNode, Parameters, PortGap},
};
use schedules::find_method;

/// Boba's messages inside, and a port that one rank fills.
fn inside(port_gap: f64) -> InsideNode {
    let gaps = |ranks: u32| {
        let gap = |bytes: u64| GapKnot {
            bytes,
            gap_seconds: Estimate::exact(
                f64::from(ranks) * port_gap * (1.0 + bytes as f64 / 300.0),
            ),
        };
        PortGap { ranks, both_ways: false, knots: vec![gap(1), gap(1 << 20)] }
    };
    InsideNode {
        measured: preset("boba").unwrap().measured,
        fitted: None,
        fits: Vec::new(),
        port: [1, 2, 4].map(gaps).to_vec(),
    }
}

fn frodo() -> Parameters {
    preset("frodo").unwrap().measured
}

fn predictor(model: Model, inside: Option<&InsideNode>) -> Predictor {
    let flat = Predictor::new(model, Forms::Corrected, &frodo()).unwrap();
    flat.on_nodes(&frodo(), inside, false).unwrap()
}

fn point(collective: Collective, layout: &str, bytes: u64) -> Point {
    Point { collective, layout: layout.parse().unwrap(), bytes }
}

fn own(algorithm: Algorithm, segment_bytes: u64) -> Method {
    Method::own(algorithm).with_segment(segment_bytes)
}

#[test]
fn on_one_node_the_forms_hold_with_the_parameters_inside() {
    let level = inside(20e-6);
    for model in [Model::Hockney, Model::LogGp, Model::PLogP, Model::Refined] {
        let alone = Predictor::new(model, Forms::Corrected, &level.measured).unwrap();
        let here = point(Collective::Bcast, "1x4", 8192);
        let (method, flat) =
            (own(Algorithm::Binomial, 1024), Point::flat(here.collective, 4, 8192));
        let levelled = predictor(model, Some(&level));
        let wanted = alone.predict_method(flat, &method).unwrap();
        assert_eq!(levelled.predict_method(here, &method), Ok(wanted), "{model}");
        assert_eq!(levelled.predict(here, Algorithm::Binomial, 1024), Ok(wanted.value));
        assert_eq!(levelled.found_by(here, &method), Ok("closed form"));
        // Where nothing is known of the inside, it is said.
        let ignoring = predictor(model, None);
        assert_eq!(ignoring.found_by(here, &method), Ok("closed form, nodes ignored"));
        let nodes = Point { layout: Layout::flat(4), ..here };
        assert_eq!(ignoring.found_by(nodes, &method), Ok("closed form"));
    }
}

#[test]
fn on_several_nodes_every_model_simulates_both_levels() {
    let level = inside(20e-6);
    for model in [Model::LogGp, Model::PLogP, Model::Refined, Model::Simulated] {
        let levelled = predictor(model, Some(&level));
        let network = LevelledNetwork::new(model, &frodo(), Some(&level), false).unwrap();
        for (layout, text) in [
            ("4x4", "own:pipeline,segment=1KiB"),
            ("4x4:cyclic", "own:binomial"),
            ("4x4:cyclic", "own:ring,order=node"),
            ("4+3+4", "own:two-level,inter=pipeline,segment=1KiB"),
        ] {
            let method: Method = text.parse().unwrap();
            let Method::Own(own) = method else { panic!("{text}") };
            let collective = if own.by_node { Collective::Allgather } else { Collective::Bcast };
            let at = point(collective, layout, 8192);
            let layout = at.layout;
            let run = SimulatedCall {
                entry: find_method(collective, &own).unwrap(),
                procs: layout.procs(),
                root: 0,
                bytes: 8192,
                method: own,
                layout: Some(layout),
                rendezvous: None,
            };
            let wanted = run.simulate_levels(&network, |_| {}).unwrap();
            let got = levelled.predict_method(at, &method).unwrap();
            assert_eq!(got.value, wanted.seconds, "{model} {layout} {method}");
            assert_eq!(levelled.found_by(at, &method), Ok("simulated"));
            assert_eq!(levelled.predict_method_seconds(at, &method), Ok(wanted.seconds));
            let flat =
                levelled.predict_method_seconds(Point { layout: Layout::flat(16), ..at }, &method);
            assert!(flat.is_err() || flat.unwrap() != wanted.seconds, "{model} {layout} {method}");
        }
        // Of more ranks, too; where their nodes differ these are ignored, and it is said.
        let (at, method) = (point(Collective::Bcast, "33x4", 8192), own(Algorithm::Binomial, 0));
        assert_eq!(levelled.found_by(at, &method), Ok("simulated"));
        let at = point(Collective::Bcast, "70+62", 8192);
        let said = levelled.found_by(at, &method).unwrap();
        assert!(said.ends_with("nodes ignored"), "{said}");
        let flat = Point { layout: Layout::flat(132), ..at };
        assert_eq!(
            levelled.predict_method_seconds(at, &method),
            levelled.predict_method_seconds(flat, &method)
        );
        assert!(levelled.predict_method(at, &"own:two-level".parse().unwrap()).is_err());
    }
}

/// Frodo's network, ten times as fast.
fn ten_times_as_fast() -> Parameters {
    let mut parameters = frodo();
    let Parameters { loggp, plogp, .. } = &mut parameters;
    let knots = plogp.knots.iter_mut().flat_map(|knot| {
        let overheads = [&mut knot.send_overhead_seconds, &mut knot.receive_overhead_seconds];
        overheads.into_iter().chain([&mut knot.gap_seconds])
    });
    let of_loggp = [&mut loggp.latency_seconds, &mut loggp.overhead_seconds];
    let gaps = [&mut loggp.gap_seconds, &mut loggp.gap_seconds_per_byte];
    let all = knots.chain(of_loggp).chain(gaps).chain([&mut plogp.latency_seconds]);
    all.for_each(|estimate| *estimate = Estimate::exact(estimate.value / 10.0));
    parameters
}

#[test]
fn decisions_differ_by_layout_and_follow_the_levels() {
    let mut level = inside(24e-6);
    level.measured = ten_times_as_fast();
    for model in [Model::LogGp, Model::PLogP, Model::Refined] {
        let levelled = predictor(model, Some(&level));
        let known = model.algorithms(Collective::Bcast);
        let own = methods(&levelled, Collective::Bcast, &known, &[0, 8192]).unwrap();
        let mut with_nodes = own.clone();
        with_nodes.extend(["own:two-level".parse().unwrap()]);
        with_nodes.extend(["own:pipeline,order=node,segment=8KiB".parse().unwrap()]);
        let mut differing = 0;
        for bytes in [8, 1024, 8192, 256 << 10] {
            let decided = |layout: &str, methods: &[Method]| {
                decide_among(&levelled, point(Collective::Bcast, layout, bytes), methods).unwrap()
            };
            let (flat, block) = (decided("32x1", &own), decided("8x4", &with_nodes));
            let cyclic = decided("8x4:cyclic", &with_nodes);
            differing += u32::from(flat.method != block.method);
            let [low, high] = block.interval();
            assert!(low <= block.seconds && block.seconds <= high);
            // What was best on nodes of one rank is no better on these.
            let here = levelled
                .predict_method_seconds(point(Collective::Bcast, "8x4", bytes), &flat.method);
            assert!(here.unwrap() >= block.seconds, "{model}: {flat:?} {block:?}");
            // Dealt in turn, a chain by rank crosses with every hop.
            let by_node = cyclic.method.is_node_aware();
            assert!(by_node || bytes < 256 << 10, "{model}: {cyclic:?}");
        }
        assert!(differing > 0, "{model}");
    }
}

#[test]
fn terms_of_both_levels_and_of_the_port_sum_to_the_time() {
    let level = inside(30e-6);
    for model in [Model::LogGp, Model::PLogP] {
        let levelled = predictor(model, Some(&level));
        let explainer = Explainer::new(&levelled, &frodo(), Some(&level), false).unwrap();
        let at = point(Collective::Bcast, "4x4", 1024);
        let method = own(Algorithm::Pipeline, 0);
        let terms = explainer.terms(at, &method).unwrap();
        let sum: f64 = terms.iter().map(|term| term.seconds).sum();
        let seconds = levelled.predict_method_seconds(at, &method).unwrap();
        assert!((sum / seconds - 1.0).abs() < 0.02, "{model}: {sum} {seconds} {terms:?}");
        assert!(terms.iter().any(|term| term.parameter.ends_with(" inside")), "{terms:?}");
        let by_lanes = "own:multi-lane".parse().unwrap();
        let at = point(Collective::Alltoall, "2x4", 8192);
        let terms = explainer.terms(at, &by_lanes).unwrap();
        assert!(terms.iter().any(|term| term.parameter == "port"), "{terms:?}");
    }
}

/// A root beside three others gets their blocks inside its node, one alone takes all through its port.
#[test]
fn the_root_counts_where_nodes_hold_unequal_ranks_and_never_in_a_closed_form() {
    let level = inside(20e-6);
    let of = |layout: &str, root: Root| {
        let predictor = predictor(Model::LogGp, Some(&level)).with_root(root);
        let at = |collective| {
            let point = point(collective, layout, 8192);
            let seconds = predictor.predict_method_seconds(point, &own(Algorithm::Linear, 0));
            (seconds.unwrap_or(f64::NAN), predictor.limit(point).unwrap().seconds)
        };
        [Collective::Scatter, Collective::Bcast].map(at)
    };
    let (beside, alone) = (of("4+1+1", Root::default()), of("4+1+1", Root::Last));
    let [(scatter_beside, limit_beside), (bcast_beside, _)] = beside;
    let [(scatter_alone, limit_alone), (bcast_alone, _)] = alone;
    assert!(scatter_alone > 1.2 * scatter_beside, "{scatter_alone} {scatter_beside}");
    assert!(bcast_alone > 1.2 * bcast_beside, "{bcast_alone} {bcast_beside}");
    assert!(limit_alone > 2.0 * limit_beside, "{limit_alone} {limit_beside}");
    let bcast = |root| of("6", root)[1];
    assert_eq!(bcast(Root::default()), bcast(Root::Last));
}

#[test]
fn terms_are_those_of_the_root() {
    let level = inside(20e-6);
    let at = point(Collective::Reduce, "4+2+1+1", 65536);
    let method = own(Algorithm::Binomial, 1024);
    let of = |root: Root| {
        let predictor = predictor(Model::LogGp, Some(&level)).with_root(root);
        let explainer = Explainer::new(&predictor, &frodo(), Some(&level), false).unwrap();
        let terms = explainer.terms(at, &method).unwrap();
        let time = predictor.predict_method_seconds(at, &method).unwrap();
        let sum: f64 = terms.iter().map(|term| term.seconds).sum();
        assert!((sum / time - 1.0).abs() < 0.02, "root {root}: {sum} {time}");
        time
    };
    assert_ne!(of(Root::default()), of(Root::Last));
}

/// A copy that is told a root or how far measurements reach tells them to what it predicts nodes with, and the
/// first one keeps its own.
#[test]
fn what_a_copy_is_told_holds_on_nodes_too() {
    let level = inside(20e-6);
    let here = point(Collective::Bcast, "4+2", 8192);
    let method = own(Algorithm::Linear, 0);
    let first = predictor(Model::LogGp, Some(&level));
    let seconds = |predictor: &Predictor| predictor.predict_method_seconds(here, &method).unwrap();
    let before = seconds(&first);
    let last = first.clone().with_root(Root::Last);
    let wanted = seconds(&predictor(Model::LogGp, Some(&level)).with_root(Root::Last));
    assert_ne!(wanted, before, "the last rank has fewer neighbours on its node");
    assert_eq!((seconds(&last), seconds(&first)), (wanted, before));
    let reach = Reach { procs: Some(4), ..Reach::default() };
    for layout in ["4+2", "1x4"].map(|layout| layout.parse::<Layout>().unwrap()) {
        assert_eq!(first.clone().within(reach).at(layout).reach(), reach);
        assert_eq!(first.at(layout).reach(), Reach::default());
    }
}

/// The ends of intervals are found with few of a call's segments, but for circulant.
#[test]
fn few_segments_tell_how_wide_intervals_are() {
    let mut between = frodo();
    for knot in &mut between.plogp.knots {
        let gap = &mut knot.gap_seconds;
        (gap.low, gap.high) = (0.9 * gap.value, 1.1 * gap.value);
    }
    let mut level = inside(20e-6);
    let latency = &mut level.measured.plogp.latency_seconds;
    (latency.low, latency.high) = (0.5 * latency.value, 1.5 * latency.value);
    let flat = Predictor::new(Model::Refined, Forms::Corrected, &between).unwrap();
    let predictor = flat.on_nodes(&between, Some(&level), false).unwrap();
    let in_full = predictor.clone().simulating(None);
    for collective in [Collective::Bcast, Collective::Reduce] {
        let point = point(collective, "8x4", 1 << 20);
        let known = Model::Refined.algorithms(collective);
        let mut methods = methods(&predictor, collective, &known, &[4 << 10]).unwrap();
        methods.extend(["own:two-level,inter=pipeline,segment=4KiB".parse().unwrap()]);
        let segmented: Vec<_> = methods.iter().filter(|one| one.segment_bytes() > 0).collect();
        assert!(segmented.len() > 5, "{segmented:?}");
        let mut wide = 0;
        for method in segmented {
            let [few, all] = [&predictor, &in_full]
                .map(|predictor| predictor.predict_method(point, method).unwrap());
            assert_eq!(few.value, all.value, "{method}");
            let width = all.high - all.low;
            println!("{collective} {method}: {few:?} of {all:?}");
            // Where ports of nodes hold messages up, gaps of ranks are no matter.
            wide += u32::from(width > 0.05 * all.value);
            for (few, all) in [(few.low, all.low), (few.high, all.high)] {
                assert!((few - all).abs() < 0.1 * width, "{method}: {few} of {all}");
            }
        }
        assert!(wide > 2, "{wide}");
    }
}
