//! `calibration.json`: the parameters of one platform.
//!
//! Lists that a measurement did not fill are absent from the file; files written before there was
//! such a list are read as if it were empty.

mod algorithms;
mod inside;
mod line_fit;
mod memory;
mod parameters;
mod validate;

use serde::{Deserialize, Serialize};

use crate::{document::Document, platform::Platform};
pub use algorithms::{AlgorithmFit, Algorithms, TimedPoint};
pub use inside::{InsideNode, PortGap};
pub use line_fit::{FitPoint, LineFit};
pub use memory::{
    CopyKnot, CopyTimes, MemoryMessageKnot, MemoryParameters, SharedAccess, Slowdown, SlowdownKnot,
};
pub use parameters::{
    Estimate, Gamma, GammaKnot, GapKnot, HockneyEstimates, HockneyKnot, LogGpEstimates, ManyGap,
    Operation, PLogPEstimates, PLogPKnot, Parameters, PortSharing, PortSharingKnot, ProtocolChange,
};

/// The parameters of one platform and where they come from. Where nodes hold several ranks they are
/// those between nodes, and `inside` has what holds in one.
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
    /// Inside a node; none: every rank has a node of its own, or there is one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideNode>,
    /// Constants of single algorithms, where their collectives were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithms: Option<Algorithms>,
    /// What a reader must know: not reached within the budget, measured under load, ...
    pub warnings: Vec<String>,
}

impl Document for Calibration {
    const SCHEMA: &'static str = "colibri/calibration/1";

    fn validate(&self) -> Result<(), (String, String)> {
        validate::parameters("measured", &self.measured)?;
        if let Some(fitted) = &self.fitted {
            validate::parameters("fitted", fitted)?;
        }
        if let Some(inside) = &self.inside {
            validate::inside(inside)?;
        }
        self.algorithms.as_ref().map_or(Ok(()), |it| validate::algorithms(&it.fits))
    }
}
