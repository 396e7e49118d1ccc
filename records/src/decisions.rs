//! What models decide: which method each takes at each point of a grid.

use std::collections::BTreeMap;

use crate::{Collective, Method, Point};

/// One decision function per model, tabulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// Where the parameters come from: a preset or a calibration file.
    pub calibration: String,
    /// `printed` or `corrected` closed forms.
    pub forms: String,
    /// `measured` or `fitted` parameters.
    pub parameters: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// The decisions: ascending by collective, model, procs, bytes.
    pub decisions: Vec<Decision>,
}

/// What one model takes at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub point: Point,
    /// The model that decided.
    pub model: String,
    /// The cheapest method.
    pub method: Method,
    /// Its predicted time.
    pub seconds: f64,
    /// Lower end of that prediction's interval (95 %).
    pub low_seconds: f64,
    /// Upper end of that prediction's interval (95 %).
    pub high_seconds: f64,
    /// Other methods that the uncertainty of the parameters does not tell apart, cheapest first.
    pub ties: Vec<Method>,
    /// The point lies beyond what the calibration measured: more processes than its platform has,
    /// or a larger message than its largest.
    pub extrapolated: bool,
}
