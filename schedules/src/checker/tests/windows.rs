//! How far a sender is ahead of a receiver that is late.

use records::{Algorithm, Collective};

use super::super::*;
use crate::{ENTRIES, Entry, NODE_AWARE, NodesOfRanks, Round, Step, VARIANTS, WINDOW};

/// Messages that a sender may be ahead by beyond a window: those that it has slots for. The leaves of two trees
/// have most, in each tree 8 and 7 with which they begin.
const SLOTS: u64 = 2 * (8 + 7);

/// The most messages that a rank is ahead of the one that is late, whichever that is.
fn most_ahead_of_any(entry: &Entry, call: &Call<'_>) -> u64 {
    let ahead = |late| match most_ahead(entry, call, late) {
        Ok(messages) => messages as u64,
        Err(fault) => panic!("{entry:?} {call:?}, {late} late: {fault}"),
    };
    (0..call.ranks).map(ahead).max().unwrap()
}

/// Vectors of many segments; gatherv's two are no flow.
#[test]
fn a_sender_is_ahead_by_a_window_of_segments_at_most() {
    let variants = VARIANTS.iter().map(|(_, entry)| entry);
    let all = ENTRIES.iter().chain(variants).chain(NODE_AWARE);
    let is_flow = |entry: &&Entry| entry.segmented && entry.collective != Collective::Gatherv;
    let (mut checked, mut far) = (0, Vec::new());
    for entry in all.filter(is_flow) {
        for (ranks, inter) in [(2, None), (6, None), (9, None), (9, Some(Algorithm::TwoTrees))] {
            let nodes = NodesOfRanks::block(3, ranks / 3);
            let parts = match entry.algorithm {
                Algorithm::SegmentedRing => u64::from(ranks),
                _ => 2,
            };
            let segment = if entry.is_node_aware() { 2 } else { 1 };
            let call = Call {
                segment,
                root: ranks / 2,
                fan_out: if ranks < 9 { 2 } else { 3 },
                commutative: entry.requirements.commutative || inter.is_some(),
                nodes: (ranks % 3 == 0).then_some(&nodes),
                inter,
                ..Call::new(ranks, 3 * WINDOW * parts * segment)
            };
            if entry.check(&call).is_err() {
                continue;
            }
            checked += 1;
            let most = most_ahead_of_any(entry, &call);
            if most > WINDOW + SLOTS {
                far.push(format!("{entry:?} on {ranks}: {most}"));
            }
        }
    }
    assert!(far.is_empty() && checked > 100, "{far:#?} of {checked}");
}

/// Up to a window of segments nothing waits for an answer.
#[test]
fn few_segments_are_sent_as_they_were() {
    let pipeline = crate::find(Collective::Bcast, Algorithm::Pipeline).unwrap();
    let of = |segments: u64| {
        let call = Call { segment: 1, ..Call::new(3, segments) };
        let mut round = Round::default();
        let mut synchronous = Vec::new();
        for index in 0..pipeline.needs(&call, 0).rounds {
            pipeline.round(&call, 0, index, &mut round);
            let is_it = |step: &Step| matches!(step, Step::SendSynchronous { .. });
            synchronous.extend(round.steps().iter().any(is_it).then_some(index));
        }
        synchronous
    };
    assert!(of(WINDOW).is_empty());
    assert_eq!(of(3 * WINDOW), [WINDOW, 2 * WINDOW]);
}
