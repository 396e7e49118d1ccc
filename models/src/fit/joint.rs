//! One fit of a start-up time, a rate and a combining rate to the times of collectives of known
//! algorithms, at any numbers of processes and sizes.
//!
//! # What is computed
//! A call whose messages each take alpha + beta m, on ports that send and receive one at a time, and
//! whose combinations take gamma m, takes about `a alpha + b beta + c gamma`; a, b and c are what the
//! simulation of its schedule gives with one of the three at 1 and the others at 0. Each algorithm of
//! a collective has a factor beside that, for what its implementation does differently. Minimised is
//! the sum of Huber's function of ln(measured / predicted) over [`SPREAD`], and of the squares of the factors'
//! logarithms over [`FACTOR_SPREAD`]: the prior holds factors at 1 where few data speak.
//! No parameter is below 0.
//!
//! # Intervals
//! Percentiles of 100 fits to jobs drawn anew; of a single job, its cells are drawn.

mod shapes;

use std::collections::BTreeMap;

use nalgebra::{Matrix3, Vector3};
use rand::RngExt as _;
use records::{
    Collective, Library, Method, Point,
    calibration::{self, Estimate, Parameters},
};
use statistics::median;

use self::shapes::{Shape, Shapes};
use super::{percentiles, redraw};

/// Scatter of ln(measured / predicted) of a right model, as simulations of real machines have it.
pub const SPREAD: f64 = 0.3;
/// Scatter of the logarithms of the factors, before any data.
pub const FACTOR_SPREAD: f64 = 0.5;
/// Huber's bound: what lies beyond so many spreads counts linearly.
const BOUND: f64 = 1.345;
const ROUNDS: usize = 40;
const REDRAWINGS: usize = 100;
/// An interval over more than this factor says nothing.
const WIDE: f64 = 10.0;
/// Columns that are this nearly multiples of each other cannot be told apart.
const LEAST_DETERMINANT: f64 = 1e-6;

/// The time of a collective, by one job.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveTime {
    /// Where.
    pub point: Point,
    /// By which method.
    pub method: Method,
    /// The time.
    pub seconds: f64,
    /// The job that measured it.
    pub job: u32,
}

/// What an algorithm does beside what its schedule says.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmFactor {
    /// Of which collective.
    pub collective: Collective,
    /// The method, without segments.
    pub method: Method,
    /// Times the schedule's time.
    pub factor: Estimate,
    /// Times that it rests on.
    pub times: usize,
}

/// What the times say.
#[derive(Debug, Clone)]
pub struct JointFit {
    /// alpha, in seconds.
    pub start: Estimate,
    /// beta, in seconds per byte.
    pub per_byte: Estimate,
    /// gamma, in seconds per byte.
    pub combining: Estimate,
    /// By collective and method.
    pub factors: Vec<AlgorithmFactor>,
    /// What the times cannot determine, and why.
    pub undetermined: Vec<String>,
    /// Median of |measured / predicted - 1|.
    pub median_error: f64,
    /// Times used.
    pub times: usize,
    shapes: Shapes,
}

/// There is nothing to fit to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no times of algorithms whose schedules are known: {0}")]
pub struct NothingKnown(String);

/// A time with its shape and the place of its factor.
#[derive(Clone, Copy)]
struct ShapedTime {
    shape: Shape,
    seconds: f64,
    factor: usize,
    job: u32,
}

/// Fits to times of collectives, in any order.
///
/// # Errors
/// Of none of them a schedule is known.
pub fn joint(times: &[CollectiveTime]) -> Result<JointFit, NothingKnown> {
    let shapes = Shapes::default();
    let mut places: BTreeMap<(Collective, Method), usize> = BTreeMap::new();
    let mut counts = Vec::new();
    let mut rows = Vec::new();
    for time in times.iter().filter(|time| time.seconds > 0.0) {
        let Some(shape) = shapes.of(time.point, &time.method) else { continue };
        if shape.iter().sum::<f64>() <= 0.0 {
            continue;
        }
        let next = places.len();
        let key = (time.point.collective, time.method.clone().with_segment(0));
        let factor = *places.entry(key).or_insert(next);
        counts.resize(places.len(), 0);
        counts[factor] += 1;
        rows.push(ShapedTime { shape, seconds: time.seconds, factor, job: time.job });
    }
    if rows.is_empty() {
        return Err(NothingKnown(format!(
            "{} times are of others' methods or the default",
            times.len()
        )));
    }
    let values = solve(&rows, counts.len());
    let redrawn = redraw(REDRAWINGS, |random| solve(&drawn(&rows, random), counts.len()));
    let parameter =
        |index: usize| percentiles(&values, &redrawn, &|values: &Values| values.parameters[index]);
    let factor = |place: usize| {
        percentiles(&values, &redrawn, &|values: &Values| values.logarithms[place].exp())
    };
    let mut factors: Vec<AlgorithmFactor> = places
        .into_iter()
        .map(|((collective, method), place)| AlgorithmFactor {
            collective,
            method,
            factor: factor(place),
            times: counts[place],
        })
        .collect();
    factors.sort_by(|a, b| (a.collective, &a.method).cmp(&(b.collective, &b.method)));
    let errors: Vec<f64> =
        rows.iter().map(|row| (row.seconds / values.seconds(row) - 1.0).abs()).collect();
    let estimates = [parameter(0), parameter(1), parameter(2)];
    Ok(JointFit {
        start: estimates[0],
        per_byte: estimates[1],
        combining: estimates[2],
        factors,
        undetermined: undetermined(&rows, &estimates),
        median_error: median(&errors).unwrap_or_default(),
        times: rows.len(),
        shapes,
    })
}

