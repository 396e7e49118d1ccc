//! Times at a point, by closed forms or by simulation, with the uncertainty that the parameters give.

mod cost_source;
mod error;
mod frames;
mod methods;
mod natives;
mod nodes;
mod spread;
mod uncertain;

use std::sync::Arc;

use records::{
    Algorithm, Collective, Method, Point, Root, TreePace,
    calibration::{AlgorithmFit, Estimate, Parameters},
};

use crate::{
    Forms, Model, Reach,
    closed_forms::algorithms,
    parameters::{Hockney, Network, ParametersError, PointToPointParameters},
    simulated::{FoundTime, Rendezvous},
};

pub use error::PredictError;
pub use methods::fan_outs;
pub use natives::native_schedule;
use uncertain::ModelParameters;
pub(crate) use {
    cost_source::{CostSource, Evaluation, check},
    spread::{Spread, equal},
    uncertain::UncertainNetwork,
};

/// One model with its parameters and its version of the closed forms.
#[derive(Debug, Clone)]
pub struct Predictor {
    model: Model,
    /// Whose parameters of the network it takes: its own, or of a simulation those asked for.
    costs: Model,
    forms: Forms,
    parameters: ModelParameters,
    reach: Reach,
    /// See [`Predictor::tie_limit`].
    tie_factor: f64,
    /// Of what is simulated.
    pub(crate) root: Root,
    rendezvous: Option<Rendezvous>,
    /// Of more ranks on several nodes, fewer nodes are simulated.
    most_ranks_in_full: u32,
    /// What predicts where nodes hold several ranks; none: nodes are ignored.
    nodes: Option<Arc<NodePredictors>>,
}

/// A predicted time, and what it was found by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullPrediction {
    pub seconds: f64,
    /// Lower and upper end, in seconds, see [`Predictor::predict_method`]; none where finding it takes too long.
    pub interval: Option<[f64; 2]>,
    /// How many messages were simulated; none of a closed form.
    pub messages: Option<u64>,
}

/// What predicts where nodes hold several ranks.
#[derive(Debug, Clone)]
struct NodePredictors {
    /// On one node, all of whose messages are inside; none where nothing is known of these.
    inside: Option<Predictor>,
    /// On several nodes.
    several: Predictor,
}

impl Model {
    /// The algorithms of a collective that the model predicts: those of the paper's table, in its
    /// order, or those that have a schedule, the paper's first, without second forms.
    pub fn algorithms(self, collective: Collective) -> Vec<Algorithm> {
        let mut known = algorithms(collective).to_vec();
        if self.evaluator().follows_schedules() {
            for entry in schedules::of_collective(collective) {
                if !known.contains(&entry.algorithm) && entry.algorithm.plain().is_none() {
                    known.push(entry.algorithm);
                }
            }
        }
        known
    }

    /// Whether the model's algorithm can do with so many processes (neighbor-exchange needs an
    /// even number); those of the tables all can.
    pub fn serves(self, collective: Collective, algorithm: Algorithm, procs: u32) -> bool {
        let even =
            || schedules::find(collective, algorithm).is_some_and(|entry| entry.requirements.even);
        !self.evaluator().follows_schedules() || procs == 1 || procs.is_multiple_of(2) || !even()
    }
}

