//! The prior of a cell: what the models predict, weighted by how right each was nearby, and corrected by
//! the error that all methods have in common there.
//!
//! Much of a model's error comes from the platform and not from a method: from processors that several
//! ranks share, for instance. It changes no decision. With it taken out, the errors left are smaller, and
//! fewer observations are enough.

use std::collections::BTreeMap;

use choosing::{Belief, Prior, samples::Samples};
use records::{Collective, Method, Point, plan::Cell};
use statistics::median;

use super::models;
use crate::{constants::constants, plan::Expectation};

/// By the index of a cell.
pub(super) struct Priors {
    priors: Vec<Prior>,
    is_modelled: Vec<bool>,
    /// Square of the logarithm of observed over believed, beside the other methods of the point.
    squares: BTreeMap<usize, f64>,
    /// Root mean square of these, where enough was observed.
    errors: BTreeMap<Collective, f64>,
}

impl Priors {
    pub fn new(cells: &[Cell], expected: Expectation<'_>, samples: &Samples) -> Self {
        let seen = |(index, cell): (usize, &Cell)| {
            let of_default = || {
                let times = samples.get(cell.point, &Method::Default)?;
                let is_run = libraries::is_run_of(cell.point, &cell.method, times.ran()?);
                is_run.then_some(times)
            };
            let times = samples.get(cell.point, &cell.method).or_else(of_default)?;
            let seconds = times.median()?;
            (seconds > 0.0).then(|| (index, seconds.ln()))
        };
        let observed: Vec<(usize, f64)> = cells.iter().enumerate().filter_map(seen).collect();
        let times = cells.iter().map(expected).collect();
        let predicted = models::together(cells, times, &observed);
        let is_modelled: Vec<bool> = predicted.iter().map(Option::is_some).collect();
        let mut priors = priors_by_models(cells, &predicted);
        let off = |priors: &[Prior]| -> Vec<(usize, f64)> {
            let modelled = observed.iter().filter(|(index, _)| is_modelled[*index]);
            modelled.map(|&(index, seconds)| (index, seconds - priors[index].mean)).collect()
        };
        let common = errors_common_to_methods(cells, &off(&priors));
        for (prior, cell) in priors.iter_mut().zip(cells) {
            prior.mean += common.get(&cell.point).copied().unwrap_or_default();
        }
        let off = errors_beside_common(cells, &off(&priors));
        let errors = root_mean_square_errors(cells, &off);
        let squares = off.into_iter().map(|(index, off)| (index, off.powi(2))).collect();
        Priors { priors, is_modelled, squares, errors }
    }

    /// Of one method of one collective: the cells at these indices, with their points.
    pub fn belief(&self, indices: &[u32], points: Vec<Point>) -> Belief {
        let of_track = || indices.iter().map(|&index| index as usize);
        let error = match of_track().all(|index| self.is_modelled[index]) {
            true => {
                let of_collective = points.first().and_then(|of| self.errors.get(&of.collective));
                let others = of_collective.copied().unwrap_or(constants().modelled_error);
                let own: Vec<f64> =
                    of_track().filter_map(|i| self.squares.get(&i)).copied().collect();
                let sum = own.iter().sum::<f64>() + constants().others_cells * others.powi(2);
                (sum / (own.len() as f64 + constants().others_cells)).sqrt()
            }
            false => constants().unknown_error,
        };
        let priors: Vec<Prior> = of_track().map(|index| self.priors[index]).collect();
        Belief::new(points, &priors, error, error)
    }
}

/// The prior of each cell by the logarithm of the models' time. For a method that no model knows, the mean
/// of all at its point.
fn priors_by_models(cells: &[Cell], predicted: &[Option<f64>]) -> Vec<Prior> {
    let mut means: BTreeMap<Point, (f64, f64)> = BTreeMap::new();
    for (cell, predicted) in cells.iter().zip(predicted) {
        if let Some(mean) = predicted {
            let (sum, count) = means.entry(cell.point).or_default();
            *sum += mean;
            *count += 1.0;
        }
    }
    let prior = |(cell, predicted): (&Cell, &Option<f64>)| match predicted {
        Some(mean) => Prior { mean: *mean, own: constants().own_error },
        None => {
            let (sum, count) = means.get(&cell.point).copied().unwrap_or((1e-3_f64.ln(), 1.0));
            Prior { mean: sum / count, own: constants().modelled_error }
        }
    };
    cells.iter().zip(predicted).map(prior).collect()
}

/// The models' error that all methods of a collective have in common, at each point: the median over the
/// methods observed, smoothed over the points; a logarithm.
fn errors_common_to_methods(cells: &[Cell], off: &[(usize, f64)]) -> BTreeMap<Point, f64> {
    let mut points: BTreeMap<Collective, BTreeMap<Point, Vec<f64>>> = BTreeMap::new();
    for cell in cells {
        points.entry(cell.point.collective).or_default().entry(cell.point).or_default();
    }
    for &(index, off) in off {
        let cell = &cells[index];
        if let Some(offs) =
            points.get_mut(&cell.point.collective).and_then(|of| of.get_mut(&cell.point))
        {
            offs.push(off);
        }
    }
    let smoothed = |of_collective: BTreeMap<Point, Vec<f64>>| {
        let places: Vec<Point> = of_collective.keys().copied().collect();
        let nothing = vec![Prior { mean: 0.0, own: constants().own_error }; places.len()];
        let mut belief =
            Belief::new(places, &nothing, constants().modelled_error, constants().modelled_error);
        for (index, offs) in of_collective.values().enumerate() {
            if let Some(middle) = median(offs) {
                belief.observe(
                    index,
                    middle,
                    constants().modelled_error.powi(2) / offs.len() as f64,
                );
            }
        }
        let means =
            (0..belief.points().len()).map(|index| (belief.points()[index], belief.mean(index)));
        means.collect::<Vec<_>>()
    };
    points.into_values().flat_map(smoothed).collect()
}

/// The models' error for each observed cell, less the mean over the methods of its point; a logarithm.
/// Points with one observed method tell nothing of methods and are left out.
fn errors_beside_common(cells: &[Cell], off: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let mut points: BTreeMap<Point, Vec<(usize, f64)>> = BTreeMap::new();
    for &(index, off) in off {
        points.entry(cells[index].point).or_default().push((index, off));
    }
    let of_point = |of: Vec<(usize, f64)>| {
        let count = of.len() as f64;
        let mean = of.iter().map(|(_, off)| off).sum::<f64>() / count;
        // The mean was estimated from the same values.
        let scale = (count / (count - 1.0)).sqrt();
        of.into_iter().map(move |(index, off)| (index, (off - mean) * scale))
    };
    points.into_values().filter(|of| of.len() > 1).flat_map(of_point).collect()
}

/// How far off the models were, per collective; nothing where too little was observed to tell.
fn root_mean_square_errors(cells: &[Cell], off: &[(usize, f64)]) -> BTreeMap<Collective, f64> {
    let mut squares: BTreeMap<Collective, Vec<f64>> = BTreeMap::new();
    for (index, off) in off {
        squares.entry(cells[*index].point.collective).or_default().push(off.powi(2));
    }
    let known = squares.into_iter().filter(|(_, squares)| squares.len() >= constants().min_cells);
    let root = |squares: Vec<f64>| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt();
    known
        .map(|(collective, squares)| (collective, root(squares).min(constants().unknown_error)))
        .collect()
}
