//! Right schedules pass, for every small communicator, and broken ones are caught.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::*;
use crate::{ENTRIES, Step, find, is_rooted};

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
    match (is_rooted(entry.collective), ranks) {
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
        (Collective::Alltoall, true) => vec![(0, 1), (1, 0), (2, 1), (5, 2)],
        (
            Collective::Alltoall
            | Collective::Allgather
            | Collective::Gather
            | Collective::Scatter
            | Collective::ReduceScatterBlock
            | Collective::ReduceScatter
            | Collective::Scatterv
            | Collective::Gatherv,
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

fn check_all(entry: &Entry, ranks: u32) {
    let (counts, displacements) = uneven(ranks);
    let mut number = 0;
    for root in roots(entry, ranks) {
        for (count, segment) in sizes(entry, ranks) {
            // The two flags and the fan-out change with every call, so that all their pairs occur
            // with every kind of size.
            number += 1;
            for in_place in [false, true] {
                let call = Call {
                    root,
                    segment,
                    fan_out: 2 + number % 4,
                    in_place,
                    commutative: entry.requirements.commutative || (number + root) % 2 == 0,
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

#[test]
fn every_algorithm_is_right_on_every_small_communicator() {
    for entry in ENTRIES {
        for ranks in 1..=64 {
            if !entry.requirements.even || ranks == 1 || ranks % 2 == 0 {
                check_all(entry, ranks);
            }
        }
    }
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
                counts: &counts, displacements: &displacements, header: &[],
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

#[test]
fn a_ready_send_that_may_come_too_early_is_caught() {
    let entry = crate::find_named(Collective::Scatter, "linear-ready").unwrap();
    let call = Call::new(3, 2);
    assert!(check(entry, &call).is_ok());
    // The root doesn't wait for the sign, or the sign is given before the receive is posted.
    let no_sign = of_rank(0, |step| match step {
        Step::Receive { .. } | Step::Wait { slot: 32 } => None,
        other => Some(other),
    });
    let too_early = |rank, _, mut steps: Vec<Step>| {
        if rank == 1 {
            steps.swap(0, 1);
        }
        steps
    };
    let not_ready =
        |fault| matches!(fault, Fault::Step { rank: 0, problem: Problem::NotReady(1), .. });
    assert!(not_ready(check(&Broken { entry, change: no_sign }, &call).unwrap_err()));
    assert!(not_ready(check(&Broken { entry, change: too_early }, &call).unwrap_err()));
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

/// A schedule that does what another one does, but for one change.
struct Broken<F> {
    entry: &'static Entry,
    change: F,
}

impl<F: Fn(u32, u64, Vec<Step>) -> Vec<Step>> Schedule for Broken<F> {
    fn collective(&self) -> Collective {
        self.entry.collective
    }

    fn check(&self, call: &Call<'_>) -> Result<(), CallError> {
        self.entry.check_everywhere(call)
    }

    fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        let there = self.entry.round(call, rank, index, out);
        let steps = (self.change)(rank, index, out.steps().to_vec());
        out.begin(1, 0, false);
        steps.into_iter().for_each(|step| out.push(step));
        there
    }

    fn needs(&self, call: &Call<'_>, rank: u32) -> Needs {
        self.entry.needs(call, rank)
    }
}

fn broken(
    collective: Collective,
    algorithm: Algorithm,
    call: &Call<'_>,
    change: impl Fn(u32, u64, Vec<Step>) -> Vec<Step>,
) -> Fault {
    let entry = find(collective, algorithm).unwrap();
    assert!(check(entry, call).is_ok(), "unbroken, it is right");
    check(&Broken { entry, change }, call).unwrap_err()
}

/// Applies a change to the steps of one rank.
fn of_rank(
    who: u32,
    change: impl Fn(Step) -> Option<Step>,
) -> impl Fn(u32, u64, Vec<Step>) -> Vec<Step> {
    move |rank, _, steps| match rank == who {
        true => steps.into_iter().filter_map(&change).collect(),
        false => steps,
    }
}

#[test]
fn a_lost_message_is_caught() {
    let call = Call::new(4, 5);
    let drop_send = of_rank(1, |step| (!matches!(step, Step::Send { .. })).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, drop_send);
    assert!(matches!(fault, Fault::Step { rank: 1, problem: Problem::Idle(_), .. }), "{fault}");
    // Gone with its wait, so that only the receiver notices.
    let drop_both = of_rank(1, |step| {
        (!matches!(step, Step::Send { .. } | Step::Wait { slot: 2 })).then_some(step)
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, drop_both);
    assert_eq!(
        fault,
        Fault::Deadlock(vec![
            Blocked { rank: 2, peer: 1, sending: false },
            Blocked { rank: 3, peer: 2, sending: false }
        ])
    );
}

#[test]
fn a_message_that_nobody_receives_is_caught() {
    let call = Call::new(3, 5);
    let no_receive = of_rank(2, |_| None);
    let fault = broken(Collective::Bcast, Algorithm::Linear, &call, no_receive);
    assert_eq!(fault, Fault::Deadlock(vec![Blocked { rank: 0, peer: 2, sending: true }]));
}

#[test]
fn a_slot_that_nobody_waits_for_is_caught() {
    let call = Call::new(4, 5);
    let no_wait = of_rank(2, |step| (step != Step::Wait { slot: 2 }).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, no_wait);
    assert_eq!(fault, Fault::Unwaited { rank: 2, slot: 2 });
}

#[test]
fn wrong_order_is_caught_where_order_matters() {
    let swap = |step| match step {
        Step::Combine { source, into, .. } => {
            Some(Step::Combine { source, into, order: Order::SourceFirst })
        }
        other => Some(other),
    };
    use crate::Order;
    let call = Call { commutative: false, ..Call::new(4, 2) };
    let fault = broken(Collective::Reduce, Algorithm::Binomial, &call, of_rank(0, swap));
    assert!(
        matches!(&fault, Fault::Result { rank: 0, found, .. } if found == "element 0 of 2..4 1 0"),
        "{fault}"
    );
}

#[test]
fn wrong_ranges_are_caught() {
    let call = Call { segment: 2, ..Call::new(4, 6) };
    let shift = of_rank(1, |step| match step {
        Step::Send { peer, slot, range } if range.start == 2 => {
            Some(Step::Send { peer, slot, range: Range { start: 0, ..range } })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, shift);
    assert!(matches!(fault, Fault::Result { rank: 2, element: 2, .. }), "{fault}");
    let lengthen = of_rank(1, |step| match step {
        Step::Send { peer, slot, range } if range.start == 4 => {
            Some(Step::Send { peer, slot, range: Range { count: 3, ..range } })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, lengthen);
    assert!(matches!(fault, Fault::Step { rank: 1, problem: Problem::Bounds(..), .. }), "{fault}");
    let shorten = of_rank(1, |step| match step {
        Step::Send { peer, slot, range } => {
            Some(Step::Send { peer, slot, range: Range { count: 1, ..range } })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, shorten);
    assert!(matches!(fault, Fault::Step { problem: Problem::Length(1, 2), .. }), "{fault}");
}

#[test]
fn a_cycle_of_blocking_sends_is_caught() {
    // Every rank of the ring waits for its send before it posts its receive.
    let send_first = |_, _, steps: Vec<Step>| {
        let (sends, others): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .partition(|step| matches!(step, Step::Send { .. } | Step::Wait { slot: 1 }));
        [sends, others].concat()
    };
    let fault = broken(Collective::Allgather, Algorithm::Ring, &Call::new(3, 1), send_first);
    assert!(
        matches!(&fault, Fault::Deadlock(blocked) if blocked.len() == 3 && blocked[0].sending),
        "{fault}"
    );
}

#[test]
fn reading_before_the_wait_and_writing_under_way_are_caught() {
    let call = Call { segment: 1, ..Call::new(3, 3) };
    let no_wait = of_rank(1, |step| (step != Step::Wait { slot: 0 }).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, no_wait);
    assert!(matches!(fault, Fault::Step { rank: 1, problem: Problem::NoValue(..), .. }), "{fault}");
    // The accumulator of segment 2 is that of segment 0, whose send must be waited for.
    let late = of_rank(1, |step| (step != Step::Wait { slot: 2 }).then_some(step));
    let fault = broken(Collective::Reduce, Algorithm::Pipeline, &call, late);
    assert!(matches!(fault, Fault::Step { rank: 1, problem: Problem::Busy(2), .. }), "{fault}");
    let overwrite = |rank, index, mut steps: Vec<Step>| {
        if let (1, Some(Step::Send { range, .. })) = (rank, steps.last().copied()) {
            let _ = index;
            steps.push(Step::Combine {
                source: range,
                into: range,
                order: crate::Order::SourceFirst,
            });
        }
        steps
    };
    let call = Call { commutative: false, ..call };
    let fault = broken(Collective::Reduce, Algorithm::Pipeline, &call, overwrite);
    assert!(matches!(fault, Fault::Step { rank: 1, problem: Problem::Changed(_), .. }), "{fault}");
}

#[test]
fn a_contribution_that_counts_twice_is_caught() {
    let twice = |rank, _, steps: Vec<Step>| {
        let double = |step| match step {
            Step::Combine { .. } if rank == 0 => vec![step, step],
            other => vec![other],
        };
        steps.into_iter().flat_map(double).collect()
    };
    let fault = broken(Collective::Reduce, Algorithm::Binomial, &Call::new(4, 1), twice);
    assert!(
        matches!(fault, Fault::Step { rank: 0, problem: Problem::Combination(..), .. }),
        "{fault}"
    );
}

#[test]
fn a_barrier_that_lets_somebody_through_early_is_caught() {
    let call = Call::new(5, 0);
    let skip_last = |_, index, steps: Vec<Step>| if index == 2 { Vec::new() } else { steps };
    let fault = broken(Collective::Barrier, Algorithm::Bruck, &call, skip_last);
    assert!(
        matches!(&fault, Fault::Result { rank: 0, found, .. } if found.contains("of 4")),
        "{fault}"
    );
}

#[test]
fn the_users_send_buffer_is_read_only() {
    let call = Call::new(2, 1);
    let write = of_rank(0, |step| match step {
        Step::Copy { source, .. } => Some(Step::Copy { source, into: source }),
        other => Some(other),
    });
    let fault = broken(Collective::Reduce, Algorithm::Linear, &call, write);
    assert!(
        matches!(fault, Fault::Step { problem: Problem::ReadOnly(Buffer::Send), .. }),
        "{fault}"
    );
}