impl Predictor {
    /// Prepares a model: cheap, but not to be done per prediction.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn new(
        model: Model,
        forms: Forms,
        parameters: &Parameters,
    ) -> Result<Self, ParametersError> {
        Self::with_costs(model, model, forms, parameters)
    }

    /// Prepares a model with another model's costs of messages: for [`Model::Simulated`].
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn with_costs(
        model: Model,
        costs: Model,
        forms: Forms,
        parameters: &Parameters,
    ) -> Result<Self, ParametersError> {
        let parameters = ModelParameters::common(costs, parameters)?;
        Ok(Self::from_parameters(model, costs, forms, parameters))
    }

    fn from_parameters(
        model: Model,
        costs: Model,
        forms: Forms,
        parameters: ModelParameters,
    ) -> Self {
        Predictor {
            model,
            costs,
            forms,
            reach: Reach::default(),
            tie_factor: parameters.tie_factor(),
            parameters,
            root: Root::default(),
            rendezvous: None,
            most_ranks_in_full: nodes::MAX_RANKS_IN_FULL,
            nodes: None,
        }
    }

    /// By constants of its own for each algorithm, under the corrected forms; combining costs what
    /// was measured. Only methods that have constants of this model are known, the library's and
    /// Colibri's each by theirs; without a method, an algorithm is Colibri's.
    ///
    /// # Errors
    /// As [`Network::new`], of `measured`.
    pub fn of_algorithms(
        model: Model,
        fits: &[AlgorithmFit],
        measured: &Parameters,
    ) -> Result<Self, ParametersError> {
        let parameters = ModelParameters::by_method(model, fits, measured)?;
        Ok(Self::from_parameters(model, model, Forms::Corrected, parameters))
    }

    /// This predictor, knowing how far the measurements behind its parameters reach: decisions beyond
    /// are marked.
    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Predictor { reach, ..self }.propagate_to_nodes()
    }

    /// This predictor with another root of the collectives that have one. What is simulated may take another time
    /// then; closed forms take all links as alike, and hold for every root.
    #[must_use]
    pub fn with_root(self, root: Root) -> Self {
        Predictor { root, ..self }.propagate_to_nodes()
    }

    /// This predictor, asked for simulations and nothing else: all nodes are simulated however
    /// many ranks there are, and messages may wait for their receive.
    #[must_use]
    pub fn simulating(self, rendezvous: Option<Rendezvous>) -> Self {
        Predictor { rendezvous, most_ranks_in_full: u32::MAX, ..self }.propagate_to_nodes()
    }

    /// How far the measurements behind the parameters reach; no limits where nobody said.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    pub fn model(&self) -> Model {
        self.model
    }

    /// The version of the closed forms.
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// Seconds that `algorithm` takes with segments of `segment_bytes` (0: unsegmented); the
    /// lower bound where the paper has two.
    ///
    /// # Errors
    /// The model does not know the algorithm (the nearest that it knows is named), the algorithm
    /// has no segments, or the point is none.
    #[inline]
    pub fn predict(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<f64, PredictError> {
        if let Some((form, network, shape)) = self.form_of_tables(point, algorithm, segment_bytes) {
            return Ok(form.seconds(network, &shape, self.forms));
        }
        self.predict_otherwise(point, algorithm, segment_bytes)
    }

    /// By a schedule, or the error that tells why not.
    #[inline(never)]
    fn predict_otherwise(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<f64, PredictError> {
        let method = Method::own(algorithm).with_segment(segment_bytes);
        self.look_up_method(point, &method)?.seconds()
    }

    /// What the fitted tree of a call without segments is made for; nothing where the model or the
    /// collective has none.
    pub fn tree_pace(&self, point: Point) -> Option<TreePace> {
        let fitted = self.look_up_method(point, &Method::own(Algorithm::Fitted)).ok()?;
        Some(fitted.method.pace)
    }

    /// The upper bound in seconds where the paper has two (flat-tree barrier), else none.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn predict_greatest(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Option<f64>, PredictError> {
        let Evaluation { source, forms, shape, set, .. } = self.look_up_method(point, method)?;
        Ok(match source {
            CostSource::Form(form) => form.greatest_seconds(&set.network, &shape, forms),
            CostSource::Simulated(_) => None,
        })
    }

    /// Seconds of a method, with the interval that the parameters' intervals (95 %) give.
    ///
    /// Each parameter is put to either end of its interval, the others kept; the deviations are
    /// added in quadrature, as errors of parameters measured separately add. See
    /// [`Network::ends`] for what counts as one parameter. That is two evaluations for each, and one.
    ///
    /// # Errors
    /// As [`Predictor::predict`]; the default and mock-ups have no closed form.
    pub fn predict_method(&self, point: Point, method: &Method) -> Result<Estimate, PredictError> {
        let (_, spread) = self.look_up_method(point, method)?.time_and_spread()?;
        Ok(spread.estimate())
    }

    /// As [`Predictor::predict_method`], with the messages of what is simulated. What takes more than a
    /// second or so to simulate is simulated once, and so has no interval: that takes it up to 20 times more.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn predict_in_full(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<FullPrediction, PredictError> {
        let evaluation = self.look_up_method(point, method)?;
        let (FoundTime { seconds, messages }, spread) = evaluation.time_and_spread_in_time()?;
        let interval = spread.map(|spread| {
            let Estimate { low, high, .. } = spread.estimate();
            [low, high]
        });
        let is_simulated = matches!(evaluation.source, CostSource::Simulated(_));
        Ok(FullPrediction { seconds, interval, messages: is_simulated.then_some(messages) })
    }

    /// Whether a method may be decided for at a point: splitted-binary needs two segments.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn is_candidate(&self, point: Point, method: &Method) -> Result<bool, PredictError> {
        Ok(self.look_up_method(point, method)?.is_candidate())
    }

    /// Seconds of a method, without their interval.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn predict_method_seconds(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<f64, PredictError> {
        self.look_up_method(point, method)?.seconds()
    }

    /// A time above which nothing can be a tie with a method of that time, by more than rounding.
    ///
    /// A time V is a sum and maximum of costs. Where an end of a parameter makes no cost less than
    /// rho times what it is, V falls by at most (1 - rho) V there; the time b that it is compared
    /// with rises by at most (sigma - 1) b where no cost becomes more than sigma times what it is.
    /// The deviations are added in quadrature, which gives at most R V + S b; so what exceeds b by
    /// more than that, V > b (1 + S) / (1 - R), is no tie ([`Spread::may_be_as_cheap_as`]).
    /// Infinite where an interval reaches too far down (R >= 1): then nothing is left out. Messages
    /// that overtake each other at an end, and so gain more there, are not thought of.
    pub(crate) fn tie_limit(&self, seconds: f64) -> f64 {
        // Of no time at all, an infinite multiple would be no number.
        if self.tie_factor.is_finite() { seconds * self.tie_factor } else { f64::INFINITY }
    }

    /// The message sizes between which all costs are lines.
    pub(crate) fn knots(&self) -> Vec<u64> {
        self.parameters.all().flat_map(|set| set.network.knots()).collect()
    }

    /// This predictor with parameters changed, without their intervals.
    pub(crate) fn changed(&self, change: impl Fn(&mut Network)) -> Self {
        Predictor { parameters: self.parameters.clone().changed(change), ..self.clone() }
    }

    /// The constants of a method, where each has its own.
    pub(crate) fn constants(&self, collective: Collective, method: &Method) -> Option<Hockney> {
        let found = self.parameters.find(collective, method).map(|set| &set.network.model);
        match (&self.parameters, found) {
            (ModelParameters::ByMethod(_), Some(PointToPointParameters::Hockney(hockney))) => {
                Some(*hockney)
            }
            _ => None,
        }
    }

    /// The network that all methods are predicted on; none where each has constants of its own.
    pub fn network(&self) -> Option<&Network> {
        match &self.parameters {
            ModelParameters::Common(set) => Some(&set.network),
            ModelParameters::ByMethod(_) => None,
        }
    }
}