impl JointFit {
    /// What a method takes, in seconds; none where its schedule is not known. A method without times
    /// of its own has the factor 1.
    pub fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        let shape = self.shapes.of(point, method)?;
        let plain = method.clone().with_segment(0);
        let is_of = |it: &&AlgorithmFactor| it.collective == point.collective && it.method == plain;
        let factor = self.factors.iter().find(is_of).map_or(1.0, |it| it.factor.value);
        let parameters = Vector3::new(self.start.value, self.per_byte.value, self.combining.value);
        Some(factor * shape.dot(&parameters)).filter(|seconds| *seconds > 0.0)
    }

    /// The same as parameters of all models: messages take alpha + beta m in each of them, and
    /// follow each other by that.
    pub fn parameters(&self) -> Parameters {
        let none = Estimate::exact(0.0);
        let loggp = calibration::LogGpEstimates {
            latency_seconds: self.start,
            overhead_seconds: none,
            gap_seconds: self.start,
            gap_seconds_per_byte: self.per_byte,
        };
        let knot = |bytes: u64| calibration::PLogPKnot {
            bytes,
            send_overhead_seconds: none,
            receive_overhead_seconds: none,
            gap_seconds: Estimate {
                value: self.start.value + bytes as f64 * self.per_byte.value,
                low: self.start.low + bytes as f64 * self.per_byte.low,
                high: self.start.high + bytes as f64 * self.per_byte.high,
            },
        };
        let mut parameters = Parameters::new(
            calibration::HockneyEstimates {
                alpha_seconds: self.start,
                beta_seconds_per_byte: self.per_byte,
            },
            loggp,
            calibration::PLogPEstimates::new(none, vec![knot(0), knot(1), knot(1 << 20)]),
        );
        parameters.gamma_seconds_per_byte = self.combining;
        parameters.derived = vec!["loggp from hockney".into(), "plogp from hockney".into()];
        parameters
    }
}

/// What a fit gives.
struct Values {
    parameters: Shape,
    /// Of the factors.
    logarithms: Vec<f64>,
}

impl Values {
    /// What all factors have in common belongs to the parameters, which no prior holds.
    fn centre(&mut self) {
        let common = self.logarithms.iter().sum::<f64>() / self.logarithms.len().max(1) as f64;
        self.logarithms.iter_mut().for_each(|logarithm| *logarithm -= common);
        self.parameters *= common.exp();
    }

    fn seconds(&self, row: &ShapedTime) -> f64 {
        (self.logarithms[row.factor].exp() * row.shape.dot(&self.parameters)).max(1e-12)
    }
}

/// Parameters and factors by turns until both stay.
fn solve(rows: &[ShapedTime], factors: usize) -> Values {
    let mut values = Values { parameters: Vector3::zeros(), logarithms: vec![0.0; factors] };
    let mut weights = vec![1.0; rows.len()];
    // Relative to what is predicted, or else what is predicted too low would cost less than what is
    // predicted too high by as many times.
    let mut scales: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    for _ in 0..ROUNDS {
        values.parameters = least_squares(rows, &values.logarithms, &weights, &scales);
        for (scale, row) in scales.iter_mut().zip(rows) {
            *scale =
                (*scale * values.seconds(row)).sqrt().clamp(row.seconds / 10.0, row.seconds * 10.0);
        }
        let mut sums = vec![(0.0, 0.0); factors];
        for (row, weight) in rows.iter().zip(&mut weights) {
            let plain = row.shape.dot(&values.parameters).max(1e-12);
            let error = (row.seconds / plain).ln();
            let away = (error - values.logarithms[row.factor]).abs() / SPREAD;
            *weight = if away > BOUND { BOUND / away } else { 1.0 };
            sums[row.factor].0 += *weight * error;
            sums[row.factor].1 += *weight;
        }
        let prior = (SPREAD / FACTOR_SPREAD).powi(2);
        for (logarithm, (sum, weight)) in values.logarithms.iter_mut().zip(sums) {
            *logarithm = sum / (weight + prior);
        }
        values.centre();
    }
    values
}

