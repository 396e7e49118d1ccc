//! How much each model counts at each point of a collective: as far as it was seen to tell the
//! methods there and nearby apart.
//!
//! Models that are wrong about a platform are mostly wrong in one region of it, all of them in
//! another one. What a model is off by for all methods of a point alike changes no decision, and
//! counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use records::{Point, plan::Cell};

use crate::{belief::likeness, statistics::median};

/// Standard deviation of the logarithm of what a model takes one method for beside the others of a point,
/// before anything was observed; what is observed of so many cells weighs as much.
const BEFORE: f64 = 0.3;
const WEIGHT_BEFORE: f64 = 4.0;
/// The least of it that is believed.
const LEAST: f64 = 0.03;
/// The most that one observation says of it: a visit that strayed is no model's fault.
const MOST: f64 = 1.0;

/// Logarithms of what the models predict, with what each counts at each point.
pub(super) struct Models {
    /// By cell and model.
    logarithms: Vec<Vec<Option<f64>>>,
    weights: BTreeMap<Point, Vec<f64>>,
}

impl Models {
    /// Of what the models say of each cell, in seconds, and the logarithm of what was observed of some
    /// (by the cell's index).
    pub fn new(cells: &[Cell], times: Vec<Vec<Option<f64>>>, observed: &[(usize, f64)]) -> Self {
        let logarithm = |time: Option<f64>| time.filter(|time| *time > 0.0).map(f64::ln);
        let logarithms: Vec<Vec<Option<f64>>> =
            times.into_iter().map(|of| of.into_iter().map(logarithm).collect()).collect();
        let models = logarithms.first().map_or(0, Vec::len);
        let mut seen: BTreeMap<Point, Vec<(usize, f64)>> = BTreeMap::new();
        for &(index, seconds) in observed {
            seen.entry(cells[index].point()).or_default().push((index, seconds));
        }
        let of_point = |(point, seen): (Point, Vec<(usize, f64)>)| {
            (point, (0..models).map(|model| off(&logarithms, model, &seen)).collect::<Vec<_>>())
        };
        let seen: Vec<(Point, Vec<Off>)> = seen.into_iter().map(of_point).collect();
        let weight = |point: Point, model: usize| {
            let nearby = seen.iter().filter(|(other, _)| other.collective == point.collective);
            let mut sum = Off { squares: WEIGHT_BEFORE * BEFORE.powi(2), count: WEIGHT_BEFORE };
            for (other, off) in nearby {
                let alike = likeness(point, *other);
                sum.squares += alike * off[model].squares;
                sum.count += alike * off[model].count;
            }
            (sum.squares / sum.count).max(LEAST.powi(2)).recip()
        };
        let points: BTreeSet<Point> = cells.iter().map(Cell::point).collect();
        let weights = points
            .into_iter()
            .map(|point| (point, (0..models).map(|model| weight(point, model)).collect()))
            .collect();
        Models { logarithms, weights }
    }

    /// The logarithm of a cell's time, by its index; nothing where no model knows it.
    pub fn logarithm(&self, index: usize, point: Point) -> Option<f64> {
        let known = self.logarithms[index].iter().zip(&self.weights[&point]);
        let add = |(sum, weights): (f64, f64), (logarithm, weight): (f64, f64)| {
            (sum + weight * logarithm, weights + weight)
        };
        let known = known.filter_map(|(logarithm, weight)| Some(((*logarithm)?, *weight)));
        let (sum, weights) = known.fold((0.0, 0.0), add);
        (weights > 0.0).then(|| sum / weights)
    }
}

/// What a model is off by for the single methods of a point: the sum of squares, and of how many.
struct Off {
    squares: f64,
    count: f64,
}

fn off(logarithms: &[Vec<Option<f64>>], model: usize, seen: &[(usize, f64)]) -> Off {
    let errors: Vec<f64> = seen
        .iter()
        .filter_map(|&(index, seconds)| Some(seconds - logarithms[index][model]?))
        .collect();
    let Some(of_all) = median(&errors) else { return Off { squares: 0.0, count: 0.0 } };
    let squares = errors.iter().map(|error| (error - of_all).abs().min(MOST).powi(2)).sum();
    Off { squares, count: errors.len() as f64 - 1.0 }
}

#[cfg(test)]
mod tests {
    use records::{Collective, Method};

    use super::*;

    /// Two models, the first right about small messages and the second about large ones; both off by
    /// a factor of 3 for all methods alike.
    fn cells() -> (Vec<Cell>, Vec<Vec<Option<f64>>>, Vec<f64>) {
        let mut cells = Vec::new();
        let (mut times, mut truth) = (Vec::new(), Vec::new());
        for bytes in [1, 4, 16, 1 << 24, 1 << 26] {
            for (name, factor) in [("linear", 1.0_f64), ("binomial", 2.0), ("binary", 1.5)] {
                let method: Method = format!("native:openmpi:{name}").parse().unwrap();
                cells.push(Cell { collective: Collective::Bcast, method, procs: 8, bytes });
                let (right, wrong) = (factor, 1.0 / factor);
                let small = bytes < 1 << 20;
                let both = if small { [right, wrong] } else { [wrong, right] };
                times.push(both.map(Some).to_vec());
                truth.push((3.0 * right).ln());
            }
        }
        (cells, times, truth)
    }

    #[test]
    fn each_model_counts_where_it_tells_the_methods_apart() {
        let (cells, times, truth) = cells();
        let observed: Vec<(usize, f64)> = truth.iter().copied().enumerate().collect();
        let models = Models::new(&cells, times, &observed);
        for (index, cell) in cells.iter().enumerate() {
            let got = models.logarithm(index, cell.point()).unwrap() + 3.0_f64.ln();
            assert!((got - truth[index]).abs() < 0.25, "{cell:?}: {got} {}", truth[index]);
        }
    }

    #[test]
    fn what_was_not_observed_is_the_mean_of_the_models() {
        let (mut cells, mut times, _) = cells();
        let of_none: Method = "native:openmpi:k-chain".parse().unwrap();
        cells.push(Cell { method: of_none, ..cells[0].clone() });
        times.push(vec![None, None]);
        let models = Models::new(&cells, times, &[(0, 0.7)]);
        let got = |index: usize| models.logarithm(index, cells[index].point());
        assert!((0..cells.len() - 1).all(|index| got(index).unwrap().abs() < 1e-12));
        assert_eq!(got(cells.len() - 1), None);
    }
}
