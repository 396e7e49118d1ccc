//! How often a call has to be repeated until its mean or median stays as it is: the NREP predictors of
//! PGMPI (Hunold, Carpen-Amarie, Luebbe and Traeff, EuroMPI 2016), and OCC's rule.

use crate::{
    running,
    stopping::{Criterion, Rule},
};

/// A criterion with what it must be below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// By what the uncertainty of a series is measured.
    pub criterion: Criterion,
    /// The uncertainty, as a part of the time, below which a series is long enough.
    pub below: f64,
    /// How many of the latest running means or medians count.
    pub window: usize,
}

impl Threshold {
    /// PGMPI's thresholds where it names them, for its Figure 1: 0.025 for the relative standard error, 0.01
    /// over 20 running means or medians; OCC's 0.05.
    pub const fn usual(criterion: Criterion) -> Self {
        let below = match criterion {
            Criterion::MedianInterval | Criterion::MeanInterval | Criterion::StandardError => 0.025,
            Criterion::RunningMeans | Criterion::RunningMedians => 0.01,
            Criterion::WithoutGreatest => 0.05,
        };
        Threshold { criterion, below, window: Criterion::WINDOW }
    }

    /// The uncertainty after each observation, as a part of the time; infinite where there are too few.
    pub fn course(&self, observations: &[f64]) -> Vec<f64> {
        match self.criterion {
            Criterion::RunningMeans => self.variations(&running::means(observations)),
            Criterion::RunningMedians => self.variations(&running::medians(observations)),
            _ => {
                let uncertainty = |count: usize| self.rule().uncertainty(&observations[..count]);
                (1..=observations.len()).map(uncertainty).collect()
            }
        }
    }

    /// The stopping rule of this criterion alone.
    fn rule(&self) -> Rule {
        Rule {
            criterion: self.criterion,
            minimum: 0,
            maximum: usize::MAX,
            confidence: 0.95,
            relative_error: self.below,
            resolution_seconds: 0.0,
        }
    }

    fn variations(&self, running: &[f64]) -> Vec<f64> {
        let latest = |count: usize| match count.checked_sub(self.window) {
            Some(first) => running::variation(&running[first..count]),
            None => f64::INFINITY,
        };
        (1..=running.len()).map(latest).collect()
    }
}

/// When a series is long enough: after `minimum` observations, and so many more as `step` says, until it is
/// below all thresholds, or there are `maximum`.
#[derive(Debug, Clone, PartialEq)]
pub struct RepetitionRule {
    /// All must hold at once.
    pub thresholds: Vec<Threshold>,
    /// Fewest observations.
    pub minimum: usize,
    /// Most observations.
    pub maximum: usize,
    /// Observations made between two looks at the thresholds.
    pub step: usize,
}

impl RepetitionRule {
    /// The fewest observations from the first on after which all thresholds hold; nothing where that is
    /// not so within `maximum` or within the observations that there are.
    pub fn needed(&self, observations: &[f64]) -> Option<usize> {
        let observations = &observations[..observations.len().min(self.maximum)];
        let courses: Vec<(f64, Vec<f64>)> = self
            .thresholds
            .iter()
            .map(|threshold| (threshold.below, threshold.course(observations)))
            .collect();
        let holds = |count: &usize| courses.iter().all(|(below, of)| of[count - 1] < *below);
        (self.minimum.max(1)..=observations.len()).step_by(self.step.max(1)).find(holds)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Criterion; 4] = [
        Criterion::StandardError,
        Criterion::RunningMeans,
        Criterion::RunningMedians,
        Criterion::WithoutGreatest,
    ];

    fn rule(thresholds: &[Threshold]) -> RepetitionRule {
        RepetitionRule { thresholds: thresholds.to_vec(), minimum: 5, maximum: 1000, step: 5 }
    }

    /// 0.9 and 1.1 in turn, 2 k of them: mean 1, variance 2 k 0.01 / (2 k - 1), so that the relative
    /// standard error is 0.1 / sqrt(2 k - 1): below 0.01 from 102 observations on.
    #[test]
    fn the_standard_error_falls_with_the_root() {
        let series: Vec<f64> = [0.9, 1.1].repeat(100);
        let below = Threshold { below: 0.01, ..Threshold::usual(Criterion::StandardError) };
        let each = RepetitionRule { minimum: 2, step: 2, ..rule(&[below]) };
        assert_eq!(each.needed(&series), Some(102));
        // Looked at after 20, 30, ... only.
        let seldom = RepetitionRule { minimum: 20, step: 10, ..each.clone() };
        assert_eq!(seldom.needed(&series), Some(110));
        assert_eq!(RepetitionRule { maximum: 100, ..seldom.clone() }.needed(&series), None);
        assert_eq!(seldom.needed(&series[..105]), None);
    }

