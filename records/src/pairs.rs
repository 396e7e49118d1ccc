//! `pairs.json`: how fast every rank sends to every other.

use serde::{Deserialize, Serialize};

use crate::{calibration::Estimate, document::Document, platform::Platform};

/// A rank that took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its world rank.
    pub rank: u32,
    pub host: String,
}

/// From one rank to another; the other direction is a link of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// World rank that sends the bytes.
    pub sender: u32,
    /// World rank that receives them.
    pub receiver: u32,
    /// An empty message there and an empty one back.
    pub empty_seconds: Estimate,
    /// What a byte adds when it travels in messages of the map's size.
    pub seconds_per_byte: Estimate,
}

/// What stands out, in words and by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rank that is slow to send, if the fault is on that side.
    pub sender: Option<u32>,
    /// The rank that is slow to receive, if it is on that side.
    pub receiver: Option<u32>,
    /// Its time over that of the others.
    pub factor: f64,
    /// In words: `node 3 receives at half the rate of the others`.
    pub text: String,
}

/// The links between ranks, and which of them stand out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairMap {
    /// What was measured on.
    pub platform: Platform,
    /// Whether the members are one rank of each node; else several share a node.
    pub one_per_node: bool,
    /// Size of the messages, beside the empty ones.
    pub bytes: u64,
    /// Pairs that were measured at the same time.
    pub at_once: u32,
    /// The ranks, ascending.
    pub members: Vec<Member>,
    /// What was measured, by sender and receiver.
    pub links: Vec<Link>,
    /// What stands out, the worst first.
    pub findings: Vec<Finding>,
    /// What a reader must know, such as links that were not reached.
    pub warnings: Vec<String>,
}

impl Document for PairMap {
    const SCHEMA: &'static str = "colibri/pairs/1";
}
