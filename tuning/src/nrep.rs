//! How often to repeat a call in each of several jobs, told from a few first calls.
//!
//! PGMPITuneLib's way: the time that the smallest message needs until its mean is precise is spent
//! on every size, so that short calls are repeated often and long ones seldom. (PGMPI's own way,
//! by the relative standard error and the variation of running means and medians, needs a series
//! per size; see [`statistics::stopping`].)

use statistics::{mean, standard_deviation};

/// The time to spend on one cell, in seconds, from observations at the smallest size: until the
/// relative standard error of the mean is below `threshold` (PGMPITuneLib: 0.01).
///
/// Nothing from fewer than two observations.
pub fn seconds_per_cell(observations: &[f64], threshold: f64) -> Option<f64> {
    let (mean, deviation) = (mean(observations)?, standard_deviation(observations)?);
    let needed = (deviation / (threshold * mean)).powi(2).ceil().max(1.0);
    needed.is_finite().then_some(needed * mean)
}

/// Repetitions of a call that takes `least_seconds`, so that `seconds` are spent, at least
/// `minimum` and at most `maximum`.
pub fn repetitions(seconds: f64, least_seconds: f64, minimum: u32, maximum: u32) -> u32 {
    // A float beyond the range of u32 becomes its greatest value.
    ((seconds / least_seconds).ceil() as u32).clamp(minimum, maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_costs_repetitions() {
        // Mean 1, standard deviation 0.1: (0.1 / 0.01)^2 = 100 calls.
        let observations = [0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1];
        let seconds = seconds_per_cell(&observations, 0.01).unwrap();
        assert!((seconds - 112.0).abs() < 1e-9, "{seconds}: the sample's deviation is 0.1054");
        assert_eq!(seconds_per_cell(&[1.0, 1.0], 0.01), Some(1.0));
        assert_eq!(seconds_per_cell(&[1.0], 0.01), None);
    }

    #[test]
    fn long_calls_are_repeated_seldom_and_short_ones_often() {
        assert_eq!(repetitions(1.0, 0.1, 3, 100), 10);
        assert_eq!(repetitions(1.0, 5.0, 3, 100), 3);
        assert_eq!(repetitions(1.0, 1e-6, 3, 100), 100);
        assert_eq!(repetitions(1.0, 0.0, 3, 100), 100);
    }
}
