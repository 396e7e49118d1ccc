//! The limit: nothing that is simulated gets below it, and the best come close.

use models::{
    Forms, LimitCause, Model, NetworkLimit, Point, Predictor, limit, limit_on_nodes,
    parameters::{Network, PointToPointParameters},
    port_sharing::{self, PortKnot},
    presets::preset,
    simulated::{LevelledNetwork, SimulatedCall},
};
use proptest::prelude::*;
use records::{
    Algorithm as A, Collective as C, Layout, OwnMethod, Root,
    calibration::{Estimate, GapKnot, ManyGap, Parameters},
};

use schedules::simulator::Costs as _;

use crate::numbers::PlainParameters;

/// Nothing costs anything.
const FREE: PlainParameters = PlainParameters {
    alpha: 0.0,
    beta: 0.0,
    latency: 0.0,
    overhead: 0.0,
    gap: 0.0,
    gap_per_byte: 0.0,
    gamma: 0.0,
    plogp_latency: 0.0,
    knots: Vec::new(),
};

fn network(model: Model, numbers: &PlainParameters) -> Network {
    let knots = vec![(0, 0.0, 0.0, 0.0)];
    Network::new(model, &PlainParameters { knots, ..numbers.clone() }.parameters()).unwrap()
}

/// The time by every algorithm, over the limit; of one byte and more.
pub fn ratios(network: &Network, point: Point) -> Vec<(A, f64)> {
    let Point { collective, bytes, .. } = point;
    let procs = point.procs();
    let least = limit(network, point).seconds;
    let of = schedules::of_collective(collective);
    let times = of.filter_map(|entry| {
        let run = SimulatedCall {
            entry,
            procs,
            root: 0,
            bytes,
            method: OwnMethod::plain(entry.algorithm),
            layout: None,
            rendezvous: None,
        };
        Some((entry.algorithm, run.seconds(network).ok()? / least))
    });
    times.collect()
}

