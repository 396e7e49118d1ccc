//! The parameters of a model, ready to be evaluated at a message size.
//!
//! Made once from [`records::calibration::Parameters`]; after that an evaluation allocates
//! nothing, divides nothing and never gives a negative time.

mod combining;
mod convert;
mod linear;
mod partners;
mod plogp;
mod starts;

pub use combining::Combining;
pub use convert::LinearGap;
pub use linear::{Hockney, LogGp};
pub use plogp::{Costs, Knot, PLogP};

use records::{
    calibration::{Calibration, Estimate, Parameters},
    document::Document as _,
    platform::Platform,
};

use crate::Model;

/// A field of the parameters is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameters, field {field}: {problem}")]
pub struct ParametersError {
    /// Which field, such as `plogp.knots[3].bytes`.
    pub field: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// The point-to-point parameters of one model.
#[derive(Debug, Clone, PartialEq)]
pub enum PointToPoint {
    /// Hockney.
    Hockney(Hockney),
    /// LogGP, and LogP with G = 0.
    LogGp(LogGp),
    /// PLogP.
    PLogP(PLogP),
}

/// What a closed form needs to know of a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The model's parameters.
    pub model: PointToPoint,
    /// What combining two messages costs: gamma(m) m.
    pub combining: Combining,
}

impl Network {
    /// The values of `model`'s parameters.
    ///
    /// # Errors
    /// A value is negative or not finite, an interval does not hold its value, or the knots of
    /// PLogP are missing or do not ascend.
    pub fn new(model: Model, parameters: &Parameters) -> Result<Self, ParametersError> {
        validate(parameters)?;
        Ok(Self::pick(model, parameters, None))
    }

    /// For each parameter of `model` that has an interval: the network with that parameter at the
    /// lower and at the upper end of it, all others at their values.
    ///
    /// PLogP's os(m), or(m) and g(m) each count as one parameter that moves at all sizes together:
    /// neighbouring sizes are measured by one procedure, and their errors are mostly shared.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn ends(model: Model, parameters: &Parameters) -> Result<Vec<[Self; 2]>, ParametersError> {
        validate(parameters)?;
        let value = Self::pick(model, parameters, None);
        let at = |which, end| Self::pick(model, parameters, Some((which, end)));
        Ok((0..MOST_PARAMETERS)
            .map(|which| [at(which, End::Low), at(which, End::High)])
            .filter(|ends| ends.iter().any(|end| *end != value))
            .collect())
    }

    /// The network at the values, save the `n`-th parameter (gamma is the 0-th).
    fn pick(model: Model, parameters: &Parameters, moved: Option<(usize, End)>) -> Self {
        let end_of = |index| moved.filter(|(which, _)| *which == index).map(|(_, end)| end);
        let take = |index, estimate: Estimate| at_end(estimate, end_of(index));
        let Parameters { hockney, loggp, plogp, .. } = parameters;
        let logp = |gap_per_byte| {
            PointToPoint::LogGp(LogGp {
                latency: take(1, loggp.latency_seconds),
                overhead: take(2, loggp.overhead_seconds),
                gap: take(3, loggp.gap_seconds),
                gap_per_byte,
            })
        };
        let model = match model {
            Model::Hockney => PointToPoint::Hockney(Hockney {
                alpha: take(1, hockney.alpha_seconds),
                beta: take(2, hockney.beta_seconds_per_byte),
            }),
            Model::LogP => logp(0.0),
            Model::LogGp => logp(take(4, loggp.gap_seconds_per_byte)),
            Model::PLogP | Model::Refined | Model::Simulated => PointToPoint::PLogP(
                PLogP::at_ends(plogp, [end_of(1), end_of(2), end_of(3), end_of(4)]),
            ),
        };
        Network { model, combining: Combining::new(parameters, end_of(0)) }
    }

    /// gamma(m) m: seconds to combine two messages of `bytes`.
    #[inline]
    pub fn combine(&self, bytes: f64) -> f64 {
        self.combining.at(bytes)
    }

    /// The message sizes between which all costs are lines.
    pub(crate) fn knots(&self) -> Vec<u64> {
        let mut knots = self.combining.knots();
        if let PointToPoint::PLogP(plogp) = &self.model {
            knots.extend(plogp.knots());
        }
        knots
    }

    /// Ranges of message sizes in which some cost falls while the size grows; elsewhere all costs
    /// rise or stay.
    pub(crate) fn falling(&self) -> &[(u64, u64)] {
        match &self.model {
            PointToPoint::Hockney(_) | PointToPoint::LogGp(_) => &[],
            PointToPoint::PLogP(plogp) => plogp.falling(),
        }
    }
}

/// gamma and four more: no model has more parameters.
pub(crate) const MOST_PARAMETERS: usize = 5;

/// An end of an [`Estimate`]'s interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Low,
    High,
}

pub(crate) fn at_end(estimate: Estimate, end: Option<End>) -> f64 {
    match end {
        None => estimate.value,
        Some(End::Low) => estimate.low,
        Some(End::High) => estimate.high,
    }
}

/// The same rules as for a calibration file, for parameters that did not come from one.
fn validate(parameters: &Parameters) -> Result<(), ParametersError> {
    let document = Calibration {
        source: String::new(),
        platform: Platform::default(),
        measured: parameters.clone(),
        fitted: None,
        fits: Vec::new(),
        algorithms: None,
        warnings: Vec::new(),
    };
    document.validate().map_err(|(field, problem)| {
        let field = field.strip_prefix("measured.").map_or(field.clone(), str::to_owned);
        ParametersError { field, problem }
    })
}
