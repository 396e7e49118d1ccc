//! `calibration.json`: the parameters of one platform.
//!
//! Lists that a measurement did not fill are absent from the file; files written before there was
//! such a list are read as if it were empty.

mod algorithms;
mod parameters;
mod validate;

use serde::{Deserialize, Serialize};

use crate::{document::Document, platform::Platform};
pub use algorithms::{AlgorithmFit, Algorithms, TimedPoint};
pub use parameters::{
    Estimate, Gamma, GammaKnot, GapKnot, HockneyEstimates, HockneyKnot, LogGpEstimates, ManyGap,
    Operation, PLogPEstimates, PLogPKnot, Parameters, ProtocolChange,
};

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

/// The parameters of one platform and where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Where the values come from: a preset's name, or the record they were fitted from.
    pub source: String,
    /// What was measured on.
    pub platform: Platform,
    /// Taken from point-to-point measurements.
    pub measured: Parameters,
    /// Fitted to measurements of collectives, where these were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Parameters>,
    /// The lines behind the fitted parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<LineFit>,
    /// Constants of single algorithms, where their collectives were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithms: Option<Algorithms>,
    /// What a reader must know: not reached within the budget, measured under load, ...
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Document for Calibration {
    const SCHEMA: &'static str = "colibri/calibration/1";

    fn validate(&self) -> Result<(), (String, String)> {
        validate::parameters("measured", &self.measured)?;
        if let Some(fitted) = &self.fitted {
            validate::parameters("fitted", fitted)?;
        }
        self.algorithms.as_ref().map_or(Ok(()), |it| validate::algorithms(&it.fits))
    }
}
