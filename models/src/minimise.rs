//! The least value of a smooth function, by argmin's L-BFGS.

use std::cell::RefCell;

use argmin::{
    core::{CostFunction, Error, Executor, Gradient},
    solver::{linesearch::MoreThuenteLineSearch, quasinewton::LBFGS},
};

/// Steps from which the function's curvature is estimated.
const MEMORY: usize = 10;
const MAX_STEPS: u64 = 300;
/// A step that gains less than this ends the search.
const LEAST_GAIN: f64 = 1e-10;
/// Of numerical slopes.
const SMALL: f64 = 1e-5;

/// A function with its slopes, the lowest place seen, and the place of the last evaluation with its slopes: a
/// line search asks for the value and then for the slopes of the same place.
struct Searched<F> {
    function: F,
    /// What the function is multiplied by, so that its slope is 1 at the start.
    scale: f64,
    lowest: RefCell<(f64, Vec<f64>)>,
    last: RefCell<(Vec<f64>, Vec<f64>)>,
}

impl<F: Fn(&[f64]) -> (f64, Vec<f64>)> CostFunction for &Searched<F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, Error> {
        let (value, slopes) = (self.function)(at);
        if !value.is_finite() {
            // The line search would go on for ever.
            return Err(Error::msg("no number"));
        }
        *self.last.borrow_mut() = (at.clone(), slopes);
        let mut lowest = self.lowest.borrow_mut();
        if value < lowest.0 {
            *lowest = (value, at.clone());
        }
        Ok(value * self.scale)
    }
}

impl<F: Fn(&[f64]) -> (f64, Vec<f64>)> Gradient for &Searched<F> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, at: &Vec<f64>) -> Result<Vec<f64>, Error> {
        let (last, slopes) = &*self.last.borrow();
        let slopes = if last == at { slopes } else { &(self.function)(at).1 };
        Ok(slopes.iter().map(|slope| slope * self.scale).collect())
    }
}

/// Where a function, which gives its value and its slopes, is lowest near `start`. A search that
/// finds nothing lower any more ends at the lowest place seen.
pub(crate) fn minimise(start: Vec<f64>, function: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let lowest = RefCell::new((f64::INFINITY, start.clone()));
    // The first step is as long as the slope: a sum over thousands of times would be left far behind.
    let slope = function(&start).1.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
    let scale = if slope.is_finite() { 1.0 / slope.max(1.0) } else { 1.0 };
    let searched = Searched { function, scale, lowest, last: RefCell::default() };
    let solver =
        LBFGS::new(MoreThuenteLineSearch::new(), MEMORY).with_tolerance_cost(LEAST_GAIN * scale);
    // A line search that fails (no slope left, or no lower place found) is the end of the search.
    let _ = solver.and_then(|solver| {
        let search = Executor::new(&searched, solver);
        search.configure(|state| state.param(start).max_iters(MAX_STEPS)).run()
    });
    searched.lowest.into_inner().1
}

/// The least value seen of a function that has no slopes, for it jumps a little, and where: each place in turn is
/// moved either way, by steps that grow where that helps and shrink where it does not (compass search).
pub(crate) fn descend(
    start: &[f64],
    rounds: usize,
    function: impl Fn(&[f64]) -> f64,
) -> (f64, Vec<f64>) {
    const FIRST_STEP: f64 = 0.5;
    const LAST_STEP: f64 = 0.01;
    let (mut at, mut least) = (start.to_vec(), function(start));
    let mut steps = vec![FIRST_STEP; at.len()];
    for _ in 0..rounds {
        for place in 0..at.len() {
            let from = at[place];
            let helps = [steps[place], -steps[place]].into_iter().any(|step| {
                at[place] = from + step;
                let value = function(&at);
                let helps = value < least;
                if helps {
                    least = value;
                }
                helps
            });
            if !helps {
                at[place] = from;
            }
            steps[place] *= if helps { 1.4 } else { 0.5 };
        }
        if steps.iter().all(|step| *step < LAST_STEP) {
            break;
        }
    }
    (least, at)
}

/// A function's value and its slopes by central differences.
pub(crate) fn with_slopes(function: impl Fn(&[f64]) -> f64, at: &[f64]) -> (f64, Vec<f64>) {
    let moved = |place: usize, by: f64| {
        let mut there = at.to_vec();
        there[place] += by;
        function(&there)
    };
    let slope = |place| (moved(place, SMALL) - moved(place, -SMALL)) / (2.0 * SMALL);
    (function(at), (0..at.len()).map(slope).collect())
}

/// Beyond this many robust standard deviations an error counts by its size, not by its square (Huber
/// 1964): 95 % as efficient as least squares where errors are normal.
pub(crate) const HUBER: f64 = 1.345;

/// Huber's function of an error in deviations, and its slope.
pub(crate) fn huber(error: f64) -> (f64, f64) {
    match error.abs() {
        size if size <= HUBER => (error * error / 2.0, error),
        size => (HUBER * (size - HUBER / 2.0), HUBER * error.signum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_a_narrow_curved_valley_is_found() {
        let valley = |at: &[f64]| (1.0 - at[0]).powi(2) + 100.0 * (at[1] - at[0] * at[0]).powi(2);
        for start in [[-1.2, 1.0], [0.0, 0.0], [3.0, -4.0]] {
            let found = minimise(start.to_vec(), |at| with_slopes(valley, at));
            assert!(found.iter().all(|it| (it - 1.0).abs() < 1e-2), "{start:?}: {found:?}");
        }
        let bottom = minimise(vec![1.0, 1.0], |at| with_slopes(valley, at));
        assert!(bottom.iter().all(|it| (it - 1.0).abs() < 1e-6), "{bottom:?}");
    }

    /// Of thousands of times: their slopes add up, and a step as long as these leads to no numbers.
    #[test]
    fn the_search_over_thousands_of_times_ends() {
        let sizes: Vec<f64> = (0..3000).map(|place| f64::exp2((place % 20).into())).collect();
        let calls = std::cell::Cell::new(0);
        let sum = |at: &[f64]| {
            calls.set(calls.get() + 1);
            assert!(calls.get() < 3000, "the search does not end");
            let cost = |size: &f64| {
                let measured = 3e-6 + 1e-10 * size;
                let predicted = 1e-4 * at[0].exp() + 1e-8 * at[1].exp() * size;
                huber((measured / predicted).ln() / 0.3).0
            };
            sizes.iter().map(cost).sum::<f64>()
        };
        let found = minimise(vec![0.0; 2], |at| with_slopes(sum, at));
        let truth = [(3e-6_f64 / 1e-4).ln(), 1e-2_f64.ln()];
        assert!(found.iter().zip(truth).all(|(it, truth)| (it - truth).abs() < 1e-3), "{found:?}");
    }

    #[test]
    fn without_slopes_the_bottom_is_found_too() {
        let steps = |at: &[f64]| ((at[0] - 1.0).abs() * 200.0).floor() + (at[1] + 2.0).powi(2);
        let (least, found) = descend(&[0.0, 0.0], 60, steps);
        assert!((found[0] - 1.0).abs() < 0.02 && (found[1] + 2.0).abs() < 0.05, "{found:?}");
        assert_eq!(least, steps(&found));
    }

    #[test]
    fn far_errors_count_by_their_size() {
        for error in [-3.0, -1.0, 0.0, 1.3, 1.4, 20.0] {
            let (_, slopes) = with_slopes(|at| huber(at[0]).0, &[error]);
            assert!((slopes[0] - huber(error).1).abs() < 1e-6, "{error}");
        }
        assert!(huber(100.0).0 < 150.0);
    }
}
