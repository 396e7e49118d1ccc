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
    /// What of these numbers is noise, per collective.
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// On a virtual cluster: how much slower its links are when all are busy.
    #[serde(default)]
    pub busy_links: Vec<BusyLinks>,
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
    /// Whose decision: a model's name, `default`, `measured`, or the name given to a file.
    pub decided_by: String,
    /// Points with a penalty.
    pub points: u32,
    /// Points that have none, since the method decided for was not measured there.
    #[serde(default)]
    pub not_measured: u32,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub percentile_95: f64,
    /// Greatest.
    pub greatest: f64,
}

/// How values are distributed. All are fractions: 0.05 is 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub percentile_95: f64,
    /// Greatest.
    pub greatest: f64,
}

/// What two halves of the same observations say differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The collective.
    pub collective: Collective,
    /// Points compared.
    pub points: u32,
    /// Penalty of the method that is best by one half, timed on the other, against the best of that
    /// other half; both ways. What a penalty against the measured best cannot fall below but by
    /// luck.
    pub choice: Distribution,
    /// Relative difference of one method's two medians, over all methods at all points.
    pub medians: Distribution,
}

/// How long a message takes when every one of `procs` nodes sends one to the next and receives one
/// from the one before, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BusyLinks {
    /// Nodes.
    pub procs: u32,
    /// Size of each message.
    pub bytes: u64,
    /// Median time until the last has its message.
    pub seconds: f64,
    /// That time over the one among few nodes. Above 1 it is the machine's doing: on links that are
    /// real the number of nodes would not matter.
    pub slowdown: f64,
}

/// What a decision costs at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// The collective.
    pub collective: Collective,
    /// Whose decision: a model's name, `default`, `measured`, or the name given to a file.
    pub decided_by: String,
    /// Communicator size.
    pub procs: u32,
    /// Message size.
    pub bytes: u64,
    /// The method decided for.
    pub decided: Method,
    /// Its measured median.
    pub decided_seconds: f64,
    /// The method with the least median over all observations.
    pub best: Method,
    /// Time of the best, from observations that did not choose it, so that decided / best - 1 is the
    /// penalty.
    pub best_seconds: f64,
    /// decided / best - 1; slightly negative by chance.
    pub penalty: f64,
    /// The machine under the virtual cluster does not carry all links at once here; see
    /// [`Penalties::busy_links`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub machine_limited: bool,
}
