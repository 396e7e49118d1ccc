//! How probable each model is at each point of a collective, by what it was off by there, nearby and elsewhere.
//!
//! Models that are wrong about a platform are mostly wrong in one region of it, all of them in
//! another one; and one that is wrong wherever it was looked at is not believed where nothing was measured. What
//! a model is off by everywhere alike changes no decision, and counts once.
//!
//! The mean of the models would not do: of four that predict 2.2, 2.2, 2.2 and 18 ms it is 3.7 ms, and what takes
//! 2.2 ms is given up for a default of 3 ms.

use std::collections::{BTreeMap, BTreeSet};

use choosing::{constants::constants as believing, similarity};
use nalgebra::{DMatrix, DVector};
use records::{Point, plan::Cell};

use crate::constants::constants;

/// The logarithm of each cell's time by the models together; nothing where none knows the cell. Of what
/// they say of each cell, in seconds, and the logarithm of what was observed of some (by the cell's
/// index).
pub(super) fn together(
    cells: &[Cell],
    times: Vec<Vec<Option<f64>>>,
    observed: &[(usize, f64)],
) -> Vec<Option<f64>> {
    let logarithm = |time: Option<f64>| time.filter(|time| *time > 0.0).map(f64::ln);
    let logarithms: Vec<Vec<Option<f64>>> =
        times.into_iter().map(|of| of.into_iter().map(logarithm).collect()).collect();
    let weights = probabilities(cells, &logarithms, observed);
    let of_cell = |(cell, logarithms): (&Cell, &Vec<Option<f64>>)| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (logarithm, weight) in logarithms.iter().zip(&weights[&cell.point]) {
            if let Some(logarithm) = logarithm {
                sum += weight * logarithm;
                count += weight;
            }
        }
        (count > 0.0).then(|| sum / count)
    };
    cells.iter().zip(&logarithms).map(of_cell).collect()
}

/// How probable each model is at each point, by what it is off by in what was observed of the collective.
fn probabilities(
    cells: &[Cell],
    logarithms: &[Vec<Option<f64>>],
    observed: &[(usize, f64)],
) -> BTreeMap<Point, Vec<f64>> {
    let models = logarithms.first().map_or(0, Vec::len);
    let mut of_collective: BTreeMap<_, Vec<(usize, f64)>> = BTreeMap::new();
    for &(index, seconds) in observed {
        // By what only some know these cannot be compared.
        if logarithms[index].iter().all(Option::is_some) {
            of_collective.entry(cells[index].point.collective).or_default().push((index, seconds));
        }
    }
    let beliefs: BTreeMap<_, ModelBelief> = of_collective
        .into_iter()
        .map(|(collective, seen)| (collective, ModelBelief::new(cells, logarithms, models, seen)))
        .collect();
    let at = |point: Point| match beliefs.get(&point.collective) {
        Some(belief) => (point, belief.at(point)),
        None => (point, vec![1.0; models]),
    };
    let points: BTreeSet<Point> = cells.iter().map(|cell| cell.point).collect();
    points.into_iter().map(at).collect()
}

/// Most cells of a collective by which the models are judged: the work grows with the cube of it, and the
/// models are distinguished by fewer.
const MAX_CELLS: usize = 250;
/// Steps of the search for how often each model is right.
const SHARE_SWEEPS: usize = 30;

/// What is thought of the models for one collective.
struct ModelBelief {
    /// Where was observed.
    points: Vec<Point>,
    /// Of each model what was off there, in deviations.
    surprises: Vec<DVector<f64>>,
    /// At which share of the places each is the right one.
    shares: Vec<f64>,
}

impl ModelBelief {
    /// Of the cells `seen`, by their index, with the logarithms of their times.
    fn new(
        cells: &[Cell],
        logarithms: &[Vec<Option<f64>>],
        models: usize,
        seen: Vec<(usize, f64)>,
    ) -> Self {
        let step = seen.len().div_ceil(MAX_CELLS).max(1);
        let seen: Vec<(usize, f64)> = seen.into_iter().step_by(step).collect();
        let points = seen.iter().map(|(index, _)| cells[*index].point).collect();
        let surprises = surprises(cells, logarithms, models, &seen);
        let shares = vec![1.0 / models as f64; models];
        ModelBelief { points, surprises, shares }.with_shares()
    }

    /// A model is right in some region. How often each is follows by expectation maximisation, before
    /// which each is thought to be so at one place.
    fn with_shares(mut self) -> Self {
        let local: Vec<Vec<f64>> = self.points.iter().map(|at| self.local(*at)).collect();
        for _ in 0..SHARE_SWEEPS {
            let mut sums = vec![1.0; self.shares.len()];
            for local in &local {
                for (sum, of) in sums.iter_mut().zip(weighed(&self.shares, local)) {
                    *sum += of;
                }
            }
            let all: f64 = sums.iter().sum();
            self.shares = sums.into_iter().map(|sum| sum / all).collect();
        }
        self
    }

    /// How probable each model is at a point.
    fn at(&self, point: Point) -> Vec<f64> {
        weighed(&self.shares, &self.local(point))
    }

