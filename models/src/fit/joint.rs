//! One fit of a start-up time, a rate and a combining rate to the times of collectives of known
//! algorithms, at any numbers of processes and sizes.
//!
//! # What is computed
//! A call whose messages each take alpha + beta m, on ports that send and receive one at a time, and
//! whose combinations take gamma m, takes about `a alpha + b beta + c gamma`; a, b and c are what the
//! simulation of its schedule gives with one of the three at 1 and the others at 0; of a long schedule its
//! refined form, which says the same or nearly so. Where nodes hold
//! several ranks, messages inside have an alpha and a beta of their own. Each algorithm of
//! a collective has two factors beside that, of its alphas and of its betas, for what its implementation does
//! differently at start-up and with each byte; combining has none, since times do not tell it from the bytes that are
//! moved. Minimised is
//! the sum of Huber's function of ln(measured / predicted) over [`SPREAD`], and of the squares of the factors'
//! logarithms over [`FACTOR_SPREAD`]: the prior holds factors at 1 where few data speak. A prior
//! of [`PARAMETER_SPREAD`] holds parameters where no data do; it is too wide to count otherwise. What
//! is searched for are logarithms, so that no parameter is below 0.
//!
//! # Intervals
//! Percentiles of 100 fits to jobs drawn anew; of a single job, its cells are drawn.

mod constants;
mod shapes;

use std::collections::BTreeMap;

use nalgebra::DMatrix;
use rand::RngExt as _;
use records::{Collective, Method, Point, calibration::Estimate};
use statistics::{median, quantile};

pub use self::shapes::Shapes;
use self::shapes::{PARTS, Shape};
pub(super) use self::{constants::of_messages, shapes::simulated_call};
use super::{MethodTime, percentiles, redraw};
use crate::minimise::{huber, minimise};

/// Scatter of ln(measured / predicted) of a right model, as simulations of real machines have it.
pub const SPREAD: f64 = 0.3;
/// Scatter of the logarithms of the factors, before any data.
pub const FACTOR_SPREAD: f64 = 0.5;
/// Scatter of the logarithms of the parameters around where they are first looked for.
pub const PARAMETER_SPREAD: f64 = 3.0;
const REDRAWINGS: usize = 100;
/// An interval over more than this factor says nothing.
const WIDE: f64 = 10.0;
/// Columns that are this nearly multiples of each other cannot be separated.
const MIN_DETERMINANT: f64 = 1e-6;

/// The time of a collective, by one job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTime {
    pub point: Point,
    /// By which method.
    pub method: Method,
    pub seconds: f64,
    /// The job that measured it.
    pub job: u32,
}

/// The medians over jobs.
pub fn medians_over_jobs<'a>(times: impl IntoIterator<Item = &'a JobTime>) -> Vec<MethodTime> {
    let mut cells: BTreeMap<(Point, &Method), Vec<f64>> = BTreeMap::new();
    for time in times {
        cells.entry((time.point, &time.method)).or_default().push(time.seconds);
    }
    let of = |((point, method), seconds): ((Point, &Method), Vec<f64>)| {
        Some(MethodTime { point, method: method.clone(), seconds: median(&seconds)? })
    };
    cells.into_iter().filter_map(of).collect()
}

/// What an algorithm does beside what its schedule says.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmFactor {
    /// Of which collective.
    pub collective: Collective,
    /// The method, without segments.
    pub method: Method,
    /// Times the schedule's start-up times.
    pub start: Estimate,
    /// Times the schedule's times per byte, combining aside.
    pub per_byte: Estimate,
    /// alpha between nodes times its factor, in seconds.
    pub alpha: Estimate,
    /// beta between nodes times its factor, in seconds per byte.
    pub beta: Estimate,
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
    /// alpha and beta inside nodes, where several ranks of several nodes were timed.
    pub inside: Option<[Estimate; 2]>,
    /// By collective and method.
    pub factors: Vec<AlgorithmFactor>,
    /// What the times cannot determine, and why.
    pub undetermined: Vec<String>,
    /// Median of |measured / predicted - 1|.
    pub median_error: f64,
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
pub fn joint(times: &[JobTime]) -> Result<JointFit, NothingKnown> {
    joint_by(times, &Shapes::default(), REDRAWINGS)
}

/// The joint fit without intervals, at once. Of several fits, to parts of the same times, each knows the shapes
/// of those before.
///
/// # Errors
/// As [`joint`].
pub fn joint_values(times: &[JobTime], shapes: &Shapes) -> Result<JointFit, NothingKnown> {
    joint_by(times, shapes, 0)
}

