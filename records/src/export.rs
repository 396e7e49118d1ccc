//! What goes with an exported file: which decisions its target could not express, and what that
//! costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Collective, Method, Point,
    confirmed::{LoadVerdict, LoadedCounts},
    document::Document,
};

/// The companion of an exported file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportReport {
    /// Who loads the file: `Open MPI 4.1`.
    pub target: String,
    /// The files written, or none where the export went to stdout.
    pub files: Vec<String>,
    /// Whether to load the file.
    pub verdict: LoadVerdict,
    /// At how many points it replaces the default.
    pub counts: LoadedCounts,
    /// Whether times are `confirmed`, `measured` or `predicted`.
    pub basis: String,
    /// Where the decisions come from.
    pub origin: Vec<String>,
    /// What a message size means here, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// What it means in the exported file, where that is something else.
    pub message_size_in_target: BTreeMap<Collective, String>,
    /// How many decisions there were.
    pub decisions: u64,
    /// Those that the target can't express: ascending by collective, procs, bytes.
    pub unexpressed: Vec<InexpressibleDecision>,
}

impl Document for ExportReport {
    const SCHEMA: &'static str = "colibri/export/1";
}

/// A decision that the target can't express.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InexpressibleDecision {
    #[serde(flatten)]
    pub point: Point,
    /// What was decided.
    pub method: Method,
    pub seconds: f64,
    /// Why the target can't express it.
    pub reason: String,
    /// What is exported instead.
    pub exported: Method,
    /// Its time, where it is known.
    pub exported_seconds: Option<f64>,
    /// Relative loss: `exported_seconds / seconds - 1`.
    pub loss: Option<f64>,
}
