//! Algorithms of shared memory with a step spoilt: some sequence of calls must notice each.

use records::Collective;

use super::{
    super::{shared::Depths, *},
    broken::Broken,
};
use crate::{
    Buffer, Entry, NODE_AWARE, NodesOfRanks, OperandOrder, Range, Round, SHARED, Step, parts,
    shared::{LINE_DEPTH, SHARED_DEPTH, min_elements},
};

/// How a step may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    /// It is left out.
    Dropped,
    /// One value, or one turn, less is awaited.
    TooLittle,
    /// It changes places with the step before it.
    Early,
    /// A rank says that it knows of all that they have begun.
    Claimed,
    /// What is copied or combined lies an element further.
    Shifted,
    /// The operands change places.
    Reversed,
}

const MUTATIONS: [Mutation; 6] = [
    Mutation::Dropped,
    Mutation::TooLittle,
    Mutation::Early,
    Mutation::Claimed,
    Mutation::Shifted,
    Mutation::Reversed,
];

/// A step of a call: whose, and where.
#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u32,
    round: u64,
    index: usize,
    step: Step,
    /// The step before it, and the length of the round where that is, if it is another one.
    before: Option<(Step, Option<usize>)>,
}

fn places(entry: &Entry, call: &Call<'_>) -> Vec<Place> {
    let (mut places, mut made) = (Vec::new(), Round::default());
    for rank in 0..call.ranks {
        let known = crate::entry::known_to(entry.collective, call, rank);
        let (mut round, mut before, mut length) = (0, None, 0);
        while entry.round(&known, rank, round, &mut made) {
            for (index, step) in made.steps().iter().copied().enumerate() {
                let before_it = before.map(|step| (step, (index == 0).then_some(length)));
                places.push(Place { rank, round, index, step, before: before_it });
                before = Some(step);
            }
            (round, length) = (round + 1, made.steps().len());
            // No step may go further back than one round.
            before = before.filter(|_| length > 0);
        }
    }
    places
}

/// Whether a signal may just as well come before the step: it does nothing that the signal tells of.
fn is_private(step: Step, rank: u32) -> bool {
    let is_others = |range: Range| match range.buffer {
        Buffer::Shared { owner, .. } | Buffer::Line { owner, .. } => owner != rank,
        _ => false,
    };
    let is_shared =
        |range: Range| matches!(range.buffer, Buffer::Shared { .. } | Buffer::Line { .. });
    match step {
        Step::Copy { source, into } | Step::Combine { source, into, .. } => {
            !is_others(source) && !is_shared(into)
        }
        Step::Signal { .. } | Step::AwaitFinished { .. } => true,
        _ => false,
    }
}

/// A rank need not look whether others await its signals.
fn is_told_to_nobody(place: &Place, places: &[Place]) -> bool {
    let Step::Signal { flag, value, .. } = place.step else { return false };
    let awaits = |other: &Place| match other.step {
        Step::Await { rank, flag: awaited, value: least, .. } => {
            (rank, awaited, least) == (place.rank, flag, value)
        }
        Step::AwaitAll { flag: awaited, value: least, .. } => {
            other.rank != place.rank && (awaited, least) == (flag, value)
        }
        _ => false,
    };
    !places.iter().any(awaits)
}

impl Place {
    /// The steps of a round as the mutation leaves them.
    fn spoil(&self, mutation: Mutation, rank: u32, round: u64, mut steps: Vec<Step>) -> Vec<Step> {
        if rank != self.rank || (round != self.round && round + 1 != self.round) {
            return steps;
        }
        match (mutation, self.before) {
            (Mutation::Early, Some((_, Some(length)))) if round < self.round => {
                steps.insert(length - 1, self.step);
            }
            _ if round < self.round => {}
            (Mutation::Early, Some((_, Some(_)))) | (Mutation::Dropped, _) => {
                steps.remove(self.index);
            }
            (Mutation::Early, _) => steps.swap(self.index - 1, self.index),
            _ => {
                steps[self.index] = match self.step {
                    Step::Await { rank, flag, turn, value } => {
                        Step::Await { rank, flag, turn, value: value - 1 }
                    }
                    Step::AwaitAll { flag, turn, value } => {
                        Step::AwaitAll { flag, turn, value: value - 1 }
                    }
                    Step::AwaitFinished { turn, depth } => {
                        Step::AwaitFinished { turn, depth: depth + 1 }
                    }
                    Step::Finish { turn, .. } => Step::Finish { turn, all_have_begun: true },
                    Step::Copy { source, into } => {
                        Step::Copy { source: Range { start: source.start + 1, ..source }, into }
                    }
                    Step::Combine { source, into, .. } if mutation == Mutation::Reversed => {
                        Step::Combine { source, into, order: OperandOrder::IntoFirst }
                    }
                    Step::Combine { source, into, order } => {
                        let source = Range { start: source.start + 1, ..source };
                        Step::Combine { source, into, order }
                    }
                    other => other,
                };
            }
        }
        steps
    }

