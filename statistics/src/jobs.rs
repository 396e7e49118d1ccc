//! What jobs say of a ratio of two times: each job, or each turn of two jobs one after the other, is one
//! sample.
//!
//! A job is one start of the launcher. Its repetitions share its state: which ranks share a processor, which
//! mode the network is in. The same call differs by 1.3 times from job to job in published data of
//! supercomputers (the median over points), so that a test on repetitions finds "significant" what another pair of jobs turns around. Here a pair of jobs gives one ratio,
//! however often it repeated the call, and ratios are judged by their scatter over the pairs: Student's t of
//! their logarithms, which holds its level for the few pairs there are.

use records::calibration::Estimate;
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use crate::summaries::{mean, standard_deviation};

/// Ratios of two times, one of each pair of jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PairedJobs {
    logarithms: Vec<f64>,
}

/// The geometric mean of so many ratios and its interval at a confidence (such as 0.95), by the mean of their
/// logarithms and the sum of the squared deviations from it; nothing of fewer than two.
pub fn ratio_estimate(count: u64, mean: f64, squares: f64, confidence: f64) -> Option<Estimate> {
    let count = usize::try_from(count).ok()?;
    let freedom = count.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    around(mean, squares / freedom / count as f64, count, confidence)
}

fn around(mean: f64, squared_error: f64, count: usize, confidence: f64) -> Option<Estimate> {
    let half = squared_error.sqrt() * students(count.checked_sub(1)?, 0.5 + confidence / 2.0)?;
    let [value, low, high] = [mean, mean - half, mean + half].map(f64::exp);
    Some(Estimate { value, low, high })
}

impl PairedJobs {
    /// Of pairs of times, `[without, with]`, one of each pair of jobs: the ratio is with / without.
    /// Pairs in which a time is not above 0 are left out.
    pub fn new(pairs: &[[f64; 2]]) -> Self {
        let positive = pairs.iter().filter(|pair| pair.iter().all(|time| *time > 0.0));
        let ratio = |[without, with]: &[f64; 2]| (with / without).ln();
        PairedJobs { logarithms: positive.map(ratio).collect() }
    }

    /// Of the logarithms of ratios, one of each pair of jobs.
    pub fn from_logarithms(logarithms: Vec<f64>) -> Self {
        PairedJobs { logarithms }
    }

    /// Pairs of jobs.
    pub fn count(&self) -> usize {
        self.logarithms.len()
    }

    /// Geometric mean of the ratios; nothing of nothing.
    pub fn ratio(&self) -> Option<f64> {
        mean(&self.logarithms).map(f64::exp)
    }

    /// Standard deviation of the ratios' logarithms over the jobs; nothing of fewer than two.
    pub fn scatter(&self) -> Option<f64> {
        standard_deviation(&self.logarithms)
    }

    /// Squared standard error of the mean logarithm; nothing of fewer than two pairs.
    pub fn squared_error(&self) -> Option<f64> {
        Some(self.scatter()?.powi(2) / self.count() as f64)
    }

    /// The geometric mean of the ratios with its interval at a confidence (such as 0.95), both ends counted;
    /// nothing of fewer than two pairs.
    pub fn estimate(&self, confidence: f64) -> Option<Estimate> {
        let middle = mean(&self.logarithms)?;
        around(middle, self.squared_error()?, self.count(), confidence)
    }

    /// The probability of a mean ratio at least as great, were the true one `line`: small where jobs show
    /// that the ratio is greater. 1 of fewer than two pairs, as one job cannot show how jobs differ.
    pub fn p_value_above(&self, line: f64) -> f64 {
        let (Some(middle), Some(squared)) = (mean(&self.logarithms), self.squared_error()) else {
            return 1.0;
        };
        let beyond = middle - line.ln();
        if squared <= 0.0 {
            // Ratios that are the same to the last digit were made up.
            return if beyond > 0.0 { 0.0 } else { 1.0 };
        }
        let students = StudentsT::new(0.0, 1.0, (self.count() - 1) as f64);
        students.map_or(1.0, |students| students.sf(beyond / squared.sqrt()))
    }

