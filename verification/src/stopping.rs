//! When enough has been measured: repetitions by the precision of the median, not by habit.
//!
//! Times of messages are skewed and have far outliers, so the interval of their median is taken
//! from order statistics, which assumes no distribution: of n observations, the median of what
//! they were drawn from lies between the k-th least and the k-th greatest with a probability that
//! is binomial(n, 1/2).
//!
//! Besides there are the criteria by which PGMPI predicts the number of repetitions (NREP; Hunold,
//! Carpen-Amarie, Luebbe and Traeff, EuroMPI 2016): the relative standard error of the mean, and
//! how much the latest running means or medians still vary.

use crate::statistics::median;

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

/// By what a series' uncertainty is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// Half the width of the median's interval over the median.
    MedianInterval,
    /// The standard error of the mean over the mean (NREP's RSE).
    StandardError,
    /// The coefficient of variation of the latest running means (NREP's COV_mean).
    RunningMeans,
    /// The same of the latest running medians (NREP's COV_median).
    RunningMedians,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Criterion; 4] = [
        Criterion::MedianInterval,
        Criterion::StandardError,
        Criterion::RunningMeans,
        Criterion::RunningMedians,
    ];

    /// NREP's window: so many of the latest running means or medians.
    const WINDOW: usize = 20;

    /// As flags and records spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::MedianInterval => "median-interval",
            Criterion::StandardError => "rse",
            Criterion::RunningMeans => "cov-mean",
            Criterion::RunningMedians => "cov-median",
        }
    }
}

impl std::str::FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|criterion| criterion.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Criterion::name).join(", ");
            format!("'{text}' is no criterion; there are {names}")
        })
    }
}

/// The standard deviation over the mean of at least two values.
fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt() / mean
}

/// How much the latest of the running means or medians vary; infinite where there are too few.
fn running_variation(observations: &[f64], of: impl Fn(&[f64]) -> Option<f64>) -> f64 {
    let Some(first) = observations.len().checked_sub(Criterion::WINDOW) else {
        return f64::INFINITY;
    };
    let running: Vec<f64> =
        (first + 1..=observations.len()).filter_map(|length| of(&observations[..length])).collect();
    variation(&running)
}

/// When a series of observations of one thing is long enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// By what its uncertainty is told.
    pub criterion: Criterion,
    /// Least observations.
    pub minimum: usize,
    /// Most observations: what varies more than this many can average out stays uncertain.
    pub maximum: usize,
    /// Confidence of the median's interval.
    pub confidence: f64,
    /// Wanted: the least uncertainty, as a part of the time.
    pub relative_error: f64,
    /// An interval whose half width is below this is exact: the clock sees no finer.
    pub resolution_seconds: f64,
}

impl Rule {
    /// By the rule's criterion, as a part of the time: infinite where the observations are too few
    /// to say, 0 where the median's interval is finer than the clock sees.
    pub fn uncertainty(&self, observations: &[f64]) -> f64 {
        match self.criterion {
            Criterion::MedianInterval => self.of_median(observations),
            Criterion::StandardError if observations.len() < 2 => f64::INFINITY,
            Criterion::StandardError => {
                variation(observations) / (observations.len() as f64).sqrt()
            }
            Criterion::RunningMeans => running_variation(observations, |some| {
                Some(some.iter().sum::<f64>() / some.len() as f64)
            }),
            Criterion::RunningMedians => running_variation(observations, median),
        }
    }

    fn of_median(&self, observations: &[f64]) -> f64 {
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
        criterion: Criterion::MedianInterval,
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

    /// Mean 1, standard deviation 0.1054 of ten: 0.0333; four times as many halve it.
    #[test]
    fn the_standard_error_is_the_textbooks() {
        let rule = Rule { criterion: Criterion::StandardError, ..RULE };
        let ten: Vec<f64> = [0.9, 1.1].repeat(5);
        assert!((rule.uncertainty(&ten) - 0.1054_f64 / 10.0_f64.sqrt()).abs() < 1e-5);
        let forty: Vec<f64> = [0.9, 1.1].repeat(20);
        assert!(rule.uncertainty(&forty) < 0.52 * rule.uncertainty(&ten));
        assert_eq!(rule.uncertainty(&[1.0]), f64::INFINITY);
    }

    /// An outlier among the latest moves running means, but no running medians; once it is long
    /// past, neither.
    #[test]
    fn running_means_and_medians_settle() {
        let [means, medians] = [Criterion::RunningMeans, Criterion::RunningMedians]
            .map(|criterion| Rule { criterion, ..RULE });
        assert_eq!(means.uncertainty(&[1.0; 19]), f64::INFINITY);
        assert_eq!(means.uncertainty(&[1.0; 20]), 0.0);
        let mut series = vec![1.0; 40];
        series[30] = 10.0;
        assert!(means.uncertainty(&series) > 0.05, "{}", means.uncertainty(&series));
        assert_eq!(medians.uncertainty(&series), 0.0);
        series.extend([1.0; 200]);
        assert!(means.uncertainty(&series) < 0.01);
    }

    #[test]
    fn criteria_are_found_by_their_names() {
        for criterion in Criterion::ALL {
            assert_eq!(criterion.name().parse(), Ok(criterion));
        }
        assert!("often".parse::<Criterion>().unwrap_err().contains("rse, cov-mean"));
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
