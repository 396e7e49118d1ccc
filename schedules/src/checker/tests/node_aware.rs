//! Every node-aware algorithm, for many nodes with many ranks.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::super::*;
use crate::{
    Call, Entry, NODE_AWARE, NodesOfRanks, find_node_aware, find_part, of_collective, parts,
};

/// Nodes 1 to 6 with 1 to 5 ranks each, filled one after the other or in turn, and unequal ones.
fn layouts() -> Vec<NodesOfRanks> {
    let even = (1..=6).flat_map(|nodes| (1..=5).map(move |per_node| (nodes, per_node)));
    let even = even.flat_map(|(nodes, per_node)| {
        [NodesOfRanks::block(nodes, per_node), NodesOfRanks::cyclic(nodes, per_node)]
    });
    let uneven: [&[u64]; 7] = [
        &[0, 0, 0, 0, 1],
        &[0, 1, 1, 1],
        &[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
        &[0, 1, 2, 0, 1, 2, 0, 1, 0],
        &[3, 3, 1, 1, 1, 0],
        &[0, 1, 1, 0, 0, 2, 1, 3, 3, 3, 3],
        &[1, 0, 0, 1, 2, 2, 0, 1],
    ];
    even.chain(uneven.map(NodesOfRanks::new)).collect()
}

/// (count, segment)
fn sizes(entry: &Entry, per_node: u64) -> Vec<(u64, u64)> {
    match (entry.collective, entry.segmented) {
        (Collective::Barrier, _) => vec![(0, 0)],
        (_, true) => vec![(0, 0), (1, 0), (2 * per_node, 0), (3 * per_node + 1, per_node + 1)],
        (_, false) => vec![(0, 0), (1, 0), (3, 0)],
    }
}

/// All algorithms that a phase can take, one after the other; sometimes none is named.
fn named(collectives: &[Collective], number: usize) -> Option<Algorithm> {
    let all: Vec<Algorithm> = collectives
        .iter()
        .flat_map(|collective| of_collective(*collective))
        .map(|entry| entry.algorithm)
        .collect();
    all.get(number % (all.len() + 1)).copied()
}

#[test]
fn every_node_aware_algorithm_is_right_on_many_layouts() {
    let (mut number, mut served) = (0_usize, 0);
    for nodes in layouts() {
        let ranks = nodes.ranks();
        for entry in NODE_AWARE {
            let (between, inside) = parts(entry);
            let roots =
                if entry.collective.is_rooted() { vec![0, ranks / 2, ranks - 1] } else { vec![0] };
            for root in roots {
                for (count, segment) in sizes(entry, u64::from(nodes.most())) {
                    number += 1;
                    let call = Call {
                        root,
                        segment,
                        in_place: number.is_multiple_of(2),
                        commutative: !number.is_multiple_of(3) || !entry.collective.combines(),
                        nodes: Some(&nodes),
                        inter: named(between, number / 2),
                        intra: named(inside, number / 3),
                        ..Call::new(ranks, count)
                    };
                    if entry.check(&call).is_ok() {
                        served += 1;
                        if let Err(fault) = check(entry, &call) {
                            panic!("{entry:?} {call:?}: {fault}");
                        }
                    }
                }
            }
        }
    }
    assert!(served > number / 5 * 4, "{served} of {number} served");
}

/// Two trees of leaders: with many segments, few, and one, from each rank.
#[test]
fn trees_of_leaders_are_right_on_many_layouts() {
    for collective in [Collective::Bcast, Collective::Reduce] {
        let entry = find_node_aware(collective, Algorithm::TwoLevel).unwrap();
        for nodes in layouts() {
            for root in 0..nodes.ranks() {
                for (count, segment) in [(0, 0), (1, 0), (7, 0), (2, 1), (5, 2), (60, 1), (61, 4)] {
                    let call = Call {
                        root,
                        segment,
                        in_place: (root + count as u32).is_multiple_of(2),
                        nodes: Some(&nodes),
                        inter: Some(Algorithm::TwoTrees),
                        ..Call::new(nodes.ranks(), count)
                    };
                    check(entry, &call).unwrap_or_else(|fault| panic!("{call:?}: {fault}"));
                }
            }
        }
    }
}

/// The port of each node is busy all the time, while segments as phases of pipelines and of two
/// trees wait.
#[test]
fn trees_of_leaders_take_little_longer_than_the_port() {
    use crate::simulator::{LogGpCosts, NodeCosts, Options, simulate};
    let level = |latency, gap_per_byte| LogGpCosts {
        latency,
        overhead: 0.0,
        gap: 0.0,
        gap_per_byte,
        combine_per_byte: 0.0,
    };
    let (between, inside) = (level(100.0, 1.0), level(10.0, 0.1));
    let layouts = [NodesOfRanks::block(8, 4), NodesOfRanks::cyclic(16, 8)];
    let all = [Collective::Bcast, Collective::Reduce];
    for (collective, nodes) in all.iter().flat_map(|one| layouts.iter().map(move |it| (*one, it))) {
        let entry = find_node_aware(collective, Algorithm::TwoLevel).unwrap();
        let costs = NodeCosts { nodes, inside: &inside, between: &between, port: &between };
        let (bytes, segment) = (1 << 17, 1 << 10);
        let of_port = |inter, intra| {
            let call = Call {
                segment,
                nodes: Some(nodes),
                inter: Some(inter),
                intra,
                ..Call::new(nodes.ranks(), bytes)
            };
            simulate(entry, &call, &costs, Options::default()).unwrap().seconds / bytes as f64
        };
        let trees = of_port(Algorithm::TwoTrees, None);
        let pipeline = of_port(Algorithm::Pipeline, None);
        let phases = of_port(Algorithm::TwoTrees, Some(Algorithm::Linear));
        let told = format!("{collective}: {trees} {pipeline} {phases}");
        assert!(trees < 1.2 && trees < 0.95 * pipeline && trees < 0.7 * phases, "{told}");
    }
}

/// Executors give it no buffer.
#[test]
fn a_broadcast_to_nobody_touches_nothing() {
    let nodes = NodesOfRanks::block(1, 1);
    for entry in NODE_AWARE.iter().filter(|entry| entry.collective == Collective::Bcast) {
        let call = Call { segment: 2, nodes: Some(&nodes), ..Call::new(1, 5) };
        let mut round = crate::Round::default();
        for index in 0..entry.needs(&call, 0).rounds {
            entry.round(&call, 0, index, &mut round);
            assert_eq!(round.steps(), [], "{entry:?}");
        }
    }
}

/// A rank that is not the root lacks the buffer in which the root receives.
#[test]
fn a_part_of_nothing_lies_in_no_buffer() {
    let nodes = NodesOfRanks::new(&[4, 4]);
    for entry in NODE_AWARE.iter().filter(|entry| entry.collective == Collective::Reduce) {
        let (inter, intra) = (Some(Algorithm::Binomial), Some(Algorithm::LinearReady));
        let call = Call { segment: 2, nodes: Some(&nodes), inter, intra, ..Call::new(2, 4) };
        assert!(entry.check(&call).is_err() || check(entry, &call).is_ok(), "{entry:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_node_aware_algorithm_is_right_on_any_layout(
        labels in prop::collection::vec(0_u64..6, 1..18), root in 0_u32..18, count in 0_u64..40,
        segment in 0_u64..20, number in 0_usize..1000, commutative: bool, in_place: bool,
    ) {
        let nodes = NodesOfRanks::new(&labels);
        let ranks = nodes.ranks();
        for entry in NODE_AWARE {
            let (between, inside) = parts(entry);
            let count = if entry.segmented { count } else { count % 4 };
            let call = Call {
                root: root % ranks, segment, commutative, in_place, nodes: Some(&nodes),
                inter: named(between, number), intra: named(inside, number / 7),
                ..Call::new(ranks, count)
            };
            if entry.check(&call).is_ok() {
                let checked = check(entry, &call);
                prop_assert!(checked.is_ok(), "{:?} {:?}: {:?}", entry, call, checked);
            }
        }
    }
}

#[test]
fn a_call_that_cannot_be_served_says_why() {
    let nodes = NodesOfRanks::cyclic(2, 2);
    let find = |collective, algorithm| find_node_aware(collective, algorithm).unwrap();
    let bcast = find(Collective::Bcast, Algorithm::TwoLevel);
    let reduce = find(Collective::Reduce, Algorithm::MultiLane);
    let ring = find(Collective::Allgather, Algorithm::NodeOrder);
    let known = Call { nodes: Some(&nodes), ..Call::new(4, 8) };
    let odd = NodesOfRanks::block(1, 3);
    for (entry, call, part) in [
        (bcast, Call::new(4, 8), "the nodes of the ranks are not known"),
        (bcast, Call { nodes: Some(&nodes), ..Call::new(5, 8) }, "the nodes of 4 ranks for 5"),
        (bcast, Call { fan_out: 1, ..known }, "fan-out 1; expected at least 2"),
        (reduce, Call { commutative: false, ..known }, "operands would change their order"),
        (
            ring,
            Call { inter: Some(Algorithm::NeighborExchange), nodes: Some(&odd), ..Call::new(3, 1) },
            "neighbor-exchange can't serve 3 ranks",
        ),
    ] {
        let error = entry.check(&call).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(bcast.check(&known), Ok(()));
    assert!(find_part(parts(bcast).0, Algorithm::Pipeline).is_some());
    assert!(find_part(parts(bcast).0, Algorithm::Bruck).is_none());
}

/// Bytes between nodes are what the methods are known for: each node's port carries no more.
#[test]
fn little_goes_between_nodes() {
    use crate::simulator::{Activity, ActivityKind, LogGpCosts, Options, Simulator};
    let costs = LogGpCosts {
        latency: 1.0,
        overhead: 0.0,
        gap: 0.0,
        gap_per_byte: 1.0,
        combine_per_byte: 0.0,
    };
    let (nodes, count) = (NodesOfRanks::cyclic(4, 3), 24);
    for (collective, algorithm, inter, most) in [
        (Collective::Bcast, Algorithm::TwoLevel, Algorithm::Pipeline, 24),
        (Collective::Bcast, Algorithm::TwoLevel, Algorithm::TwoTrees, 24),
        (Collective::Bcast, Algorithm::MultiLane, Algorithm::Pipeline, 24),
        (Collective::Bcast, Algorithm::NodeOrder, Algorithm::Pipeline, 24),
        (Collective::Reduce, Algorithm::TwoLevel, Algorithm::Pipeline, 24),
        (Collective::Reduce, Algorithm::TwoLevel, Algorithm::TwoTrees, 24),
        (Collective::Reduce, Algorithm::MultiLane, Algorithm::Pipeline, 24),
        (Collective::Reduce, Algorithm::NodeOrder, Algorithm::Pipeline, 24),
        (Collective::Allreduce, Algorithm::TwoLevel, Algorithm::Ring, 2 * 24 * 3 / 4),
        (Collective::Allreduce, Algorithm::MultiLane, Algorithm::Ring, 2 * 24 * 3 / 4),
        (Collective::Allgather, Algorithm::TwoLevel, Algorithm::Ring, 9 * 24),
        (Collective::Allgather, Algorithm::MultiLane, Algorithm::Ring, 9 * 24),
        // Ring neighbours on two nodes pass all blocks but one.
        (Collective::Allgather, Algorithm::NodeOrder, Algorithm::Ring, 11 * 24),
        (Collective::Gather, Algorithm::TwoLevel, Algorithm::Linear, 9 * 24),
        (Collective::Scatter, Algorithm::MultiLane, Algorithm::Linear, 9 * 24),
        (Collective::Alltoall, Algorithm::TwoLevel, Algorithm::Pairwise, 3 * 9 * 24),
        (Collective::Alltoall, Algorithm::MultiLane, Algorithm::Pairwise, 3 * 9 * 24),
    ] {
        let entry = find_node_aware(collective, algorithm).unwrap();
        let call =
            Call { nodes: Some(&nodes), inter: Some(inter), root: 5, ..Call::new(12, count) };
        let (mut leave, mut enter) = ([0; 4], [0; 4]);
        let observe = |activity: Activity| {
            if let ActivityKind::Send { to } = activity.kind
                && nodes.node_of(to) != nodes.node_of(activity.rank)
            {
                leave[nodes.node_of(activity.rank) as usize] += activity.bytes;
                enter[nodes.node_of(to) as usize] += activity.bytes;
            }
        };
        Simulator::new().run_observed(entry, &call, &costs, Options::default(), observe).unwrap();
        let busiest = leave.iter().chain(&enter).max();
        assert_eq!(busiest, Some(&most), "{entry:?}: {leave:?} {enter:?}");
    }
}