    /// The least ratio beyond a line of 1 that a one-sided test at this level would find with this
    /// probability (its power), by the scatter seen: what is less may have been missed. Nothing of fewer than two.
    ///
    /// Takes the normal distribution for what the t of a true difference strays by, which is right to some per
    /// cent from four pairs on.
    pub fn detectable(&self, level: f64, power: f64) -> Option<f64> {
        let strays = Normal::standard().inverse_cdf(power);
        let error = self.squared_error()?.sqrt();
        Some(((self.quantile(1.0 - level)? + strays) * error).exp())
    }

    /// Of Student's t for these pairs.
    fn quantile(&self, share: f64) -> Option<f64> {
        students(self.count().checked_sub(1)?, share)
    }
}

/// A quantile of Student's t; nothing without a degree of freedom.
fn students(freedom: usize, share: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom as f64).ok().map(|students| students.inverse_cdf(share))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::{median, significance::Test};

    /// Standard deviation of the logarithm by which two jobs differ by 1.3 times in the median: the median of
    /// the absolute difference of two normals is 0.954 of their deviation.
    const JOB_EFFECT: f64 = 0.262_36 / 0.953_9;

    fn normal(random: &mut Pcg64) -> f64 {
        Normal::standard().inverse_cdf(random.random::<f64>().clamp(1e-12, 1.0 - 1e-12))
    }

    /// Repetitions of one job: its effect, and noise of 5 % within it.
    fn job(random: &mut Pcg64, seconds: f64, effect: f64, repetitions: usize) -> Vec<f64> {
        let effect = effect * normal(random);
        (0..repetitions).map(|_| seconds * (effect + 0.05 * normal(random)).exp()).collect()
    }

    /// So many pairs of jobs with 30 repetitions each, the second `ratio` times as slow.
    fn pairs(random: &mut Pcg64, count: usize, ratio: f64, effect: f64) -> Vec<[f64; 2]> {
        let pair = |_| {
            let without = job(random, 1e-3, effect, 30);
            let with = job(random, 1e-3 * ratio, effect, 30);
            [median(&without).unwrap(), median(&with).unwrap()]
        };
        (0..count).map(pair).collect()
    }

    /// Two jobs of one call without any difference: on repetitions it is significant nearly always, and by
    /// any number of jobs as seldom as the level says.
    #[test]
    fn a_job_effect_raises_no_false_alarm_as_it_does_on_repetitions() {
        const LEVEL: f64 = 0.05;
        const TRIALS: usize = 2000;
        let mut random = Pcg64::seed_from_u64(7);
        let mut by_repetitions = 0;
        let mut clear = 0;
        for _ in 0..200 {
            let [one, other] = [(); 2].map(|()| job(&mut random, 1e-3, JOB_EFFECT, 30));
            let p = Test::RankSum.p_value(&one, &other).min(Test::RankSum.p_value(&other, &one));
            by_repetitions += usize::from(2.0 * p < LEVEL);
            clear += usize::from(p < 1e-9);
        }
        assert!(
            by_repetitions > 175,
            "{by_repetitions} of 200: the false alarms of a test on repetitions"
        );
        assert!(clear > 120, "{clear} of 200 with a p-value below 1e-9");
        for count in [2, 3, 4, 8, 16] {
            let mut alarm = || {
                let jobs = PairedJobs::new(&pairs(&mut random, count, 1.0, JOB_EFFECT));
                jobs.p_value_above(1.0) < LEVEL
            };
            let alarms = (0..TRIALS).filter(|_| alarm()).count();
            // 100 are expected; four standard deviations are 39.
            assert!(alarms <= 139, "{alarms} of {TRIALS} with {count} pairs");
        }
        assert_eq!(PairedJobs::new(&pairs(&mut random, 1, 9.0, 0.0)).p_value_above(1.0), 1.0);
    }

    /// A tenth of jobs three times as slow as the others, which is nothing like a normal.
    #[test]
    fn jobs_with_outliers_raise_no_more_alarms() {
        let mut random = Pcg64::seed_from_u64(11);
        let mut slow = |seconds: f64| match random.random::<f64>() < 0.1 {
            true => 3.0 * seconds,
            false => seconds * (1.0 + 0.1 * random.random::<f64>()),
        };
        let mut alarm = || {
            let pairs: Vec<[f64; 2]> = (0..6).map(|_| [slow(1.0), slow(1.0)]).collect();
            PairedJobs::new(&pairs).p_value_above(1.0) < 0.05
        };
        let alarms = (0..2000).filter(|_| alarm()).count();
        assert!(alarms <= 139, "{alarms} of 2000");
    }

    /// What is told to be detectable with 80 % is found in 80 % of the trials, about.
    #[test]
    fn the_power_is_as_told() {
        let mut random = Pcg64::seed_from_u64(13);
        for (count, effect) in [(4, 0.02), (8, JOB_EFFECT), (16, JOB_EFFECT)] {
            let scatter =
                (2.0 * effect * effect).sqrt().hypot(0.05 * (2.0_f64 / 30.0).sqrt() * 1.25);
            let alternating: Vec<[f64; 2]> = (0..count)
                .map(|index| [1.0, if index % 2 == 0 { scatter } else { -scatter }.exp()])
                .collect();
            let told = PairedJobs::new(&alternating);
            // The sample's deviation of what alternates is greater by this.
            let wider = (count as f64 / (count as f64 - 1.0)).sqrt();
            let ratio = told.detectable(0.05, 0.8).unwrap().powf(1.0 / wider);
            let mut found = || {
                let pairs = pairs(&mut random, count, ratio, effect);
                PairedJobs::new(&pairs).p_value_above(1.0) < 0.05
            };
            let share = (0..1000).filter(|_| found()).count() as f64 / 1000.0;
            assert!((0.72..0.92).contains(&share), "{count} pairs: {share} at {ratio}");
        }
    }

    #[test]
    fn the_interval_is_the_textbooks() {
        // Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t of 2 degrees 4.3027.
        let pairs = [0.1_f64, 0.2, 0.3].map(|logarithm| [2.0, 2.0 * logarithm.exp()]);
        let jobs = PairedJobs::new(&pairs);
        let interval = jobs.estimate(0.95).unwrap();
        let half = 4.302_65 * 0.1 / 3.0_f64.sqrt();
        assert!((interval.low.ln() - (0.2 - half)).abs() < 1e-4);
        assert!((interval.high.ln() - (0.2 + half)).abs() < 1e-4);
        assert!(interval.low < 1.0 && interval.high > 1.5 && interval.high < 2.0);
        // As scipy.stats.ttest_1samp(..., alternative="greater"): t = 3.4641 with 2 degrees.
        assert!((jobs.p_value_above(1.0) - 0.037_09).abs() < 1e-4);
        assert_eq!(PairedJobs::new(&[[1.0, 1.0], [0.0, 2.0]]).count(), 1);
        assert_eq!(PairedJobs::new(&[[1.0, 2.0]]).estimate(0.95), None);
        assert_eq!(PairedJobs::default().ratio(), None);
        // Its mean and squared deviations say the same.
        let again = ratio_estimate(3, 0.2, 0.02, 0.95).unwrap();
        assert!(
            (again.low - interval.low).abs() < 1e-9 && (again.high - interval.high).abs() < 1e-9
        );
        assert_eq!([0, 1].map(|count| ratio_estimate(count, 0.2, 0.0, 0.95)), [None; 2]);
    }

    proptest! {
        #[test]
        fn interval_and_test_agree_and_repeating_a_job_changes_nothing(
            logarithms in prop::collection::vec(-0.5_f64..0.5, 2..12),
            scale in 1e-6_f64..1e3,
        ) {
            let pairs: Vec<[f64; 2]> = logarithms.iter().map(|of| [scale, scale * of.exp()]).collect();
            let jobs = PairedJobs::new(&pairs);
            let interval = jobs.estimate(0.9).unwrap();
            let ratio = jobs.ratio().unwrap();
            prop_assert!(interval.low <= ratio * (1.0 + 1e-12) && ratio <= interval.high * (1.0 + 1e-12));
            // One-sided at 5 % is the lower end of the interval of 90 %.
            let p = jobs.p_value_above(1.0);
            prop_assert!((0.0..=1.0).contains(&p));
            if (interval.low - 1.0).abs() > 1e-9 {
                prop_assert_eq!(p < 0.05, interval.low > 1.0);
            }
            let turned: Vec<[f64; 2]> = pairs.iter().map(|[one, other]| [*other, *one]).collect();
            let other = PairedJobs::new(&turned);
            prop_assert!((other.ratio().unwrap() * ratio - 1.0).abs() < 1e-9);
            prop_assert!((other.p_value_above(1.0) + p - 1.0).abs() < 1e-9);
        }
    }
}
