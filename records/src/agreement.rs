//! `agreement.json`: where two decision functions differ, and what that makes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Collective, Method, Point, document::Document, platform::Platform};

/// Two decision functions compared by measurements that belong to neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// What was measured on.
    pub platform: Platform,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// The one decision function, as in `penalty.json`.
    pub first: String,
    pub second: String,
    /// Points at which both decide.
    pub points: u32,
    /// Points at which they take different methods.
    pub differing: u32,
    /// Of these, points at which not both methods were measured.
    pub not_measured: u32,
    /// The relative difference from which on it matters.
    pub tolerance: f64,
    /// Points whose midmeans differ by more than the tolerance.
    pub beyond: u32,
    /// The jobs that measured.
    pub jobs: u32,
    /// Of the points beyond, those where that is significant, by a one-sided test over the jobs (Student's t of
    /// the logarithms of the ratios in each) corrected for the number of differing points (Holm), at 5 %.
    pub significantly_beyond: u32,
    /// The greatest relative difference.
    pub greatest: f64,
    /// Where they differ and both were measured: ascending by collective, procs, bytes.
    pub differences: Vec<Difference>,
}

impl Document for Agreement {
    const SCHEMA: &'static str = "colibri/agreement/1";
}

/// A point at which two decision functions take different methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    #[serde(flatten)]
    pub point: Point,
    /// What the first one takes.
    pub first: Method,
    /// Its midmean over all observations.
    pub first_seconds: f64,
    /// What the second one takes.
    pub second: Method,
    /// Its midmean over all observations.
    pub second_seconds: f64,
    /// The slower over the faster, less 1.
    pub difference: f64,
    /// Corrected probability of a difference beyond the tolerance at least as clear, if there were
    /// none.
    pub p_value: f64,
}