    /// Whether the mutation can befall the step, and does some harm then.
    fn is_spoilt_by(&self, mutation: Mutation, ranks: u32) -> bool {
        match (mutation, self.step) {
            (
                Mutation::Dropped,
                Step::Signal { .. } | Step::Await { .. } | Step::AwaitAll { .. },
            )
            | (Mutation::Dropped | Mutation::TooLittle, Step::AwaitFinished { .. })
            | (Mutation::Dropped, Step::Finish { .. } | Step::Copy { .. } | Step::Combine { .. })
            | (Mutation::Shifted, Step::Copy { .. } | Step::Combine { .. })
            | (Mutation::Reversed, Step::Combine { .. })
            | (Mutation::Claimed, Step::Finish { all_have_begun: false, .. }) => true,
            (Mutation::TooLittle, Step::Await { value, .. } | Step::AwaitAll { value, .. }) => {
                value > 1
            }
            // Two ranks meet in a barrier whoever signals first.
            (Mutation::Early, Step::Signal { .. })
                if self.before.is_some_and(|(before, _)| {
                    matches!(before, Step::Await { .. } | Step::AwaitAll { .. })
                }) && ranks == 2 =>
            {
                false
            }
            (Mutation::Early, Step::Signal { .. } | Step::Finish { .. }) => {
                self.before.is_some_and(|(before, _)| !is_private(before, self.rank))
            }
            _ => false,
        }
    }
}

type Sequence<'a> = Vec<(&'a dyn CheckedSchedule, Call<'a>)>;

/// A call that takes a turn and tells nobody anything.
fn nothing(call: Call<'_>) -> Call<'_> {
    Call { count: 0, ..call }
}

/// Sequences in which a call comes, so that all memory that it uses was used before by others, and is
/// used again by others.
fn sequences<'a>(
    spoilt: &'a dyn CheckedSchedule,
    call: Call<'a>,
    others: &[(&'static Entry, Call<'a>)],
) -> Vec<Sequence<'a>> {
    let again = |number: u32| (0..number).map(|_| (spoilt, call)).collect::<Sequence<'_>>();
    let mut sequences = vec![again(1), again(SHARED_DEPTH + 1), again(LINE_DEPTH + 2)];
    let bcast: &'static Entry = &SHARED[1];
    let gap = |length: u32| {
        (1..length).map(|_| (bcast as &dyn CheckedSchedule, nothing(call))).collect::<Vec<_>>()
    };
    for (entry, other) in others {
        for depth in [1, SHARED_DEPTH, LINE_DEPTH - 1, LINE_DEPTH] {
            let other = (*entry as &dyn CheckedSchedule, *other);
            let mut sequence = vec![other];
            sequence.extend(gap(depth));
            sequence.push((spoilt, call));
            sequence.extend(gap(depth));
            sequence.push(other);
            sequences.push(sequence);
        }
    }
    sequences
}

/// A short and a long call of each algorithm, by the first, second and last root.
fn calls<'a>(ranks: u32, line: u64) -> Vec<(&'static Entry, Call<'a>)> {
    let shared = min_elements(ranks) + 1;
    let base = Call { shared, line, fan_out: 0, commutative: false, ..Call::new(ranks, 0) };
    let mut calls = Vec::new();
    for entry in SHARED {
        let in_place = entry.collective != Collective::Scatter;
        let counts = match entry.collective {
            Collective::Barrier => vec![0],
            _ if entry.segmented => vec![2, 4 * u64::from(ranks) + 1],
            // Three chunks at least, which are as large as their place.
            Collective::Allgather | Collective::Gather => vec![2, shared + 3],
            _ => vec![2, 5],
        };
        let roots = if entry.collective.is_rooted() { vec![0, 1, ranks - 1] } else { vec![0] };
        if entry.fanned {
            calls.push((entry, Call { fan_out: 2, ..base }));
            calls.push((entry, Call { fan_out: 3, ..base }));
        }
        for root in roots {
            for count in &counts {
                let segment = if entry.segmented { u64::from(ranks) } else { 0 };
                let call = Call { root, count: *count, segment, ..base };
                calls.push((entry, call));
                if in_place && entry.collective.combines() && *count < 9 {
                    calls.push((entry, Call { in_place, ..call }));
                }
            }
        }
    }
    calls
}

#[test]
fn every_step_that_goes_wrong_is_noticed_in_some_sequence() {
    let (mut mutants, mut survivors) = (0, Vec::new());
    for (ranks, line) in [(2, 2), (3, 3), (4, 0), (5, 2), (6, 1), (7, 0), (8, 2)] {
        let all = calls(ranks, line);
        for (entry, call) in &all {
            let places = places(entry, call);
            for place in &places {
                if is_told_to_nobody(place, &places) {
                    continue;
                }
                for mutation in MUTATIONS.into_iter().filter(|one| place.is_spoilt_by(*one, ranks))
                {
                    let change = |rank, round, steps| place.spoil(mutation, rank, round, steps);
                    let spoilt = Broken { entry, change };
                    let is_caught =
                        |sequence: &Sequence<'_>| check_sequence(sequence, Order::Ranks).is_err();
                    mutants += 1;
                    if !sequences(&spoilt, *call, &all).iter().any(is_caught) {
                        let (count, root) = (call.count, call.root);
                        survivors.push(format!(
                            "{entry:?} of {count} on {ranks}, root {root}, line {line}: {mutation:?} {place:?}"
                        ));
                    }
                }
            }
        }
    }
    assert!(survivors.is_empty(), "{} of {mutants}: {survivors:#?}", survivors.len());
    assert!(mutants > 5000, "{mutants}");
}

