//! Every algorithm with every one of its steps spoilt in turn: the checker must notice each.

use records::{Algorithm, Collective};

use super::{super::*, broken::Broken};
use crate::{Buffer, ENTRIES, Entry, NODE_AWARE, NodesOfRanks, OperandOrder, Range, Step};

/// How a step may be wrong.
#[derive(Debug, Clone, Copy)]
enum Mutation {
    /// It is left out.
    Dropped,
    /// A message goes to, or is awaited from, another rank.
    Misled,
    /// What is sent, received, copied or combined lies an element further.
    Shifted,
    /// The operands change places.
    Reversed,
}

const MUTATIONS: [Mutation; 4] =
    [Mutation::Dropped, Mutation::Misled, Mutation::Shifted, Mutation::Reversed];

fn shifted(range: Range) -> Range {
    Range { start: range.start + 1, ..range }
}

impl Mutation {
    /// The step as it becomes, if it is one of those that this can befall.
    fn of(self, step: Step, rank: u32, ranks: u32) -> Option<Option<Step>> {
        let other = |peer: u32| (1..ranks).map(|by| (peer + by) % ranks).find(|peer| *peer != rank);
        let has_data = |range: Range| range.count > 0;
        match (self, step) {
            // The root of a scatterv copies some counts that it tells nobody.
            (_, Step::Copy { source: Range { buffer: Buffer::Counts, .. }, .. }) => None,
            (Mutation::Dropped, _) => Some(None),
            (Mutation::Misled, Step::Send { peer, slot, range }) => {
                Some(Some(Step::Send { peer: other(peer)?, slot, range }))
            }
            (Mutation::Misled, Step::Receive { peer, slot, range }) => {
                Some(Some(Step::Receive { peer: other(peer)?, slot, range }))
            }
            (Mutation::Shifted, Step::Send { peer, slot, range }) if has_data(range) => {
                Some(Some(Step::Send { peer, slot, range: shifted(range) }))
            }
            (Mutation::Shifted, Step::Receive { peer, slot, range }) if has_data(range) => {
                Some(Some(Step::Receive { peer, slot, range: shifted(range) }))
            }
            (Mutation::Shifted, Step::Copy { source, into }) => {
                Some(Some(Step::Copy { source: shifted(source), into }))
            }
            (Mutation::Shifted, Step::Combine { source, into, order }) => {
                Some(Some(Step::Combine { source, into: shifted(into), order }))
            }
            (Mutation::Reversed, Step::Combine { source, into, order }) => {
                let order = match order {
                    OperandOrder::SourceFirst => OperandOrder::IntoFirst,
                    OperandOrder::IntoFirst => OperandOrder::SourceFirst,
                };
                Some(Some(Step::Combine { source, into, order }))
            }
            _ => None,
        }
    }
}

/// Of ranks that are no power of two, some are told totals in a scan that they tell nobody.
fn is_told_in_vain(entry: &Entry, ranks: u32, step: &Step) -> bool {
    let is_total = |range: &Range| range.buffer == Buffer::Temporary;
    matches!(entry.collective, Collective::Scan | Collective::Exscan)
        && entry.algorithm == Algorithm::RecursiveDoubling
        && !ranks.is_power_of_two()
        && matches!(step, Step::Combine { into, .. } if is_total(into))
}

/// A phase in place copies some blocks onto what they are.
fn is_there_already(entry: &Entry, mutation: Mutation, step: &Step) -> bool {
    let is_dropped_copy = matches!((mutation, step), (Mutation::Dropped, Step::Copy { .. }));
    entry.is_node_aware() && is_dropped_copy
}

/// The place of every step of every rank: rank, round, index.
fn places(entry: &Entry, call: &Call<'_>) -> Vec<(u32, u64, usize)> {
    let places = std::cell::RefCell::new(Vec::new());
    let change = |rank, round, steps: Vec<Step>| {
        // A round is made again after a wait.
        let new = (0..steps.len()).map(|index| (rank, round, index));
        places.borrow_mut().extend(new);
        steps
    };
    let all = || ENTRIES.iter().chain(NODE_AWARE);
    let entry = all().find(|known| std::ptr::eq(*known, entry)).unwrap();
    assert!(check(&Broken { entry, change }, call).is_ok(), "{entry:?} unbroken");
    let mut places = places.into_inner();
    places.sort_unstable();
    places.dedup();
    places
}

