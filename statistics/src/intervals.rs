//! Where the truth lies, as observations tell it.
//!
//! Times of messages are skewed and have far outliers, so the interval of their median is taken
//! from order statistics, which assumes no distribution: of n observations, the median of what
//! they were drawn from lies between the k-th least and the k-th greatest with a probability that
//! is binomial(n, 1/2). What is estimated from many medians at once gets the percentiles of a bootstrap.

use records::calibration::Estimate;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::summaries::{mean, median_of_sorted, standard_deviation};

/// The 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// The median of the observations with its interval at the given confidence (such as 0.95).
///
/// Nothing where the observations are too few for any interval of that confidence: 6 are needed
/// at 95 %. The interval's coverage is at least the confidence asked for.
pub fn median_interval(observations: &[f64], confidence: f64) -> Option<Estimate> {
    let count = observations.len();
    let outside = observations_outside(count, confidence)?;
    let mut sorted = observations.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let value = median_of_sorted(&sorted)?;
    Some(Estimate { value, low: sorted[outside], high: sorted[count - 1 - outside] })
}

/// The mean of the observations and half the width of the interval that holds the true one at the given
/// confidence, by Student's t: of normally distributed observations, and nearly so of means of many.
/// Nothing of fewer than two.
pub fn mean_interval(observations: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let (mean, deviation) = mean(observations).zip(standard_deviation(observations))?;
    let count = observations.len();
    let t = students_t(count - 1, f64::midpoint(1.0, confidence));
    Some((mean, t * deviation / (count as f64).sqrt()))
}

/// How many of `count` ordered observations lie outside the interval on either side: the
/// greatest k with `1 - 2 P(X <= k) >= confidence`, X binomial(count, 1/2).
fn observations_outside(count: usize, confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0;
    let mut logarithm = -(count as f64) * std::f64::consts::LN_2; // of P(X = k), begun at k = 0
    let mut below = logarithm.exp();
    if count == 0 || below > tail {
        return None;
    }
    for k in 1..count {
        logarithm += ((count + 1 - k) as f64 / k as f64).ln();
        below += logarithm.exp();
        if below > tail {
            return Some(k - 1);
        }
    }
    None
}

/// The interval, `[low, high]`, of so much confidence (such as 0.95) that drawings of a bootstrap give: as many
/// of them lie below its lower end as above its upper one. Nothing of nothing.
pub fn percentile_interval(mut drawn: Vec<f64>, confidence: f64) -> Option<[f64; 2]> {
    drawn.sort_unstable_by(f64::total_cmp);
    let last = drawn.len().checked_sub(1)?;
    let at = |share: f64| drawn[(share * last as f64).round() as usize];
    let below = (1.0 - confidence) / 2.0;
    Some([at(below), at(1.0 - below)])
}

/// By what drawings of a bootstrap are to be moved away from the value itself: it knows the spread of so many
/// units as if they were all that there are; by this its intervals of 95 % become those of Student's t
/// (Hesterberg 2015, What teachers should know about the bootstrap, The American Statistician 69,
/// section 3.2).
pub fn bootstrap_widening(count: usize) -> f64 {
    let n = count as f64;
    (n / (n - 1.0)).sqrt() * students_t(count - 1, 0.975) / NORMAL
}

/// A quantile of Student's t with so many degrees of freedom; at least one is taken.
pub fn students_t(freedom: usize, quantile: f64) -> f64 {
    // The distribution is there for every freedom above 0.
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(NORMAL, |t| t.inverse_cdf(quantile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ranks of the lower end (from 1) at 95 %, as tabulated for the sign test's interval, such as
    /// in Conover, Practical Nonparametric Statistics, table A3 (p = 0.5, tail 0.025).
    #[test]
    fn the_interval_is_the_tabulated_one() {
        for (count, rank) in [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8)] {
            assert_eq!(observations_outside(count, 0.95), Some(rank - 1), "{count} observations");
        }
        assert_eq!(observations_outside(5, 0.95), None);
        assert_eq!(observations_outside(0, 0.95), None);
    }

    #[test]
    fn long_series_follow_the_normal_approximation() {
        for count in [1000_usize, 5000, 20_000] {
            let outside = observations_outside(count, 0.95).unwrap() as f64;
            let normal = (count as f64 - 1.959_964 * (count as f64).sqrt()) / 2.0;
            assert!((outside - normal).abs() <= 1.5, "{count}: {outside} against {normal}");
        }
    }

    #[test]
    fn a_twentieth_of_what_was_drawn_lies_outside_its_interval() {
        let drawn: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile_interval(drawn.clone(), 0.95), Some([25.0, 975.0]));
        assert_eq!(percentile_interval(drawn, 0.0), Some([500.0, 500.0]));
        assert_eq!(percentile_interval(vec![7.0], 0.95), Some([7.0, 7.0]));
        assert_eq!(percentile_interval(Vec::new(), 0.95), None);
    }

    #[test]
    fn student_is_as_tabulated() {
        for (freedom, wanted) in [(1, 12.706), (3, 3.182), (9, 2.262), (30, 2.042)] {
            let t = students_t(freedom, 0.975);
            assert!((t - wanted).abs() < 1e-3, "{freedom}: {t}");
        }
    }

    /// Student's sleep data (Biometrika 6, 1908, page 20: additional hours under the second drug less
    /// those under the first), whose intervals R's `t.test` gives as 0.70 to 2.46 (95 %) and
    /// 0.32 to 2.84 (99 %).
    #[test]
    fn the_interval_of_a_mean_is_students() {
        let hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        for (confidence, low, high) in [(0.95, 0.7001, 2.4599), (0.99, 0.3159, 2.8441)] {
            let (mean, half) = mean_interval(&hours, confidence).unwrap();
            assert!((mean - 1.58).abs() < 1e-12, "{mean}");
            assert!((mean - half - low).abs() < 1e-3, "{confidence}: {half}");
            assert!((mean + half - high).abs() < 1e-3, "{confidence}: {half}");
        }
        assert_eq!(mean_interval(&[1.0], 0.95), None);
        assert_eq!(mean_interval(&[2.0, 2.0], 0.95), Some((2.0, 0.0)));
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_scales(
            observations in prop::collection::vec(1e-9_f64..1.0, 6..200),
            scale in 1e-3_f64..1e3,
        ) {
            let interval = median_interval(&observations, 0.95).unwrap();
            prop_assert!(interval.low <= interval.value && interval.value <= interval.high);
            let scaled: Vec<f64> = observations.iter().map(|time| time * scale).collect();
            let other = median_interval(&scaled, 0.95).unwrap();
            prop_assert!((other.low - interval.low * scale).abs() <= 1e-12 * other.low);
            prop_assert!((other.high - interval.high * scale).abs() <= 1e-12 * other.high);
        }
    }
}
