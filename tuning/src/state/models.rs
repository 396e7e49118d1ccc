//! How much each model counts at each point of a collective: as far as it was seen to tell the
//! methods there and nearby apart.
//!
//! Models that are wrong about a platform are mostly wrong in one region of it, all of them in
//! another one. What a model is off by for all methods of a point alike changes no decision, and
//! counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use records::{Point, plan::Cell};
use statistics::median;

use crate::{belief::covariance, constants::constants};

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
    let weights = weights(cells, &logarithms, observed);
    let of_cell = |(cell, logarithms): (&Cell, &Vec<Option<f64>>)| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (logarithm, weight) in logarithms.iter().zip(&weights[&cell.point()]) {
            if let Some(logarithm) = logarithm {
                sum += weight * logarithm;
                count += weight;
            }
        }
        (count > 0.0).then(|| sum / count)
    };
    cells.iter().zip(&logarithms).map(of_cell).collect()
}

/// What each model counts at each point.
fn weights(
    cells: &[Cell],
    logarithms: &[Vec<Option<f64>>],
    observed: &[(usize, f64)],
) -> BTreeMap<Point, Vec<f64>> {
    let models = logarithms.first().map_or(0, Vec::len);
    let mut seen: BTreeMap<Point, Vec<(usize, f64)>> = BTreeMap::new();
    for &(index, seconds) in observed {
        seen.entry(cells[index].point()).or_default().push((index, seconds));
    }
    let of_point = |(point, seen): (Point, Vec<(usize, f64)>)| {
        (point, (0..models).map(|model| off(logarithms, model, &seen)).collect())
    };
    let seen: Vec<(Point, Vec<Off>)> = seen.into_iter().map(of_point).collect();
    let at = |point: Point| {
        let before = Off {
            squares: constants().model_doubt_cells * constants().model_doubt.powi(2),
            count: constants().model_doubt_cells,
        };
        let mut sums = vec![before; models];
        for (other, off) in seen.iter().filter(|(of, _)| of.collective == point.collective) {
            let alike = covariance(point, *other);
            for (sum, off) in sums.iter_mut().zip(off) {
                sum.squares += alike * off.squares;
                sum.count += alike * off.count;
            }
        }
        let weight = |of: Off| of.count / of.squares;
        (point, sums.into_iter().map(weight).collect())
    };
    let points: BTreeSet<Point> = cells.iter().map(Cell::point).collect();
    points.into_iter().map(at).collect()
}

/// What a model is off by for the single methods of a point: the sum of squares, and of how many.
#[derive(Clone)]
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
    let squares = errors
        .iter()
        .map(|error| (error - of_all).abs().min(constants().most_model_error).powi(2))
        .sum();
    Off { squares, count: errors.len() as f64 - 1.0 }
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
                cells.push(Cell {
                    collective: Collective::Bcast,
                    method,
                    layout: Layout::flat(8),
                    bytes,
                });
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

    #[test]
    fn what_was_not_observed_is_the_mean_of_the_models() {
        let (mut cells, mut times, _) = cells();
        let of_none: Method = "native:openmpi:k-chain".parse().unwrap();
        cells.push(Cell { method: of_none, ..cells[0].clone() });
        times.push(vec![None, None]);
        let mut together = together(&cells, times, &[(0, 0.7)]);
        assert_eq!(together.pop(), Some(None));
        assert!(together.iter().all(|logarithm| logarithm.unwrap().abs() < 1e-12));
    }
}
