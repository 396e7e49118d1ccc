//! Schedules with a fault.

use records::{Algorithm, Collective};

use super::super::*;
use crate::{Buffer, CallError, Entry, Needs, OperandOrder, Range, Round, Step, find};

/// A schedule that does what another one does, but for one change.
pub(super) struct Broken<F> {
    pub entry: &'static Entry,
    pub change: F,
}

impl<F: Fn(u32, u64, Vec<Step>) -> Vec<Step>> CheckedSchedule for Broken<F> {
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
) -> ScheduleFault {
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
        |fault| matches!(fault, ScheduleFault::Step { rank: 0, problem: Problem::NotReady(1), .. });
    assert!(not_ready(check(&Broken { entry, change: no_sign }, &call).unwrap_err()));
    assert!(not_ready(check(&Broken { entry, change: too_early }, &call).unwrap_err()));
}

#[test]
fn a_lost_message_is_caught() {
    let call = Call::new(4, 5);
    let drop_send = of_rank(1, |step| (!matches!(step, Step::Send { .. })).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, drop_send);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::Idle(_), .. }),
        "{fault}"
    );
    // Gone with its wait, so that only the receiver notices.
    let drop_both = of_rank(1, |step| {
        (!matches!(step, Step::Send { .. } | Step::Wait { slot: 2 })).then_some(step)
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, drop_both);
    assert_eq!(
        fault,
        ScheduleFault::Deadlock(vec![
            Blocked { rank: 2, peer: 1, awaited: Awaited::Message },
            Blocked { rank: 3, peer: 2, awaited: Awaited::Message }
        ])
    );
}

#[test]
fn a_message_that_nobody_receives_is_caught() {
    let call = Call::new(3, 5);
    let one_more = |rank, _, mut steps: Vec<Step>| {
        if rank == 0 {
            let range = Range::new(Buffer::Receive, 0, 5);
            steps.extend([Step::Send { peer: 2, slot: 0, range }, Step::Wait { slot: 0 }]);
        }
        steps
    };
    let fault = broken(Collective::Bcast, Algorithm::Linear, &call, one_more);
    assert_eq!(
        fault,
        ScheduleFault::Deadlock(vec![Blocked { rank: 0, peer: 2, awaited: Awaited::Receive }])
    );
}

#[test]
fn a_slot_that_nobody_waits_for_is_caught() {
    let call = Call::new(4, 5);
    let no_wait = of_rank(2, |step| (step != Step::Wait { slot: 2 }).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, no_wait);
    assert_eq!(fault, ScheduleFault::Unwaited { rank: 2, slot: 2 });
}

#[test]
fn wrong_order_is_caught_where_order_matters() {
    let swap = |step| match step {
        Step::Combine { source, into, .. } => {
            Some(Step::Combine { source, into, order: OperandOrder::SourceFirst })
        }
        other => Some(other),
    };
    let call = Call { commutative: false, ..Call::new(4, 2) };
    let fault = broken(Collective::Reduce, Algorithm::Binomial, &call, of_rank(0, swap));
    assert!(
        matches!(&fault, ScheduleFault::Result { rank: 0, found, .. } if found == "element 0 of 2..4 0..2"),
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
    assert!(matches!(fault, ScheduleFault::Result { rank: 2, element: 2, .. }), "{fault}");
    let lengthen = of_rank(1, |step| match step {
        Step::Send { peer, slot, range } if range.start == 4 => {
            Some(Step::Send { peer, slot, range: Range { count: 3, ..range } })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, lengthen);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::Bounds(..), .. }),
        "{fault}"
    );
    let shorten = of_rank(1, |step| match step {
        Step::Send { peer, slot, range } => {
            Some(Step::Send { peer, slot, range: Range { count: 1, ..range } })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, shorten);
    assert!(matches!(fault, ScheduleFault::Step { problem: Problem::Length(1, 2), .. }), "{fault}");
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
        matches!(&fault, ScheduleFault::Deadlock(blocked) if blocked.len() == 3 && blocked[0].awaited == Awaited::Receive),
        "{fault}"
    );
}

#[test]
fn reading_before_the_wait_and_writing_under_way_are_caught() {
    let call = Call { segment: 1, ..Call::new(3, 3) };
    let no_wait = of_rank(1, |step| (step != Step::Wait { slot: 0 }).then_some(step));
    let fault = broken(Collective::Bcast, Algorithm::Pipeline, &call, no_wait);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::NoValue(..), .. }),
        "{fault}"
    );
    // The accumulator of segment 3 is that of segment 0, whose send must be waited for.
    let call = Call { segment: 1, ..Call::new(3, 4) };
    let late = of_rank(1, |step| (step != Step::Wait { slot: 2 }).then_some(step));
    let fault = broken(Collective::Reduce, Algorithm::Pipeline, &call, late);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::Busy(2), .. }),
        "{fault}"
    );
    let overwrite = |rank, index, mut steps: Vec<Step>| {
        if let (1, Some(Step::Send { range, .. })) = (rank, steps.last().copied()) {
            let _ = index;
            steps.push(Step::Copy { source: Range::new(Buffer::Send, 0, 1), into: range });
        }
        steps
    };
    let call = Call { commutative: false, ..call };
    let fault = broken(Collective::Reduce, Algorithm::Pipeline, &call, overwrite);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::Changed(_), .. }),
        "{fault}"
    );
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
        matches!(fault, ScheduleFault::Step { rank: 0, problem: Problem::Combination(..), .. }),
        "{fault}"
    );
}