/// alpha, beta and gamma, none below 0, by relative errors.
fn least_squares(
    rows: &[ShapedTime],
    logarithms: &[f64],
    weights: &[f64],
    scales: &[f64],
) -> Shape {
    let mut normal = Matrix3::zeros();
    let mut right = Vector3::zeros();
    for ((row, weight), scale) in rows.iter().zip(weights).zip(scales) {
        let scaled = row.shape * (logarithms[row.factor].exp() / scale);
        normal += scaled * scaled.transpose() * *weight;
        right += scaled * (*weight * row.seconds / scale);
    }
    let mut best = (f64::INFINITY, Vector3::zeros());
    // Every choice of those that are not 0.
    for chosen in 1_u32..8 {
        let is_chosen = |index: usize| chosen & (1 << index) != 0;
        let mut matrix = normal;
        let mut target = right;
        for index in (0..3).filter(|&index| !is_chosen(index)) {
            matrix.row_mut(index).fill(0.0);
            matrix.column_mut(index).fill(0.0);
            matrix[(index, index)] = 1.0;
            target[index] = 0.0;
        }
        if (0..3).any(|index| is_chosen(index) && matrix[(index, index)] <= 0.0) {
            continue;
        }
        // Columns of very different sizes are brought to one.
        let scale = matrix.diagonal().map(|it| 1.0 / it.sqrt());
        let even = Matrix3::from_diagonal(&scale) * matrix * Matrix3::from_diagonal(&scale);
        if even.determinant() < LEAST_DETERMINANT {
            continue;
        }
        let Some(solved) = even.lu().solve(&target.component_mul(&scale)) else { continue };
        let solved = solved.component_mul(&scale);
        if solved.iter().any(|it| *it < 0.0) {
            continue;
        }
        let cost = (solved.transpose() * normal * solved)[0] - 2.0 * right.dot(&solved);
        if cost < best.0 {
            best = (cost, solved);
        }
    }
    best.1
}

/// Jobs drawn anew with all their rows; rows, where there is one job.
fn drawn(rows: &[ShapedTime], random: &mut rand_pcg::Pcg64Mcg) -> Vec<ShapedTime> {
    let mut by_job: BTreeMap<u32, Vec<ShapedTime>> = BTreeMap::new();
    for row in rows {
        by_job.entry(row.job).or_default().push(*row);
    }
    let jobs: Vec<Vec<ShapedTime>> = match by_job.len() {
        1 => rows.iter().map(|row| vec![*row]).collect(),
        _ => by_job.into_values().collect(),
    };
    (0..jobs.len()).flat_map(|_| jobs[random.random_range(0..jobs.len())].clone()).collect()
}

/// What cannot be determined, and why.
fn undetermined(rows: &[ShapedTime], estimates: &[Estimate; 3]) -> Vec<String> {
    const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];
    let mut told = Vec::new();
    for (index, (name, estimate)) in NAMES.iter().zip(estimates).enumerate() {
        if rows.iter().all(|row| row.shape[index] == 0.0) {
            let why = match index {
                2 => "nothing was combined",
                _ => "no message depends on it",
            };
            told.push(format!("{name} cannot be determined: {why}"));
        } else if estimate.value == 0.0 {
            told.push(format!("{name} cannot be told from the others: taken as 0"));
        } else if estimate.high > WIDE * estimate.low.max(f64::MIN_POSITIVE) {
            told.push(format!(
                "{name} is poorly determined: {:.1e} to {:.1e}",
                estimate.low, estimate.high
            ));
        }
    }
    told.push("L, o and g cannot be told apart by collectives: g = L = alpha, o = 0".into());
    told
}

/// The library whose methods these are, if they are all of one.
pub fn library_of(times: &[CollectiveTime]) -> Option<Library> {
    let mut libraries = times.iter().filter_map(|time| match &time.method {
        Method::Native(native) => Some(native.library),
        _ => None,
    });
    let first = libraries.next()?;
    libraries.all(|library| library == first).then_some(first)
}

#[cfg(test)]
mod tests;
