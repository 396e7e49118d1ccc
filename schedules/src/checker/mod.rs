//! Executes schedules on symbols and proves them right, for one call or for one after the other.
//!
//! Every element of every buffer holds a symbol: which contributions it is made of, in which
//! order. The checker demands that every rank ends with exactly the right ones, that nothing is
//! looked at before it is there or changed while it is under way, that every message is received
//! in its length and every slot waited for, and that nothing deadlocks though a send may block
//! until its receive is posted (rendezvous).
//!
//! # Memory that ranks share
//!
//! Of two accesses to one element of which at least one writes, one must happen before the other, whatever the
//! pace of the ranks. A vector clock for each rank tells it: how many posts (signals, ends of turns,
//! messages) of each other rank have happened before what the rank does now. One execution in any
//! order proves it for all, as the clocks are the same in each:
//!
//! - A call is straight-line: what a rank does depends on the call alone, never on what it reads.
//! - A flag has one writer and only grows: every `Signal` raises it. Who awaits a value knows what the writer
//!   knew when it raised the flag *to this value*, even if the flag is further on by the time that the rank
//!   looks. The writer must signal just that value.
//! - A message tells its receiver, when the receive is complete, what the sender knew when it sent. It tells
//!   the sender nothing.
//! - `AwaitFinished` tells what each rank of the node knew when it finished the turn in question. Where the rank
//!   knows by `all_have_begun` that all have finished it, it asks nobody and learns nothing, as executors do:
//!   the ends of that turn must then have happened before by its clock.
//! - `Finish { all_have_begun: true }` is true: by the rank's clock, each rank of the node has begun the turn.
//!
//! Ranks share memory with those of their node alone ([`Call::nodes`]; without it all are on one). The owner alone
//! writes, within [`Call::shared`] and [`Call::line`] elements. Turns count through all calls of a sequence; each
//! rank does the steps of a turn, finishes it, and then begins the next one, and all ranks of a node take
//! as many in a call. A turn's memory is that of the turn [`SHARED_DEPTH`] or [`LINE_DEPTH`] before. The first
//! write of a turn there asks that *all* reads of the turns before have happened, as elements may have
//! been of another size then. What was written in other turns can't be read.
//!
//! Memory is shared only by calls whose elements lie one after the other without gaps, so that in these calls no two
//! elements of a user's buffer overlap. Elsewhere those of different blocks may.
//!
//! What is proved is so for the given calls. That a call never harms *any* other is tested with
//! random sequences, and with mutants: each step that is left out or out of its place is noticed in some sequence.
//!
//! [`SHARED_DEPTH`]: crate::shared::SHARED_DEPTH
//! [`LINE_DEPTH`]: crate::shared::LINE_DEPTH

mod expectation;
mod fault;
mod machine;
mod memory;
mod order;
mod schedule;
mod shared;
mod turns;
mod values;
mod verdict;

use crate::Call;

pub use fault::{Awaited, Blocked, Conflict, Problem, ScheduleFault, SequenceFault, Traffic};
pub use order::Order;
pub use schedule::CheckedSchedule;

/// Executes the schedule for one call, with all of its ranks.
///
/// `call` is what all ranks agree on: for a collective with a root, `in_place` is the root's, and
/// v-forms hold all `counts`; the checker shows each rank what it may know.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schedule: &impl CheckedSchedule, call: &Call<'_>) -> Result<Traffic, ScheduleFault> {
    check_sequence(&[(schedule, *call)], Order::Ranks).map_err(|fault| fault.fault)
}

/// Executes calls one after the other, all of the same ranks on the same nodes: each as for [`check`].
///
/// A rank begins with the next call as soon as it has ended one, however far others are; shared memory and its
/// turns go on. Races are found in every order; which fault is found first depends on it.
///
/// # Errors
/// The first thing that is wrong, and in which call.
pub fn check_sequence(
    calls: &[(&dyn CheckedSchedule, Call<'_>)],
    order: Order,
) -> Result<Traffic, SequenceFault> {
    check_in(calls, order, shared::Depths::default())
}

fn check_in(
    calls: &[(&dyn CheckedSchedule, Call<'_>)],
    order: Order,
    depths: shared::Depths,
) -> Result<Traffic, SequenceFault> {
    for (number, (schedule, call)) in calls.iter().enumerate() {
        let served = schedule.check(call).map_err(ScheduleFault::from);
        let served = served.and_then(|()| turns::verify_ranks(calls, *schedule, call));
        served.map_err(|fault| SequenceFault { call: number, fault })?;
    }
    let mut machine = machine::CheckingMachine::new(calls, order, depths);
    machine.run()?;
    machine.verify_end()?;
    Ok(machine.traffic)
}

#[cfg(test)]
mod tests;
