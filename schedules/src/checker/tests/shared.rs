//! Algorithms of ranks that share memory.

use records::Collective;

use super::super::*;
use crate::{Entry, SHARED, shared::min_elements};

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

fn check_on(ranks: u32) {
    for entry in SHARED {
        for (place, root) in (0_u32..).zip(roots(entry, ranks)) {
            for (shared, line) in memories(ranks) {
                for (number, (count, segment)) in (0..).zip(sizes(entry, ranks, shared, line)) {
                    let parity = (place + number + ranks + line as u32) % 4;
                    let call = Call {
                        root,
                        segment,
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
    [17, 24, 31, 48, 64].into_iter().for_each(check_on);
}
