//! Executes a schedule on symbols and proves it right for one call.
//!
//! Every element of every buffer holds a symbol: which contributions it is made of, in which
//! order. The checker demands that every rank ends with exactly the right ones, that nothing is
//! looked at before it is there or changed while it is under way, that every message is received
//! in its length and every slot waited for, and that nothing deadlocks though a send may block
//! until its receive is posted (rendezvous).

mod expectation;
mod machine;
mod memory;
mod values;

use records::Collective;

use crate::{Buffer, Call, CallError, Entry, Needs, Range, Round};

/// Whatever can be checked: an [`Entry`], or a schedule that isn't registered.
pub trait Schedule {
    /// The collective that it is to carry out.
    fn collective(&self) -> Collective;
    /// As [`Entry::check_everywhere`].
    ///
    /// # Errors
    /// The call can't be served.
    fn check(&self, call: &Call<'_>) -> Result<(), CallError>;
    /// As [`Entry::round`].
    fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool;
    /// As [`Entry::needs`].
    fn needs(&self, call: &Call<'_>, rank: u32) -> Needs;
}

impl Schedule for Entry {
    fn collective(&self) -> Collective {
        self.collective
    }

    fn check(&self, call: &Call<'_>) -> Result<(), CallError> {
        self.check_everywhere(call)
    }

    fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        Entry::round(self, call, rank, index, out)
    }

    fn needs(&self, call: &Call<'_>, rank: u32) -> Needs {
        Entry::needs(self, call, rank)
    }
}

/// What a correct schedule did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Number of messages.
    pub messages: u64,
    /// Elements in all of them, headers apart.
    pub elements: u64,
    /// Elements combined.
    pub combined: u64,
}

/// A rank that waits forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// Who waits.
    pub rank: u32,
    /// For whom.
    pub peer: u32,
    /// Whether for a receive of what was sent (or for a message, to be received).
    pub sending: bool,
}

/// What is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The call can't be served.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A step that no executor could carry out.
    #[error("rank {rank}, round {round}: {problem}")]
    Step {
        /// Whose step.
        rank: u32,
        /// In which round.
        round: u64,
        /// What is wrong with it.
        problem: Problem,
    },
    /// Ranks wait for each other, or for messages that nobody sends or receives.
    #[error("deadlock; blocked: {0:?}")]
    Deadlock(Vec<Blocked>),
    /// The program ended with a slot that was not waited for.
    #[error("rank {rank} ends with slot {slot} busy")]
    Unwaited {
        /// Whose slot.
        rank: u32,
        /// Which.
        slot: u32,
    },
    /// The result is wrong.
    #[error("rank {rank} ends with {found} in element {element}; wanted {wanted}")]
    Result {
        /// Whose result.
        rank: u32,
        /// Where in the receive buffer.
        element: u64,
        /// What is there.
        found: String,
        /// What should be there.
        wanted: String,
    },
}

/// What is wrong with a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Beyond the number of slots.
    #[error("there is no slot {0}")]
    NoSlot(u32),
    /// Posted again without a wait.
    #[error("slot {0} is posted while it is busy")]
    Busy(u32),
    /// Nothing was posted there.
    #[error("slot {0} is waited for, but idle")]
    Idle(u32),
    /// No such rank, or the rank itself.
    #[error("there is no peer {0}")]
    NoPeer(u32),
    /// A ready send without a receive that is known to be posted.
    #[error("a ready send to rank {0}, whose receive may not be posted yet")]
    NotReady(u32),
    /// Beyond the end of the buffer.
    #[error("{0:?} is longer than its buffer, which has {1}")]
    Bounds(Range, u64),
    /// A buffer that is read only.
    #[error("{0:?} is written, which is the user's")]
    ReadOnly(Buffer),
    /// The header is not whole when round 0 ends.
    #[error("the header is written, or being received, after round 0")]
    Late,
    /// Read where nothing is yet, or where a receive is under way.
    #[error("{0:?} is read, but element {1} has no value yet")]
    NoValue(Range, u64),
    /// What was being sent, or received into, was written.
    #[error("{0:?} is changed while it is under way")]
    Changed(Range),
    /// Sent and received lengths, or the lengths of two operands, differ.
    #[error("{0} elements meet {1}")]
    Length(u64, u64),
    /// The two ranges of a copy or a combination have elements in common.
    #[error("{0:?} overlaps {1:?}")]
    Overlap(Range, Range),
    /// Counts and elements in one message, copy or combination.
    #[error("{0:?} meets {1:?}")]
    Kind(Buffer, Buffer),
    /// A contribution would be in a sum twice, or sums of different elements.
    #[error("{0} can't be combined with {1}")]
    Combination(String, String),
}

/// Executes the schedule for one call, with all of its ranks.
///
/// `call` is what all ranks agree on: for a collective with a root, `in_place` is the root's, and
/// v-forms hold all `counts`; the checker shows each rank what it may know.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schedule: &impl Schedule, call: &Call<'_>) -> Result<Traffic, Fault> {
    schedule.check(call)?;
    machine::Machine::new(schedule, call).run()
}

#[cfg(test)]
mod tests;
