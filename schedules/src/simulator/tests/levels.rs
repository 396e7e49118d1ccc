//! Several ranks on a node: levels of messages, and ports that ranks share.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::{super::*, ROUND};
use crate::{Buffer, ENTRIES, NodesOfRanks, Program, Range, Round, find};

/// Inside a node: L = 1, o = 1, g = 1, G = 0.25.
const INSIDE: LogGpCosts =
    LogGpCosts { latency: 1.0, overhead: 1.0, gap: 1.0, gap_per_byte: 0.25, combine_per_byte: 2.0 };

/// A port that holds nobody up.
const FREE: LogGpCosts =
    LogGpCosts { latency: 0.0, overhead: 0.0, gap: 0.0, gap_per_byte: 0.0, combine_per_byte: 0.0 };

fn costs<'a>(nodes: &'a NodesOfRanks, port: &'a LogGpCosts) -> NodeCosts<'a, LogGpCosts> {
    NodeCosts { nodes, inside: &INSIDE, between: &ROUND, port }
}

/// The first half of the ranks each send so many messages to its place in the other half.
struct Pairs<const MESSAGES: u32>(u32);

impl<const MESSAGES: u32> Program for Pairs<MESSAGES> {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        Pairs(rank)
    }

    fn rounds(&self) -> u64 {
        u64::from(MESSAGES)
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let (all, half) = (Range::new(Buffer::Receive, 0, call.count), call.ranks / 2);
        match self.0.checked_sub(half) {
            None => out.send(self.0 + half, 0, all),
            Some(from) => out.receive(from, 0, all),
        }
        out.wait(0);
    }

    fn slots(&self) -> u32 {
        1
    }
}

const PAIRS: Entry =
    Entry::new::<Pairs<7>>(Collective::Bcast, Algorithm::Linear, "pairs between two nodes");

#[test]
fn ranks_of_a_node_that_send_at_once_take_as_many_times_the_ports_gap() {
    for per_node in [1, 2, 5] {
        let nodes = NodesOfRanks::block(2, per_node);
        let call = Call::new(2 * per_node, 5);
        let shared = costs(&nodes, &ROUND);
        let outcome = simulate(&PAIRS, &call, &shared, Options::default()).unwrap();
        // The port takes g + 4 G for each message but the last, which then takes o + L + 4 G + o.
        let held_up = f64::from(7 * per_node - 1) * 5.0;
        assert_eq!(outcome.seconds, held_up + 14.0, "{per_node}");
    }
}

#[test]
fn a_port_that_is_wider_than_a_rank_is_filled_by_several() {
    let wide = LogGpCosts { gap: 1.0, gap_per_byte: 0.25, ..FREE };
    // A rank starts a message of 5 bytes every 5 s, the port takes one every 2 s.
    for (per_node, expected) in [(1, 30.0), (2, 32.0), (3, 20.0 * 2.0)] {
        let nodes = NodesOfRanks::block(2, per_node);
        let call = Call::new(2 * per_node, 5);
        let outcome = simulate(&PAIRS, &call, &costs(&nodes, &wide), Options::default()).unwrap();
        assert_eq!(outcome.seconds, expected + 14.0, "{per_node}");
    }
}

#[test]
fn messages_cost_what_their_level_does() {
    // Ranks 0 and 1 are on node 0, ranks 2 and 3 on node 1. The root's sends of 5 bytes begin at 0
    // (inside: its port is busy for 2), 2 and 7; the last is taken in 1 + 10 + 2 + 1 later, the
    // first 1 + 1 + 1 + 1 later.
    let nodes = NodesOfRanks::block(2, 2);
    let linear = find(Collective::Scatter, Algorithm::Linear).unwrap();
    let outcome =
        simulate(linear, &Call::new(4, 5), &costs(&nodes, &ROUND), Options::default()).unwrap();
    assert_eq!(outcome.finish, [8.0, 4.0, 16.0, 21.0]);
    // Dealt in turn, rank 2 is at the root's side.
    let nodes = NodesOfRanks::cyclic(2, 2);
    let outcome =
        simulate(linear, &Call::new(4, 5), &costs(&nodes, &ROUND), Options::default()).unwrap();
    assert_eq!(outcome.finish, [8.0, 14.0, 9.0, 21.0]);
}

#[test]
fn two_nodes_that_send_to_a_third_share_its_incoming_port() {
    // Ranks 0 and 1 receive on node 0, from ranks 2 and 3, each alone on its node.
    let nodes = NodesOfRanks::new(&[0, 0, 1, 2]);
    let entry = Entry::new::<Pairs<1>>(Collective::Bcast, Algorithm::Linear, "two pairs");
    let turned = NodesOfRanks::new(&[1, 2, 0, 0]);
    let outcome =
        simulate(&entry, &Call::new(4, 5), &costs(&turned, &ROUND), Options::default()).unwrap();
    assert_eq!(outcome.finish, [1.0, 1.0, 14.0, 19.0]);
    // The other way round they leave one after the other.
    let outcome =
        simulate(&entry, &Call::new(4, 5), &costs(&nodes, &ROUND), Options::default()).unwrap();
    assert_eq!(outcome.finish, [1.0, 1.0, 14.0, 19.0]);
}

