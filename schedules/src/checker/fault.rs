//! What checking finds.

use crate::{Buffer, CallError, Range};

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
    pub rank: u32,
    pub peer: u32,
    /// Whether for a receive of what was sent (or for a message, to be received).
    pub sending: bool,
}

/// What is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleFault {
    /// The call can't be served.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A step that no executor could carry out.
    #[error("rank {rank}, round {round}: {problem}")]
    Step {
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
    Unwaited { rank: u32, slot: u32 },
    /// The result is wrong.
    #[error("rank {rank} ends with {found} in element {element}; expected {wanted}")]
    Result {
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
