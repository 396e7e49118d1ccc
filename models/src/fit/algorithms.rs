//! Constants of single algorithms: Hockney's alpha and beta, for each algorithm its own, from the
//! times of the collective itself.
//!
//! By the procedure of Nuriyev and Lastovetsky (A new model-based approach to performance comparison
//! of MPI collective algorithms, 2020, arXiv 2004.11062): what a closed form leaves out (sends that
//! overlap, ports that are shared, what an implementation costs by itself) is in the constants, if
//! these are taken from runs of that algorithm.
//!
//! # What is computed
//! A form by Hockney is a sum of alpha, beta and combining, T = a alpha + b beta + c; so
//! (T - c) / a = alpha + beta b / a is a line through the times of all message and segment sizes and
//! numbers of processes. It is Huber's, by relative errors of T ([`lines`]), among those with no
//! parameter below 0. A form with maxima is such a sum around the alpha and beta at hand: a and b are
//! its slopes there, found anew until alpha and beta stay. c is not fitted: reductions combine as
//! many bytes as they move, so that gamma and beta cannot be separated by any number of runs; what
//! combining takes is as measured.
//!
//! # Intervals
//! Percentiles of the bootstrap over the points, widened for few points: they hold the noise of
//! the times, and that no two parameters make the form fit all points.

use std::collections::BTreeMap;

use rand::RngExt as _;
use records::{
    Collective, Method, Point,
    calibration::{AlgorithmFit, Estimate, Parameters, TimedPoint},
};
use statistics::{bootstrap_widening, r_squared, upper_median};

use super::{
    by_model::{MIN_SECONDS, MIN_SECONDS_PER_BYTE},
    lines::{self, FittedLine},
    percentiles, redraw,
};
use crate::{
    Forms, Model, Predictor,
    parameters::{Combining, Hockney, Network, ParametersError, PointToPointParameters},
    predict::Evaluation,
};

/// The forms that constants are fitted for.
const MODELS: [Model; 2] = [Model::Hockney, Model::Refined];
/// With fewer points a line tells nothing of how well it holds.
const MIN_POINTS: usize = 4;
/// Redrawings: of two parameters of many algorithms, fewer than of a platform's.
const REDRAWINGS: usize = 400;
/// How often the slopes of a form are found anew at most.
const ROUNDS: usize = 20;
/// By how much a parameter is raised to find them: a power of two, small beside what moves a
/// maximum.
const RELATIVE_RISE: f64 = 1.0 / 1024.0;
/// Parameters are raised from here at least, in seconds and seconds per byte.
const LEAST: Hockney = Hockney { alpha: MIN_SECONDS, beta: MIN_SECONDS_PER_BYTE };

/// The time of one method at one point, in seconds: the median of the observations.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodTime {
    pub point: Point,
    /// By which method.
    pub method: Method,
    pub seconds: f64,
}

/// Constants of algorithms.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmFits {
    /// By collective, method and model.
    pub fits: Vec<AlgorithmFit>,
    /// What a reader must know: algorithms that have none.
    pub warnings: Vec<String>,
}

/// Fits constants to every algorithm that was timed at enough points: one fit for the forms of
/// `hockney`, where it has one, and one for those of `refined`.
///
/// `measured` says what combining takes.
///
/// # Errors
/// `measured` is not right, as for [`Predictor::new`].
pub fn algorithms(
    timed: &[MethodTime],
    measured: &Parameters,
) -> Result<AlgorithmFits, ParametersError> {
    let mut by_method: BTreeMap<(Collective, Method), Vec<&MethodTime>> = BTreeMap::new();
    for one in timed.iter().filter(|one| one.seconds.is_finite() && one.seconds > 0.0) {
        let method = one.method.clone().with_segment(0);
        by_method.entry((one.point.collective, method)).or_default().push(one);
    }
    let mut predictors = Vec::new();
    for model in MODELS {
        predictors.push(Predictor::new(model, Forms::Corrected, measured)?);
    }
    let combining = Network::new(Model::Hockney, measured)?.combining;
    let start = Hockney {
        alpha: measured.hockney.alpha_seconds.value,
        beta: measured.hockney.beta_seconds_per_byte.value,
    };
    let (mut fits, mut without) = (Vec::new(), Vec::new());
    for ((collective, method), timed) in by_method {
        let known = predictors.iter().filter(|predictor| predictor.knows(collective, &method));
        let mut found = known.clone().filter_map(|predictor| {
            let algorithm = Timings::new(predictor, &timed);
            let fit = algorithm.fit(start, &combining)?;
            Some(fit.record(collective, method.clone(), predictor.model(), &algorithm))
        });
        let before = fits.len();
        fits.extend(&mut found);
        if fits.len() == before && known.count() > 0 {
            without.push(format!("{collective} by {method}"));
        }
    }
    let mut warnings = Vec::new();
    if !without.is_empty() {
        warnings.push(format!(
            "no constants (they need times of {MIN_POINTS} different message or segment sizes): \
             {}",
            without.join(", ")
        ));
    }
    Ok(AlgorithmFits { fits, warnings })
}

