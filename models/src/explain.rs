//! Why a prediction is what it is: what each parameter contributes.
//!
//! The closed forms, and the simulator's critical path, are sums and maxima of the parameters with
//! factors that are not negative. So a time is the sum, over the parameters, of the parameter times
//! how fast the time grows with it (Euler's theorem on homogeneous functions): "14 o" in
//! 7 L + 14 o + 7 g + 57337 G. The growth is found by raising each parameter by a millionth.

use records::{Method, calibration::Parameters};
use serde::Serialize;

use crate::{Model, Point, PredictError, Predictor, parameters::ParametersError};

/// What one parameter contributes to a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Its symbol: `L`, `o`, `g`, `G`, `alpha`, `beta`, `os`, `or`, `gamma`.
    pub parameter: &'static str,
    /// Seconds, or seconds per byte; of a function of the size none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// How often it counts (G, beta, gamma: for how many bytes); of a function of the size none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<f64>,
    /// Seconds.
    pub seconds: f64,
}

/// Nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// No prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// No parameters.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
}

/// The parameters of a model with one of them raised.
#[derive(Debug, Clone)]
pub struct Explainer {
    predictor: Predictor,
    raised: Vec<(&'static str, Option<f64>, Predictor)>,
}

/// Relative rise of a parameter: a power of two, so that it is exact.
const RISE: f64 = 1.0 / (1 << 20) as f64;

type Raise = fn(&mut Parameters);

impl Explainer {
    /// Prepares what [`Explainer::terms`] needs of a model.
    ///
    /// # Errors
    /// As [`Predictor::new`].
    pub fn new(predictor: &Predictor, parameters: &Parameters) -> Result<Self, ParametersError> {
        let rows = rows(predictor.model(), parameters).into_iter();
        let raised = rows.map(|(symbol, value, raise)| {
            let mut parameters = parameters.clone();
            raise(&mut parameters);
            let raised = Predictor::new(predictor.model(), predictor.forms(), &parameters)?;
            Ok((symbol, value, raised))
        });
        let raised = raised.collect::<Result<_, ParametersError>>()?;
        Ok(Explainer { predictor: predictor.clone(), raised })
    }

    /// The terms of a method's time, those that count nothing left out. They sum to the time.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn terms(&self, point: Point, method: &Method) -> Result<Vec<Term>, ExplainError> {
        let time = self.predictor.predict_method_seconds(point, method)?;
        let mut terms = Vec::new();
        for (parameter, value, raised) in &self.raised {
            let growth = raised.predict_method_seconds(point, method)? - time;
            let seconds = growth / RISE;
            if seconds.abs() > 1e-7 * time {
                let count = value.map(|value| seconds / value);
                terms.push(Term { parameter, value: *value, count, seconds });
            }
        }
        Ok(terms)
    }
}

fn rows(model: Model, parameters: &Parameters) -> Vec<(&'static str, Option<f64>, Raise)> {
    let Parameters { hockney, loggp, plogp, .. } = parameters;
    let gamma = parameters.gamma.is_empty().then_some(parameters.gamma_seconds_per_byte.value);
    let constant = parameters.hockney_by_size.is_empty();
    let mut rows: Vec<(&'static str, Option<f64>, Raise)> = match model {
        Model::Hockney => vec![
            ("alpha", constant.then_some(hockney.alpha_seconds.value), |p| {
                raise(&mut p.hockney.alpha_seconds);
                p.hockney_by_size.iter_mut().for_each(|knot| raise(&mut knot.alpha_seconds));
            }),
            ("beta", constant.then_some(hockney.beta_seconds_per_byte.value), |p| {
                raise(&mut p.hockney.beta_seconds_per_byte);
                let knots = p.hockney_by_size.iter_mut();
                knots.for_each(|knot| raise(&mut knot.beta_seconds_per_byte));
            }),
        ],
        Model::LogP | Model::LogGp => vec![
            ("L", Some(loggp.latency_seconds.value), |p| raise(&mut p.loggp.latency_seconds)),
            ("o", Some(loggp.overhead_seconds.value), |p| raise(&mut p.loggp.overhead_seconds)),
            ("g", Some(loggp.gap_seconds.value), |p| raise(&mut p.loggp.gap_seconds)),
            ("G", Some(loggp.gap_seconds_per_byte.value), |p| {
                raise(&mut p.loggp.gap_seconds_per_byte);
            }),
        ],
        Model::PLogP | Model::Refined | Model::Simulated => vec![
            ("L", Some(plogp.latency_seconds.value), |p| raise(&mut p.plogp.latency_seconds)),
            ("os", None, |p| {
                let knots = p.plogp.knots.iter_mut();
                knots.for_each(|knot| raise(&mut knot.send_overhead_seconds));
            }),
            ("or", None, |p| {
                let knots = p.plogp.knots.iter_mut();
                knots.for_each(|knot| raise(&mut knot.receive_overhead_seconds));
            }),
            ("g", None, |p| {
                let plogp = &mut p.plogp;
                plogp.knots.iter_mut().for_each(|knot| raise(&mut knot.gap_seconds));
                let many = plogp.gap_by_destinations.iter_mut().chain(&mut plogp.gap_by_sources);
                let knots = many.flat_map(|many| &mut many.knots);
                knots.for_each(|knot| raise(&mut knot.gap_seconds));
            }),
        ],
    };
    rows.push(("gamma", gamma, |p| {
        raise(&mut p.gamma_seconds_per_byte);
        let knots = p.gamma.iter_mut().flat_map(|gamma| &mut gamma.knots);
        knots.for_each(|knot| raise(&mut knot.seconds_per_byte));
    }));
    rows
}

fn raise(estimate: &mut records::calibration::Estimate) {
    estimate.value *= 1.0 + RISE;
    estimate.low = estimate.low.min(estimate.value);
    estimate.high = estimate.high.max(estimate.value);
}
