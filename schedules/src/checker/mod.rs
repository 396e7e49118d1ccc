//! Executes a schedule on symbols and proves it right for one call.
//!
//! Every element of every buffer holds a symbol: which contributions it is made of, in which
//! order. The checker demands that every rank ends with exactly the right ones, that nothing is
//! looked at before it is there or changed while it is under way, that every message is received
//! in its length and every slot waited for, and that nothing deadlocks though a send may block
//! until its receive is posted (rendezvous).

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
/// A rank begins with the next call when it has ended one, however far others are. What one execution
/// proves doesn't depend on the order in which the ranks go on, but which fault is found first does.
///
/// # Errors
/// The first thing that is wrong.
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
