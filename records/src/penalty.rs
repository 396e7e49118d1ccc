//! `penalty.json`: what it costs to follow a decision function instead of the measured best.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Collective, Method, document::Document, platform::Platform};

/// The penalty of every decision function at every measured point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalties {
    /// What was measured on.
    pub platform: Platform,
    /// How a call was timed.
    pub timing: String,
    /// How the best was chosen and timed.
    pub best: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// One per collective and decision function.
    pub summaries: Vec<Summary>,
    /// One per collective, decision function, procs and bytes, ascending in this order.
    pub penalties: Vec<Penalty>,
    /// What a reader must know: cells without observations, methods that fell back, ...
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Document for Penalties {
    const SCHEMA: &'static str = "colibri/penalty/1";
}

/// One decision function's penalties, summed up. All are fractions: 0.05 is 5 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The collective.
    pub collective: Collective,
    /// Whose decision: a model's name, `default` or `measured`.
    pub decided_by: String,
    /// Points with a penalty.
    pub points: u32,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub percentile_95: f64,
    /// Greatest.
    pub greatest: f64,
}

/// What a decision costs at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// The collective.
    pub collective: Collective,
    /// Whose decision: a model's name, `default` or `measured`.
    pub decided_by: String,
    /// Communicator size.
    pub procs: u32,
    /// Message size.
    pub bytes: u64,
    /// The method decided for.
    pub decided: Method,
    /// Its measured median.
    pub decided_seconds: f64,
    /// The method measured best.
    pub best: Method,
    /// Its measured median, from observations that did not choose it.
    pub best_seconds: f64,
    /// decided / best - 1, not below 0 where the decision is the best itself.
    pub penalty: f64,
}
