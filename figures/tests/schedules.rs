//! Trees and space-time diagrams: what is in them, whether they are whole, and that what can't be
//! drawn is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use colibri_figures::{Figure, FigureError, dot, space_time, tree};
use proptest::prelude::*;
use records::{Algorithm, Collective};
use schedules::{
    Call, find,
    simulator::{Activity, ActivityKind, LogGpCosts, Options, Simulator},
    topology::{self, ChildOrder, TOPOLOGIES, Topology, TreeShape},
};

const MODEL: LogGpCosts = LogGpCosts {
    latency: 60e-6,
    overhead: 8e-6,
    gap: 24e-6,
    gap_per_byte: 0.084e-6,
    combine_per_byte: 0.02e-6,
};

fn named(name: &str) -> &'static Topology {
    topology::find(name).unwrap()
}

fn shape(ranks: u32, root: u32, fan_out: u32) -> TreeShape {
    TreeShape { ranks, root, fan_out }
}

fn activities(collective: Collective, algorithm: Algorithm, call: &Call<'_>) -> Vec<Activity> {
    let mut activities = Vec::new();
    let entry = find(collective, algorithm).unwrap();
    Simulator::new()
        .run_observed(entry, call, &MODEL, Options::default(), |a| activities.push(a))
        .unwrap();
    activities
}

fn count(svg: &str, what: &str) -> usize {
    svg.matches(what).count()
}

/// Every pixel on the edge is white.
fn assert_whole(figure: &Figure) {
    let mut reader =
        png::Decoder::new(std::io::Cursor::new(figure.png().unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), figure.size());
    let (width, height) = (info.width as usize, info.height as usize);
    for (index, pixel) in pixels.chunks(3).enumerate() {
        let (x, y) = (index % width, index / width);
        let inside = (8..width - 8).contains(&x) && (8..height - 8).contains(&y);
        assert!(inside || pixel == [255, 255, 255], "ink at {x}, {y}");
    }
}

#[test]
fn a_tree_as_text_has_its_edges_level_by_level() {
    let text = dot(named("k-nomial"), shape(10, 0, 4), ChildOrder::Descending).unwrap();
    let wanted = "digraph \"k-nomial\" {\n  label=\"k-nomial tree of 10 ranks, radix 4, root 0\";\n  \
                  ordering=out;\n  node [shape=circle];\n  0 [shape=doublecircle];\n  \
                  0 -> 8;\n  0 -> 4;\n  0 -> 3;\n  0 -> 2;\n  0 -> 1;\n  \
                  8 -> 9;\n  4 -> 7;\n  4 -> 6;\n  4 -> 5;\n}\n";
    assert_eq!(text, wanted);
    let one = dot(named("flat"), shape(1, 0, 4), ChildOrder::Ascending).unwrap();
    assert!(one.contains("flat tree of 1 rank, root 0") && !one.contains("->"), "{one}");
}

#[test]
fn trees_are_whole_and_the_same_every_time() {
    for topology in TOPOLOGIES {
        for (ranks, root) in [(1, 0), (7, 3), (128, 0)] {
            let figure = || tree(topology, shape(ranks, root, 3), ChildOrder::Descending).unwrap();
            let svg = figure().svg().unwrap();
            assert_eq!(svg, figure().svg().unwrap());
            // Two discs make a circle with its edge.
            assert_eq!(count(&svg, "<circle"), 2 * ranks as usize, "{}", topology.name);
            assert!(!svg.contains('\u{2026}'), "a text is cut off");
            if ranks == 7 {
                assert_whole(&figure());
            }
        }
    }
}

#[test]
fn trees_that_are_none_or_too_large_are_refused() {
    let refused = |name, shape, part: &str| {
        for text in [
            dot(named(name), shape, ChildOrder::Ascending).map(|_| ()),
            tree(named(name), shape, ChildOrder::Ascending).map(|_| ()),
        ] {
            let text = text.unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    };
    refused("binary", shape(0, 0, 2), "at least 1");
    refused("binary", shape(4, 4, 2), "expected 0 to 3");
    refused("k-nomial", shape(4, 0, 1), "radix 1; expected at least 2");
    refused("k-chain", shape(4, 0, 0), "chains 0; expected at least 1");
    refused("flat", shape(u32::MAX, 0, 2), "too much to draw: 4294967295 ranks");
}

#[test]
fn a_diagram_has_ranks_units_legend_and_an_arrow_for_each_message() {
    let call = Call { segment: 1 << 13, ..Call::new(7, 1 << 15) };
    let seen = activities(Collective::Reduce, Algorithm::Binary, &call);
    let lines = ["32 KiB in segments of 8 KiB".to_owned()];
    let figure = space_time("reduce binary, 7 ranks", &lines, 7, &seen).unwrap();
    let svg = figure.svg().unwrap();
    for text in [
        "reduce binary, 7 ranks",
        "32 KiB in segments of 8 KiB",
        "time (ms)",
        "rank",
        "sends (overhead)",
        "receives (overhead)",
        "combines",
        "waits for a message, its port or a flag",
        "24 messages; the last rank is done after",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("copies"), "copying is free here: {svg:.200}");
    assert_eq!(count(&svg, "<polygon"), 24);
    assert_eq!(svg, figure.svg().unwrap());
    assert_whole(&figure);
}

#[test]
fn diagrams_that_nobody_could_read_are_refused() {
    let refuse = |ranks, activities: &[Activity]| space_time("t", &[], ranks, activities);
    let too_much = |result: Result<Figure, FigureError>, wanted: &str| match result.unwrap_err() {
        FigureError::TooMuch { what, .. } => assert_eq!(what, wanted),
        other => panic!("{other}"),
    };
    too_much(refuse(65, &[]), "ranks");
    let call = Call { segment: 1, ..Call::new(2, 1001) };
    let many = activities(Collective::Bcast, Algorithm::Pipeline, &call);
    too_much(refuse(2, &many), "messages");
    assert!(matches!(refuse(2, &[]), Err(FigureError::NothingToDraw(_))));
    assert!(matches!(refuse(1, &many), Err(FigureError::Impossible(_))));
    let wait = Activity { rank: 0, kind: ActivityKind::Wait, begin: 0.0, end: 1.0, bytes: 0 };
    for (begin, end) in [(f64::NAN, 1.0), (0.0, f64::INFINITY), (-1.0, 1.0)] {
        let result = refuse(1, &[Activity { begin, end, ..wait }]);
        assert!(matches!(result, Err(FigureError::Impossible(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever the times are, a figure comes out or a reason.
    #[test]
    fn no_activities_make_it_panic(
        times in proptest::collection::vec((0_u32..4, 0_u32..4, 0.0..1.0_f64, 0_i32..600), 0..40),
    ) {
        let activities: Vec<Activity> = times
            .into_iter()
            .map(|(rank, other, part, exponent)| {
                let begin = part * 10_f64.powi(exponent - 300);
                let kind = match other {
                    0 => ActivityKind::Wait,
                    of @ 1 => ActivityKind::Flag { of, raised: begin / 2.0 },
                    from => ActivityKind::Receive { from, left: begin / 2.0 },
                };
                Activity { rank, kind, begin, end: begin * 2.0, bytes: 1 }
            })
            .collect();
        if let Ok(figure) = space_time("t", &[], 4, &activities) {
            prop_assert!(figure.svg().unwrap().ends_with("</svg>\n"));
        }
    }
}
