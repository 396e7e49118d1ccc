//! What a simulation is given, and what comes out.

use crate::CallError;

/// What isn't in the call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Size of an element.
    pub element_bytes: u64,
    /// Messages from this size on are sent by rendezvous; none: all are eager.
    pub rendezvous_bytes: Option<u64>,
    /// What a rendezvous takes before its message may leave, in seconds, where the receive is
    /// posted when it is offered: half of it until the receiver knows, half of it back. 0: a
    /// message may leave as soon as both sides are there. None: a message of no bytes flies both
    /// ways ([`Costs::flight`](super::Costs::flight)).
    pub handshake: Option<f64>,
    /// How messages at the same time get through a port. What is sent by rendezvous knows
    /// [`Ports::InTurn`] alone.
    pub ports: Ports,
}

/// How messages at the same time get through a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// One after the other, in the order in which they come: `LogGP` as it stands.
    #[default]
    InTurn,
    /// All together, each with the same bytes per second; those of one pair of ranks one after the
    /// other. Connections share a link so.
    Shared,
    /// As [`Self::Shared`], but for the last frame of each message, of so many bytes: a port sends whole frames, each
    /// message's in its turn. Messages of one frame pass one after the other. Where nodes share ports
    /// it is the same as [`Ports::Shared`].
    Frames(u64),
}

impl Default for Options {
    /// Bytes, all messages eager: what the closed forms assume.
    fn default() -> Self {
        Options { element_bytes: 1, rendezvous_bytes: None, handshake: None, ports: Ports::InTurn }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// When the last rank has finished, in seconds from the common start.
    pub seconds: f64,
    /// When each rank has.
    pub finish: Vec<f64>,
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all of them.
    pub bytes: u64,
    /// How many ranks of one node are busy at once, and so slow each other down, on average over the call: on the node
    /// where most are; none where no rank slows another down.
    pub busy: Option<f64>,
}

/// Something that takes time, for a space-time diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activity {
    pub rank: u32,
    pub kind: ActivityKind,
    /// When it begins, in seconds.
    pub begin: f64,
    /// When it ends.
    pub end: f64,
    /// Bytes of the message or the operand.
    pub bytes: u64,
}

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ActivityKind {
    /// The processor sends.
    Send { to: u32 },
    /// The processor takes a message in.
    Receive {
        from: u32,
        /// When the message left the sender's processor.
        left: f64,
    },
    /// The processor sees a flag in shared memory, at the end of its wait for it.
    Flag {
        of: u32,
        /// When it was raised.
        raised: f64,
    },
    /// The processor waits for nothing else to do.
    Wait,
    /// The processor combines.
    Combine,
    /// The processor copies.
    Copy,
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The call can't be served.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What memory costs that ranks share is not known.
    #[error("shared memory is not simulated")]
    SharedMemory,
    /// The schedule is wrong, which the checker would explain.
    #[error("{blocked} ranks wait forever, rank {first} among them")]
    Deadlock {
        blocked: u32,
        /// The lowest of them.
        first: u32,
    },
    /// The costs are of other ranks.
    #[error("costs of {ranks} ranks on their nodes for a call of {call} ranks")]
    OtherRanks {
        /// Of the costs.
        ranks: u32,
        /// Of the call.
        call: u32,
    },
    /// The call lasts longer than was asked for.
    #[error("it lasts longer than was asked for")]
    Longer,
    /// More sends and receives under way than can be numbered.
    #[error("{ranks} ranks with more than {} sends and receives under way", u32::MAX)]
    Memory {
        /// Of the call.
        ranks: u32,
    },
}
