//! Why no decision can be made.

use records::{Algorithm, Collective};

use crate::{Model, Point, PredictError};

/// Largest message whose every segment size is tried: 2 million pieces, well below a second.
pub const AUTO_LIMIT: u64 = 1 << 40;

/// No decision can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// A candidate's time can't be predicted.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// No candidate is left.
    #[error(
        "no candidate for {} of {} bytes on {}: {reason}",
        .point.collective, .point.bytes, .point.layout.in_words()
    )]
    NoCandidate { point: Point, reason: &'static str },
    /// Switching points of a model whose forms have other pieces.
    #[error(
        "model {model} has no exact switching points; the models of the paper's tables have \
         (hockney, logp, loggp, plogp)"
    )]
    Pieces { model: Model },
    /// More segments than can be searched for switching points.
    #[error("{bytes} bytes in segments of {segment_bytes} are too many; expected at most 2^20")]
    SmallSegments {
        /// The segment size.
        segment_bytes: u64,
        /// The largest message.
        bytes: u64,
    },
    /// A grid of points that is none.
    #[error("the communicator sizes and the message sizes of a grid must ascend, with one each")]
    Grid,
    /// Simulations are too slow to try every segment size.
    #[error(
        "{collective} by '{algorithm}' is simulated, which is too slow to try every segment \
         size; list them"
    )]
    Simulated {
        /// Of which collective.
        collective: Collective,
        algorithm: Algorithm,
    },
    /// The message is too large to try every segment size.
    #[error(
        "{bytes} bytes are too many to try every segment size (at most {AUTO_LIMIT}); list them"
    )]
    TooLarge { bytes: u64 },
}
