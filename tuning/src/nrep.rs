//! How often to repeat a call in each of several jobs, estimated from a few first calls.
//!
//! PGMPITuneLib's way: the time that the smallest message needs until its mean is precise is spent
//! on every size, so that short calls are repeated often and long ones seldom. (PGMPI's own way,
//! by the relative standard error and the variation of running means and medians, needs a series
//! per size; see [`statistics::nrep`].)

use statistics::{
    mean,
    nrep::{RepetitionRule, Threshold},
    standard_deviation,
    stopping::Criterion,
};

/// The time to spend on one cell, in seconds, from observations at the smallest size: until the
/// relative standard error of the mean is below `threshold` (PGMPITuneLib: 0.01).
///
/// Nothing from fewer than two observations.
pub fn seconds_per_cell(observations: &[f64], threshold: f64) -> Option<f64> {
    let (mean, deviation) = (mean(observations)?, standard_deviation(observations)?);
    let needed = (deviation / (threshold * mean)).powi(2).ceil().max(1.0);
    needed.is_finite().then_some(needed * mean)
}

/// Repetitions of a call that takes `min_seconds`, so that `seconds` are spent, at least
/// `minimum` and at most `maximum`.
pub fn repetitions(seconds: f64, min_seconds: f64, minimum: u32, maximum: u32) -> u32 {
    // A float beyond the range of u32 becomes its greatest value.
    ((seconds / min_seconds).ceil() as u32).clamp(minimum, maximum)
}

/// PGMPITuneLib's way step by step, on observations of each size. [`seconds_per_cell`] tells the first step's
/// outcome from few observations instead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuneLibRule {
    /// Relative standard error of the mean that the smallest message is repeated until (0.01).
    pub smallest_error: f64,
    /// Observations of any other size, `b1` (5).
    pub first: usize,
    /// Relative standard error of these above which more are made.
    pub first_error: f64,
    /// How many more, `b2` (5).
    pub more: usize,
    /// Fewest repetitions, `K` (1).
    pub least: u32,
}

impl TuneLibRule {
    /// Step 1: the time in seconds that the observations at the smallest size took until they were
    /// precise, at least `b1` of them; nothing where they never were.
    pub fn seconds_at_smallest(&self, observations: &[f64]) -> Option<f64> {
        let error =
            Threshold { below: self.smallest_error, ..Threshold::usual(Criterion::StandardError) };
        let (minimum, maximum) = (self.first, observations.len());
        let rule = RepetitionRule { thresholds: vec![error], minimum, maximum, step: 1 };
        Some(observations[..rule.needed(observations)?].iter().sum())
    }

    /// Steps 2 and 3: repetitions at another size, so that `seconds` are spent, from its first `b1`
    /// observations or, where these vary too much, `b1 + b2`. Nothing from fewer than `b1`.
    pub fn repetitions(&self, seconds: f64, observations: &[f64]) -> Option<u32> {
        let first = observations.get(..self.first)?;
        let spread = standard_deviation(first)? / mean(first)? / (first.len() as f64).sqrt();
        let count = if spread < self.first_error { self.first } else { self.first + self.more };
        let taken = &observations[..count.min(observations.len())];
        let shortest = taken.iter().copied().reduce(f64::min)?;
        Some(repetitions(seconds, shortest, self.least, u32::MAX))
    }
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

    const RULE: TuneLibRule =
        TuneLibRule { smallest_error: 0.01, first: 5, first_error: 0.05, more: 5, least: 2 };

    /// 0.9 and 1.1 in turn are precise to 1 % after 102 calls: the error is 0.1 / sqrt(n - 1).
    #[test]
    fn the_smallest_message_is_repeated_until_its_mean_is_precise() {
        let observations = [0.9, 1.1].repeat(60);
        let seconds = RULE.seconds_at_smallest(&observations).unwrap();
        assert!((100.0..103.0).contains(&seconds), "{seconds}");
        assert_eq!(RULE.seconds_at_smallest(&observations[..90]), None);
        assert_eq!(RULE.seconds_at_smallest(&[2.0; 9]), Some(10.0), "no fewer than b1");
    }

    #[test]
    fn a_second_batch_follows_where_the_first_varies() {
        let steady = [1.0, 1.0, 1.0, 1.01, 1.0, 0.5, 0.5];
        assert_eq!(RULE.repetitions(10.0, &steady), Some(10));
        let unsteady = [1.0, 1.3, 1.0, 1.6, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.1];
        assert_eq!(RULE.repetitions(10.0, &unsteady), Some(20), "the least of ten");
        assert_eq!(RULE.repetitions(10.0, &[100.0; 5]), Some(2), "K");
        assert_eq!(RULE.repetitions(10.0, &[1.0; 4]), None);
    }
}
