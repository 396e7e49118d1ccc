//! What comparisons of two methods have shown.

use statistics::students_t;

/// Before anything is seen, a trial is taken to be off by so much (standard deviation of the logarithm) ...
const USUAL_DEVIATION: f64 = 0.15;
/// ... as if so many trials had shown it: few trials that agree by chance must not be taken for exact.
const USUAL_WEIGHT: f64 = 3.0;

/// ln(time of a method / time of what it was compared with) of some trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LogRatios {
    pub trials: u64,
    pub mean: f64,
    /// The sum of the squared deviations from the mean.
    pub squares: f64,
}

impl LogRatios {
    /// One trial more.
    pub fn add(&mut self, log_ratio: f64) {
        self.trials += 1;
        let from_mean = log_ratio - self.mean;
        self.mean += from_mean / self.trials as f64;
        self.squares += from_mean * (log_ratio - self.mean);
    }

    /// Other trials of the same.
    pub fn merge(&mut self, other: LogRatios) {
        let trials = self.trials + other.trials;
        if trials == 0 {
            return;
        }
        let (own, others) = (self.trials as f64, other.trials as f64);
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * own * others / (own + others);
        self.mean += apart * others / (own + others);
        self.trials = trials;
    }

    /// Forgets older trials, until no more than so many are left.
    pub fn fade_to(&mut self, trials: u64) {
        if self.trials > trials {
            self.squares *= trials as f64 / self.trials as f64;
            self.trials = trials;
        }
    }

    fn freedom(&self) -> f64 {
        self.trials as f64 - 1.0 + USUAL_WEIGHT
    }

    /// The standard deviation of one trial.
    pub fn deviation(&self) -> f64 {
        let usual = USUAL_WEIGHT * USUAL_DEVIATION * USUAL_DEVIATION;
        ((usual + self.squares) / self.freedom().max(USUAL_WEIGHT)).sqrt()
    }

    /// The standard error of the mean; of no trial, half: a factor of 1.6.
    pub fn error(&self) -> f64 {
        match self.trials {
            0 => 0.5,
            trials => self.deviation() / (trials as f64).sqrt(),
        }
    }

    /// What the mean is below with a probability of 1 - `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.mean + self.margin(alpha)
    }

    /// What the mean is above with a probability of 1 - `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        self.mean - self.margin(alpha)
    }

    fn margin(&self, alpha: f64) -> f64 {
        students_t(self.freedom().max(1.0) as usize, 1.0 - alpha) * self.error()
    }

    /// The gain to expect, as a share of the time, of using the method where it is faster: nothing is lost where it
    /// turns out not to be.
    pub fn plausible_gain(&self, error: f64) -> f64 {
        let z = self.mean / error;
        // The loss function of the normal distribution, phi(z) - z (1 - Phi(z)), within a fifth for z up to 1.5.
        let beyond = 0.4 * error * (-1.2 * z.abs() - 0.25 * z * z).exp();
        1.0 - (-((-self.mean).max(0.0) + beyond)).exp()
    }
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
        ratios.merge(of(&[-0.7, -0.6, -0.2]));
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
