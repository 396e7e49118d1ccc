//! What is known of the calls of one class, and what of its methods.

mod judging;
mod watching;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use records::{
    Method,
    learned::{LearnedClass, LogRatios},
};

use super::{
    Arm, CallClass, CallEnd, CallsAlone, Candidate, Turn,
    arm::{ArmState, Trying},
    log_ratios::{Certainty as _, winsorised_sum},
    planning::FIRST_CALL_SECONDS,
    trial::{Question, Trial},
};
pub(super) use judging::TRIALS_TO_CHOOSE;
use judging::{CLEARLY_SLOWER, ERROR_OF_DROPPING, LEAST_GAIN};
pub(super) use watching::{Check, CheckReason};

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
/// What another job has chosen waits no longer than so many calls.
const MOST_CALLS_TO_EARN: u64 = 4096;
/// The most calls that are left alone at a time: so often the counts are looked at.
const MOST_ALONE: u64 = 1024;

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
    granted_timed: u32,
    settled: u64,
    /// The default and the candidates.
    pub arms: Vec<ArmState>,
    /// What calls are carried out by.
    pub current: Arm,
    /// What another job has chosen, or the default; and at which call it is used, while that is still to come.
    pub learned_arm: Arm,
    pub adopt_at: Option<u64>,
    /// Of a call by what is used, and by the default: the mean of the ranks.
    pub seconds: Option<f64>,
    pub default_seconds: Option<f64>,
    /// Seconds of a call by what is used, by what other jobs have shown.
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
            let tried = learned.and_then(|learned| learned.find(method));
            let is_one = |of: &LogRatios| of.trials > 0 && of.mean.is_finite() && of.squares >= 0.0;
            tried.map(|tried| tried.ratios).filter(is_one).unwrap_or_default()
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
        let learned_arm = arms.iter().position(is_chosen).unwrap_or(0) as Arm;
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
            granted_timed: 0,
            settled: 0,
            arms,
            current: 0,
            learned_arm,
            adopt_at: None,
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
        if learned_arm != 0 {
            class.arms[learned_arm as usize].trying = Trying::Open;
            class.adopt_at = Some(class.calls_to_earn(learned_arm));
            class.adopt_learned();
        }
        class.leave_alone_until_run();
        class
    }

    /// After how many calls a choice of another job has earned what its first call may take longer. Few short calls are
    /// no reason to make areas of shared memory.
    fn calls_to_earn(&self, arm: Arm) -> u64 {
        let state = &self.arms[arm as usize];
        let is_predicted =
            state.candidate.as_ref().is_some_and(|candidate| candidate.max_seconds.is_some());
        // What was chosen without a trial is what the user's profile names: it holds at once.
        if is_predicted || state.before.trials == 0 {
            return 0;
        }
        let share = (1.0 - state.before.mean.exp()).max(LEAST_GAIN);
        let gain = self.expected_seconds.map_or(0.0, |seconds| seconds * share);
        let calls = FIRST_CALL_SECONDS / gain;
        if calls < 2.0 { 0 } else { (calls as u64).min(MOST_CALLS_TO_EARN) }
    }

    /// Uses what another job has chosen, when it is time.
    fn adopt_learned(&mut self) {
        if self.adopt_at.is_none_or(|at| self.calls() < at) {
            return;
        }
        self.adopt_at = None;
        let ratio = self.arms[self.learned_arm as usize].before.mean.exp();
        self.change_to(self.learned_arm, self.seconds.map(|seconds| seconds * ratio));
        self.run_at = self.calls() + UNTIMED_OF_LEARNED;
        self.check = Some(Check::new(CheckReason::Learned));
    }

    /// What is to be told other jobs: what is used, or what they have chosen where nothing here contradicts it.
    pub fn chosen(&self) -> Arm {
        let learned = &self.arms[self.learned_arm as usize];
        let is_contradicted = learned.here.trials > 0 || learned.trying == Trying::Declined;
        if self.current == 0 && !is_contradicted { self.learned_arm } else { self.current }
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        let (left, left_timed) = self.alone.left();
        let untimed = self.granted.saturating_sub(left);
        let timed = self.granted_timed.saturating_sub(left_timed);
        self.settled + u64::from(untimed) + u64::from(timed)
    }

    /// How many of a timed run were made that nobody asked for, and are not taken into account yet.
    pub fn timed_alone(&self) -> u64 {
        self.granted_timed.saturating_sub(self.alone.left().1).into()
    }

    /// Every further call is asked for.
    pub fn ask_for_all(&mut self) {
        self.leave_alone(0, 0);
    }

    fn leave_alone(&mut self, calls: u32, timed: u32) {
        self.settled = self.calls();
        self.take_timed();
        (self.granted, self.granted_timed) = (calls, timed);
        self.alone.grant(self.current, calls, timed);
    }

    /// Adds the timed calls that were made to the run.
    fn take_timed(&mut self) {
        let alone = Arc::clone(&self.alone);
        let (arm, seconds, declined) = alone.made(self.granted_timed);
        for (number, seconds) in seconds.enumerate() {
            self.arms[arm as usize].has_run = true;
            let was_declined = (number as u32) < declined;
            self.add_to_run(CallEnd { seconds: Some(seconds), was_declined });
        }
    }

    fn add_to_run(&mut self, end: CallEnd) {
        if self.run_done == 0 {
            self.run_declined = 0.0;
        }
        let seconds = end.seconds.filter(|seconds| seconds.is_finite()).unwrap_or(0.0);
        self.run_seconds[self.run_done as usize] = seconds.max(0.0);
        self.run_declined += f64::from(u8::from(end.was_declined));
        self.run_done += 1;
    }

    /// Every further call is the default's.
    pub fn give_up(&mut self) {
        self.current = 0;
        self.leave_alone(u32::MAX / 2, 0);
    }

    /// The calls up to the last one of the next timed run are left alone.
    pub fn leave_alone_until_run(&mut self) {
        let calls = self.calls();
        let until = self.adopt_at.unwrap_or(u64::MAX).min(self.run_at);
        let untimed = until.saturating_sub(calls);
        // Else something is to be looked at before the run.
        let is_run_next = untimed <= MOST_ALONE && calls + untimed >= self.run_at;
        let timed = if is_run_next { (TIMED_RUN - 1).saturating_sub(self.run_done) } else { 0 };
        self.leave_alone(untimed.min(MOST_ALONE) as u32, timed);
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
            self.adopt_learned();
            return Ended::Nothing;
        }
        self.add_to_run(end);
        if self.run_done < TIMED_RUN {
            return Ended::Nothing;
        }
        self.run_done = 0;
        let mean = winsorised_sum(&mut self.run_seconds) / f64::from(TIMED_RUN);
        self.news = Some([mean, self.run_declined]);
        self.run_at = self.settled + spacing(self);
        self.adopt_learned();
        Ended::Run
    }

    /// A timed run that has begun is of no use any more.
    pub fn forget_run(&mut self) {
        self.ask_for_all();
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
        let of_current = self.arms[arm as usize].shown().mean;
        for state in &mut self.arms {
            state.starts_anew();
            // What was slower than what was used before may be faster than this.
            let may_be_faster = state.here.trials > 0 && state.here.mean < of_current - LEAST_GAIN;
            if may_be_faster && state.trying != Trying::Declined {
                state.trying = Trying::Open;
            }
        }
    }
}
