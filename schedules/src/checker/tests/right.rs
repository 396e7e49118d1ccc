//! Every algorithm, for every small communicator.

use proptest::prelude::*;
use records::{Algorithm, Collective, OwnMethod};

use super::super::*;
use crate::{ENTRIES, Entry, Round, VARIANTS, entry::known_to, find, program::Header};

/// Blocks of unequal counts, some of them 0.
fn uneven(ranks: u32) -> (Vec<u64>, Vec<u64>) {
    let counts: Vec<u64> = (0..u64::from(ranks)).map(|rank| (rank * 7 + 2) % 5).collect();
    let places = counts.iter().scan(0, |end, count| {
        *end += count;
        Some(*end - count)
    });
    (counts.clone(), places.collect())
}

/// Every root up to 16 ranks, some above.
fn roots(entry: &Entry, ranks: u32) -> Vec<u32> {
    match (entry.collective.is_rooted(), ranks) {
        (false, _) => vec![0],
        (true, ..=16) => (0..ranks).collect(),
        (true, _) => vec![0, ranks / 2, ranks - 1],
    }
}

/// (count, segment): none, one, fewer than ranks, odd numbers, whole and broken segments.
fn sizes(entry: &Entry, ranks: u32) -> Vec<(u64, u64)> {
    let ranks = u64::from(ranks);
    let long = 2 * ranks + 3;
    match (entry.collective, entry.segmented) {
        (Collective::Barrier, _) => vec![(0, 0)],
        // The counts are elsewhere.
        (Collective::Scatterv | Collective::Gatherv | Collective::ReduceScatter, false) => {
            vec![(0, 0), (0, 0)]
        }
        (Collective::Scatterv | Collective::Gatherv, true) => vec![(0, 0), (0, 1), (0, 2), (0, 3)],
        (Collective::Alltoall, true) => vec![(0, 1), (1, 0), (2, 1), (5, 2)],
        (
            Collective::Alltoall
            | Collective::Allgather
            | Collective::Gather
            | Collective::Scatter
            | Collective::ReduceScatterBlock,
            _,
        ) => vec![(0, 0), (1, 0), (3, 0)],
        (_, false) => vec![(0, 0), (1, 0), (ranks / 2 + 1, 0), (ranks, 0), (long, 0)],
        (_, true) => vec![
            (0, 4),
            (1, 0),
            (2, 1),
            (3, 1),
            (5, 2),
            (7, 1),
            (ranks / 2 + 1, 2),
            (long, 0),
            (long, ranks),
            (long, long),
        ],
    }
}

/// Operations that are commutative and that are not: without a root both, with one either at half
/// of the roots for every size.
fn orders(entry: &Entry, parity: bool) -> Vec<bool> {
    let combines = entry.collective.combines();
    match (combines && !entry.requirements.commutative, entry.collective.is_rooted()) {
        (false, _) => vec![true],
        (true, false) => vec![true, false],
        (true, true) => vec![parity],
    }
}

fn check_all(entry: &Entry, ranks: u32) {
    let (counts, displacements) = uneven(ranks);
    for (root, place) in roots(entry, ranks).into_iter().zip(0_u32..) {
        for ((count, segment), number) in sizes(entry, ranks).into_iter().zip(0_u32..) {
            let parity = (place + number + ranks).is_multiple_of(2);
            for commutative in orders(entry, parity) {
                for in_place in [false, true] {
                    let call = Call {
                        root,
                        segment,
                        fan_out: entry.min_fan_out() + (place + number) % 4,
                        in_place,
                        commutative,
                        counts: &counts,
                        displacements: &displacements,
                        ..Call::new(ranks, count)
                    };
                    if let Err(fault) = check(entry, &call) {
                        panic!("{entry:?} {call:?}: {fault}");
                    }
                }
            }
        }
    }
}

/// Communicators whose every root and size is checked in the time of `make test`: all small ones, then those about a power
/// of two.
fn few_ranks() -> impl Iterator<Item = u32> {
    (1..=32).chain([33, 47, 63, 64])
}

