//! Closed forms at a point, with the uncertainty that the parameters give.

mod error;
mod spread;
mod way;

use records::{Algorithm, Collective, Method, Point, calibration::Parameters};

use crate::{
    Forms, Model, Reach,
    closed_forms::{Shape, algorithms},
    parameters::{MOST_PARAMETERS, Network, ParametersError},
};

pub use error::PredictError;
pub use spread::Prediction;
pub(crate) use {
    spread::{Spread, equal},
    way::{Way, check},
};

/// One model with its parameters and its version of the closed forms.
#[derive(Debug, Clone)]
pub struct Predictor {
    model: Model,
    forms: Forms,
    network: Network,
    /// Per uncertain parameter, the network with it at either end of its interval.
    ends: Vec<[Network; 2]>,
    reach: Reach,
}

impl Model {
    /// The algorithms of a collective that the model predicts: those of the paper's table, in its
    /// order, or those that have a schedule, the paper's first, without second forms.
    pub fn algorithms(self, collective: Collective) -> Vec<Algorithm> {
        let mut known = algorithms(collective).to_vec();
        if matches!(self, Model::Refined | Model::Simulated) {
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
        Model::TABLES.contains(&self) || procs == 1 || procs.is_multiple_of(2) || !even()
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
        let network = Network::new(model, parameters)?;
        let ends = Network::ends(model, parameters)?;
        Ok(Predictor { model, forms, network, ends, reach: Reach::default() })
    }

    /// The same, knowing how far the measurements behind its parameters reach: decisions beyond
    /// are marked.
    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Predictor { reach, ..self }
    }

    /// How far the measurements behind the parameters reach; no limits where nobody said.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// The version of the closed forms.
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// The parameters' values.
    pub fn network(&self) -> &Network {
        &self.network
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
        if let Some((form, shape)) = self.form_of_tables(point, algorithm, segment_bytes) {
            return Ok(form.seconds(&self.network, &shape, self.forms));
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
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        way.seconds(&self.network, &shape, self.forms)
    }

    /// The upper bound in seconds where the paper has two (flat-tree barrier), else none.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_greatest(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Option<f64>, PredictError> {
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        Ok(match way {
            Way::Form(form) => form.greatest_seconds(&self.network, &shape, self.forms),
            Way::Simulated(_) => None,
        })
    }

    /// As [`Predictor::predict`], with the interval that the parameters' intervals give.
    ///
    /// Each parameter is put to either end of its interval, the others kept; the deviations are
    /// added in quadrature, as errors of parameters measured separately add. See
    /// [`Network::ends`] for what counts as one parameter. At most 11 evaluations.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_with_interval(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Prediction, PredictError> {
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        Ok(self.spread(way, &shape)?.prediction())
    }

    /// As [`Predictor::predict_with_interval`], for a method with a closed form.
    ///
    /// # Errors
    /// As [`Predictor::predict`]; the default and mock-ups have no closed form.
    pub fn predict_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Prediction, PredictError> {
        let (way, shape) = self.look_up_method(point, method)?;
        Ok(self.spread(way, &shape)?.prediction())
    }

    /// Whether a method may be decided for at a point: splitted-binary needs two segments.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn is_candidate(&self, point: Point, method: &Method) -> Result<bool, PredictError> {
        let (way, shape) = self.look_up_method(point, method)?;
        Ok(way.is_candidate(&shape))
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
        let (way, shape) = self.look_up_method(point, method)?;
        self.seconds(way, &shape)
    }

    pub(crate) fn seconds(&self, way: Way, shape: &Shape) -> Result<f64, PredictError> {
        way.seconds(&self.network, shape, self.forms)
    }

    pub(crate) fn spread(&self, way: Way, shape: &Shape) -> Result<Spread, PredictError> {
        let seconds = |network| way.seconds(network, shape, self.forms);
        let value = seconds(&self.network)?;
        let mut ends = [[value; 2]; MOST_PARAMETERS];
        for (place, [low, high]) in ends.iter_mut().zip(&self.ends) {
            *place = [seconds(low)?, seconds(high)?];
        }
        Ok(Spread { value, ends })
    }

    /// Whether the model knows a method, so that it can be a candidate.
    pub fn knows(&self, collective: Collective, method: &Method) -> bool {
        self.way_of(collective, method, 1).is_ok()
    }

    /// Whether an algorithm cuts its message into segments.
    ///
    /// # Errors
    /// The model does not know the algorithm.
    pub fn segmented(
        &self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<bool, PredictError> {
        Ok(self.way(collective, algorithm, 1)?.segmented())
    }
}
