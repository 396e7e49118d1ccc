//! What is known of the calls of one class, and what of its methods.

use std::{
    f64::consts::PI,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, atomic::Ordering},
};

use records::{Method, learned::LearnedClass};

use super::{
    Arm, CallClass, CallEnd, CallsAlone, Candidate, Turn,
    arm::{AGAIN_AFTER, ArmState, Trying},
    log_ratios::{LogRatios, winsorised_sum},
    trial::{LONGEST_RUN, Question, Trial},
};

/// Calls of a timed run.
pub(super) const TIMED_RUN: u32 = 5;
/// The first calls are not timed: connections are made, pages touched.
const UNTIMED_AT_FIRST: u64 = 10;
/// And of what another job chose, which is to be checked soon.
const UNTIMED_OF_LEARNED: u64 = 3;
/// And after a change: what was fast in short runs need not be in use.
const UNTIMED_AFTER_CHANGE: u64 = 3;
/// A chosen method is timed every so many calls at most.
pub(super) const WATCH_SPACING: u64 = 24;
/// The most calls that are left alone at a time: so often the counts are looked at.
const MOST_ALONE: u64 = 1024;

/// Trials before a method may be chosen, and where what other jobs showed agrees.
pub(super) const TRIALS_TO_CHOOSE: u64 = 6;
const TRIALS_TO_CONFIRM: u64 = 3;
/// The probability that one of a class's methods is ever chosen though it is no faster than what was used.
const ERROR_OF_CHOICE: f64 = 0.01;
/// The least gain that is chosen, and what is not sought any more (logarithms of ratios).
const LEAST_GAIN: f64 = 0.03;
const SMALL_GAIN: f64 = 0.025;
/// ln 1.5: slower by as much in the first trial is clear.
const CLEARLY_SLOWER: f64 = 0.405;
/// The probability with which a method that is as fast is dropped in one look.
const ERROR_OF_DROPPING: f64 = 0.02;
/// After so many trials a method is undecided until there were [`AGAIN_AFTER`] times as many calls.
const MOST_TRIALS: u64 = 40;
/// Evidence of more trials than these fades: machines change.
const TRIALS_KEPT: u64 = 32;
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
pub(super) struct Check {
    pub reason: CheckReason,
    pub ratios: LogRatios,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckReason {
    /// It was chosen by another job.
    Learned,
    /// And takes longer than it did there.
    Unexpected,
    /// It has become slower.
    Suspicion,
    /// It is time.
    Routine,
}

/// What a call has ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Nothing,
    /// A timed run.
    Run,
    Trial,
}

/// The calls of one class on one communicator.
#[derive(Debug)]
pub(super) struct Class {
    pub call: CallClass,
    /// A hash of what it began with, which must be the same on all ranks.
    pub identity: u64,
    pub alone: Arc<CallsAlone>,
    /// What was put into `alone`, and the calls before.
    granted: u32,
    settled: u64,
    /// The default and the candidates.
    pub arms: Vec<ArmState>,
    /// What calls are carried out by.
    pub current: Arm,
    /// Of a call by what is used, and by the default: the mean of the ranks.
    pub seconds: Option<f64>,
    pub default_seconds: Option<f64>,
    /// The same by what other jobs have shown.
    pub expected_seconds: Option<f64>,
    /// Time of all calls up to those that are counted in it.
    time: f64,
    counted: u64,
    /// The standard deviation of the logarithm of a timed run's mean.
    spread: f64,
    /// At which call what was slower may be tried again, if the default's time changes.
    again_at: u64,
    /// Runs in a row that the default was as far from its usual time, to either side.
    drifts: i32,
    /// At which call the next timed run begins, and how many of it were made.
    run_at: u64,
    run_done: u32,
    run_seconds: [f64; TIMED_RUN as usize],
    run_declined: f64,
    /// What the last timed run tells on this rank, until it is agreed on: its mean, and how often the method could not
    /// do it.
    pub news: Option<[f64; 2]>,
    /// Up to which call what is used was seen to be as it should.
    pub trusted: u64,
    /// At which call what is used was chosen.
    pub chosen_at: u64,
    /// What a suspicious run took, and how often in a row a trial has contradicted such a one.
    suspicious_seconds: f64,
    contradicted: u32,
    pub check: Option<Check>,
    /// Under way.
    pub trial: Option<Box<Trial>>,
    /// At which call what is used is next compared with the default, though nothing is suspicious.
    pub routine_at: u64,
}

