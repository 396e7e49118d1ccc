//! Ports that all messages under way share, against those that serve them in turn.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::{super::*, ROUND, levels::places};
use crate::{ENTRIES, NodesOfRanks, find};

const SHARED: Options =
    Options { element_bytes: 1, rendezvous_bytes: None, handshake: None, ports: Ports::Shared };

/// G = 1, and next to nothing else.
const RATE: LogGpCosts =
    LogGpCosts { latency: 1e-3, overhead: 0.0, gap: 0.0, gap_per_byte: 1.0, combine_per_byte: 0.0 };

fn seconds(algorithm: Algorithm, call: &Call<'_>, costs: &impl LevelledCosts) -> [f64; 2] {
    let entry = find(Collective::Bcast, algorithm).unwrap();
    [Options::default(), SHARED]
        .map(|options| simulate(entry, call, costs, options).unwrap().seconds)
}

/// The root of a binomial tree of 4 ranks sends the whole message to two at once: neither has it before
/// both have, and one of them hands it on then. So it takes 3 m G, and in turn 2 m G. (On the slowed
/// virtual cluster 256 KiB took 0.668 s, where m G is 0.219 s.) With one child each, nothing changes.
#[test]
fn who_is_served_with_others_has_to_wait_for_them() {
    let call = Call::new(4, 10_001);
    let [in_turn, shared] = seconds(Algorithm::Binomial, &call, &RATE);
    assert!((in_turn - 20_000.0).abs() < 1.0, "{in_turn}");
    assert!((shared - 30_000.0).abs() < 10.0, "{shared}");
    for segment in [0, 100] {
        let call = Call { segment, ..call };
        let [in_turn, shared] = seconds(Algorithm::Pipeline, &call, &RATE);
        assert!((in_turn / shared - 1.0).abs() < 1e-3, "{segment}: {in_turn}, {shared}");
    }
}

/// Of two messages that a rank sends at once the first is there a frame before the second one: the binomial
/// broadcast on 4 takes (2 m - frame) G + m G. Messages of one frame leave in turn.
#[test]
fn who_is_served_with_others_has_its_message_a_frame_before_them() {
    let entry = find(Collective::Bcast, Algorithm::Binomial).unwrap();
    let by_frames = |frame: u64, count: u64| {
        let options = Options { ports: Ports::Frames(frame), ..SHARED };
        simulate(entry, &Call::new(4, count), &RATE, options).unwrap().seconds
    };
    let seconds = by_frames(1_000, 10_001);
    assert!((seconds - 29_000.0).abs() < 10.0, "{seconds}");
    let [in_turn, shared] = seconds_of_binomial(1_001);
    assert!((by_frames(2_000, 1_001) / in_turn - 1.0).abs() < 1e-9);
    assert!((by_frames(0, 1_001) / shared - 1.0).abs() < 1e-9);
}

fn seconds_of_binomial(count: u64) -> [f64; 2] {
    seconds(Algorithm::Binomial, &Call::new(4, count), &RATE)
}

/// Four ranks of a node send to the four of another one: the node's port takes four times as long as
/// one of them alone, and all have their message at the end.
#[test]
fn ranks_of_a_node_share_its_port() {
    let nodes = NodesOfRanks::block(2, 4);
    let costs = NodeCosts { nodes: &nodes, inside: &RATE, between: &RATE, port: &RATE };
    let entry = find(Collective::Allreduce, Algorithm::RecursiveDoubling).unwrap();
    let outcome = simulate(entry, &Call::new(8, 1_001), &costs, SHARED).unwrap();
    // Two exchanges inside, one by four pairs at once between.
    assert!((outcome.seconds - 6_000.0).abs() < 10.0, "{}", outcome.seconds);
}

