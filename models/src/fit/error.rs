//! Why observations give no parameters.

use records::{group_observation::GroupKind, observation::PointToPointKind};

use super::{sample::LEAST, words::kind_name};

/// The observations do not give the parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Too few usable observations of something that cannot be done without.
    #[error(
        "{} observations{} are missing: {purpose}; expected at least {} each besides warm-ups",
        kind_name(*.kind), bytes.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default(),
        LEAST
    )]
    Missing {
        /// What was to be timed.
        kind: PointToPointKind,
        /// At which message size; `None` is any.
        bytes: Option<u64>,
        /// What they are needed for.
        purpose: &'static str,
    },
    /// Too few message sizes for a line.
    #[error(
        "{} observations are usable at {sizes} message size(s) only; expected at least 2 for a line",
        kind_name(*.kind)
    )]
    Sizes {
        /// What was timed.
        kind: PointToPointKind,
        /// At how many sizes.
        sizes: usize,
    },
    /// An observation is no time.
    #[error(
        "{} of {bytes} bytes, repetition {repetition}: {seconds} seconds; expected a finite time \
         of at least 0",
        kind_name(*.kind)
    )]
    Observation {
        /// What was timed.
        kind: PointToPointKind,
        /// At which message size.
        bytes: u64,
        repetition: u32,
        /// What it says.
        seconds: f64,
    },
    /// An observation of several ranks is no time.
    #[error(
        "{kind:?} of {bytes} bytes, {procs} ranks, repetition {repetition}: {seconds} seconds, \
         {messages} messages; expected a finite time of at least 0 and at least one message"
    )]
    Group {
        /// What was timed.
        kind: GroupKind,
        /// At which message size.
        bytes: u64,
        procs: u32,
        repetition: u32,
        /// What it says.
        seconds: f64,
        messages: u32,
    },
    /// Of messages between pairs there is none there and back.
    #[error("there is no ping-pong: L cannot be determined")]
    NoPingPong,
    /// One pair sent messages in a row of fewer than three sizes.
    #[error(
        "messages in a row of one pair are missing at three sizes: g and G cannot be determined"
    )]
    FewSizesInARow,
}
