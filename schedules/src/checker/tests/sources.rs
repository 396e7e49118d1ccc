//! What algorithms are known for: rounds and bytes as their sources have them; and many ranks.

use records::{Algorithm, Collective};

use super::super::*;
use crate::{ENTRIES, Entry, find};

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
        for blocks in [1_u64, 5, 16] {
            let call = Call { segment: 3, fan_out: 1, ..Call::new(ranks, 3 * blocks) };
            let (rounds, messages, elements) = busiest(Bcast, Algorithm::Circulant, &call);
            assert_eq!(rounds, blocks - 1 + q, "{blocks} blocks on {ranks}");
            assert!(messages <= rounds && elements <= 3 * rounds, "{blocks} blocks on {ranks}");
            let all = check(find(Bcast, Algorithm::Circulant).unwrap(), &call).unwrap();
            assert_eq!(all.elements, (p - 1) * 3 * blocks, "nothing comes twice");
            let (rounds, messages, _) = busiest(Reduce, Algorithm::Circulant, &call);
            // A round before to copy, and each rank sends each block once.
            assert_eq!((rounds, messages), (blocks + q, blocks), "{blocks} blocks on {ranks}");
            // Each stream beyond the first has q - 1 rounds more, and nothing comes twice.
            let call = Call { fan_out: 3, ..call };
            let more = (blocks.min(3) - 1) * (q - 1);
            let (rounds, ..) = busiest(Bcast, Algorithm::Circulant, &call);
            assert_eq!(rounds, blocks - 1 + q + more, "{blocks} blocks on {ranks}");
            let all = check(find(Bcast, Algorithm::Circulant).unwrap(), &call).unwrap();
            assert_eq!(all.elements, (p - 1) * 3 * blocks, "nothing comes twice");
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

/// Half as many elements as ranks take half as long as one for each rank: they lie everywhere.
#[test]
fn circulant_allreduce_of_few_elements_has_short_messages() {
    let costs = crate::simulator::LogGpCosts {
        latency: 0.0,
        overhead: 0.0,
        gap: 0.0,
        gap_per_byte: 1.0,
        combine_per_byte: 0.0,
    };
    let entry = find(Collective::Allreduce, Algorithm::Circulant).unwrap();
    let seconds = |count| {
        let call = Call::new(64, count);
        crate::simulator::simulate(entry, &call, &costs, Default::default()).unwrap().seconds
    };
    assert!(seconds(32) < 0.6 * seconds(64), "{} {}", seconds(32), seconds(64));
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
    let is_new = |entry: &&Entry| {
        use Algorithm::{Bine, Circulant, Fitted, Sparbit, TwoTrees};
        entry.fanned || [Bine, Circulant, Fitted, Sparbit, TwoTrees].contains(&entry.algorithm)
    };
    for _ in 0..numbers {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ranks = 65 + (random >> 33) as u32 % 4032;
        for entry in ENTRIES.iter().filter(is_new) {
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
                segment: 1,
                counts: &counts,
                displacements: &displacements,
                ..Call::new(ranks, if entry.segmented { 7 } else { 1 })
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
