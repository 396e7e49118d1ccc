//! What comparisons of two methods have shown.

use records::learned::LogRatios;
use statistics::students_t;

/// Before anything is seen, a trial is taken to be off by so much (standard deviation of the logarithm) ...
const USUAL_DEVIATION: f64 = 0.15;
/// ... as if so many trials had shown it: few trials that agree by chance must not be taken for exact.
const USUAL_WEIGHT: f64 = 3.0;

/// How sure trials are of their mean.
pub(super) trait Certainty {
    /// The standard deviation of one trial.
    fn deviation(&self) -> f64;
    /// The standard error of the mean; of no trial, half: a factor of 1.6.
    fn error(&self) -> f64;
    /// What the mean is below with a probability of 1 - `alpha`.
    fn upper(&self, alpha: f64) -> f64;
    /// What the mean is above with a probability of 1 - `alpha`.
    fn lower(&self, alpha: f64) -> f64;
    /// The gain to expect, as a share of the time, of using the method where it is faster: nothing is lost where it
    /// turns out not to be.
    fn plausible_gain(&self, error: f64) -> f64;
}

impl Certainty for LogRatios {
    fn deviation(&self) -> f64 {
        let usual = USUAL_WEIGHT * USUAL_DEVIATION * USUAL_DEVIATION;
        ((usual + self.squares) / freedom(self).max(USUAL_WEIGHT)).sqrt()
    }

    fn error(&self) -> f64 {
        match self.trials {
            0 => 0.5,
            trials => self.deviation() / (trials as f64).sqrt(),
        }
    }

    fn upper(&self, alpha: f64) -> f64 {
        self.mean + margin(self, alpha)
    }

    fn lower(&self, alpha: f64) -> f64 {
        self.mean - margin(self, alpha)
    }

    fn plausible_gain(&self, error: f64) -> f64 {
        let z = self.mean / error;
        // The loss function of the normal distribution, phi(z) - z (1 - Phi(z)), within a fifth for z up to 1.5.
        let beyond = 0.4 * error * (-1.2 * z.abs() - 0.25 * z * z).exp();
        1.0 - (-((-self.mean).max(0.0) + beyond)).exp()
    }
}

fn freedom(ratios: &LogRatios) -> f64 {
    ratios.trials as f64 - 1.0 + USUAL_WEIGHT
}

fn margin(ratios: &LogRatios, alpha: f64) -> f64 {
    students_t(freedom(ratios).max(1.0) as usize, 1.0 - alpha) * ratios.error()
}

/// The sum of times, each taken to be no longer than so many times their median: one hiccup of the machine must not
/// decide a comparison. Puts them into order.
pub(super) fn winsorised_sum(seconds: &mut [f64]) -> f64 {
    const LONGEST: f64 = 4.0; // medians
    seconds.sort_unstable_by(f64::total_cmp);
    let Some(last) = seconds.len().checked_sub(1) else { return 0.0 };
    let median = f64::midpoint(seconds[last / 2], seconds[seconds.len() / 2]);
    seconds.iter().map(|seconds| seconds.min(LONGEST * median)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_squares_are_those_of_all_trials() {
        let of = |log_ratios: &[f64]| {
            let mut ratios = LogRatios::default();
            log_ratios.iter().for_each(|log_ratio| ratios.add(*log_ratio));
            ratios
        };
        let mut ratios = of(&[-0.5]);
        ratios.pool(of(&[-0.7, -0.6, -0.2]));
        assert!((ratios.mean + 0.5).abs() < 1e-12);
        assert!((ratios.squares - 0.14).abs() < 1e-12);
        ratios.fade_to(2);
        assert_eq!(ratios.trials, 2);
        assert!((ratios.squares - 0.07).abs() < 1e-12);
        assert!(ratios.lower(0.05) < -0.5 && ratios.upper(0.05) > -0.5);
    }

    #[test]
    fn a_hiccup_counts_as_four_medians() {
        assert_eq!(winsorised_sum(&mut [1.0, 100.0, 1.0, 1.0]), 7.0);
        assert_eq!(winsorised_sum(&mut [2.0]), 2.0);
        assert_eq!(winsorised_sum(&mut []), 0.0);
    }

    #[test]
    fn nobody_expects_a_gain_of_what_is_surely_slower() {
        let mut slower = LogRatios::default();
        let mut faster = slower;
        for _ in 0..10 {
            slower.add(0.5);
            faster.add(-0.5);
        }
        let gain = |of: LogRatios| of.plausible_gain(of.error());
        assert!(gain(slower) < 1e-4, "{}", gain(slower));
        assert!((gain(faster) - 0.39).abs() < 0.02, "{}", gain(faster));
        assert!((0.15..0.25).contains(&gain(LogRatios::default())));
    }
}
