//! Every algorithm, for every small communicator.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::super::*;
use crate::{ENTRIES, Entry, find};

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
                        fan_out: 2 + (place + number) % 4,
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

/// On every small communicator.
fn check_where(chosen: impl Fn(Collective) -> bool) {
    for entry in ENTRIES.iter().filter(|entry| chosen(entry.collective)) {
        for ranks in 1..=64 {
            if !entry.requirements.even || ranks == 1 || ranks % 2 == 0 {
                check_all(entry, ranks);
            }
        }
    }
}

#[test]
fn every_algorithm_with_a_root_is_right_on_every_small_communicator() {
    check_where(Collective::is_rooted);
}

#[test]
fn every_algorithm_without_a_root_is_right_on_every_small_communicator() {
    check_where(|collective| !collective.is_rooted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_algorithm_is_right_on_any_call(
        ranks in 1_u32..90, root in 0_u32..90, count in 0_u64..70, segment in 0_u64..20,
        fan_out in 2_u32..9, commutative: bool, in_place: bool,
    ) {
        let (counts, displacements) = uneven(ranks);
        for entry in ENTRIES {
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

/// Rounds, and messages and elements that the busiest rank sends, as the sources of the algorithms have
/// them; q = ceil(lg p).
#[test]
fn rounds_and_bytes_are_those_of_the_sources() {
    use Collective::{Allgather, Allreduce, Bcast, Reduce, ReduceScatterBlock};
    for ranks in [2_u32, 3, 6, 7, 8, 12, 16, 24, 33, 64] {
        let q = u64::from(u32::BITS - (ranks - 1).leading_zeros());
        let p = u64::from(ranks);
        let busiest = |collective, algorithm, call: &Call<'_>| {
            let entry = find(collective, algorithm).unwrap();
            let of_rank = |rank| sent(entry, call, rank);
            let each: Vec<(u64, u64)> = (0..ranks).map(of_rank).collect();
            let most = |of: fn(&(u64, u64)) -> u64| each.iter().map(of).max().unwrap();
            (entry.needs(call, 0).rounds, most(|sent| sent.0), most(|sent| sent.1))
        };
        // One block each: as few rounds as there can be, and nothing twice.
        let block = Call::new(ranks, 3);
        for (collective, rounds) in [(Allgather, q + 2), (ReduceScatterBlock, q + 2)] {
            let got = busiest(collective, Algorithm::Circulant, &block);
            assert_eq!(got, (rounds, q, (p - 1) * 3), "{collective} on {ranks}");
        }
        let vector = Call::new(ranks, 4 * p);
        let got = busiest(Allreduce, Algorithm::Circulant, &vector);
        assert_eq!(got, (2 * q + 2, 2 * q, 2 * (p - 1) * 4), "{ranks}");
        // n blocks: n - 1 + q rounds, a message a round, m (1 + (q - 1) / n) bytes of the root.
        for blocks in [1, 5, 16] {
            let call = Call { segment: 3, ..Call::new(ranks, 3 * blocks) };
            let (rounds, messages, elements) = busiest(Bcast, Algorithm::Circulant, &call);
            assert_eq!(rounds, blocks - 1 + q, "{blocks} blocks on {ranks}");
            assert!(messages <= rounds && elements <= 3 * rounds, "{blocks} blocks on {ranks}");
            let all = check(find(Bcast, Algorithm::Circulant).unwrap(), &call).unwrap();
            assert_eq!(all.elements, (p - 1) * 3 * blocks, "nothing comes twice");
            let (rounds, messages, _) = busiest(Reduce, Algorithm::Circulant, &call);
            // A round before to copy, and each rank sends each block once.
            assert_eq!((rounds, messages), (blocks + q, blocks), "{blocks} blocks on {ranks}");
            // Two trees: nobody but the root sends more than the message.
            let call = Call { segment: 3, ..Call::new(ranks, 6 * blocks) };
            let (_, messages, elements) = busiest(Bcast, Algorithm::TwoTrees, &call);
            let most = if ranks == 2 { 2 * blocks } else { elements.div_ceil(3) };
            assert_eq!((messages, elements), (most, 6 * blocks), "{blocks} blocks on {ranks}");
            let (_, messages, _) = busiest(Reduce, Algorithm::TwoTrees, &call);
            assert_eq!(messages, 2 * blocks, "{blocks} blocks on {ranks}");
        }
        if ranks.is_multiple_of(2) {
            // The butterfly: q rounds, a message in one piece or two, nothing twice.
            for collective in [Allgather, ReduceScatterBlock] {
                let got = busiest(collective, Algorithm::Bine, &block);
                let copies = if collective == Allgather { 1 } else { 2 };
                assert_eq!((got.0, got.2), (q + copies, (p - 1) * 3), "{collective} on {ranks}");
                assert!(got.1 <= 2 * q, "{collective} on {ranks}");
            }
            let got = busiest(Allreduce, Algorithm::Bine, &vector);
            assert_eq!((got.0, got.2), (2 * q + 1, 2 * (p - 1) * 4), "{ranks}");
        }
        let got = busiest(Bcast, Algorithm::Bine, &Call::new(ranks, 7));
        assert_eq!((got.1, got.2), (q, 7 * q), "{ranks}");
    }
}

/// The same of those with a radix k: (k - 1) log_k p messages where p is a power of k, fewer steps and
/// nothing sent twice in allgather and reduce-scatter.
#[test]
fn rounds_and_bytes_of_a_radix_are_those_of_the_sources() {
    use Algorithm::{Bine, Bruck, KBruck, KNomial, KRing, RecursiveMultiplying, Sparbit};
    use Collective::{
        Allgather, Allreduce, Alltoall, Barrier, Gather, ReduceScatterBlock, Scatter,
    };
    let busiest = |collective, algorithm, call: &Call<'_>| {
        let entry = find(collective, algorithm).unwrap();
        let each: Vec<(u64, u64)> = (0..call.ranks).map(|rank| sent(entry, call, rank)).collect();
        let most = |of: fn(&(u64, u64)) -> u64| each.iter().map(of).max().unwrap();
        (entry.needs(call, 0).rounds, most(|sent| sent.0), most(|sent| sent.1))
    };
    for (fan_out, steps) in [(2, 5), (3, 3), (4, 2), (5, 2), (8, 2)] {
        let ranks = u32::pow(fan_out, steps);
        let (p, k, q) = (u64::from(ranks), u64::from(fan_out), u64::from(steps));
        let call = Call { fan_out, ..Call::new(ranks, 3) };
        let messages = (k - 1) * q;
        for algorithm in [KBruck, RecursiveMultiplying] {
            let got = busiest(Allgather, algorithm, &call);
            assert_eq!(got, (q + 2, messages, (p - 1) * 3), "{algorithm} {k}^{q}");
        }
        let got = busiest(ReduceScatterBlock, RecursiveMultiplying, &call);
        assert_eq!(got, (q + 2, messages, (p - 1) * 3), "{k}^{q}");
        let got = busiest(Allreduce, RecursiveMultiplying, &call);
        assert_eq!(got, (q + 2, messages, messages * 3), "{k}^{q}");
        assert_eq!(busiest(Barrier, KBruck, &call), (q, messages, 0), "{k}^{q}");
        // Of p blocks, those with a digit, for each digit.
        let got = busiest(Alltoall, KBruck, &call);
        assert_eq!(got, (2 + 3 * q, messages, messages * p / k * 3), "{k}^{q}");
        // A k-nomial tree: the root has (k - 1) log_k p children, and all blocks leave it.
        assert_eq!(busiest(Scatter, KNomial, &call), (1, messages, (p - 1) * 3), "{k}^{q}");
        let got = busiest(Gather, KNomial, &call);
        assert_eq!((got.1, got.2), (1, p / k * 3), "{k}^{q}");
        assert_eq!(busiest(Allgather, KRing, &call), (p, p - 1, (p - 1) * 3), "{k}^{q}");
    }
    for ranks in [2_u32, 6, 7, 12, 16, 33, 64] {
        let (p, q) = (u64::from(ranks), u64::from(u32::BITS - (ranks - 1).leading_zeros()));
        let call = Call::new(ranks, 3);
        let got = busiest(Allgather, Sparbit, &call);
        assert_eq!((got.0, got.2), (q + 2, (p - 1) * 3), "{ranks}");
        // One piece, or two where a block is left out.
        assert!(got.1 <= if ranks.is_power_of_two() { q } else { 2 * q }, "{ranks}");
        let scattered = busiest(Scatter, Bine, &call);
        assert_eq!((scattered.1, scattered.2), (q, (p - 1) * 3), "{ranks}");
        if ranks.is_power_of_two() {
            // Half of the blocks in each step, as Bruck's.
            let bine = busiest(Alltoall, Bine, &call);
            assert_eq!((bine.1, bine.2), (q, q * p / 2 * 3), "{ranks}");
            assert_eq!(busiest(Alltoall, Bruck, &call).2, bine.2, "{ranks}");
        }
    }
}

/// What a call is checked for on few ranks is so on many: any number up to 4096, simulated (messages
/// without a partner, and ranks that wait for ever, end a simulation).
fn simulates_on_many(numbers: usize) {
    let costs = crate::simulator::LogGpCosts {
        latency: 61.0,
        overhead: 8.0,
        gap: 24.0,
        gap_per_byte: 0.1,
        combine_per_byte: 0.01,
    };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let with_radix = |entry: &&Entry| {
        use Algorithm::{Bine, Fitted, Sparbit};
        entry.fanned || [Bine, Fitted, Sparbit].contains(&entry.algorithm)
    };
    for _ in 0..numbers {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ranks = 65 + (random >> 33) as u32 % 4032;
        for entry in ENTRIES.iter().filter(with_radix) {
            // p^2 messages; the other algorithms have O(p log p).
            let ranks = if entry.algorithm == Algorithm::KRing { 65 + ranks % 200 } else { ranks };
            let ranks = if entry.requirements.even { ranks & !1 } else { ranks };
            let fan_out = 2 + (random >> 20) as u32 % 9;
            let counts = vec![1; ranks as usize];
            let displacements: Vec<u64> = (0..u64::from(ranks)).collect();
            let call = Call {
                fan_out,
                pace: records::TreePace { trip: 57, gap: 24 },
                root: if entry.collective.is_rooted() { ranks / 3 } else { 0 },
                counts: &counts,
                displacements: &displacements,
                ..Call::new(ranks, 1)
            };
            let outcome = crate::simulator::simulate(entry, &call, &costs, Default::default());
            assert!(outcome.is_ok(), "{entry:?} on {ranks}, fan-out {fan_out}: {outcome:?}");
        }
    }
}

#[test]
fn new_schedules_end_on_many_ranks() {
    simulates_on_many(2);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn new_schedules_end_on_a_thousand_numbers_of_ranks() {
    simulates_on_many(1000);
}

/// Messages and elements that a rank sends.
fn sent(entry: &Entry, call: &Call<'_>, rank: u32) -> (u64, u64) {
    let (mut scratch, mut sent) = (crate::Round::default(), (0, 0));
    for round in 0.. {
        if !entry.round(call, rank, round, &mut scratch) {
            return sent;
        }
        for step in scratch.steps() {
            if let crate::Step::Send { range, .. } = step {
                sent = (sent.0 + 1, sent.1 + range.count);
            }
        }
    }
    sent
}