/// Of a rank that keeps sending to k others a message takes the port g(m, k) / k, and so it does of
/// that of its node: nodes whose levels are alike are as if there were none.
#[test]
fn ports_of_nodes_know_what_several_destinations_do() {
    struct ManyAreFaster;
    impl Costs for ManyAreFaster {
        fn send_overhead(&self, _bytes: u64) -> f64 {
            0.1
        }
        fn receive_overhead(&self, _bytes: u64) -> f64 {
            0.1
        }
        fn gap(&self, bytes: u64, destinations: u32) -> f64 {
            (1.0 + bytes as f64) * if destinations > 1 { 0.9 } else { 1.0 }
        }
        fn flight(&self, bytes: u64) -> f64 {
            5.0 + bytes as f64
        }
        fn combine(&self, _bytes: u64) -> f64 {
            0.0
        }
    }
    // Ranks that are each alone with their receiver's port, and all on the root's node but one.
    let labels: Vec<u64> = (0..8).map(|rank| u64::from(rank > 0) * (1 + rank / 4)).collect();
    let nodes = NodesOfRanks::new(&labels);
    let same = &ManyAreFaster;
    let costs = NodeCosts { nodes: &nodes, inside: same, between: same, port: same };
    let entry = find(Collective::Bcast, Algorithm::Linear).unwrap();
    let call = Call { root: 1, ..Call::new(8, 50) };
    let flat = simulate(entry, &call, same, Options::default()).unwrap().seconds;
    let levelled = simulate(entry, &call, &costs, Options::default()).unwrap().seconds;
    // Who receives passes the port of its node with others: one message at most.
    assert!((levelled / flat - 1.0).abs() < 0.01, "{levelled}, {flat}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Sharing loses nothing: all get there, and no port takes less time than its messages need.
    #[test]
    fn a_port_that_is_shared_takes_its_time(
        labels in prop::collection::vec(0_u64..5, 2..16), count in 1_u64..40, segment in 0_u64..9,
    ) {
        let nodes = NodesOfRanks::new(&labels);
        let ranks = labels.len() as u32;
        let counts = vec![count; ranks as usize];
        let displacements = places(&counts);
        let costs = NodeCosts { nodes: &nodes, inside: &ROUND, between: &ROUND, port: &ROUND };
        for entry in ENTRIES {
            let call = Call {
                segment, counts: &counts, displacements: &displacements, ..Call::new(ranks, count)
            };
            if entry.check(&call).is_err() {
                continue;
            }
            let mut leave = [0.0; 5];
            let observe = |activity: Activity| {
                if let ActivityKind::Send { to } = activity.kind
                    && nodes.node_of(to) != nodes.node_of(activity.rank)
                {
                    leave[nodes.node_of(activity.rank) as usize] += ROUND.gap(activity.bytes, 1);
                }
            };
            let outcome = Simulator::new().run_observed(entry, &call, &costs, SHARED, observe).unwrap();
            let in_turn = simulate(entry, &call, &costs, Options::default()).unwrap();
            prop_assert_eq!(outcome.messages, in_turn.messages, "{:?}", entry);
            let port = leave.iter().fold(0.0_f64, |most, time| most.max(*time));
            prop_assert!(outcome.seconds * (1.0 + 1e-9) >= port, "{:?} {:?}: {}", entry, outcome, port);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is told of a schedule at least, by its messages alone, holds where ports serve frames: a message may
    /// leave before one that was to leave before it.
    #[test]
    fn frames_only_hold_up(
        index in 0..ENTRIES.len(), ranks in 1_u32..40, count in 0_u64..500, frame in 1_u64..600,
        per_byte in 0.0..3.0_f64, gap in 0.0..100.0_f64,
    ) {
        let entry = &ENTRIES[index];
        let v_form = entry.collective.v_form_of().is_some() && entry.collective.is_rooted();
        let call = Call::new(ranks, count);
        prop_assume!(!v_form && entry.check_everywhere(&call).is_ok());
        let costs = LogGpCosts { latency: 61.0, overhead: 0.1, gap, gap_per_byte: per_byte, ..RATE };
        let options = Options { ports: Ports::Frames(frame), ..SHARED };
        let seconds = simulate(entry, &call, &costs, options).unwrap().seconds;
        let told = entry.at_least(&call, &FreePorts(costs), options, f64::INFINITY);
        prop_assert!(told <= seconds * (1.0 + 1e-9), "{told} {seconds}");
    }
}

/// The same, without what ports take.
struct FreePorts(LogGpCosts);

impl Costs for FreePorts {
    fn send_overhead(&self, bytes: u64) -> f64 {
        self.0.send_overhead(bytes)
    }
    fn receive_overhead(&self, bytes: u64) -> f64 {
        self.0.receive_overhead(bytes)
    }
    fn gap(&self, _bytes: u64, _destinations: u32) -> f64 {
        0.0
    }
    fn flight(&self, bytes: u64) -> f64 {
        self.0.flight(bytes)
    }
    fn combine(&self, bytes: u64) -> f64 {
        self.0.combine(bytes)
    }
}