/// Whether it takes more than what fits beside a flag.
fn is_long(entry: &Entry, call: &Call<'_>) -> bool {
    let is_line = |range: Range| matches!(range.buffer, Buffer::Line { .. });
    let takes_line = |place: &Place| matches!(place.step, Step::Copy { source, into } if is_line(source) || is_line(into));
    !places(entry, call).iter().any(takes_line)
}

/// Rings and places that have fewer parts than the algorithms take them for.
#[test]
fn memory_that_is_used_again_too_early_is_noticed() {
    let fewer = |line, shared| Depths { line, shared };
    let depths = [fewer(LINE_DEPTH - 1, SHARED_DEPTH), fewer(LINE_DEPTH, SHARED_DEPTH - 1)];
    for (ranks, line) in [(3, 2), (4, 2), (8, 2)] {
        let all = calls(ranks, line);
        for (entry, call) in all.iter().filter(|(_, call)| call.count > 0) {
            let unspoilt = *entry as &dyn CheckedSchedule;
            let is_long = is_long(entry, call);
            let depths = depths[usize::from(is_long)];
            let is_caught = |calls: &Sequence<'_>| check_in(calls, Order::Ranks, depths).is_err();
            assert!(sequences(unspoilt, *call, &all).iter().any(is_caught), "{entry:?} {call:?}");
            // There is one place, or one cell.
            let is_bcast = entry.collective == Collective::Bcast;
            let half = if is_bcast { call.segment } else { call.shared / 2 };
            let place = |range: Range| match range.buffer {
                Buffer::Shared { .. } => Range { start: range.start % half, ..range },
                _ => range,
            };
            let change = |_, _, steps: Vec<Step>| {
                let placed = |step| match step {
                    Step::Copy { source, into } => {
                        Step::Copy { source: place(source), into: place(into) }
                    }
                    Step::Combine { source, into, order } => {
                        Step::Combine { source: place(source), into: place(into), order }
                    }
                    other => other,
                };
                steps.into_iter().map(placed).collect()
            };
            let fault = check(&Broken { entry, change }, call);
            // Who takes all results of an allreduce knows that all operands of the chunk have been read.
            let needs_both = is_long && entry.collective != Collective::Allreduce;
            assert_eq!(fault.is_err(), needs_both, "{entry:?} {call:?} {fault:?}");
        }
    }
}

/// Of compositions: each wait for a flag. What a part awaits of turns before it, messages may tell already.
#[test]
fn every_flag_awaited_inside_nodes_is_needed() {
    let (mut mutants, mut survivors) = (0, Vec::new());
    let layouts = [(NodesOfRanks::cyclic(2, 3), 2), (NodesOfRanks::new(&[0, 0, 0, 1, 1]), 0)];
    let with_parts = layouts.iter().flat_map(|(nodes, line)| {
        let of_entry = move |entry: &'static Entry| {
            let is_inside = move |part: &&Entry| parts(entry).1.contains(&part.collective);
            let call_with = move |part: &Entry| Call {
                root: 1,
                segment: 6,
                intra: Some(part.algorithm),
                shared: min_elements(nodes.most()) + 1,
                line: *line,
                nodes: Some(nodes),
                ..Call::new(nodes.ranks(), if entry.segmented { 12 } else { 2 })
            };
            SHARED.iter().filter(is_inside).map(move |part| (entry, call_with(part)))
        };
        NODE_AWARE.iter().flat_map(of_entry)
    });
    for (entry, call) in with_parts {
        for place in places(entry, &call) {
            let waits = matches!(place.step, Step::Await { .. } | Step::AwaitAll { .. });
            for mutation in [Mutation::Dropped, Mutation::TooLittle] {
                if !waits || !place.is_spoilt_by(mutation, call.ranks) {
                    continue;
                }
                let change = |rank, round, steps| place.spoil(mutation, rank, round, steps);
                let spoilt = Broken { entry, change };
                let sequence = vec![(&spoilt as &dyn CheckedSchedule, call); 4];
                mutants += 1;
                if check_sequence(&sequence, Order::Ranks).is_ok() {
                    survivors.push(format!("{entry:?} {call:?}: {mutation:?} {place:?}"));
                }
            }
        }
    }
    assert!(survivors.is_empty(), "{} of {mutants}: {survivors:#?}", survivors.len());
    assert!(mutants > 1000, "{mutants}");
}
