//! The parameters of the models, each with its interval.

use serde::{Deserialize, Serialize};

use super::memory::MemoryParameters;

/// A value with the interval that holds it at a confidence: 95 % where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A value taken as given (a preset's, say): its interval is the value.
    pub const fn exact(value: f64) -> Self {
        Estimate { value, low: value, high: value }
    }
}

/// Hockney: a message of m bytes takes `alpha + beta m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HockneyEstimates {
    /// Start-up time of a message.
    pub alpha_seconds: Estimate,
    /// Time per byte.
    pub beta_seconds_per_byte: Estimate,
}

/// LogP/LogGP: a message of m bytes takes `L + 2 o + (m - 1) G`; messages follow each other by
/// `g + (m - 1) G`. LogP is LogGP with G = 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogGpEstimates {
    /// L.
    pub latency_seconds: Estimate,
    /// o, of the sender and of the receiver.
    pub overhead_seconds: Estimate,
    /// g, between short messages.
    pub gap_seconds: Estimate,
    /// G.
    pub gap_seconds_per_byte: Estimate,
}

/// PLogP: a message of m bytes takes `L + g(m)`; messages follow each other by `g(m)`.
/// Its L is end to end, unlike LogGP's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PLogPEstimates {
    /// L, end to end.
    pub latency_seconds: Estimate,
    /// os, or and g at measured sizes, ascending; linear between them and beyond the last.
    pub knots: Vec<PLogPKnot>,
    /// g(m, k) of one sender to k receivers, by ascending k from 2 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_by_destinations: Vec<ManyGap>,
    /// g(m, k) of k senders to one receiver (incast), by ascending k from 2 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_by_sources: Vec<ManyGap>,
}

impl PLogPEstimates {
    /// Of messages between two ranks alone: g(m, k) was not measured.
    pub fn new(latency_seconds: Estimate, knots: Vec<PLogPKnot>) -> Self {
        PLogPEstimates {
            latency_seconds,
            knots,
            gap_by_destinations: Vec::new(),
            gap_by_sources: Vec::new(),
        }
    }
}

/// g(m, k) for one k: the least time between rounds in which one rank exchanges a message of m
/// with each of k others at once. Were the others no matter, it would be k g(m).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManyGap {
    /// k: the number of others.
    pub partners: u32,
    /// At measured sizes, ascending.
    pub knots: Vec<GapKnot>,
}

/// A gap at one message size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GapKnot {
    pub bytes: u64,
    /// The gap, of the whole round.
    pub gap_seconds: Estimate,
}

/// An operation that combines elements of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `MPI_SUM` of `double`.
    SumDouble,
    /// `MPI_SUM` of `float`.
    SumFloat,
    /// `MPI_SUM` of `int`.
    SumInt,
    /// `MPI_MAX` of `double`.
    MaxDouble,
    /// `MPI_MAX` of `float`.
    MaxFloat,
    /// `MPI_MAX` of `int`.
    MaxInt,
    /// `MPI_BXOR` of bytes.
    BxorByte,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 7] = [
        Operation::SumDouble,
        Operation::SumFloat,
        Operation::SumInt,
        Operation::MaxDouble,
        Operation::MaxFloat,
        Operation::MaxInt,
        Operation::BxorByte,
    ];

    /// The name used in files.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::SumDouble => "sum-double",
            Operation::SumFloat => "sum-float",
            Operation::SumInt => "sum-int",
            Operation::MaxDouble => "max-double",
            Operation::MaxFloat => "max-float",
            Operation::MaxInt => "max-int",
            Operation::BxorByte => "bxor-byte",
        }
    }

    /// Bytes of one element.
    pub const fn element_bytes(self) -> u64 {
        match self {
            Operation::SumDouble | Operation::MaxDouble => 8,
            Operation::SumFloat | Operation::MaxFloat => 4,
            Operation::SumInt | Operation::MaxInt => 4,
            Operation::BxorByte => 1,
        }
    }
}

/// gamma(m) of one operation: what one rank takes to combine two messages of m bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gamma {
    /// Which operation on which type.
    pub operation: Operation,
    /// At measured sizes, ascending; the largest are beyond the cache.
    pub knots: Vec<GammaKnot>,
}

/// gamma at one message size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GammaKnot {
    pub bytes: u64,
    /// Time over bytes, the call's own cost included.
    pub seconds_per_byte: Estimate,
}

/// Hockney's parameters as functions of the message size: a message of about m bytes takes
/// `alpha(m) + beta(m) m`, the line through the measured sizes next to m.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HockneyKnot {
    pub bytes: u64,
    /// alpha(m).
    pub alpha_seconds: Estimate,
    /// beta(m).
    pub beta_seconds_per_byte: Estimate,
}

/// A break in g(m), as where the MPI library goes from eager messages to rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolChange {
    /// The largest measured size below it.
    pub below_bytes: u64,
    /// The smallest measured size above it.
    pub above_bytes: u64,
}

/// The size-dependent parameters of PLogP at one message size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PLogPKnot {
    pub bytes: u64,
    /// os(m): the sender's processor is busy.
    pub send_overhead_seconds: Estimate,
    /// or(m): the receiver's processor is busy.
    pub receive_overhead_seconds: Estimate,
    /// g(m): least time between messages; covers os(m) and or(m).
    pub gap_seconds: Estimate,
}

/// How messages that leave a rank at once, to several others, share its port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortSharing {
    /// Bytes that the port sends of one message before it serves another one; none: whole messages, one after
    /// the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<Estimate>,
    /// What tells it, at measured sizes, ascending.
    pub knots: Vec<PortSharingKnot>,
}

/// When the first of two messages is answered, at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PortSharingKnot {
    pub bytes: u64,
    /// If it is sent alone.
    pub alone_seconds: Estimate,
    /// If another rank is sent as much at once.
    pub beside_seconds: Estimate,
}

/// The parameters of every model, from one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Hockney's.
    pub hockney: HockneyEstimates,
    /// LogP's and LogGP's.
    pub loggp: LogGpEstimates,
    /// PLogP's.
    pub plogp: PLogPEstimates,
    /// gamma: time to combine one byte of a reduction of doubles by `MPI_SUM`, in large messages.
    pub gamma_seconds_per_byte: Estimate,
    /// gamma(m) by operation, where it was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gamma: Vec<Gamma>,
    /// LogGP's measured by itself; `loggp` is converted from PLogP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loggp_direct: Option<LogGpEstimates>,
    /// Hockney's over the message size, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hockney_by_size: Vec<HockneyKnot>,
    /// Breaks in g(m), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocol_changes: Vec<ProtocolChange>,
    /// How messages that leave a rank at once share its port, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_sharing: Option<PortSharing>,
    /// What ranks that share the memory of one node do to each other, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryParameters>,
    /// Models whose parameters were converted from another's, such as `plogp from loggp`.
    pub derived: Vec<String>,
}

impl Parameters {
    /// The three models' own parameters; nothing else was measured, gamma is 0.
    pub fn new(hockney: HockneyEstimates, loggp: LogGpEstimates, plogp: PLogPEstimates) -> Self {
        Parameters {
            hockney,
            loggp,
            plogp,
            gamma_seconds_per_byte: Estimate::exact(0.0),
            gamma: Vec::new(),
            loggp_direct: None,
            hockney_by_size: Vec::new(),
            protocol_changes: Vec::new(),
            port_sharing: None,
            memory: None,
            derived: Vec::new(),
        }
    }
}
