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
mod schedule;
mod values;
mod verdict;

use crate::Call;

pub use fault::{Blocked, Problem, ScheduleFault, Traffic};
pub use schedule::CheckedSchedule;

/// Executes the schedule for one call, with all of its ranks.
///
/// `call` is what all ranks agree on: for a collective with a root, `in_place` is the root's, and
/// v-forms hold all `counts`; the checker shows each rank what it may know.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schedule: &impl CheckedSchedule, call: &Call<'_>) -> Result<Traffic, ScheduleFault> {
    schedule.check(call)?;
    machine::CheckingMachine::new(schedule, call).run()?.verdict()
}

/// Executes the schedule as [`check`] does, but that messages end before their receives are posted, unless they
/// are synchronous, and one rank is held back: it does a step only when none of the others can go on. The most
/// messages of one rank to another that came before their receives were posted.
///
/// # Errors
/// As [`check`].
pub fn most_ahead(
    schedule: &impl CheckedSchedule,
    call: &Call<'_>,
    late: u32,
) -> Result<usize, ScheduleFault> {
    schedule.check(call)?;
    let machine = machine::CheckingMachine::new(schedule, call).run_ahead_of(late)?;
    let most = machine.most_ahead;
    machine.verdict()?;
    Ok(most)
}

#[cfg(test)]
mod tests;