/// The times of one algorithm, with the forms for them.
struct Timings<'a>(Vec<(&'a MethodTime, Evaluation<'a>)>);

/// What an algorithm's times tell.
struct AlgorithmRegression {
    hockney: Hockney,
    redrawn: Vec<Hockney>,
    /// Of each time, what the form says with these constants.
    predicted: Vec<f64>,
}

/// A form as a sum: T = alpha a + beta b + c.
struct Sum {
    alphas: f64,
    betas: f64,
    rest: f64,
}

impl<'a> Timings<'a> {
    /// Where the algorithm cannot serve a call, or nothing is sent, there is nothing to fit to.
    fn new(predictor: &'a Predictor, timed: &[&'a MethodTime]) -> Self {
        let evaluation = |one: &&'a MethodTime| {
            let evaluation = predictor.look_up_method(one.point, &one.method).ok()?;
            let sends = evaluation.seconds_on(&evaluation.set.network).ok()? > 0.0;
            (sends && evaluation.is_candidate()).then_some((*one, evaluation))
        };
        Timings(timed.iter().filter_map(evaluation).collect())
    }

    /// None where there are too few times, or they do not tell alpha from beta.
    fn fit(&self, start: Hockney, combining: &Combining) -> Option<AlgorithmRegression> {
        if self.0.len() < MIN_POINTS {
            return None;
        }
        let mut hockney = start;
        let mut line = self.line(hockney, combining)?;
        for _ in 0..ROUNDS {
            let found = line.solve(None)?;
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
            let settled = near(found.alpha, hockney.alpha) && near(found.beta, hockney.beta);
            hockney = found;
            if settled {
                break;
            }
            line = self.line(hockney, combining)?;
        }
        let widening = bootstrap_widening(self.0.len() - 1);
        let count = self.0.len();
        let redrawn = redraw(REDRAWINGS, |random| {
            let drawn: Vec<usize> = (0..count).map(|_| random.random_range(0..count)).collect();
            let Hockney { alpha, beta } = line.solve(Some(&drawn))?;
            let wider = |value: f64, drawn: f64| (value + widening * (drawn - value)).max(0.0);
            Some(Hockney { alpha: wider(hockney.alpha, alpha), beta: wider(hockney.beta, beta) })
        });
        let network = network(hockney, combining);
        let predicted =
            self.0.iter().map(|(_, evaluation)| seconds(evaluation, &network)).collect();
        Some(AlgorithmRegression {
            hockney,
            redrawn: redrawn.into_iter().flatten().collect(),
            predicted,
        })
    }

    /// The line whose intercept is alpha and whose slope is beta, the forms taken as sums at
    /// `hockney`.
    fn line(&self, hockney: Hockney, combining: &Combining) -> Option<Points> {
        let step = Hockney {
            alpha: hockney.alpha.max(LEAST.alpha) * RELATIVE_RISE,
            beta: hockney.beta.max(LEAST.beta) * RELATIVE_RISE,
        };
        let here = network(hockney, combining);
        let more_alpha = Hockney { alpha: hockney.alpha + step.alpha, ..hockney };
        let more_beta = Hockney { beta: hockney.beta + step.beta, ..hockney };
        let [more_alpha, more_beta] = [more_alpha, more_beta].map(|it| network(it, combining));
        let sum = |evaluation: &Evaluation| {
            let value = seconds(evaluation, &here);
            let alphas = (seconds(evaluation, &more_alpha) - value) / step.alpha;
            let betas = (seconds(evaluation, &more_beta) - value) / step.beta;
            Sum { alphas, betas, rest: value - alphas * hockney.alpha - betas * hockney.beta }
        };
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for (timed, evaluation) in &self.0 {
            let Sum { alphas, betas, rest } = sum(evaluation);
            // Where only combining counts, the time says nothing of the message.
            if alphas.is_nan() || alphas <= 0.0 {
                return None;
            }
            points.push((betas / alphas, (timed.seconds - rest) / alphas));
            weights.push((alphas / timed.seconds).powi(2));
        }
        Some(Points { points, weights })
    }
}