    /// A step from 1 to 2 after 50 observations: the running mean after n is 2 - 50 / n, and hardly changes
    /// over a window of w when 50 / n^2 sqrt(w^2 / 12) / mean is small. The running median jumps once, after
    /// 100 observations, and stands still otherwise.
    #[test]
    fn means_and_medians_settle_when_a_step_is_long_past() {
        let series: Vec<f64> = [vec![1.0; 50], vec![2.0; 350]].concat();
        let of = |criterion| Threshold::usual(criterion).course(&series);
        let (means, medians) = (of(Criterion::RunningMeans), of(Criterion::RunningMedians));
        assert!(means[..19].iter().chain(&medians[..19]).all(|one| one.is_infinite()));
        assert_eq!((means[19], medians[19]), (0.0, 0.0));
        for count in [150, 250, 400] {
            let n = count as f64 - 9.5;
            let expected = 50.0 / n.powi(2) * (20.0_f64 * 21.0 / 12.0).sqrt() / (2.0 - 50.0 / n);
            let ratio = means[count - 1] / expected;
            assert!((0.97..1.03).contains(&ratio), "{count}: {ratio}");
        }
        assert_eq!((medians[98], medians[120]), (0.0, 0.0));
        assert!(medians[100] > 0.1, "{}", medians[100]);
    }

    /// Nothing but one outlier varies, and that is dropped.
    #[test]
    fn by_occs_rule_one_outlier_costs_nothing_and_two_do() {
        let occ = RepetitionRule {
            minimum: 10,
            maximum: 20,
            step: 1,
            ..rule(&[Threshold::usual(Criterion::WithoutGreatest)])
        };
        let mut series = vec![1.0; 20];
        series[3] = 9.0;
        assert_eq!(occ.needed(&series), Some(10));
        series[5] = 1.4;
        // One of n - 1 is 1.4: its deviation is 0.4 / sqrt(n - 1), which is above 5 % up to 20.
        assert_eq!(occ.needed(&series), None);
        series[5] = 1.17;
        // 0.17 / sqrt(n - 1) over 1 + 0.17 / (n - 1): below 5 % from 13 on.
        assert_eq!(occ.needed(&series), Some(13));
    }

    proptest! {
        #[test]
        fn scale_changes_nothing_and_thresholds_do_as_they_should(
            series in prop::collection::vec(0.5_f64..2.0, 30..150),
            below in 0.005_f64..0.2,
            exponent in -20_i32..20,
        ) {
            let scaled: Vec<f64> = series.iter().map(|one| one * 2.0_f64.powi(exponent)).collect();
            let mut needed = Vec::new();
            for criterion in ALL {
                let strict = Threshold { below, ..Threshold::usual(criterion) };
                let loose = Threshold { below: 1.5 * below, ..strict };
                let found = rule(&[strict]).needed(&series);
                prop_assert_eq!(found, rule(&[strict]).needed(&scaled));
                let sooner = rule(&[loose]).needed(&series);
                // What suffices for the stricter suffices for the other.
                prop_assert!(found.is_none() || sooner.is_some_and(|count| Some(count) <= found));
                if let Some(count) = found {
                    prop_assert!(count.is_multiple_of(5) && count >= 5 && count <= series.len());
                }
                needed.push((strict, found));
            }
            let (all, alone): (Vec<Threshold>, Vec<Option<usize>>) = needed.into_iter().unzip();
            if let Some(together) = rule(&all).needed(&series) {
                for count in alone {
                    prop_assert!(count.is_some_and(|count| count <= together));
                }
            }
        }

        /// Against sums and sorted copies made anew for each number of observations.
        #[test]
        fn courses_are_what_the_definitions_say(
            series in prop::collection::vec(0.5_f64..2.0, 1..60),
            window in 2_usize..12,
        ) {
            let textbook = |values: &[f64]| {
                let n = values.len() as f64;
                let mean = values.iter().sum::<f64>() / n;
                let squares = values.iter().map(|one| one * one).sum::<f64>() / n - mean * mean;
                ((squares.max(0.0) * n / (n - 1.0)).sqrt(), mean)
            };
            let mean_after = |count: usize| textbook(&series[..count]).1;
            let median_after = |count: usize| crate::median(&series[..count]).unwrap();
            let course = |criterion| Threshold { criterion, below: 0.1, window }.course(&series);
            let [errors, means, medians, least] = ALL.map(course);
            for count in 1..=series.len() {
                let close = |one: f64, other: f64| (one - other).abs() < 1e-6;
                if count > 1 {
                    let (deviation, mean) = textbook(&series[..count]);
                    let error = deviation / mean / (count as f64).sqrt();
                    prop_assert!(close(errors[count - 1], error));
                }
                if count > 2 {
                    let mut rest = series[..count].to_vec();
                    rest.sort_by(f64::total_cmp);
                    rest.pop();
                    let (deviation, mean) = textbook(&rest);
                    prop_assert!(close(least[count - 1], deviation / mean));
                }
                for (course, after) in
                    [(&means, &mean_after as &dyn Fn(usize) -> f64), (&medians, &median_after)]
                {
                    if count < window {
                        prop_assert!(course[count - 1].is_infinite());
                        continue;
                    }
                    let latest: Vec<f64> = (count + 1 - window..=count).map(after).collect();
                    let (deviation, mean) = textbook(&latest);
                    prop_assert!(close(course[count - 1], deviation / mean));
                }
            }
        }
    }
}