#[test]
fn a_barrier_that_lets_somebody_through_early_is_caught() {
    let call = Call::new(5, 0);
    let skip_last = |_, index, steps: Vec<Step>| if index == 2 { Vec::new() } else { steps };
    let fault = broken(Collective::Barrier, Algorithm::Bruck, &call, skip_last);
    assert!(
        matches!(&fault, ScheduleFault::Result { rank: 0, found, .. } if found.contains("of 4")),
        "{fault}"
    );
}

#[test]
fn the_users_send_buffer_is_read_only() {
    let call = Call::new(2, 1);
    let write = of_rank(0, |step| match step {
        Step::Combine { source, into, order } => {
            Some(Step::Combine { source: into, into: source, order })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Reduce, Algorithm::Linear, &call, write);
    assert!(
        matches!(fault, ScheduleFault::Step { problem: Problem::ReadOnly(Buffer::Send), .. }),
        "{fault}"
    );
}

/// Elements of two blocks may overlap though those of one don't: in place nothing may be written
/// before all has been read.
#[test]
fn a_block_that_is_written_before_the_others_are_read_is_caught() {
    let call = Call { in_place: true, ..Call::new(3, 2) };
    let too_early = |rank, index, mut steps: Vec<Step>| {
        if (rank, index) == (1, 0) {
            let [source, into] =
                [Buffer::Temporary, Buffer::Receive].map(|buffer| Range::new(buffer, 0, 2));
            steps.push(Step::Copy { source, into });
        }
        steps
    };
    let fault = broken(Collective::ReduceScatterBlock, Algorithm::Ring, &call, too_early);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, round: 1, problem: Problem::NoValue(..) }),
        "{fault}"
    );
}

#[test]
fn operands_that_overlap_are_caught() {
    let call = Call::new(3, 4);
    let overlap = of_rank(0, |step| match step {
        Step::Combine { source, into, order } => {
            let source = Range { start: into.start + 1, count: into.count, ..source };
            Some(Step::Combine { source: Range { buffer: into.buffer, ..source }, into, order })
        }
        other => Some(other),
    });
    let fault = broken(Collective::Reduce, Algorithm::Linear, &call, overlap);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 0, problem: Problem::Overlap(..), .. }),
        "{fault}"
    );
}

#[test]
fn what_lies_between_the_blocks_of_a_gatherv_is_left_alone() {
    let call = Call { counts: &[1, 1], displacements: &[0, 2], ..Call::new(2, 0) };
    let stray = |rank, _, mut steps: Vec<Step>| {
        let copy = steps.iter().find_map(|step| match step {
            Step::Copy { source, .. } if rank == 0 => Some(*source),
            _ => None,
        });
        steps.extend(
            copy.map(|source| Step::Copy { source, into: Range::new(Buffer::Receive, 1, 1) }),
        );
        steps
    };
    let fault = broken(Collective::Gatherv, Algorithm::Linear, &call, stray);
    assert!(matches!(fault, ScheduleFault::Result { rank: 0, element: 1, .. }), "{fault}");
}

#[test]
fn a_header_that_comes_late_is_caught() {
    let call = Call { counts: &[1, 1, 1], displacements: &[0, 1, 2], ..Call::new(3, 0) };
    // The wait for the header moves to the next round.
    let late = |rank, index, mut steps: Vec<Step>| {
        match (rank, index) {
            (1, 0) => steps.retain(|step| *step != Step::Wait { slot: 0 }),
            (1, 1) => steps.insert(0, Step::Wait { slot: 0 }),
            _ => {}
        }
        steps
    };
    let fault = broken(Collective::Scatterv, Algorithm::Traff, &call, late);
    assert!(
        matches!(fault, ScheduleFault::Step { rank: 1, problem: Problem::Late, .. }),
        "{fault}"
    );
}
