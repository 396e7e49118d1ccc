//! What trials of a method show: it is chosen, dropped, or tried further.

use std::f64::consts::PI;

use super::Class;
use crate::exploring::{
    Arm,
    arm::{AGAIN_AFTER, Trying},
    log_ratios::Certainty as _,
    trial::LONGEST_RUN,
};

/// Trials before a method may be chosen, and where what other jobs showed agrees.
pub const TRIALS_TO_CHOOSE: u64 = 6;
const TRIALS_TO_CONFIRM: u64 = 3;
/// The probability that one of a class's methods is ever chosen though it is no faster than what was used.
const ERROR_OF_CHOICE: f64 = 0.01;
/// The least gain that is chosen, and what is not sought any more (logarithms of ratios).
pub(super) const LEAST_GAIN: f64 = 0.03;
const SMALL_GAIN: f64 = 0.025;
/// ln 1.5: slower by as much in the first trial is clear.
pub(super) const CLEARLY_SLOWER: f64 = 0.405;
/// The probability with which a method that is as fast is dropped in one look.
pub(super) const ERROR_OF_DROPPING: f64 = 0.02;
/// After so many trials a method is undecided until there were [`AGAIN_AFTER`] times as many calls.
const MOST_TRIALS: u64 = 40;
/// Evidence of more trials than these fades: machines change.
pub(super) const TRIALS_KEPT: u64 = 32;

impl Class {
    /// A trial has compared a method with what is used. What that has gained or lost; see [`Self::watched`].
    pub fn compared(&mut self, arm: Arm, log_ratio: f64, current_seconds: f64) -> f64 {
        let gained = self.watched(current_seconds, false);
        if self.check.is_none() {
            self.judge(arm, log_ratio);
        }
        gained
    }

    /// What a trial shows of a method.
    fn judge(&mut self, arm: Arm, log_ratio: f64) {
        let calls = self.calls();
        let current = &self.arms[self.current as usize];
        let of_current = current.shown().mean;
        let methods = (self.arms.len() - 1) as f64;
        let state = &mut self.arms[arm as usize];
        state.against.add(log_ratio);
        state.here.add(of_current + log_ratio);
        state.here.fade_to(TRIALS_KEPT);
        if log_ratio < CLEARLY_SLOWER / 2.0 {
            state.run = (2 * state.run).min(LONGEST_RUN);
        }
        state.trying = Trying::Open;
        let ratios = state.against;
        let agrees = state.before.trials >= TRIALS_TO_CONFIRM
            && state.before.upper(ERROR_OF_DROPPING) < 0.0
            && self.current == 0;
        let least = if agrees { TRIALS_TO_CONFIRM } else { TRIALS_TO_CHOOSE };
        if ratios.trials == 1 && ratios.mean > CLEARLY_SLOWER {
            state.trying = Trying::RestsUntil(AGAIN_AFTER * calls);
        } else if (ratios.trials > 1 && ratios.lower(ERROR_OF_DROPPING) > 0.0)
            || (ratios.trials >= least && ratios.lower(ERROR_OF_DROPPING) > -SMALL_GAIN)
        {
            state.trying = Trying::Dropped;
        } else if ratios.trials >= least.max(state.next_look) {
            // The error is spent over looks as 1, 1/4, 1/9, ..., and evenly over the methods.
            state.looks += 1;
            state.next_look = ratios.trials + ratios.trials.div_ceil(4);
            let look = f64::from(state.looks);
            let alpha = ERROR_OF_CHOICE * 6.0 / (PI * PI * look * look) / methods;
            if ratios.mean < -LEAST_GAIN && ratios.upper(alpha) < 0.0 {
                let seconds = self.seconds.map(|seconds| seconds * ratios.mean.exp());
                self.change_to(arm, seconds);
                self.plan_routine();
                return;
            }
            if ratios.trials >= MOST_TRIALS {
                state.trying = Trying::RestsUntil(AGAIN_AFTER * calls);
                state.against.fade_to(TRIALS_KEPT / 2);
                state.next_look = 0;
            }
        }
    }
}