    /// How well each tells what was observed, the more the nearer to a point: the logarithm of Student's t of its
    /// surprises, which is what remains of their normal density with the scale integrated out.
    fn local(&self, point: Point) -> Vec<f64> {
        let alike: Vec<f64> = self.points.iter().map(|other| similarity(point, *other)).collect();
        let count: f64 = alike.iter().sum();
        let doubt = constants().model_doubt_cells;
        let logarithm = |surprises: &DVector<f64>| {
            let squares = surprises.iter().zip(&alike).map(|(surprise, alike)| {
                alike * surprise.abs().min(constants().max_model_error).powi(2)
            });
            let before = doubt * constants().model_doubt.powi(2);
            -f64::midpoint(doubt, count) * (before + squares.sum::<f64>()).ln()
        };
        self.surprises.iter().map(logarithm).collect()
    }
}

/// What each model is off by, in deviations of a Gaussian process: a part that all methods have in common
/// everywhere, one that they have in common at a point, and one that is a method's own; the latter two change
/// slowly from point to point. Each observation is compared with what those before it make expected (so that
/// what is wrong alike everywhere counts once); the process's scale is not known, and for [`ModelBelief`] to find.
fn surprises(
    cells: &[Cell],
    logarithms: &[Vec<Option<f64>>],
    models: usize,
    seen: &[(usize, f64)],
) -> Vec<DVector<f64>> {
    let noise = (believing().visit_noise / constants().modelled_error).powi(2);
    let covariances = DMatrix::from_fn(seen.len(), seen.len(), |row, column| {
        let (one, other) = (&cells[seen[row].0], &cells[seen[column].0]);
        let at_point = similarity(one.point, other.point);
        let of_method = if one.method == other.method { at_point } else { 0.0 };
        1.0 + at_point + of_method + if row == column { noise } else { 0.0 }
    });
    // With noise on its diagonal it is positive definite.
    let lower = covariances.cholesky().map(|of| of.unpack()).unwrap_or_default();
    let of_model = |model: usize| {
        let off = seen
            .iter()
            .map(|&(index, seconds)| seconds - logarithms[index][model].unwrap_or(seconds));
        let off = DVector::from_iterator(seen.len(), off);
        lower.solve_lower_triangular(&off).unwrap_or_default()
    };
    (0..models).map(of_model).collect()
}

/// Shares times probabilities of which the logarithms are given; they sum to 1.
fn weighed(shares: &[f64], logarithms: &[f64]) -> Vec<f64> {
    let most = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // What one model alone knows is known by that, however wrong it is elsewhere.
    let weight = |(share, of): (&f64, &f64)| share * (of - most).exp().max(f64::EPSILON.powi(4));
    let weights: Vec<f64> = shares.iter().zip(logarithms).map(weight).collect();
    let all: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / all).collect()
}

#[cfg(test)]
mod tests {
    use records::{Collective, Layout, Method};

    use super::*;

    /// Two models, the first right about small messages and the second about large ones; both off by
    /// a factor of 3 for all methods alike.
    fn cells() -> (Vec<Cell>, Vec<Vec<Option<f64>>>, Vec<f64>) {
        let mut cells = Vec::new();
        let (mut times, mut truth) = (Vec::new(), Vec::new());
        for bytes in [1, 4, 16, 1 << 24, 1 << 26] {
            for (name, factor) in [("linear", 1.0_f64), ("binomial", 2.0), ("binary", 1.5)] {
                let method: Method = format!("native:openmpi:{name}").parse().unwrap();
                cells.push(Cell { point: Point::flat(Collective::Bcast, 8, bytes), method });
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
        let together = together(&cells, times, &observed);
        for (index, cell) in cells.iter().enumerate() {
            let got = together[index].unwrap() + 3.0_f64.ln();
            assert!((got - truth[index]).abs() < 0.25, "{cell:?}: {got} {}", truth[index]);
        }
    }

    /// Seen on a slow network: one model knows no gap, so that a flat tree takes eight times as long by it. With
    /// other methods observed at other places, which it gets wrong as well, it is not believed of the flat tree.
    #[test]
    fn a_model_that_is_wrong_where_it_was_looked_at_is_not_believed_elsewhere() {
        let method = |name: &str| -> Method { format!("native:openmpi:{name}").parse().unwrap() };
        let (mut cells, mut times, mut observed) = (Vec::new(), Vec::new(), Vec::new());
        for (procs, bytes) in [(4, 1), (4, 4096), (16, 64), (16, 4096), (16, 1)] {
            for (name, off) in [("binomial", 2.0), ("k-nomial", 3.0), ("linear", 8.0)] {
                let layout = Layout::flat(procs);
                let cell = Cell {
                    point: Point::new(Collective::Bcast, layout, bytes),
                    method: method(name),
                };
                if name == "k-nomial" && (procs, bytes) != (16, 1) {
                    observed.push((cells.len(), 1.02_f64.ln()));
                }
                cells.push(cell);
                times.push(vec![Some(off), Some(0.95), Some(1.0), Some(1.05)]);
            }
        }
        let equal = together(&cells, times.clone(), &[]).pop().unwrap().unwrap();
        let learned = together(&cells, times, &observed).pop().unwrap().unwrap();
        assert!(equal > 0.5, "{equal}");
        assert!(learned.abs() < 0.25, "{learned}");
    }

    #[test]
    fn where_nothing_was_observed_it_is_the_mean_of_the_models() {
        let (mut cells, mut times, _) = cells();
        let of_none: Method = "native:openmpi:k-chain".parse().unwrap();
        cells.push(Cell { method: of_none, ..cells[0].clone() });
        times.push(vec![None, None]);
        let mut together = together(&cells, times, &[]);
        assert_eq!(together.pop(), Some(None));
        assert!(together.iter().all(|logarithm| logarithm.unwrap().abs() < 1e-12));
    }
}