impl Class {
    pub fn new(
        call: CallClass,
        candidates: Vec<Candidate>,
        learned: Option<&LearnedClass>,
    ) -> Self {
        let before = |method: &Method| {
            let of = |learned: &LearnedClass| {
                let tried = learned.tried.iter().find(|tried| tried.method == *method)?;
                let (trials, mean, squares) = (tried.trials, tried.log_ratio, tried.squares);
                (trials > 0 && mean.is_finite() && squares >= 0.0).then_some(LogRatios {
                    trials,
                    mean,
                    squares,
                })
            };
            learned.and_then(of).unwrap_or_default()
        };
        let mut arms = vec![ArmState::new(None, LogRatios::default())];
        for candidate in candidates {
            let before = before(&candidate.method);
            arms.push(ArmState::new(Some(candidate), before));
        }
        for arm in &mut arms {
            let is_slower = arm.before.trials > 1 && arm.before.lower(ERROR_OF_DROPPING) > 0.0;
            if is_slower || (arm.before.trials == 1 && arm.before.mean > CLEARLY_SLOWER) {
                arm.trying = Trying::Dropped;
            }
        }
        let is_chosen = |arm: &ArmState| {
            let method = arm.candidate.as_ref().map(|candidate| &candidate.method);
            method.zip(learned).is_some_and(|(method, learned)| *method == learned.chosen)
        };
        let current = arms.iter().position(is_chosen).unwrap_or(0) as Arm;
        let expected_seconds = learned
            .map(|learned| learned.default_seconds)
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let mut hasher = DefaultHasher::new();
        call.hash(&mut hasher);
        for arm in &arms {
            (arm.identity, arm.before.trials).hash(&mut hasher);
        }
        let mut class = Class {
            call,
            identity: hasher.finish(),
            alone: Arc::new(CallsAlone::default()),
            granted: 0,
            settled: 0,
            arms,
            current,
            seconds: None,
            default_seconds: None,
            expected_seconds,
            time: 0.0,
            counted: 0,
            spread: 0.2,
            again_at: 0,
            drifts: 0,
            run_at: UNTIMED_AT_FIRST,
            run_done: 0,
            run_seconds: [0.0; TIMED_RUN as usize],
            run_declined: 0.0,
            news: None,
            trusted: 0,
            chosen_at: 0,
            suspicious_seconds: 0.0,
            contradicted: 0,
            check: None,
            trial: None,
            routine_at: u64::MAX,
        };
        if current != 0 {
            class.arms[current as usize].trying = Trying::Open;
            class.check =
                Some(Check { reason: CheckReason::Learned, ratios: LogRatios::default() });
        }
        if current != 0 {
            class.run_at = UNTIMED_OF_LEARNED;
        }
        class.leave_alone_until_run();
        class
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        let left = self.alone.calls.load(Ordering::Relaxed);
        self.settled + u64::from(self.granted.saturating_sub(left))
    }

    /// Every further call is asked for.
    pub fn ask_for_all(&mut self) {
        self.leave_alone(0);
    }

    fn leave_alone(&mut self, calls: u64) {
        self.settled = self.calls();
        self.granted = calls.min(MOST_ALONE) as u32;
        self.alone.arm.store(self.current, Ordering::Relaxed);
        self.alone.calls.store(self.granted, Ordering::Relaxed);
    }

    /// Every further call is the default's.
    pub fn give_up(&mut self) {
        self.current = 0;
        self.settled = self.calls();
        self.granted = u32::MAX / 2;
        self.alone.arm.store(0, Ordering::Relaxed);
        self.alone.calls.store(self.granted, Ordering::Relaxed);
    }

    /// The calls up to the next timed run are left alone.
    pub fn leave_alone_until_run(&mut self) {
        let calls = self.calls();
        self.leave_alone(self.run_at.saturating_sub(calls));
    }

    /// What the next call gets.
    pub fn turn(&self) -> Turn {
        match self.trial.as_ref().and_then(|trial| trial.turn()) {
            Some((arm, is_timed)) => Turn { arm, is_timed },
            None => self.usual_turn(),
        }
    }

    /// The same where no trial asks for it.
    fn usual_turn(&self) -> Turn {
        Turn { arm: self.current, is_timed: self.calls() >= self.run_at }
    }

