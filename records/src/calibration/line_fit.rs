//! Lines fitted to times of collectives over the number of processes.

use serde::{Deserialize, Serialize};

/// A line fitted to the times of a collective over the number of processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineFit {
    /// What was timed: `flat-tree barrier`, `pipelined bcast`.
    pub experiment: String,
    /// Message size; 0 for a barrier.
    pub bytes: u64,
    /// Time at 0 processes, by the line; a number that may be below 0.
    pub intercept_seconds: f64,
    /// Time per further process.
    pub slope_seconds: f64,
    /// Share of the variance between numbers of processes that the line explains.
    pub r_squared: f64,
    /// What it was fitted to, by ascending number of processes.
    pub points: Vec<FitPoint>,
}

/// One point of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitPoint {
    /// Number of processes.
    pub procs: u32,
    /// Median of the observations.
    pub seconds: f64,
    /// How far it lies above the line.
    pub residual_seconds: f64,
}