fn check_where(ranks: impl Iterator<Item = u32>, chosen: impl Fn(Collective) -> bool) {
    let variants = VARIANTS.iter().map(|(_, entry)| entry);
    let entries = ENTRIES.iter().chain(variants).filter(|entry| chosen(entry.collective));
    let entries: Vec<&Entry> = entries.collect();
    for ranks in ranks {
        let fits = |entry: &&&Entry| !entry.requirements.even || ranks == 1 || ranks % 2 == 0;
        entries.iter().filter(fits).for_each(|entry| check_all(entry, ranks));
    }
}

#[test]
fn every_algorithm_with_a_root_is_right_on_every_small_communicator() {
    check_where(few_ranks(), Collective::is_rooted);
}

#[test]
fn every_algorithm_without_a_root_is_right_on_every_small_communicator() {
    check_where(few_ranks(), |collective| !collective.is_rooted());
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn every_algorithm_is_right_up_to_64_ranks() {
    check_where(33..=64, |_| true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_algorithm_is_right_on_any_call(
        ranks in 1_u32..90, root in 0_u32..90, count in 0_u64..70, segment in 0_u64..20,
        more in 0_u32..7, commutative: bool, in_place: bool,
    ) {
        let (counts, displacements) = uneven(ranks);
        for entry in ENTRIES {
            let fan_out = match more {
                0 => OwnMethod::standard_fan_out(entry.algorithm),
                _ => entry.min_fan_out() + more - 1,
            };
            let call = Call {
                ranks, root: root % ranks, count, segment, fan_out, commutative, in_place,
                counts: &counts, displacements: &displacements, ..Call::new(ranks, count)
            };
            // Vectors of long blocks are many symbols and nothing new.
            let blocks = sizes(entry, 9).contains(&(3, 0)) || entry.collective == Collective::Alltoall;
            let call = Call { count: if blocks { count % 4 } else { count }, ..call };
            if entry.check(&call).is_ok() {
                let checked = check(entry, &call);
                prop_assert!(checked.is_ok(), "{:?} {:?}: {:?}", entry, call, checked);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any counts, many of them 0, one perhaps a giant, with gaps between the blocks.
    #[test]
    fn v_forms_are_right_on_any_counts(
        counts in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..6], 1..=64),
        giant in prop::option::of(0_usize..64), root in 0_usize..64, segment in 0_u64..4,
        gap in 0_u64..3, in_place: bool,
    ) {
        let mut counts = counts;
        let ranks = counts.len();
        if let Some(giant) = giant {
            counts[giant % ranks] = 300;
        }
        let places: Vec<u64> = counts
            .iter()
            .scan(gap, |end, count| { *end += count + gap; Some(*end - count - gap) })
            .collect();
        let v_form = |e: &&Entry| matches!(e.collective, Collective::Scatterv | Collective::Gatherv);
        for entry in ENTRIES.iter().filter(v_form) {
            let call = Call {
                root: (root % ranks) as u32, segment, in_place,
                counts: &counts, displacements: &places, ..Call::new(ranks as u32, 0)
            };
            let checked = check(entry, &call);
            prop_assert!(checked.is_ok(), "{:?} {:?}: {:?}", entry, call, checked);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What is kept from round to round of a call changes none of them, nor does what was kept of another
    /// call.
    #[test]
    fn rounds_of_one_call_are_those_made_each_by_itself(
        calls in prop::collection::vec(prop::collection::vec(0_u64..9, 13), 2), root in 0_u32..13,
    ) {
        for entry in ENTRIES.iter().filter(|entry| entry.collective.has_counts()) {
            let mut kept = Round::default();
            for counts in &calls {
                kept.begin_call();
                let places: Vec<u64> = (0..13).map(|rank| counts[..rank].iter().sum()).collect();
                let call = Call { root, counts, displacements: &places, ..Call::new(13, 0) };
                if entry.check(&call).is_err() {
                    continue;
                }
                let twice = [counts.as_slice(), counts].concat();
                for (index, rank) in (0..14).flat_map(|index| (0..13).map(move |rank| (index, rank))) {
                    let known = known_to(entry.collective, &call, rank);
                    let Header { first, words } = entry.normal_header(&known, rank);
                    let words = if index == 0 { 0 } else { words as usize };
                    let known = Call { header: &twice[first as usize..][..words], ..known };
                    let mut alone = Round::default();
                    let there = entry.round(&known, rank, index, &mut alone);
                    prop_assert_eq!(entry.round(&known, rank, index, &mut kept), there);
                    prop_assert_eq!(kept.steps(), alone.steps(), "{:?} {:?}", entry, known);
                }
            }
        }
    }
}

#[test]
fn a_large_block_travels_alone_and_small_ones_together() {
    let elements = |counts: &[u64], name| {
        let places: Vec<u64> = (0..counts.len() as u64).map(|rank| rank * 1000).collect();
        let call = Call { counts, displacements: &places, ..Call::new(counts.len() as u32, 0) };
        [Collective::Scatterv, Collective::Gatherv].map(|collective| {
            check(crate::find_named(collective, name).unwrap(), &call).unwrap().elements
        })
    };
    // Rank 7 is three hops away in a binomial tree.
    let giant = [1, 1, 1, 1, 1, 1, 1, 500];
    assert_eq!(elements(&giant, "binomial"), [3 * 500 + 9; 2]);
    // The largest last is the deepest, the largest first hangs on the root.
    assert_eq!(elements(&giant, "binomial-ascending"), [3 * 500 + 9; 2]);
    assert_eq!(elements(&giant, "binomial-descending"), [500 + 11; 2]);
    // 500 alone; all that are left don't make up for it, so the six go together, and below the
    // first of them runs of 1, 1, 2 and 1.
    assert_eq!(elements(&giant, "traff"), [500 + 6 + 5 + 1; 2]);
    // Equal blocks: runs of 1, 1, 2 and the three that are left.
    assert_eq!(elements(&[1; 8], "traff"), [1 + 1 + (2 + 1) + (3 + 2); 2]);
    assert_eq!(elements(&[7, 0, 0, 9], "traff"), [9; 2]);
}

/// The least that must be sent, known from theory.
#[test]
fn traffic_is_what_the_algorithms_are_known_for() {
    let traffic = |collective, algorithm, call: &Call<'_>| {
        check(find(collective, algorithm).unwrap(), call).unwrap()
    };
    let call = Call { segment: 4, ..Call::new(16, 64) };
    for algorithm in [Algorithm::Linear, Algorithm::Pipeline, Algorithm::Binomial] {
        let sent = traffic(Collective::Bcast, algorithm, &call);
        assert_eq!(sent, Traffic { messages: 15 * 16, elements: 15 * 64, combined: 0 });
        let reduced = traffic(Collective::Reduce, algorithm, &call);
        assert_eq!(reduced, Traffic { combined: 15 * 64, ..sent });
    }
    // Nobody receives what it has but the root in its allgather.
    let sent = traffic(Collective::Bcast, Algorithm::SplittedBinary, &call);
    assert_eq!(sent.elements, 15 * 64);
    let sent = traffic(Collective::Allreduce, Algorithm::Ring, &call);
    assert_eq!(sent, Traffic { messages: 2 * 15 * 16, elements: 2 * 15 * 64, combined: 15 * 64 });
    let sent = traffic(Collective::Allreduce, Algorithm::Rabenseifner, &call);
    assert_eq!(sent, Traffic { messages: 2 * 4 * 16, elements: 2 * 15 * 64, combined: 15 * 64 });
    let sent = traffic(Collective::Barrier, Algorithm::Bruck, &Call::new(10, 0));
    assert_eq!(sent.messages, 4 * 10);
    let sent = traffic(Collective::Alltoall, Algorithm::Bruck, &Call::new(8, 1));
    assert_eq!(sent, Traffic { messages: 3 * 8, elements: 3 * 8 * 4, combined: 0 });
    // Doubling by unequal halves sends nothing twice.
    for ranks in [7, 8, 9, 11] {
        let sent =
            traffic(Collective::Allgather, Algorithm::RecursiveDoubling, &Call::new(ranks, 1));
        assert_eq!(sent.elements, u64::from(ranks * (ranks - 1)));
    }
}
