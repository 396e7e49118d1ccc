//! The parameters of a model, ready to be evaluated at a message size.
//!
//! Made once from [`records::calibration::Parameters`]; after that an evaluation allocates
//! nothing, divides nothing and never gives a negative time.

mod combining;
mod convert;
mod linear;
mod memory;
mod partners;
mod plogp;
mod starts;
mod transit;

pub use combining::Combining;
pub use convert::LinearGap;
pub use linear::{Hockney, LogGp};
pub use memory::NodeMemory;
pub(crate) use memory::Sizes;
pub use plogp::{Knot, MessageCosts, PLogP};

use std::sync::Arc;

use records::{
    calibration::{Calibration, Estimate, Parameters},
    document::Document as _,
    platform::Platform,
};

use crate::{Evaluator, Model, NetworkModel};

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
pub enum PointToPointParameters {
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
    pub model: PointToPointParameters,
    /// What combining two messages costs: gamma(m) m.
    pub combining: Combining,
    /// What ranks that share the memory of one node do to each other, where the model follows schedules and the
    /// calibration has it: then schedules are simulated by it alone.
    pub memory: Option<Arc<NodeMemory>>,
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

    /// A network of which no cost is above that of `self` or of any of the others, which are of the same
    /// model and have the same knots, and no cost falls while the size grows.
    pub(crate) fn least(&self, others: &[&Network]) -> Self {
        use PointToPointParameters as P;
        let mut model = self.model.clone();
        match &mut model {
            P::Hockney(least) => {
                for other in others {
                    let P::Hockney(net) = &other.model else { continue };
                    least.alpha = least.alpha.min(net.alpha);
                    least.beta = least.beta.min(net.beta);
                }
            }
            P::LogGp(least) => {
                for other in others {
                    let P::LogGp(net) = &other.model else { continue };
                    least.latency = least.latency.min(net.latency);
                    least.overhead = least.overhead.min(net.overhead);
                    least.gap = least.gap.min(net.gap);
                    least.gap_per_byte = least.gap_per_byte.min(net.gap_per_byte);
                }
            }
            P::PLogP(least) => {
                let of = |other: &&Network| match &other.model {
                    P::PLogP(net) => Some(net.clone()),
                    _ => None,
                };
                let others: Vec<PLogP> = others.iter().filter_map(of).collect();
                *least = least.least(&others);
            }
        }
        let combining: Vec<&Combining> = others.iter().map(|other| &other.combining).collect();
        Network { model, combining: self.combining.least(&combining), memory: self.memory.clone() }
    }

    /// A network of which no cost is above that of `self`, and none grows by a greater factor than the
    /// message does: what a byte costs falls or stays.
    pub(crate) fn shrinking_per_byte(&self) -> Self {
        use PointToPointParameters as P;
        let model = match &self.model {
            P::Hockney(net) => P::Hockney(*net),
            // Of m >= 1, g + (m - 1) G and L + 2 o + (m - 1) G.
            P::LogGp(net) => P::LogGp(LogGp {
                gap_per_byte: net.gap_per_byte.min(net.gap).min(net.latency + 2.0 * net.overhead),
                ..*net
            }),
            P::PLogP(net) => P::PLogP(net.shrinking_per_byte()),
        };
        let (combining, memory) = (self.combining.shrinking_per_byte(), self.memory.clone());
        Network { model, combining, memory }
    }

    /// The network at the values, save the `n`-th parameter (gamma is the 0-th).
    fn pick(model: Model, parameters: &Parameters, moved: Option<(usize, End)>) -> Self {
        let end_of = |index| moved.filter(|(which, _)| *which == index).map(|(_, end)| end);
        let take = |index, estimate: Estimate| at_end(estimate, end_of(index));
        let Parameters { hockney, loggp, plogp, .. } = parameters;
        let logp = |gap_per_byte| {
            PointToPointParameters::LogGp(LogGp {
                latency: take(1, loggp.latency_seconds),
                overhead: take(2, loggp.overhead_seconds),
                gap: take(3, loggp.gap_seconds),
                gap_per_byte,
            })
        };
        let combining = Combining::new(parameters, end_of(0));
        let follows = !matches!(model.evaluator(), Evaluator::Tables);
        let memory = parameters
            .memory
            .as_ref()
            .filter(|_| follows)
            .map(|memory| Arc::new(NodeMemory::new(memory, combining.clone(), end_of(MEMORY))));
        let model = match model.network() {
            NetworkModel::Hockney => PointToPointParameters::Hockney(Hockney {
                alpha: take(1, hockney.alpha_seconds),
                beta: take(2, hockney.beta_seconds_per_byte),
            }),
            NetworkModel::LogP => logp(0.0),
            NetworkModel::LogGp => logp(take(4, loggp.gap_seconds_per_byte)),
            NetworkModel::PLogP => {
                let ends = [end_of(1), end_of(2), end_of(3), end_of(4)];
                let network = PLogP::at_ends(plogp, ends);
                PointToPointParameters::PLogP(match model.evaluator() {
                    Evaluator::Tables => network,
                    Evaluator::Refined | Evaluator::Simulation => network.end_to_end(parameters),
                })
            }
        };
        Network { model, combining, memory }
    }