fn joint_by(
    times: &[JobTime],
    shapes: &Shapes,
    redrawings: usize,
) -> Result<JointFit, NothingKnown> {
    let (rows, places) = shaped(times, shapes);
    let mut counts = vec![0; places.len()];
    rows.iter().for_each(|row| counts[row.factor] += 1);
    if rows.is_empty() {
        return Err(NothingKnown(format!(
            "{} times are of others' methods or the default",
            times.len()
        )));
    }
    let values = solve(&rows, &first_guess(&rows, counts.len()));
    let redrawn = redraw(redrawings, |random| solve(&drawn(&rows, random), &values));
    let parameter =
        |index: usize| percentiles(&values, &redrawn, &|values: &Values| values.parameters[index]);
    let factor = |place: usize, kind: usize| {
        percentiles(&values, &redrawn, &|values: &Values| values.logarithms[place][kind].exp())
    };
    let constant = |place: usize, kind: usize| {
        percentiles(&values, &redrawn, &|values: &Values| {
            values.logarithms[place][kind].exp() * values.parameters[kind]
        })
    };
    let mut factors: Vec<AlgorithmFactor> = places
        .into_iter()
        .map(|((collective, method), place)| AlgorithmFactor {
            collective,
            method,
            start: factor(place, STARTS),
            per_byte: factor(place, BYTES),
            alpha: constant(place, STARTS),
            beta: constant(place, BYTES),
            times: counts[place],
        })
        .collect();
    factors.sort_by(|a, b| (a.collective, &a.method).cmp(&(b.collective, &b.method)));
    let errors: Vec<f64> =
        rows.iter().map(|row| (row.seconds / values.seconds(row) - 1.0).abs()).collect();
    let estimates: [Estimate; PARTS] = std::array::from_fn(parameter);
    let [start, per_byte, combining, start_inside, per_byte_inside] = estimates;
    let has_inside = rows.iter().any(|row| row.shape[3] > 0.0);
    Ok(JointFit {
        start,
        per_byte,
        combining,
        inside: has_inside.then_some([start_inside, per_byte_inside]),
        factors,
        undetermined: undetermined(&rows, &estimates),
        median_error: median(&errors).unwrap_or_default(),
        times: rows.len(),
        shapes: shapes.clone(),
    })
}

/// The times whose shapes are known, and the place of each algorithm's factors.
fn shaped(
    times: &[JobTime],
    shapes: &Shapes,
) -> (Vec<ShapedTime>, BTreeMap<(Collective, Method), usize>) {
    let mut places: BTreeMap<(Collective, Method), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    let has_levels = times.iter().any(|time| {
        let layout = time.point.layout;
        layout.nodes() > 1 && !layout.is_flat()
    });
    for time in times.iter().filter(|time| time.seconds > 0.0) {
        let Some(shape) = shapes.look_up(time.point, &time.method) else { continue };
        let shape = on_level(shape, time.point, has_levels);
        if shape.sum() <= 0.0 {
            continue;
        }
        let next = places.len();
        let key = (time.point.collective, time.method.clone().with_segment(0));
        let factor = *places.entry(key).or_insert(next);
        rows.push(ShapedTime { shape, seconds: time.seconds, factor, job: time.job });
    }
    (rows, places)
}

impl JointFit {
    /// What a method takes, in seconds; none where its schedule is not known. A method without times
    /// of its own has factors of 1.
    pub fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        let shape = self.shapes.look_up(point, method)?;
        let shape = on_level(shape, point, self.inside.is_some());
        let plain = method.clone().with_segment(0);
        let is_of = |it: &&AlgorithmFactor| it.collective == point.collective && it.method == plain;
        let own = self.factors.iter().find(is_of);
        let [start, per_byte] = own.map_or([1.0; 2], |own| [own.start.value, own.per_byte.value]);
        let [start_inside, per_byte_inside] =
            self.inside.map_or([0.0; 2], |inside| inside.map(|it| it.value));
        let between = [self.start.value, self.per_byte.value, self.combining.value];
        let parameters =
            Shape::from([between[0], between[1], between[2], start_inside, per_byte_inside]);
        let parts = parts(&shape, &parameters, [start, per_byte]);
        Some(parts.sum()).filter(|seconds| *seconds > 0.0)
    }
}

/// What one node takes is of messages inside, where others are known between nodes.
fn on_level(shape: Shape, point: Point, has_levels: bool) -> Shape {
    match has_levels && point.layout.nodes() == 1 {
        true => Shape::from([0.0, 0.0, shape[2], shape[0], shape[1]]),
        false => shape,
    }
}

/// Places of an algorithm's factors, and of the parameters between nodes that they are of.
const STARTS: usize = 0;
const BYTES: usize = 1;
/// Which of them each part of a time has; combining has none.
const FACTOR_OF_PART: [Option<usize>; PARTS] =
    [Some(STARTS), Some(BYTES), None, Some(STARTS), Some(BYTES)];

/// What each part of a call takes, in seconds, with an algorithm's factors.
fn parts(shape: &Shape, parameters: &Shape, factors: [f64; 2]) -> Shape {
    let of_parts = Shape::from(FACTOR_OF_PART.map(|kind| kind.map_or(1.0, |kind| factors[kind])));
    shape.component_mul(parameters).component_mul(&of_parts)
}

