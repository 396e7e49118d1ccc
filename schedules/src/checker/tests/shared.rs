//! Algorithms of ranks that share memory.

use proptest::prelude::*;
use records::Collective;

use super::super::*;
use crate::{Entry, NODE_AWARE, NodesOfRanks, SHARED, parts, shared::min_elements};

/// Every root up to 16 ranks, some above.
fn roots(entry: &Entry, ranks: u32) -> Vec<u32> {
    match (entry.collective.is_rooted(), ranks) {
        (false, _) => vec![0],
        (true, ..=16) => (0..ranks).collect(),
        (true, _) => vec![0, ranks / 2, ranks - 1],
    }
}

/// Elements that are shared and that fit beside a flag: as few as can be, so that all is used again and
/// again, odd numbers, and more than there are.
fn memories(ranks: u32) -> [(u64, u64); 4] {
    let least = min_elements(ranks);
    [(least, 0), (least + 1, 1), (3 * least + 2, 3), (1000, 12)]
}

/// Count and segment: none, one, about as many as fit beside a flag, several chunks.
fn sizes(entry: &Entry, ranks: u32, shared: u64, line: u64) -> Vec<(u64, u64)> {
    if entry.collective == Collective::Barrier {
        return vec![(0, 0)];
    }
    let counts = [0, 1, line, line + 1, 2 * u64::from(ranks) + 3, shared.min(100) + 5];
    let mut sizes: Vec<_> = counts.into_iter().map(|count| (count, 0)).collect();
    if entry.segmented {
        sizes.extend([(7, 1), (11, 3), (2 * u64::from(ranks) + 3, u64::from(ranks))]);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What [`Call::fan_out`] may be where it matters: one group, and groups of some ranks.
const FAN_OUTS: [u32; 5] = [0, 2, 3, 4, 16];

fn fan_outs(entry: &Entry) -> &'static [u32] {
    if entry.fanned { &FAN_OUTS } else { &FAN_OUTS[..1] }
}

fn check_on(ranks: u32) {
    for (entry, fan_out) in
        SHARED.iter().flat_map(|entry| fan_outs(entry).iter().map(move |&one| (entry, one)))
    {
        for (place, root) in (0_u32..).zip(roots(entry, ranks)) {
            for (shared, line) in memories(ranks) {
                for (number, (count, segment)) in (0..).zip(sizes(entry, ranks, shared, line)) {
                    let parity = (place + number + ranks + line as u32) % 4;
                    let call = Call {
                        root,
                        segment,
                        fan_out,
                        in_place: parity.is_multiple_of(2),
                        commutative: parity > 1,
                        shared,
                        line,
                        ..Call::new(ranks, count)
                    };
                    check(entry, &call)
                        .unwrap_or_else(|fault| panic!("{entry:?} {call:?}: {fault}"));
                }
            }
        }
    }
}

#[test]
fn every_shared_algorithm_is_right_on_few_ranks() {
    (1..=16).for_each(check_on);
}

#[test]
fn every_shared_algorithm_is_right_on_many_ranks() {
    [17, 24, 33, 64].into_iter().for_each(check_on);
}

const ORDERS: [Order; 4] = [Order::Ranks, Order::Reversed, Order::Random(1), Order::Random(2)];

type Sequence<'a> = Vec<(&'a dyn CheckedSchedule, Call<'a>)>;

fn check_in_all_orders(calls: &Sequence<'_>) -> Result<(), String> {
    for order in ORDERS {
        check_sequence(calls, order).map_err(|fault| {
            let called: Vec<_> = calls.iter().map(|(of, call)| (of.collective(), call)).collect();
            format!("{order:?} {fault} {called:#?}")
        })?;
    }
    Ok(())
}

/// What of a call may be anything.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    entry: usize,
    root: u32,
    count: u64,
    segment: u64,
    in_place: bool,
    commutative: bool,
}

impl Drawn {
    fn any() -> impl Strategy<Value = Drawn> {
        let count = prop_oneof![Just(0_u64), 1_u64..5, 5_u64..40];
        let flags = (any::<bool>(), any::<bool>());
        (0_usize..1000, 0_u32..1000, count, 0_u64..7, flags).prop_map(
            |(entry, root, count, segment, (in_place, commutative))| Drawn {
                entry,
                root,
                count,
                segment,
                in_place,
                commutative,
            },
        )
    }