    /// gamma(m) m: seconds to combine two messages of `bytes`.
    #[inline]
    pub fn combine(&self, bytes: f64) -> f64 {
        self.combining.at(bytes)
    }

    /// Bytes that a port sends of one message before it serves another one, where the model follows schedules
    /// and the calibration has it; none: whole messages, one after the other.
    #[inline]
    pub(crate) fn frame(&self) -> Option<u64> {
        match &self.model {
            PointToPointParameters::PLogP(plogp) => plogp.frame(),
            PointToPointParameters::Hockney(_) | PointToPointParameters::LogGp(_) => None,
        }
    }

    /// The least and the most of a cost relative to the same cost of another network of this model,
    /// over all costs and message sizes.
    pub(crate) fn relative_to(&self, other: &Network) -> [f64; 2] {
        /// Costs are lines between knots, so that their quotients are extreme there, or far beyond.
        const FAR: u64 = 1 << 60;
        let mut extremes = [1.0_f64; 2];
        let mut compare = |this: f64, other: f64| {
            let quotient = if this == other { 1.0 } else { this / other };
            extremes = [extremes[0].min(quotient), extremes[1].max(quotient)];
        };
        for bytes in other.knots().into_iter().chain([FAR]) {
            let bytes = bytes as f64;
            compare(self.combine(bytes), other.combine(bytes));
            if let (PointToPointParameters::PLogP(this), PointToPointParameters::PLogP(other)) =
                (&self.model, &other.model)
            {
                let [this, other] = [this, other].map(|net| net.at(bytes));
                compare(this.send, other.send);
                compare(this.receive, other.receive);
                compare(this.gap, other.gap);
            }
        }
        if let (Some(this), Some(other)) = (&self.memory, &other.memory) {
            this.relative_to(other, &mut compare);
        }
        match (&self.model, &other.model) {
            (PointToPointParameters::Hockney(this), PointToPointParameters::Hockney(other)) => {
                compare(this.alpha, other.alpha);
                compare(this.beta, other.beta);
            }
            (PointToPointParameters::LogGp(this), PointToPointParameters::LogGp(other)) => {
                compare(this.latency, other.latency);
                compare(this.overhead, other.overhead);
                compare(this.gap, other.gap);
                compare(this.gap_per_byte, other.gap_per_byte);
            }
            (PointToPointParameters::PLogP(this), PointToPointParameters::PLogP(other)) => {
                compare(this.latency(), other.latency());
            }
            _ => {}
        }
        extremes
    }

    /// The message sizes between which all costs are lines.
    pub(crate) fn knots(&self) -> Vec<u64> {
        let mut knots = self.combining.knots();
        if let PointToPointParameters::PLogP(plogp) = &self.model {
            knots.extend(plogp.knots());
        }
        knots.extend(self.memory.iter().flat_map(|memory| memory.knots()));
        knots
    }

    /// Ranges of message sizes in which some cost falls while the size grows; elsewhere all costs
    /// rise or stay.
    pub(crate) fn falling(&self) -> &[(u64, u64)] {
        match &self.model {
            PointToPointParameters::Hockney(_) | PointToPointParameters::LogGp(_) => &[],
            PointToPointParameters::PLogP(plogp) => plogp.falling(),
        }
    }
}

/// The number of a node's memory among the parameters, all of which is one: gamma and four more come before.
const MEMORY: usize = 5;

/// No model has more parameters.
pub(crate) const MOST_PARAMETERS: usize = MEMORY + 1;

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
        inside: None,
        algorithms: None,
        warnings: Vec::new(),
    };
    document.validate().map_err(|(field, problem)| {
        let field = field.strip_prefix("measured.").map_or(field.clone(), str::to_owned);
        ParametersError { field, problem }
    })
}
