//! `calibration.json`: the parameters of one platform.

use serde::{Deserialize, Serialize};

use crate::{document::Document, platform::Platform};

/// A value with the interval that holds it at 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A value taken as given (a preset's, say): its interval is the value.
    pub const fn exact(value: f64) -> Self {
        Estimate { value, low: value, high: value }
    }
}

/// Hockney: a message of m bytes takes `alpha + beta m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hockney {
    /// Start-up time of a message.
    pub alpha_seconds: Estimate,
    /// Time per byte.
    pub beta_seconds_per_byte: Estimate,
}

/// LogP/LogGP: a message of m bytes takes `L + 2 o + (m - 1) G`; messages follow each other by
/// `g + (m - 1) G`. LogP is LogGP with G = 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogGp {
    /// L.
    pub latency_seconds: Estimate,
    /// o, of the sender and of the receiver.
    pub overhead_seconds: Estimate,
    /// g, between short messages.
    pub gap_seconds: Estimate,
    /// G.
    pub gap_seconds_per_byte: Estimate,
}

/// PLogP: a message of m bytes takes `L + g(m)`; messages follow each other by `g(m)`.
/// Its L is end to end, unlike LogGP's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PLogP {
    /// L, end to end.
    pub latency_seconds: Estimate,
    /// os, or and g at measured sizes, ascending; linear between them and beyond the last.
    pub knots: Vec<PLogPKnot>,
}

/// The size-dependent parameters of PLogP at one message size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PLogPKnot {
    /// Message size.
    pub bytes: u64,
    /// os(m): the sender's processor is busy.
    pub send_overhead_seconds: Estimate,
    /// or(m): the receiver's processor is busy.
    pub receive_overhead_seconds: Estimate,
    /// g(m): least time between messages; covers os(m) and or(m).
    pub gap_seconds: Estimate,
}

/// The parameters of every model, from one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Hockney's.
    pub hockney: Hockney,
    /// LogP's and LogGP's.
    pub loggp: LogGp,
    /// PLogP's.
    pub plogp: PLogP,
    /// gamma: time to combine one byte of a reduction.
    pub gamma_seconds_per_byte: Estimate,
    /// Models whose parameters were converted from another's, such as `plogp from loggp`.
    #[serde(default)]
    pub derived: Vec<String>,
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
    /// What a reader must know: not reached within the budget, measured under load, ...
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Document for Calibration {
    const SCHEMA: &'static str = "colibri/calibration/1";

    fn validate(&self) -> Result<(), (String, String)> {
        validate_parameters("measured", &self.measured)?;
        match &self.fitted {
            Some(fitted) => validate_parameters("fitted", fitted),
            None => Ok(()),
        }
    }
}

fn validate_parameters(prefix: &str, parameters: &Parameters) -> Result<(), (String, String)> {
    let Parameters { hockney, loggp, plogp, gamma_seconds_per_byte, .. } = parameters;
    let scalars = [
        ("hockney.alpha_seconds", hockney.alpha_seconds),
        ("hockney.beta_seconds_per_byte", hockney.beta_seconds_per_byte),
        ("loggp.latency_seconds", loggp.latency_seconds),
        ("loggp.overhead_seconds", loggp.overhead_seconds),
        ("loggp.gap_seconds", loggp.gap_seconds),
        ("loggp.gap_seconds_per_byte", loggp.gap_seconds_per_byte),
        ("plogp.latency_seconds", plogp.latency_seconds),
        ("gamma_seconds_per_byte", *gamma_seconds_per_byte),
    ];
    for (field, estimate) in scalars {
        validate_estimate(&format!("{prefix}.{field}"), estimate)?;
    }
    let knots = format!("{prefix}.plogp.knots");
    if plogp.knots.is_empty() {
        return Err((knots, "is empty; wanted at least one message size".into()));
    }
    for (index, knot) in plogp.knots.iter().enumerate() {
        if index > 0 && knot.bytes <= plogp.knots[index - 1].bytes {
            let problem = "does not ascend; wanted larger than the one before";
            return Err((format!("{knots}[{index}].bytes"), problem.into()));
        }
        for (field, estimate) in [
            ("send_overhead_seconds", knot.send_overhead_seconds),
            ("receive_overhead_seconds", knot.receive_overhead_seconds),
            ("gap_seconds", knot.gap_seconds),
        ] {
            validate_estimate(&format!("{knots}[{index}].{field}"), estimate)?;
        }
    }
    Ok(())
}

fn validate_estimate(field: &str, estimate: Estimate) -> Result<(), (String, String)> {
    let Estimate { value, low, high } = estimate;
    if !(0.0 <= low && low <= value && value <= high && high.is_finite()) {
        let problem = format!(
            "value {value}, low {low}, high {high}; wanted 0 <= low <= value <= high, finite"
        );
        return Err((field.into(), problem));
    }
    Ok(())
}