    fn of<'a>(self, entries: &'a [Entry], call: Call<'a>) -> (&'a dyn CheckedSchedule, Call<'a>) {
        let entry = &entries[self.entry % entries.len()];
        let Drawn { count, segment, in_place, commutative, .. } = self;
        let (root, fan_out) =
            (self.root % call.ranks, FAN_OUTS[self.root as usize % FAN_OUTS.len()]);
        let fan_out = if entry.fanned { fan_out } else { call.fan_out };
        (entry, Call { root, count, segment, fan_out, in_place, commutative, ..call })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sequences_of_calls_are_right(
        ranks in 2_u32..9, more in 0_u64..30, line in 0_u64..6,
        drawn in prop::collection::vec(Drawn::any(), 2..13),
    ) {
        let call = Call { shared: min_elements(ranks) + more, line, ..Call::new(ranks, 0) };
        let calls: Sequence<'_> = drawn.iter().map(|drawn| drawn.of(SHARED, call)).collect();
        check_in_all_orders(&calls).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn sequences_of_calls_on_several_nodes_are_right(
        labels in prop::collection::vec(0_u64..3, 2..10), more in 0_u64..30, line in 0_u64..6,
        drawn in prop::collection::vec(Drawn::any(), 2..8), number in 0_usize..4,
    ) {
        let nodes = NodesOfRanks::new(&labels);
        let calls = node_aware(&nodes, more, line, number, &drawn);
        check_in_all_orders(&calls).map_err(TestCaseError::fail)?;
    }
}

/// Calls of compositions that share memory inside nodes, as far as they can be served.
fn node_aware<'a>(
    nodes: &'a NodesOfRanks,
    more: u64,
    line: u64,
    number: usize,
    drawn: &[Drawn],
) -> Sequence<'a> {
    let call = Call {
        shared: min_elements(nodes.most()) + more,
        line,
        nodes: Some(nodes),
        ..Call::new(nodes.ranks(), 0)
    };
    let with_part = |(place, drawn): (usize, &Drawn)| {
        let drawn = Drawn { commutative: drawn.commutative || !nodes.is_block(), ..*drawn };
        let (entry, call) =
            (&NODE_AWARE[drawn.entry % NODE_AWARE.len()], drawn.of(NODE_AWARE, call).1);
        let inside = parts(entry).1;
        let inside: Vec<_> =
            SHARED.iter().filter(|part| inside.contains(&part.collective)).collect();
        let intra = inside.get((place + number) % inside.len().max(1)).map(|part| part.algorithm);
        let call = Call { intra, ..call };
        entry.check(&call).is_ok().then_some((entry as &dyn CheckedSchedule, call))
    };
    drawn.iter().enumerate().filter_map(with_part).collect()
}

/// Every composition with every part of shared memory: in one pass and in several, of which the last is short.
#[test]
fn compositions_share_memory_inside_nodes() {
    let layouts = [
        NodesOfRanks::new(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]),
        NodesOfRanks::cyclic(2, 3),
        NodesOfRanks::block(3, 2),
        NodesOfRanks::new(&[0, 1, 0, 2, 0]),
        NodesOfRanks::block(1, 4),
        NodesOfRanks::block(3, 1),
    ];
    let (mut served, mut turns) = (0, 0);
    for nodes in &layouts {
        for entry in NODE_AWARE {
            let inside = parts(entry).1;
            for part in SHARED.iter().filter(|part| inside.contains(&part.collective)) {
                for (line, segment) in [(0, 4), (3, 0), (2, 9), (5, 2)] {
                    let sizes = [13_u64, 1, 0, 5, 20, 3, 8, 2, 9];
                    let call = |(root, count): (u32, u64)| Call {
                        root: root % nodes.ranks(),
                        segment,
                        in_place: root.is_multiple_of(2),
                        commutative: root % 3 != 1 || !nodes.is_block(),
                        nodes: Some(nodes),
                        intra: Some(part.algorithm),
                        shared: min_elements(nodes.most()) + u64::from(root) % 2 * 9,
                        line,
                        ..Call::new(nodes.ranks(), count)
                    };
                    let calls: Sequence<'_> = (0..)
                        .zip(sizes)
                        .map(call)
                        .filter(|call| entry.check(call).is_ok())
                        .map(|call| (entry as &dyn CheckedSchedule, call))
                        .collect();
                    served += calls.len();
                    turns += calls.iter().map(|(of, call)| of.needs(call, 0).turns).sum::<u64>();
                    check_in_all_orders(&calls)
                        .unwrap_or_else(|fault| panic!("{entry:?} {part:?}: {fault}"));
                }
            }
        }
    }
    assert!(served > 3000 && turns > 5000, "{served}, {turns}");
}
