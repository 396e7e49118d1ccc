//! When enough has been measured: repetitions by the precision of the median, not by habit.
//!
//! Times of messages are skewed and have far outliers, so the interval of their median is taken
//! from order statistics, which assumes no distribution: of n observations, the median of what
//! they were drawn from lies between the k-th least and the k-th greatest with a probability that
//! is binomial(n, 1/2).

/// A median and the interval that holds the true one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// Median of the observations.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The median of the observations with its interval at the given confidence (such as 0.95).
///
/// Nothing where the observations are too few for any interval of that confidence: 6 are needed
/// at 95 %. The interval's coverage is at least the confidence asked for.
pub fn median_interval(observations: &[f64], confidence: f64) -> Option<MedianInterval> {
    let count = observations.len();
    let outside = observations_outside(count, confidence)?;
    let mut sorted = observations.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
    Some(MedianInterval { median, low: sorted[outside], high: sorted[count - 1 - outside] })
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

/// When a series of observations of one thing is long enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Least observations.
    pub minimum: usize,
    /// Most observations: what varies more than this many can average out stays uncertain.
    pub maximum: usize,
    /// Confidence of the median's interval.
    pub confidence: f64,
    /// Wanted: half the interval's width over the median.
    pub relative_error: f64,
    /// An interval whose half width is below this is exact: the clock sees no finer.
    pub resolution_seconds: f64,
}

impl Rule {
    /// Half the width of the median's interval over the median: 0 where the clock sees no finer,
    /// infinite where the observations are too few to say.
    pub fn uncertainty(&self, observations: &[f64]) -> f64 {
        match median_interval(observations, self.confidence) {
            None => f64::INFINITY,
            Some(MedianInterval { median, low, high }) => {
                let half_width = (high - low) / 2.0;
                if half_width <= self.resolution_seconds { 0.0 } else { half_width / median }
            }
        }
    }

    /// Whether a series of this length and [uncertainty](Self::uncertainty) needs no more.
    pub fn is_content(&self, observations: usize, uncertainty: f64) -> bool {
        let precise = uncertainty <= self.relative_error;
        observations >= self.minimum && (precise || observations >= self.maximum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: Rule = Rule {
        minimum: 8,
        maximum: 100,
        confidence: 0.95,
        relative_error: 0.025,
        resolution_seconds: 1e-9,
    };

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
    fn one_outlier_does_not_make_a_steady_series_uncertain() {
        let mut observations = vec![1e-3; 20];
        observations[7] = 1.0;
        assert_eq!(RULE.uncertainty(&observations), 0.0);
        assert!(RULE.is_content(20, 0.0));
        assert!(!RULE.is_content(7, 0.0));
        assert!(!RULE.is_content(99, 0.2));
        assert!(RULE.is_content(100, 0.2));
        assert!(!RULE.is_content(5, RULE.uncertainty(&[1.0; 5])));
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_scales(
            observations in prop::collection::vec(1e-9_f64..1.0, 6..200),
            scale in 1e-3_f64..1e3,
        ) {
            let interval = median_interval(&observations, 0.95).unwrap();
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
            let scaled: Vec<f64> = observations.iter().map(|time| time * scale).collect();
            let other = median_interval(&scaled, 0.95).unwrap();
            prop_assert!((other.low - interval.low * scale).abs() <= 1e-12 * other.low);
            prop_assert!((other.high - interval.high * scale).abs() <= 1e-12 * other.high);
        }
    }
}