/// Overheads that don't grow with the message: what a processor does for one is then no part of what
/// the port does.
fn platform() -> impl Strategy<Value = Parameters> {
    let overheads = (1e-7..1e-4_f64, 1e-7..1e-4_f64, prop_oneof![Just(0.0), 1e-11..1e-8_f64]);
    (1e-6..1e-4_f64, 1e-6..1e-4_f64, 1e-10..1e-7_f64, overheads).prop_map(
        |(latency, gap, gap_per_byte, (send, receive, gamma))| {
            let knot = |bytes: u64| (bytes, send, receive, gap + bytes as f64 * gap_per_byte);
            PlainParameters {
                latency,
                overhead: send,
                gap,
                gap_per_byte,
                gamma,
                plogp_latency: latency,
                knots: vec![knot(0), knot(1 << 24)],
                ..FREE
            }
            .parameters()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_schedule_is_quicker_than_the_limit(
        parameters in platform(), procs in 2_u32..70, elements in 1_u64..10_000,
    ) {
        // Simulated by Hockney, several messages come whole at once.
        for model in [Model::LogGp, Model::PLogP] {
            let network = Network::new(model, &parameters).unwrap();
            for collective in C::ALL {
                let bytes = if collective == C::Barrier { 0 } else { 8 * elements };
                for (algorithm, ratio) in ratios(&network, Point::flat(collective, procs, bytes)) {
                    prop_assert!(
                        ratio > 1.0 - 1e-9,
                        "{collective} by {algorithm}, {procs} of {bytes}, {model}: {ratio}"
                    );
                }
            }
        }
    }
}

/// Whoever has heard for the longest and is free sends next, to one who has not: when the last hears.
fn greedy(ranks: usize, gap: u64, trip: u64) -> u64 {
    let (mut free, mut last) = (vec![0], 0);
    for _ in 1..ranks {
        let next = (0..free.len()).min_by_key(|rank| free[*rank]).unwrap();
        last = free[next] + trip;
        free[next] += gap;
        free.push(last);
    }
    last
}

proptest! {
    #[test]
    fn short_messages_take_what_the_greedy_tree_takes(
        ranks in 2_usize..300, overhead in 0_u64..10, gap in 0_u64..20, latency in 0_u64..100,
    ) {
        prop_assume!(gap + overhead > 0 && latency + overhead > 0);
        let [l, o, g] = [latency, overhead, gap].map(|time| time as f64);
        let numbers = PlainParameters { latency: l, overhead: o, gap: g, ..FREE };
        let point = Point::flat(C::Bcast, ranks as u32, 1);
        let got = limit(&network(Model::LogP, &numbers), point).seconds;
        prop_assert_eq!(got, greedy(ranks, gap.max(overhead), latency + 2 * overhead) as f64);
    }
}

/// Where latency is all, everybody who knows sends to somebody new as soon as it may: with a gap as
/// long as the way, that is a binomial tree; with none, all hear at once.
#[test]
fn of_short_messages_it_is_the_optimal_tree() {
    let at = |latency: f64, overhead: f64, gap: f64, procs| {
        let numbers = PlainParameters { latency, overhead, gap, ..FREE };
        let net = network(Model::LogP, &numbers);
        let least = limit(&net, Point::flat(C::Bcast, procs, 1));
        assert_eq!(least.cause, LimitCause::Latency);
        least.seconds
    };
    assert_eq!(at(1.0, 0.0, 1.0, 16), 4.0);
    assert_eq!(at(1.0, 0.0, 1.0, 17), 5.0);
    // The figure of the LogP paper: L = 6, g = 4, o = 2, eight processors, 24 cycles.
    assert_eq!(at(6.0, 2.0, 4.0, 8), 24.0);
}

#[test]
fn known_bounds_are_met() {
    let numbers = PlainParameters { alpha: 10.0, beta: 2.0, gamma: 5.0, ..FREE };
    let net = network(Model::Hockney, &numbers);
    let at = |collective, procs, bytes| {
        let least = limit(&net, Point::flat(collective, procs, bytes));
        (least.seconds, least.cause)
    };
    use LimitCause::{Bandwidth, Combining, Latency};
    assert_eq!(at(C::Barrier, 9, 0), (40.0, Latency));
    assert_eq!(at(C::Bcast, 9, 0), (0.0, Latency));
    assert_eq!(at(C::Bcast, 1, 100), (0.0, Latency));
    assert_eq!(at(C::Bcast, 8, 1000), (10.0 + 2000.0, Bandwidth));
    assert_eq!(at(C::Allgather, 5, 1000), (10.0 + 8000.0, Bandwidth));
    assert_eq!(at(C::Allreduce, 5, 1000), (5.0 * 800.0, Combining));
    let cheap = PlainParameters { gamma: 0.5, ..numbers };
    let net = network(Model::Hockney, &cheap);
    let least = limit(&net, Point::flat(C::Allreduce, 5, 1000));
    assert_eq!((least.seconds, least.cause), (10.0 + 2.0 * 1600.0, Bandwidth));
}

/// Some schedule comes within a few percent of it at either end of the sizes.
#[test]
fn the_best_come_close_to_it() {
    let frodo = preset("frodo").unwrap().measured;
    let network = Network::new(Model::LogGp, &frodo).unwrap();
    assert!(matches!(network.model, PointToPointParameters::LogGp(_)));
    let best = |collective, procs, bytes| {
        let ratios = ratios(&network, Point::flat(collective, procs, bytes));
        ratios.into_iter().map(|(_, ratio)| ratio).fold(f64::INFINITY, f64::min)
    };
    for collective in [C::Allgather, C::Alltoall, C::Gather, C::Scatter] {
        assert!(best(collective, 16, 1 << 20) < 1.02, "{collective}");
    }
    assert!(best(C::Allreduce, 16, 4 << 20) < 1.05);
}

/// One port can do no more than it was measured to, with however many others at once.
#[test]
fn quicker_ports_to_several_count() {
    let frodo = preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::PLogP, Forms::Corrected, &frodo).unwrap();
    let point = Point::flat(C::Scatter, 16, 1 << 20);
    let alone = predictor.limit(point).unwrap().seconds;
    let mut parameters = frodo;
    let last = parameters.plogp.knots.last().unwrap();
    let half = Estimate::exact(2.0 * last.gap_seconds.value);
    let knots = vec![GapKnot { bytes: last.bytes, gap_seconds: half }];
    parameters.plogp.gap_by_destinations = vec![ManyGap { partners: 4, knots }];
    let predictor = Predictor::new(Model::PLogP, Forms::Corrected, &parameters).unwrap();
    let several = predictor.limit(point).unwrap().seconds;
    assert!((several / alone - 0.5).abs() < 0.05, "{several} {alone}");
}

/// What every algorithm takes on nodes of several ranks, in seconds, and the limit there; those that can't serve the
/// call are left out.
pub fn on_levels(
    network: &LevelledNetwork,
    layout: Layout,
    elements: u64,
) -> impl Iterator<Item = (SimulatedCall, f64, NetworkLimit)> {
    schedules::ENTRIES.iter().filter_map(move |entry| {
        let collective = entry.collective;
        let bytes = if collective == C::Barrier { 0 } else { 8 * elements };
        let call = SimulatedCall {
            entry,
            procs: layout.procs(),
            root: 0,
            bytes,
            method: OwnMethod::plain(entry.algorithm).with_segment(if entry.segmented {
                1024
            } else {
                0
            }),
            layout: Some(layout),
            rendezvous: None,
        };
        let times = call.seconds_on_levels(&[network]).ok()?;
        let least = limit_on_nodes(network, Point { collective, layout, bytes }, Root::default());
        Some((call, times[0], least))
    })
}

/// Parameters of both levels, and a port that one rank fills in part or whole.
fn levelled(
    model: Model,
    [inside, between]: [&Parameters; 2],
    part: Option<f64>,
) -> LevelledNetwork {
    let [inside, between] = [inside, between].map(|of| Network::new(model, of).unwrap());
    let port = part.map(|part| {
        let knot = |bytes: u64| PortKnot {
            bytes,
            pair_gap: 0.0,
            port_gap: part * between.gap(bytes, 1),
            deviations: Vec::new(),
        };
        port_sharing::network(&[knot(1), knot(1 << 24)]).unwrap()
    });
    LevelledNetwork { inside, between, port }
}

const LAYOUTS: [&str; 7] = ["4x4", "4x4:cyclic", "2x8", "8x2", "5+1+3", "list:0*3.1.0.2*4", "2x3"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Of all schedules there are, compositions by node included.
    #[test]
    fn no_schedule_is_quicker_than_the_limit_of_both_levels(
        inside in platform(), between in platform(), part in prop::option::of(0.1..1.0_f64),
        layout in prop::sample::select(&LAYOUTS[..]), elements in 1_u64..10_000,
    ) {
        let layout: Layout = layout.parse().unwrap();
        for model in [Model::LogGp, Model::PLogP] {
            let network = levelled(model, [&inside, &between], part);
            for (call, seconds, least) in on_levels(&network, layout, elements) {
                prop_assert!(
                    seconds >= least.seconds * (1.0 - 1e-9),
                    "{call:?}, {model}, {part:?}: {seconds} {least:?}"
                );
            }
        }
    }
}

/// What the bytes need on one port, to which the best schedules come near.
#[test]
fn a_nodes_port_bounds_what_its_ranks_do_together() {
    let slow = PlainParameters { latency: 1e-3, gap: 1e-6, gap_per_byte: 1e-6, ..FREE };
    let fast = PlainParameters { latency: 1e-4, gap: 1e-7, gap_per_byte: 1e-7, ..FREE };
    let knots = vec![(0, 0.0, 0.0, 0.0)];
    let of = |numbers: &PlainParameters| {
        PlainParameters { knots: knots.clone(), ..numbers.clone() }.parameters()
    };
    let network = levelled(Model::LogGp, [&of(&fast), &of(&slow)], None);
    let at = |collective, layout: &str, bytes| {
        let point = Point { collective, layout: layout.parse().unwrap(), bytes };
        let least = limit_on_nodes(&network, point, Root::default());
        (least.cause, least.seconds * 1e6)
    };
    let close = |(cause, seconds): (LimitCause, f64), bytes: f64| {
        assert_eq!(cause, LimitCause::Bandwidth);
        // The first byte's way, and of the bytes all but that one.
        assert!((seconds - (1000.0 + bytes - 1.0)).abs() < 1e-3, "{seconds} {bytes}");
    };
    let bytes = 1_u64 << 18;
    let m = bytes as f64;
    // More messages than a number of 32 bits tells.
    close(at(C::Alltoall, "2x65536", 8), 8.0 * 65536.0 * 65536.0);
    for layout in ["8x4", "8x4:cyclic"] {
        close(at(C::Bcast, layout, bytes), m);
        close(at(C::Reduce, layout, bytes), m);
        close(at(C::Allreduce, layout, bytes), 2.0 * m * 7.0 / 8.0);
        close(at(C::Alltoall, layout, 8192), 4.0 * 28.0 * 8192.0);
        close(at(C::Allgather, layout, 8192), 28.0 * 8192.0);
        close(at(C::Gather, layout, 8192), 28.0 * 8192.0);
    }
    close(at(C::Scatter, "5+1+3", 8192), 4.0 * 8192.0);
    close(at(C::ReduceScatterBlock, "5+1+3", 8192), 8.0 * 8192.0);
    // One byte: two nodes hear at once, and so do the ranks of the last one.
    let (cause, seconds) = at(C::Bcast, "8x4", 1);
    assert_eq!(cause, LimitCause::Latency);
    assert!((1000.0..=1200.0).contains(&seconds), "{seconds}");
}
