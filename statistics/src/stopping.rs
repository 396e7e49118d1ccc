//! When enough has been measured: repetitions by the precision of the median, not by habit.
//!
//! Besides the [interval of the median](crate::median_interval) there are the criteria by which PGMPI
//! predicts the number of repetitions (NREP; Hunold,
//! Carpen-Amarie, Luebbe and Traeff, EuroMPI 2016): the relative standard error of the mean, and
//! how much the latest running means or medians still vary.

use crate::{
    intervals::{mean_interval, median_interval},
    running,
};

/// By what a series' uncertainty is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// Half the width of the median's interval over the median.
    MedianInterval,
    /// Half the width of the mean's interval by Student's t over the mean (MPIBlib's).
    MeanInterval,
    /// The standard error of the mean over the mean (NREP's RSE).
    StandardError,
    /// The coefficient of variation of the latest running means (NREP's COV_mean).
    RunningMeans,
    /// The coefficient of variation of the latest running medians (NREP's COV_median).
    RunningMedians,
    /// The coefficient of variation of all but the greatest (OCC's rule, whose result is the least).
    WithoutGreatest,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Criterion; 6] = [
        Criterion::MedianInterval,
        Criterion::MeanInterval,
        Criterion::StandardError,
        Criterion::RunningMeans,
        Criterion::RunningMedians,
        Criterion::WithoutGreatest,
    ];

    /// NREP's window: so many of the latest running means or medians.
    pub const WINDOW: usize = 20;

    /// Whether only so many of the latest values count as a window says.
    pub const fn has_window(self) -> bool {
        matches!(self, Criterion::RunningMeans | Criterion::RunningMedians)
    }

    /// As flags and records spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::MedianInterval => "median-interval",
            Criterion::MeanInterval => "mean-interval",
            Criterion::StandardError => "rse",
            Criterion::RunningMeans => "cov-mean",
            Criterion::RunningMedians => "cov-median",
            Criterion::WithoutGreatest => "occ",
        }
    }
}

impl std::str::FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|criterion| criterion.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Criterion::name).join(", ");
            format!("'{text}' is not a criterion (known: {names})")
        })
    }
}

/// The standard error of the mean over the mean; infinite of fewer than two observations.
fn standard_error(observations: &[f64]) -> f64 {
    running::variation(observations) / (observations.len() as f64).sqrt()
}

/// The coefficient of variation of all but the greatest; infinite of fewer than three observations.
fn without_greatest(observations: &[f64]) -> f64 {
    let greatest = (0..observations.len())
        .max_by(|one, other| observations[*one].total_cmp(&observations[*other]));
    let rest = observations.iter().enumerate().filter(|(index, _)| Some(*index) != greatest);
    running::variation(&rest.map(|(_, seconds)| *seconds).collect::<Vec<f64>>())
}

/// How much the latest of the running means or medians vary; infinite where there are too few.
fn latest_variation(running: &[f64]) -> f64 {
    match running.len().checked_sub(Criterion::WINDOW) {
        Some(first) => running::variation(&running[first..]),
        None => f64::INFINITY,
    }
}

/// When a series of observations of one thing is long enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// By what its uncertainty is measured.
    pub criterion: Criterion,
    /// Least observations.
    pub minimum: usize,
    /// Most observations: what varies more than this many can average out stays uncertain.
    pub maximum: usize,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Wanted: the least uncertainty, as a part of the time.
    pub relative_error: f64,
    /// An interval whose half width is below this is exact: the clock sees no finer.
    pub resolution_seconds: f64,
}

impl Rule {
    /// By the rule's criterion, as a part of the time: infinite where the observations are too few
    /// to say, 0 where the interval is finer than the clock sees.
    pub fn uncertainty(&self, observations: &[f64]) -> f64 {
        match self.criterion {
            Criterion::MedianInterval => self.of_median(observations),
            Criterion::MeanInterval => mean_interval(observations, self.confidence)
                .map_or(f64::INFINITY, |(mean, half_width)| self.relative(half_width, mean)),
            Criterion::StandardError => standard_error(observations),
            Criterion::RunningMeans => latest_variation(&running::means(observations)),
            Criterion::RunningMedians => latest_variation(&running::medians(observations)),
            Criterion::WithoutGreatest => without_greatest(observations),
        }
    }

    fn of_median(&self, observations: &[f64]) -> f64 {
        median_interval(observations, self.confidence).map_or(f64::INFINITY, |median| {
            self.relative((median.high - median.low) / 2.0, median.value)
        })
    }

    fn relative(&self, half_width: f64, middle: f64) -> f64 {
        if half_width <= self.resolution_seconds { 0.0 } else { half_width / middle }
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

    const RULE: Rule = Rule {
        criterion: Criterion::MedianInterval,
        minimum: 8,
        maximum: 100,
        confidence: 0.95,
        relative_error: 0.025,
        resolution_seconds: 1e-9,
    };

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

    /// Mean 1, standard deviation 0.1054 of ten; t of 9 degrees of freedom is 2.262.
    #[test]
    fn the_interval_of_the_mean_narrows_until_it_is_precise() {
        let rule = Rule { criterion: Criterion::MeanInterval, ..RULE };
        let ten = [0.9, 1.1].repeat(5);
        assert!((rule.uncertainty(&ten) - 2.262 * 0.10541 / 10.0_f64.sqrt()).abs() < 1e-4);
        assert!(!rule.is_content(10, rule.uncertainty(&ten)));
        let many = [0.9, 1.1].repeat(50);
        assert!(rule.is_content(100, rule.uncertainty(&many)));
        assert_eq!(rule.uncertainty(&[1.0]), f64::INFINITY);
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
}
