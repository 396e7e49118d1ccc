use serde::{Deserialize, Serialize};

use super::parameters::Estimate;
use crate::{Collective, Method};

/// Constants of single algorithms, fitted to the times of the collectives themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Algorithms {
    /// The records of these times, in the run's directory.
    pub records: Vec<String>,
    /// By collective, method and model.
    pub fits: Vec<AlgorithmFit>,
}

/// Hockney's parameters as one algorithm shows them: with them the model's form of the algorithm
/// gives its times.
///
/// They hold with segments of any size. What combining takes is not among them: the forms of
/// reductions combine as many bytes as they move, so that times do not tell the one from the other;
/// it is the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlgorithmFit {
    /// Of which collective.
    pub collective: Collective,
    /// The library's algorithm or Colibri's, without segments.
    pub method: Method,
    /// Whose forms: `hockney`, those of the paper's tables; `refined`.
    pub model: String,
    pub alpha_seconds: Estimate,
    pub beta_seconds_per_byte: Estimate,
    /// Share of the variance of the times that the form explains.
    pub r_squared: f64,
    /// How far times are from the form, relative to the times: the median over the points.
    pub median_residual: f64,
    /// What it was fitted to.
    pub points: Vec<TimedPoint>,
}

/// The time of a method at one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimedPoint {
    /// Number of processes.
    pub procs: u32,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// Segment size; 0 is unsegmented.
    pub segment_bytes: u64,
    /// Median of the observations.
    pub seconds: f64,
    /// How far it lies above the form.
    pub residual_seconds: f64,
}