/// Points of a line and their weights.
struct Points {
    points: Vec<(f64, f64)>,
    weights: Vec<f64>,
}

impl Points {
    /// Through all of them, or through those drawn.
    fn solve(&self, drawn: Option<&[usize]>) -> Option<Hockney> {
        let solve = |points: &[(f64, f64)], weights: &[f64]| {
            lines::robust(points, weights, |points| lines::weighted_above_zero(points))
        };
        let line = match drawn {
            None => solve(&self.points, &self.weights),
            Some(drawn) => {
                let points: Vec<_> = drawn.iter().map(|&index| self.points[index]).collect();
                let weights: Vec<_> = drawn.iter().map(|&index| self.weights[index]).collect();
                solve(&points, &weights)
            }
        };
        line.map(|FittedLine { intercept, slope }| Hockney { alpha: intercept, beta: slope })
    }
}

fn network(hockney: Hockney, combining: &Combining) -> Network {
    Network {
        model: PointToPointParameters::Hockney(hockney),
        combining: combining.clone(),
        memory: None,
    }
}

/// What could be evaluated once can be evaluated with other parameters.
fn seconds(evaluation: &Evaluation, network: &Network) -> f64 {
    evaluation.seconds_on(network).unwrap_or(f64::NAN)
}

impl AlgorithmRegression {
    fn record(
        &self,
        collective: Collective,
        method: Method,
        model: Model,
        timings: &Timings,
    ) -> AlgorithmFit {
        let AlgorithmRegression { hockney, redrawn, predicted } = self;
        let estimate = |of: &dyn Fn(&Hockney) -> f64| percentiles(hockney, redrawn, of);
        let point = |(&(timed, _), predicted): (&(&MethodTime, Evaluation), &f64)| TimedPoint {
            procs: timed.point.procs(),
            bytes: timed.point.bytes,
            segment_bytes: timed.method.segment_bytes(),
            seconds: timed.seconds,
            residual_seconds: timed.seconds - predicted,
        };
        let points: Vec<TimedPoint> = timings.0.iter().zip(predicted).map(point).collect();
        let constants = [estimate(&|it| it.alpha), estimate(&|it| it.beta)];
        algorithm_fit((collective, method), model, constants, points)
    }
}

/// An algorithm's alpha and beta, with how well they tell the times that they rest on.
pub(super) fn algorithm_fit(
    (collective, method): (Collective, Method),
    model: Model,
    [alpha_seconds, beta_seconds_per_byte]: [Estimate; 2],
    points: Vec<TimedPoint>,
) -> AlgorithmFit {
    let (values, residuals): (Vec<f64>, Vec<f64>) =
        points.iter().map(|point| (point.seconds, point.residual_seconds)).unzip();
    let mut relative: Vec<f64> =
        points.iter().map(|point| point.residual_seconds.abs() / point.seconds).collect();
    AlgorithmFit {
        collective,
        method,
        model: model.name().into(),
        alpha_seconds,
        beta_seconds_per_byte,
        r_squared: r_squared(&values, &residuals),
        median_residual: upper_median(&mut relative).unwrap_or_default(),
        points,
    }
}