/// Spoils every step of a call in turn; how many there were, and what nobody noticed.
fn spoil(entry: &'static Entry, call: &Call<'_>, survivors: &mut Vec<String>) -> u32 {
    let (mut mutants, ranks) = (0, call.ranks);
    for (who, when, index) in places(entry, call) {
        for mutation in MUTATIONS {
            if call.commutative && matches!(mutation, Mutation::Reversed) {
                continue;
            }
            // The root of a broadcast has what it is sent, and sends what it has.
            let is_for_root = |step: &Step| {
                let root = (entry.collective == Collective::Bcast).then_some(call.root);
                root == Some(who) || matches!(step, Step::Send { peer, .. } if root == Some(*peer))
            };
            let befallen = std::cell::Cell::new(None);
            let change = |rank, round, mut steps: Vec<Step>| {
                if (rank, round) == (who, when)
                    && let Some(step) = steps.get(index).copied()
                    && !is_there_already(entry, mutation, &step)
                    && !is_told_in_vain(entry, ranks, &step)
                    && !(matches!(mutation, Mutation::Shifted) && is_for_root(&step))
                    && let Some(became) = mutation.of(step, rank, ranks)
                {
                    befallen.set(Some(step));
                    steps.splice(index..=index, became);
                }
                steps
            };
            let checked = check(&Broken { entry, change }, call);
            if let Some(step) = befallen.get() {
                mutants += 1;
                if checked.is_ok() {
                    survivors.push(format!(
                        "{entry:?} on {ranks}: {mutation:?} {step:?} of rank {who}, round {when}"
                    ));
                }
            }
        }
    }
    mutants
}

#[test]
fn every_step_of_a_node_aware_algorithm_that_goes_wrong_is_noticed() {
    let (mut mutants, mut survivors) = (0, Vec::new());
    // Two nodes with three ranks each, three with two; shares are whole, so that nothing is filled.
    for (entry, number) in NODE_AWARE.iter().zip(0_u32..) {
        let nodes = if number.is_multiple_of(2) {
            NodesOfRanks::cyclic(2, 3)
        } else {
            NodesOfRanks::cyclic(3, 2)
        };
        let count = match entry.collective {
            Collective::Barrier => 0,
            _ if entry.segmented => 12,
            _ => 2,
        };
        let call = Call {
            root: 1 + number % 4,
            segment: 6,
            nodes: Some(&nodes),
            in_place: entry.collective != Collective::Scatter && number.is_multiple_of(3),
            ..Call::new(6, count)
        };
        mutants += spoil(entry, &call, &mut survivors);
        // These are no phases.
        let is_rooted = matches!(entry.collective, Collective::Bcast | Collective::Reduce);
        if is_rooted && entry.algorithm == Algorithm::TwoLevel {
            let call = Call { inter: Some(Algorithm::TwoTrees), segment: 3, ..call };
            mutants += spoil(entry, &call, &mut survivors);
        }
    }
    assert!(survivors.is_empty(), "{} of {mutants}: {survivors:#?}", survivors.len());
    assert!(mutants > 2000, "{mutants}");
}

#[test]
fn every_step_that_goes_wrong_is_noticed() {
    let (counts, displacements) = ([2, 1, 0, 3, 2, 1], [0, 3, 5, 5, 9, 12]);
    let (mut mutants, mut survivors) = (0, Vec::new());
    for entry in ENTRIES {
        for ranks in [2, 5, 6] {
            if entry.requirements.even && ranks % 2 == 1 {
                continue;
            }
            let (counts, displacements) =
                (&counts[..ranks as usize], &displacements[..ranks as usize]);
            // Blocks that follow each other, as reduce_scatter wants them.
            let ends: Vec<u64> = counts
                .iter()
                .scan(0, |end, count| {
                    *end += count;
                    Some(*end - count)
                })
                .collect();
            let scattered = entry.collective == Collective::ReduceScatter;
            let call = Call {
                root: 1,
                segment: 2,
                fan_out: 2,
                commutative: entry.requirements.commutative,
                counts,
                displacements: if scattered { &ends } else { displacements },
                ..Call::new(ranks, if entry.collective == Collective::Barrier { 0 } else { 5 })
            };
            mutants += spoil(entry, &call, &mut survivors);
        }
    }
    assert!(survivors.is_empty(), "{} of {mutants}: {survivors:#?}", survivors.len());
    assert!(mutants > 10_000, "{mutants}");
}
