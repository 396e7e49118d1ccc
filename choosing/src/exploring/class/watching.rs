//! Whether what is used is still what it was, and still faster than the default.

use records::learned::LogRatios;

use super::{
    Class, WATCH_SPACING,
    judging::{CLEARLY_SLOWER, LEAST_GAIN, TRIALS_KEPT},
};
use crate::exploring::{
    arm::{AGAIN_AFTER, Trying},
    log_ratios::Certainty as _,
};

/// ln 1.4: a chosen method that takes so much longer than usual is compared with the default at once.
const SUSPICIOUS: f64 = 0.336;
/// The most trials of a choice with the default, before it is kept or not.
const CHECK_TRIALS: u64 = 8;
/// After so many calls, a quarter of all so far, a choice is compared with the default though nothing is suspicious.
const ROUTINE_SPACING: [u64; 2] = [500, 10_000];
/// A choice is left after so many runs in use, one after the other, that were slow though trials between were not.
const CONTRADICTIONS: u32 = 2;
/// Deviations of a timed run that are not suspicious.
const USUAL_DEVIATIONS: f64 = 3.0;

/// The comparison of what is used with the default, under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    pub reason: CheckReason,
    pub ratios: LogRatios,
}

impl Check {
    /// Of which nothing was timed yet.
    pub fn new(reason: CheckReason) -> Self {
        Check { reason, ratios: LogRatios::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckReason {
    /// It was chosen by another job.
    Learned,
    /// And takes longer than it did there.
    Unexpected,
    /// It has become slower.
    Suspicion,
    /// It is time.
    Routine,
}

impl Class {
    /// How a timed run, in use or in a trial, compares with what is usual. What it gained (above 0) or lost since it
    /// was last looked at.
    pub fn watched(&mut self, seconds: f64, is_in_use: bool) -> f64 {
        const WEIGHT: f64 = 0.2;
        if seconds <= 0.0 {
            return 0.0;
        }
        let Some(usual) = self.seconds else {
            self.take_seconds(seconds, 1.0);
            self.trusted = self.calls();
            if let Some(check) = self.check.as_mut().filter(|_| self.current != 0)
                && let Some(default) = self.expected_seconds
                && (seconds / default).ln()
                    > self.arms[self.current as usize].before.mean + SUSPICIOUS
            {
                check.reason = CheckReason::Unexpected;
            }
            return 0.0;
        };
        let change = (seconds / usual).ln();
        let limit = (USUAL_DEVIATIONS * self.spread).clamp(SUSPICIOUS, 0.6);
        if self.current != 0 {
            if change > limit {
                self.suspicious_seconds = seconds;
                if self.check.is_none() {
                    let ratios = LogRatios::default();
                    self.check = Some(Check { reason: CheckReason::Suspicion, ratios });
                }
                return 0.0;
            }
            if is_in_use {
                self.contradicted = 0;
            }
            self.learn_spread(change);
            self.take_seconds(seconds, WEIGHT);
            // Slowly it has become as slow as the default was.
            if self.check.is_none() && self.seconds > self.default_seconds {
                self.suspicious_seconds = seconds;
                self.check = Some(Check::new(CheckReason::Suspicion));
            }
            return self.trust(seconds);
        }
        if change.abs() <= limit {
            self.drifts = 0;
            self.learn_spread(change);
            self.take_seconds(seconds, WEIGHT);
        } else {
            self.drifts =
                if change > 0.0 { self.drifts.max(0) + 1 } else { self.drifts.min(0) - 1 };
            if self.drifts.abs() >= 2 {
                self.drifts = 0;
                self.spread = (1.5 * self.spread).min(0.6);
                self.take_seconds(seconds, 1.0);
                self.try_again();
            }
        }
        0.0
    }

    /// Whether calls of what another job chose show at least half the gain that they showed there; nothing before they
    /// were timed.
    pub fn gains_as_learned(&self) -> Option<bool> {
        let (seconds, default) = self.seconds.zip(self.expected_seconds)?;
        let learned = self.arms[self.current as usize].before.mean;
        Some((seconds / default).ln() < 0.5 * learned)
    }

    fn learn_spread(&mut self, change: f64) {
        const WEIGHT: f64 = 0.1;
        let square = self.spread * self.spread;
        self.spread = (square + WEIGHT * (change * change - square)).sqrt().max(0.05);
    }

    /// What was chosen is as it should be: what it has gained since that was last so.
    fn trust(&mut self, seconds: f64) -> f64 {
        let calls = self.calls();
        let since = (calls - self.trusted.min(calls)) as f64;
        self.trusted = calls;
        let state = &self.arms[self.current as usize];
        let ratios = state.shown();
        since * seconds * ((-ratios.mean).exp() - 1.0)
    }

    /// The default takes another time than before: what was slower may be faster now, and nothing that was compared
    /// with it holds any more.
    fn try_again(&mut self) {
        let calls = self.calls();
        if calls < self.again_at {
            return;
        }
        self.again_at = 2 * calls;
        for state in &mut self.arms[1..] {
            if state.against.trials > 0 {
                state.seen_factor = Some(state.against.mean.exp());
            }
            state.here = LogRatios::default();
            state.starts_anew();
            if state.trying != Trying::Declined {
                state.trying = Trying::Open;
            }
        }
    }

    /// When the default is looked at next: it may have become faster.
    pub(super) fn plan_routine(&mut self) {
        let calls = self.calls();
        let [least, most] = ROUTINE_SPACING;
        self.routine_at = calls + (calls / 4).clamp(least, most);
    }

    /// What is used was compared with the default. What it has lost, in seconds, since it was as it should be, where
    /// it is given up for that.
    pub fn checked(&mut self, log_ratio: f64, arm_seconds: f64, default_seconds: f64) -> f64 {
        let Some(mut check) = self.check else { return 0.0 };
        self.default_seconds = Some(default_seconds);
        check.ratios.add(log_ratio);
        let ratios = check.ratios;
        self.check = Some(check);
        // What the noise of trials is, their number has shown where there were some before.
        let state = &self.arms[self.current as usize];
        let error = state.here.deviation() / (ratios.trials as f64).sqrt();
        let is_slower = match ratios.trials {
            1 => ratios.mean > CLEARLY_SLOWER.max(2.0 * error),
            2 | 3 => ratios.mean > (CLEARLY_SLOWER / 2.0).max(1.5 * error),
            4..CHECK_TRIALS => ratios.mean > error,
            _ => ratios.mean > 0.0,
        };
        // In use it is slower than the default, though not in a trial: time and again, so that the trials mislead.
        let is_slow_in_use = check.reason == CheckReason::Suspicion
            && ratios.trials == 1
            && self.suspicious_seconds > default_seconds
            && self.suspicious_seconds.ln() > arm_seconds.ln() + SUSPICIOUS / 2.0;
        self.contradicted += u32::from(is_slow_in_use);
        let misleads = self.contradicted >= CONTRADICTIONS;
        if is_slower || misleads {
            // Of what was seen in use and in the trial, the one that no hiccup has made greater.
            let arm_seconds = match check.reason {
                CheckReason::Suspicion if misleads => self.suspicious_seconds,
                CheckReason::Suspicion => self.suspicious_seconds.min(arm_seconds),
                _ => arm_seconds,
            };
            let lost = (self.calls() - self.trusted) as f64 * (arm_seconds - default_seconds);
            let arm = self.current;
            self.use_default();
            let calls = self.calls();
            let state = &mut self.arms[arm as usize];
            if misleads {
                let in_use = (arm_seconds / default_seconds).ln();
                state.here = LogRatios { trials: 1, mean: in_use, squares: 0.0 };
                state.trying = if state.has_misled {
                    Trying::Dropped
                } else {
                    Trying::RestsUntil(AGAIN_AFTER * calls)
                };
                state.has_misled = true;
            } else {
                state.here = ratios;
                state.trying = Trying::RestsUntil(AGAIN_AFTER * calls);
            }
            return lost.max(0.0);
        }
        let before = self.arms[self.current as usize].before;
        let is_as_before = (ratios.mean - before.mean).abs() < 0.5 * before.mean.abs();
        let enough = match check.reason {
            CheckReason::Learned if is_as_before => 1,
            CheckReason::Learned | CheckReason::Unexpected => 3,
            CheckReason::Suspicion => 2,
            CheckReason::Routine => 1,
        };
        let is_faster = ratios.mean < -LEAST_GAIN || ratios.trials >= CHECK_TRIALS;
        if ratios.trials >= enough && is_faster {
            let state = &mut self.arms[self.current as usize];
            if (ratios.mean - state.here.mean).abs() > USUAL_DEVIATIONS * error {
                state.here = ratios;
            } else {
                state.here.pool(ratios);
            }
            state.here.fade_to(TRIALS_KEPT);
            self.check = None;
            self.seconds.get_or_insert(arm_seconds);
            self.take_seconds(arm_seconds, 1.0);
            self.trusted = self.calls();
            self.plan_routine();
            // Not at once: what is slow in long runs only must be seen.
            self.run_at = self.calls() + WATCH_SPACING;
        }
        0.0
    }
}
