//! What checking finds.

use std::fmt;

use crate::{Buffer, CallError, Flag, Range};

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
    /// The rank that it waits for.
    pub peer: u32,
    pub awaited: Awaited,
}

/// What a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A receive of what this rank sends.
    Receive,
    /// A message.
    Message,
    /// That the flag has been raised to a value.
    Flag(Flag, u32),
    /// The end of a turn with shared memory.
    Finish,
}

/// What is wrong with a sequence of calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("call {call}: {fault}")]
pub struct SequenceFault {
    /// The place of the call in the sequence, from 0 on.
    pub call: usize,
    pub fault: ScheduleFault,
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
    /// A turn with shared memory has no end, so that nobody may ever use its memory again.
    #[error("rank {rank} ends after {finished} turns with shared memory; it announced {announced}")]
    Turns {
        rank: u32,
        finished: u64,
        /// [`Needs::turns`](crate::Needs::turns).
        announced: u64,
    },
    /// The ranks of a node would not agree where in shared memory the next call begins.
    #[error(
        "rank {rank} takes {turns} turns with shared memory, rank {other} of its node {others}"
    )]
    UnequalTurns { rank: u32, turns: u64, other: u32, others: u64 },
    /// Calls one after the other are of the same ranks, on the same nodes.
    #[error(
        "{ranks} ranks on {nodes} nodes, after a call of {wanted} ranks on other nodes or as many"
    )]
    OtherRanks { ranks: u32, nodes: u32, wanted: u32 },
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
    /// Only its owner writes what is shared.
    #[error("{0:?} is written, which another rank owns")]
    NotOwner(Range),
    /// What others may write at the same time can't be sent or received.
    #[error("{0:?} is shared, but part of a message")]
    SharedMessage(Range),
    /// No other rank of the same node.
    #[error("rank {0} is no other rank of this node")]
    NotOnNode(u32),
    /// A turn is finished before the next one begins.
    #[error("a step of turn {0} in turn {1} of the call")]
    OtherTurn(u32, u64),
    /// A flag only grows.
    #[error("{0:?} is raised to {1}, which it is already")]
    NotRising(Flag, u32),
    /// A flag rises from 1 on.
    #[error("{0:?} is awaited at 0, which no signal tells")]
    NoSignal(Flag),
    /// The flag gets there by a later signal than the one that is meant.
    #[error("{flag:?} of rank {rank} is awaited at {value}, to which it is never raised")]
    Unsignalled { rank: u32, flag: Flag, value: u32 },
    /// Two accesses of which at least one writes, with nothing that orders them.
    #[error("element {element} of {buffer:?} {conflict} by rank {other}")]
    Race {
        buffer: Buffer,
        element: u64,
        conflict: Conflict,
        /// Who else has access.
        other: u32,
    },
    /// A rank says that it knows of all, but doesn't.
    #[error("rank {0} may not have begun the turn")]
    NotBegun(u32),
    /// A rank would write on without looking, though some other is not known to be done.
    #[error("rank {0} may not have finished the turn that used the same memory")]
    NotFinished(u32),
}

/// How two accesses to shared memory get in each other's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// It is read before, or while, it is written.
    ReadEarly,
    /// It is read though it may be written anew already.
    ReadLate,
    /// It is written though it may still be read.
    WrittenEarly,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conflict::ReadEarly => "is read, but may not be written yet",
            Conflict::ReadLate => "is read, but may be written anew",
            Conflict::WrittenEarly => "is written, but may still be read",
        })
    }
}