    /// A call that was asked for has ended.
    pub fn ended(&mut self, end: CallEnd, spacing: impl Fn(&Class) -> u64) -> Ended {
        let turn = self.turn();
        self.ask_for_all();
        self.settled += 1;
        self.arms[turn.arm as usize].has_run = true;
        if let Some(trial) = self.trial.as_mut().filter(|trial| !trial.is_done()) {
            trial.ended(end.seconds, end.was_declined);
            return if trial.is_done() { Ended::Trial } else { Ended::Nothing };
        }
        if !turn.is_timed {
            return Ended::Nothing;
        }
        if self.run_done == 0 {
            self.run_declined = 0.0;
        }
        let seconds = end.seconds.filter(|seconds| seconds.is_finite()).unwrap_or(0.0);
        self.run_seconds[self.run_done as usize] = seconds.max(0.0);
        self.run_declined += f64::from(u8::from(end.was_declined));
        self.run_done += 1;
        if self.run_done < TIMED_RUN {
            return Ended::Nothing;
        }
        self.run_done = 0;
        let mean = winsorised_sum(&mut self.run_seconds) / f64::from(TIMED_RUN);
        self.news = Some([mean, self.run_declined]);
        self.run_at = self.settled + spacing(self);
        Ended::Run
    }

    /// A timed run that has begun is of no use any more.
    pub fn forget_run(&mut self) {
        self.run_done = 0;
        self.news = None;
        self.run_at = self.run_at.max(self.calls() + 1);
    }

    /// Whether it is to be compared with the default before all else.
    pub fn is_urgent(&self) -> bool {
        self.check.is_some_and(|check| {
            matches!(check.reason, CheckReason::Suspicion | CheckReason::Unexpected)
        })
    }

    /// Ends a trial that stands in the way of a more urgent one, or that is not called any more. Whether there is
    /// something to agree on.
    pub fn end_trial(&mut self, is_late: bool) -> bool {
        let is_urgent = self.is_urgent();
        let Some(trial) = self.trial.as_mut().filter(|trial| !trial.is_done()) else {
            return false;
        };
        if is_late || (is_urgent && trial.question != Question::StillFaster) {
            trial.cut_short();
            return true;
        }
        false
    }

    /// Counts the calls up to now by what they are known to take.
    pub fn count_time(&mut self) {
        let Some(seconds) = self.seconds else { return };
        let calls = self.calls();
        self.time += (calls - self.counted) as f64 * seconds;
        self.counted = calls;
    }

    /// Time of all calls, in seconds, where an unknown one is taken to take so long.
    pub fn time(&self, unknown_seconds: f64) -> f64 {
        let seconds = self.seconds.unwrap_or(unknown_seconds);
        self.time + (self.calls() - self.counted) as f64 * seconds
    }

    /// Time up to when it was last counted; 0 where nothing is known.
    pub fn known_time(&self) -> f64 {
        self.time
    }

    /// What a call of what is used takes, by one more observation.
    fn take_seconds(&mut self, seconds: f64, weight: f64) {
        self.count_time();
        let usual = self.seconds.unwrap_or(seconds);
        self.seconds = Some(usual + weight * (seconds - usual));
        if self.current == 0 {
            self.default_seconds = self.seconds;
        }
        self.count_time();
    }

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
                self.check =
                    Some(Check { reason: CheckReason::Suspicion, ratios: LogRatios::default() });
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
        let ratios = if state.here.trials > 0 { state.here } else { state.before };
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

    /// Whether it uses what another job chose, and nobody knows yet whether that is right here.
    pub fn is_unchecked(&self) -> bool {
        let is_meant =
            |check: Check| matches!(check.reason, CheckReason::Learned | CheckReason::Unexpected);
        self.check.is_some_and(is_meant)
    }

    /// A method could not carry out a call.
    pub fn declined(&mut self, arm: Arm) {
        if arm == 0 {
            return;
        }
        self.arms[arm as usize].trying = Trying::Declined;
        if self.current == arm {
            self.use_default();
        }
    }

    /// Calls are the default's again.
    pub fn use_default(&mut self) {
        self.change_to(0, self.default_seconds);
        self.check = None;
        self.routine_at = u64::MAX;
    }

    fn change_to(&mut self, arm: Arm, seconds: Option<f64>) {
        self.count_time();
        self.current = arm;
        self.seconds = seconds;
        self.count_time();
        self.spread = self.spread.max(0.1);
        self.trusted = self.calls();
        self.chosen_at = self.calls();
        self.contradicted = 0;
        self.run_at = self.calls() + UNTIMED_AFTER_CHANGE;
        self.forget_run();
        self.ask_for_all();
        for state in &mut self.arms {
            state.starts_anew();
        }
    }

    /// When the default is looked at next: it may have become faster.
    fn plan_routine(&mut self) {
        let calls = self.calls();
        let [least, most] = ROUTINE_SPACING;
        self.routine_at = calls + (calls / 4).clamp(least, most);
    }

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
        let of_current =
            if current.here.trials > 0 { current.here.mean } else { current.before.mean };
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
                state.here.merge(ratios);
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