/// What a fit gives.
#[derive(Clone)]
struct Values {
    parameters: Shape,
    /// Of the factors.
    logarithms: Vec<[f64; 2]>,
}

impl Values {
    fn parts(&self, row: &ShapedTime) -> Shape {
        parts(&row.shape, &self.parameters, self.logarithms[row.factor].map(f64::exp))
    }

    fn seconds(&self, row: &ShapedTime) -> f64 {
        self.parts(row).sum()
    }
}

/// Each parameter as if nearly the fastest times took nothing else, which is the most that it may be; 0
/// where no time depends on it, or it cannot be separated from those before it.
fn first_guess(rows: &[ShapedTime], factors: usize) -> Values {
    let mut parameters = Shape::zeros();
    let mut determined = Vec::new();
    for part in 0..PARTS {
        let with = rows.iter().filter(|row| row.shape[part] > 0.0);
        let most: Vec<f64> = with.map(|row| row.seconds / row.shape[part]).collect();
        determined.push(part);
        match quantile(&most, 0.05) {
            Some(guess) if are_separable(rows, &determined) => parameters[part] = guess,
            _ => drop(determined.pop()),
        }
    }
    Values { parameters, logarithms: vec![[0.0; 2]; factors] }
}

/// Whether no part takes the same share of all times as others together.
fn are_separable(rows: &[ShapedTime], parts: &[usize]) -> bool {
    let share = |row: &ShapedTime, part: usize| row.shape[part] / row.seconds;
    let product =
        |a: usize, b: usize| rows.iter().map(|row| share(row, a) * share(row, b)).sum::<f64>();
    let angles = DMatrix::from_fn(parts.len(), parts.len(), |a, b| {
        let (a, b) = (parts[a], parts[b]);
        product(a, b) / (product(a, a) * product(b, b)).sqrt()
    });
    angles.determinant() > MIN_DETERMINANT
}

/// The parameters and factors with the least sum, from those of a start; parameters of 0 stay.
fn solve(rows: &[ShapedTime], start: &Values) -> Values {
    let free: Vec<usize> = (0..PARTS).filter(|part| start.parameters[*part] > 0.0).collect();
    let values = |at: &[f64]| {
        let mut parameters = Shape::zeros();
        for (part, moved) in free.iter().zip(at) {
            parameters[*part] = start.parameters[*part] * moved.exp();
        }
        Values { parameters, logarithms: at[free.len()..].as_chunks().0.to_vec() }
    };
    let sum = |at: &[f64]| {
        let there = values(at);
        let mut slopes = vec![0.0; at.len()];
        let mut sum = 0.0;
        for row in rows {
            let parts = there.parts(row);
            let predicted = parts.sum();
            let (cost, slope) = huber((row.seconds / predicted).ln() / SPREAD);
            sum += cost;
            for (place, part) in free.iter().enumerate() {
                let moved = slope / SPREAD * parts[*part] / predicted;
                slopes[place] -= moved;
                if let Some(kind) = FACTOR_OF_PART[*part] {
                    slopes[free.len() + 2 * row.factor + kind] -= moved;
                }
            }
        }
        for (place, (at, slope)) in at.iter().zip(&mut slopes).enumerate() {
            let spread = if place < free.len() { PARAMETER_SPREAD } else { FACTOR_SPREAD };
            sum += (at / spread).powi(2) / 2.0;
            *slope += at / spread.powi(2);
        }
        (sum, slopes)
    };
    let mut begin = vec![0.0; free.len()];
    begin.extend(start.logarithms.as_flattened());
    values(&minimise(begin, sum))
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
fn undetermined(rows: &[ShapedTime], estimates: &[Estimate; PARTS]) -> Vec<String> {
    const NAMES: [&str; PARTS] =
        ["alpha", "beta", "gamma", "alpha inside nodes", "beta inside nodes"];
    let mut notes = Vec::new();
    for (index, (name, estimate)) in NAMES.iter().zip(estimates).enumerate() {
        if rows.iter().all(|row| row.shape[index] == 0.0) {
            let why = match index {
                0 | 1 => "no message depends on it",
                2 => "nothing was combined",
                // Nobody asks for what no job had.
                _ => continue,
            };
            notes.push(format!("{name} cannot be determined: {why}"));
        } else if estimate.value == 0.0 {
            notes.push(format!("{name} cannot be separated from the others: set to 0"));
        } else if estimate.high > WIDE * estimate.low.max(f64::MIN_POSITIVE) {
            notes.push(format!(
                "{name} is poorly determined: {:.1e} to {:.1e}",
                estimate.low, estimate.high
            ));
        }
    }
    notes.push("collectives cannot separate L, o and g: g = L = alpha, o = 0".into());
    notes
}

#[cfg(test)]
mod tests;
