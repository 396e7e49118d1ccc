//! `summary.json`: what a tuning run gained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Collective, Method, document::Document, platform::Platform};

/// What the library's default costs and what the tuned choice costs, measured with the exported
/// file loaded, in jobs made after the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What was measured on.
    pub platform: Platform,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// Points decided on, those left to the default included.
    pub points: u32,
    /// Points at which the exported file replaces the default, ascending.
    pub gains: Vec<Gain>,
    /// Points taken out because the loaded file was not faster there than the default.
    pub taken_out: Vec<TakenOut>,
    /// Geometric mean of the speed-ups over all points, those left to the default counting 1.
    pub mean_speed_up: f64,
    /// Calls made with the file loaded for which it was seen which algorithm ran.
    pub calls_observed: u64,
    /// Those of them that ran what the file says.
    pub calls_as_told: u64,
    /// What the choices are expected to cost still, where the measuring was focused.
    #[serde(default)]
    pub regret: Option<Regret>,
    /// The exported file, relative to the run's directory.
    pub file: String,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl Document for Summary {
    const SCHEMA: &'static str = "colibri/summary/1";
}

/// How much slower than the best methods the chosen ones are expected to be, relative to their
/// times, by the models and what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// Over all points.
    pub mean: f64,
    /// At the worst point.
    pub greatest: f64,
}

/// What the exported file gains at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The collective.
    pub collective: Collective,
    /// Communicator size.
    pub procs: u32,
    /// Message size.
    pub bytes: u64,
    /// What the file takes.
    pub method: Method,
    /// Median time of the library's default.
    pub default_seconds: f64,
    /// Median time with the file loaded.
    pub tuned_seconds: f64,
    /// default / tuned.
    pub speed_up: f64,
}

/// A point that the confirmation took out of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakenOut {
    /// The collective.
    pub collective: Collective,
    /// Communicator size.
    pub procs: u32,
    /// Message size.
    pub bytes: u64,
    /// What had been measured best.
    pub method: Method,
    /// default / tuned, as the confirmation saw it.
    pub speed_up: f64,
}
