//! What messages and copies cost ranks that share the memory of one node.

use serde::{Deserialize, Serialize};

use super::parameters::Estimate;

/// A message inside a node is copied in by its sender's processor and out by its receiver's, and ranks that are busy
/// at the same time slow each other down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryParameters {
    /// A message that was written just before, while all other ranks wait; at measured sizes, ascending.
    pub messages: Vec<MemoryMessageKnot>,
    /// By how much longer a message takes while more ranks are busy, by ascending number of these.
    pub slowdown: Vec<Slowdown>,
    /// Copying within the memory of one rank, by ascending number of ranks that do so at once.
    pub copies: Vec<CopyTimes>,
    /// What combining takes beside gamma, where operands come from elsewhere; none: it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combining_start_seconds: Option<Estimate>,
    /// So many consecutive ranks share a cache: messages between them are not slowed down, and slow nobody down;
    /// none: not known, as if there were no such caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks_per_cache: Option<u32>,
    /// What algorithms of shared memory do without messages; none: it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedAccess>,
}

/// What ranks do with memory that all ranks of their node share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedAccess {
    /// From raising a flag until another rank sees it.
    pub flag_seconds: Estimate,
    /// What each further flag takes that a rank looks at.
    pub further_flag_seconds: Estimate,
    /// Copying what another rank has just written, by ascending number of ranks that do so at once.
    pub reads: Vec<CopyTimes>,
}

/// A message of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MemoryMessageKnot {
    pub bytes: u64,
    /// From the start of the send to the end of the receive.
    pub trip_seconds: Estimate,
    /// What of that the sender's processor is busy.
    pub send_seconds: Estimate,
    /// What of that the receiver's processor is busy. Where both are more than the trip together, they copy at the
    /// same time, in pieces.
    pub receive_seconds: Estimate,
}

/// While so many ranks are busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// 2 or more.
    pub busy_ranks: u32,
    /// At measured sizes, ascending.
    pub knots: Vec<SlowdownKnot>,
}

/// The slowdown of messages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlowdownKnot {
    pub bytes: u64,
    /// Relative to the two ranks of one message.
    pub factor: Estimate,
}

/// While so many ranks copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyTimes {
    /// 1 or more.
    pub busy_ranks: u32,
    /// At measured sizes, ascending.
    pub knots: Vec<CopyKnot>,
}

/// Copying so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CopyKnot {
    pub bytes: u64,
    pub seconds: Estimate,
}