#[test]
fn a_rendezvous_keeps_its_sender_until_the_nodes_port_has_taken_it() {
    let nodes = NodesOfRanks::block(2, 2);
    let entry = Entry::new::<Pairs<1>>(Collective::Bcast, Algorithm::Linear, "two pairs");
    let options = Options { rendezvous_bytes: Some(0), handshake: Some(0.0), ..Options::default() };
    let outcome = simulate(&entry, &Call::new(4, 5), &costs(&nodes, &ROUND), options).unwrap();
    // Both are agreed at 1; they leave at 1 and 6 and free the buffers 5 later.
    assert_eq!(outcome.finish, [6.0, 11.0, 14.0, 19.0]);
}

#[test]
fn costs_of_other_ranks_are_refused() {
    let nodes = NodesOfRanks::block(2, 2);
    let error = simulate(&PAIRS, &Call::new(6, 5), &costs(&nodes, &ROUND), Options::default());
    assert!(error.unwrap_err().to_string().contains("4 ranks on their nodes for a call of 6"));
}

/// Relative difference of two times.
fn apart(a: f64, b: f64) -> f64 {
    (a - b).abs() / a.max(b).max(1e-300)
}

pub(super) fn places(counts: &[u64]) -> Vec<u64> {
    let mut end = 0;
    let place = |count: &u64| {
        end += count;
        end - count
    };
    counts.iter().map(place).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// One rank on each node, or nodes whose ports hold nobody up: what there is without nodes.
    #[test]
    fn nodes_that_share_nothing_change_nothing(
        labels in prop::collection::vec(0_u64..6, 2..24), root in 0_u32..24, count in 1_u64..40,
        segment in 0_u64..9, rendezvous: bool,
    ) {
        let ranks = labels.len() as u32;
        let counts = vec![count; ranks as usize];
        let displacements = places(&counts);
        let options = Options { rendezvous_bytes: rendezvous.then_some(9), ..Options::default() };
        let (alone, together) = (NodesOfRanks::block(ranks, 1), NodesOfRanks::new(&labels));
        let same = NodeCosts { nodes: &alone, inside: &INSIDE, between: &ROUND, port: &ROUND };
        let free = NodeCosts { nodes: &together, inside: &ROUND, between: &ROUND, port: &FREE };
        for entry in ENTRIES {
            let call = Call {
                root: root % ranks, segment, counts: &counts, displacements: &displacements,
                ..Call::new(ranks, count)
            };
            if entry.check(&call).is_err() {
                continue;
            }
            let flat = simulate(entry, &call, &ROUND, options).unwrap();
            for levelled in [
                simulate(entry, &call, &same, options).unwrap(),
                simulate(entry, &call, &free, options).unwrap(),
            ] {
                let worst = flat.finish.iter().zip(&levelled.finish).map(|(a, b)| apart(*a, *b));
                prop_assert!(worst.fold(0.0, f64::max) < 1e-9, "{:?}: {:?} {:?}", entry, flat, levelled);
            }
        }
    }

    /// No schedule ends before the port of some node has taken all that leaves or enters it.
    #[test]
    fn a_shared_port_takes_its_time(
        labels in prop::collection::vec(0_u64..5, 2..20), count in 1_u64..40, segment in 0_u64..9,
    ) {
        let nodes = NodesOfRanks::new(&labels);
        let ranks = labels.len() as u32;
        let counts = vec![count; ranks as usize];
        let displacements = places(&counts);
        for entry in ENTRIES {
            let call = Call {
                segment, counts: &counts, displacements: &displacements, ..Call::new(ranks, count)
            };
            if entry.check(&call).is_err() {
                continue;
            }
            let (mut leave, mut enter) = ([0.0; 5], [0.0; 5]);
            let shared = costs(&nodes, &ROUND);
            let observe = |activity: Activity| {
                if let ActivityKind::Send { to } = activity.kind
                    && nodes.node_of(to) != nodes.node_of(activity.rank)
                {
                    leave[nodes.node_of(activity.rank) as usize] += ROUND.gap(activity.bytes, 1);
                    enter[nodes.node_of(to) as usize] += ROUND.gap(activity.bytes, 1);
                }
            };
            let outcome = Simulator::new().run_observed(entry, &call, &shared, Options::default(), observe).unwrap();
            let port = leave.iter().chain(&enter).fold(0.0_f64, |most, time| most.max(*time));
            // The last message flies for longer than it takes the port.
            prop_assert!(outcome.seconds * (1.0 + 1e-9) >= port, "{:?} {:?}: {}", entry, outcome, port);
        }
    }
}
