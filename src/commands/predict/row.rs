//! A row of what `colibri predict` prints.

use records::{Algorithm, Collective, Layout, Method};
use serde::Serialize;

/// A method's time at one point, by one model.
#[derive(Serialize)]
pub struct PredictionRow {
    pub collective: Collective,
    pub algorithm: Algorithm,
    /// A fitted tree with the numbers that it is made for.
    pub method: Method,
    /// The method as it was asked for, at each point alike.
    #[serde(skip)]
    pub asked: Method,
    /// Whether whose method it is makes a difference.
    #[serde(skip)]
    pub tells_origin: bool,
    pub segment_bytes: u64,
    #[serde(rename = "procs")]
    pub layout: Layout,
    pub bytes: u64,
    pub model: &'static str,
    /// See [`models::Predictor::found_by`].
    pub found_by: &'static str,
    pub seconds: f64,
    /// The ends of the interval; none where that would take too long to simulate, or the parameters' errors are not
    /// known.
    pub low_seconds: Option<f64>,
    pub high_seconds: Option<f64>,
    /// Whether the calibration's uncertainty does not tell it from the fastest of its point and model.
    pub tie: bool,
    /// T_max where the paper has two bounds; the other times are T_min's.
    pub greatest_seconds: Option<f64>,
    /// What no algorithm gets below, by the same parameters; none where each has constants of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<f64>,
    /// How many messages were simulated.
    pub messages: Option<u64>,
    pub extrapolated: bool,
}
