//! What the ranks tell each other, when, and what follows of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{
    AgreementStep, ClassIndex, Explorer,
    arm::{AGAIN_AFTER, Trying},
    class::{CheckReason, TIMED_RUN},
    ledger::TIMING_SECONDS,
    planning::{CAREFUL_FACTOR, FIRST_CALL, FIRST_FACTOR, MOST_FIRST_CALL_SECONDS},
    trial::{Question, Trial, TrialCounts, TrialNumbers},
};

/// A method that one call showed to be slower by this is not called again soon.
const FAR_SLOWER: f64 = 2.5;
/// Watching the default may take this share of the time in collectives.
const WATCHING_SHARE: f64 = 0.001;
/// An agreement is finished at the so many'th call that is asked for after it began: it progresses meanwhile.
const CALLS_OF_AGREEMENT: u32 = 2;
/// What can wait is looked at once in so many calls that are asked for.
const CALLS_OF_A_LOOK: u64 = 4;
/// A trial that is done waits for others as long as so many agreements take: where exploring may take 1 % of the time,
/// agreements are to take half of that.
const BATCH: f64 = 200.0;
/// What the numbers of an agreement begin with: wishes to give up, what the last agreement took, the state's hash, and
/// its square.
const HEADER: usize = 4;
/// And what it has of a timed run.
const RUN_NUMBERS: usize = 2;

/// Why an agreement begins; the more urgent later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    WatchDefault,
    FirstLook,
    WatchChoice,
    Trial,
}

/// An agreement under way.
#[derive(Debug)]
pub(super) struct Agreement {
    /// Calls that were asked for since it began.
    pub asked: u32,
    is_finishing: bool,
    /// What its numbers are of, in their order.
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Run(ClassIndex),
    Trial(ClassIndex, TrialCounts),
}

impl Explorer {
    /// What is to be done for the agreement, if anything, after [`Self::ended`].
    pub fn agreement(&mut self) -> Option<AgreementStep> {
        if let Some(agreement) = &mut self.agreement {
            if agreement.is_finishing || agreement.asked < CALLS_OF_AGREEMENT {
                return None;
            }
            agreement.is_finishing = true;
            return Some(AgreementStep::Finish);
        }
        match self.is_due {
            Some(Cause::WatchDefault | Cause::FirstLook) if self.asked < self.next_look => None,
            Some(cause) if !self.has_given_up => {
                self.next_look = self.asked + CALLS_OF_A_LOOK;
                self.is_worth(cause).then(|| self.begin(cause))
            }
            _ => None,
        }
    }

    /// Whether an agreement may begin for this.
    fn is_worth(&self, cause: Cause) -> bool {
        let agreement = self.agreement_seconds();
        let time = self.time();
        match cause {
            Cause::WatchChoice => true,
            Cause::Trial => self.is_batch_done(time, agreement),
            Cause::FirstLook => {
                self.ledger.balance(time) >= 2.0 * agreement
                    || self.classes.iter().any(|class| class.news.is_some() && class.is_unchecked())
                        && self.can_check_learned(0.0)
            }
            Cause::WatchDefault => {
                (time - self.time_at_agreement) * WATCHING_SHARE >= agreement
                    && self.ledger.balance(time) >= 2.0 * agreement
            }
        }
    }

    /// Whether trials are to be agreed on now: one agreement is cheaper for several, but what is known early can be
    /// used early.
    fn is_batch_done(&self, time: f64, agreement: f64) -> bool {
        let trials = || self.classes.iter().filter_map(|class| class.trial.as_deref());
        // What may be wrong is in use.
        let is_urgent = |trial: &Trial| trial.is_done() && trial.question == Question::StillFaster;
        time >= self.first_trial_done + BATCH * agreement
            || trials().any(is_urgent)
            || trials().all(|trial| trial.is_done())
    }

    /// One more trial is done.
    pub(super) fn trial_is_done(&mut self) {
        if self.is_due != Some(Cause::Trial) {
            self.is_due = Some(Cause::Trial);
            self.first_trial_done = self.time();
        }
    }

    fn begin(&mut self, cause: Cause) -> AgreementStep {
        self.is_due = None;
        let hash = self.hash();
        let gives_up = f64::from(u8::from(self.wants_to_give_up));
        let mut numbers = vec![gives_up, self.took, hash, hash * hash];
        let mut parts = Vec::new();
        self.took = 0.0;
        for (index, class) in self.classes.iter_mut().enumerate() {
            class.ask_for_all();
            if let Some(news) = class.news.take() {
                numbers.extend(news);
                parts.push(Part::Run(index));
                self.ledger.spend(f64::from(TIMED_RUN) * TIMING_SECONDS);
            }
            if let Some(trial) = class.trial.as_mut().filter(|trial| trial.is_done()) {
                numbers.extend(trial.numbers().to_array());
                parts.push(Part::Trial(index, trial.counts()));
                self.ledger.spend(trial.timed() as f64 * TIMING_SECONDS);
            }
        }
        self.time_at_agreement = self.time();
        let expected = self.agreement_seconds();
        self.ledger.begin_agreement(expected, cause == Cause::WatchChoice);
        self.agreement = Some(Agreement { asked: 0, is_finishing: false, parts });
        AgreementStep::Begin(numbers)
    }

    /// A number of 16 bits that ranks in one state have in common: so few that the sum of squares over two million
    /// ranks is exact.
    fn hash(&self) -> f64 {
        let mut hasher = DefaultHasher::new();
        self.asked.hash(&mut hasher);
        for class in &self.classes {
            (class.identity, class.calls(), class.current).hash(&mut hasher);
        }
        (hasher.finish() & 0xffff) as f64
    }

    /// What the last step of the agreement took on this rank, in seconds.
    pub fn agreement_took(&mut self, seconds: f64) {
        if seconds.is_finite() {
            self.took += seconds.max(0.0);
        }
    }

    /// The sums over the ranks of the numbers of the last [`AgreementStep::Begin`].
    pub fn agreed(&mut self, sums: &[f64]) {
        let Some(agreement) = self.agreement.take() else { return };
        let Some((&[gives_up, took, hash, squares], mut rest)) = sums.split_first_chunk::<HEADER>()
        else {
            return;
        };
        let ranks = f64::from(self.layout.procs());
        // By Cauchy and Schwarz equal only where all ranks are in one state. All see it or none.
        let is_in_step = hash * hash == ranks * squares;
        if gives_up > 0.0 || !is_in_step {
            self.give_up_all();
            return;
        }
        self.ledger.agreement_before_took(took / ranks);
        let mut trials = Vec::new();
        for part in agreement.parts {
            let count = match &part {
                Part::Run(_) => RUN_NUMBERS,
                Part::Trial(..) => TrialNumbers::COUNT,
            };
            let Some((numbers, others)) = rest.split_at_checked(count) else { return };
            rest = others;
            let means: Vec<f64> = numbers.iter().map(|sum| sum / ranks).collect();
            match part {
                Part::Run(index) => self.watched(index, means[0], means[1]),
                Part::Trial(index, counts) => trials.push((index, counts, means)),
            }
        }
        // Runs were by what was used; a trial may change that.
        for (index, counts, means) in trials {
            let trial = self.classes[index].trial.take();
            if let Some((trial, numbers)) = trial.zip(TrialNumbers::of(&means)) {
                self.tried(index, &trial, counts, numbers);
            }
        }
        self.plan();
    }

    fn give_up_all(&mut self) {
        self.has_given_up = true;
        self.is_due = None;
        for class in &mut self.classes {
            class.count_time();
            class.trial = None;
            class.give_up();
        }
    }

    /// A timed run of a class has told its mean time.
    fn watched(&mut self, index: ClassIndex, seconds: f64, declined: f64) {
        let class = &mut self.classes[index];
        if declined > 0.0 {
            class.declined(class.current);
            return;
        }
        let gained = class.watched(seconds, true);
        self.ledger.gain(gained);
        self.ledger.spend(-gained);
    }

    /// A trial has been agreed on.
    fn tried(
        &mut self,
        index: ClassIndex,
        trial: &Trial,
        counts: TrialCounts,
        numbers: TrialNumbers,
    ) {
        let agreement = self.agreement_seconds();
        let class = &mut self.classes[index];
        if numbers.declined > 0.0 {
            class.declined(trial.arm);
            return;
        }
        let mean = |sum: f64, count: usize| (count > 0 && sum > 0.0).then(|| sum / count as f64);
        let of_arm = mean(numbers.of_arm, counts.of_arm);
        let of_other = mean(numbers.of_other, counts.of_other);
        // What the calls cost beyond those that would have been made without a trial.
        let (usual, costly, compared) = if trial.tried() == trial.arm {
            (of_other.or(class.seconds), numbers.of_arm, counts.of_arm)
        } else {
            (of_arm.or(class.seconds), numbers.of_other, counts.of_other)
        };
        let Some(usual) = usual else { return };
        if trial.question == Question::FirstCall {
            let beyond = numbers.not_compared - FIRST_FACTOR * usual - FIRST_CALL * agreement;
            self.worst_first_call = self.worst_first_call.max(beyond.min(MOST_FIRST_CALL_SECONDS));
        }
        let calls = (compared + counts.not_compared) as f64;
        let cost = costly + numbers.not_compared - calls * usual;
        if trial.question == Question::StillFaster {
            self.ledger.spend_on_watching(cost);
        } else {
            self.ledger.spend(cost);
        }
        match trial.question {
            Question::FirstCall => {
                if let Some(seconds) = mean(numbers.not_compared, counts.not_compared) {
                    let state = &mut class.arms[trial.arm as usize];
                    let factor = seconds / usual;
                    state.seen_factor = Some(factor);
                    if factor < CAREFUL_FACTOR {
                        state.is_bounded = true;
                        state.run = 2;
                    }
                }
            }
            Question::FarSlower => {
                if let Some((of_arm, of_other)) = of_arm.zip(of_other) {
                    let factor = of_arm / of_other;
                    let calls = class.calls();
                    let state = &mut class.arms[trial.arm as usize];
                    state.seen_factor = Some(factor);
                    if factor > FAR_SLOWER {
                        state.trying = Trying::RestsUntil(AGAIN_AFTER * calls);
                    } else {
                        state.is_bounded = true;
                    }
                }
            }
            // What it was compared with may not be what is used any more.
            Question::Faster if trial.other != class.current => {}
            Question::StillFaster if trial.arm != class.current => {}
            Question::Faster => {
                if let Some((of_arm, of_other)) = of_arm.zip(of_other) {
                    let gained = class.compared(trial.arm, (of_arm / of_other).ln(), of_other);
                    self.ledger.gain(gained);
                    self.ledger.spend(-gained);
                }
            }
            Question::StillFaster => {
                if let Some((of_arm, of_other)) = of_arm.zip(of_other) {
                    let reason = class.check.map(|check| check.reason);
                    let lost = class.checked((of_arm / of_other).ln(), of_arm, of_other);
                    self.ledger.spend(lost);
                    let was_unchecked =
                        matches!(reason, Some(CheckReason::Learned | CheckReason::Unexpected));
                    if was_unchecked && self.classes[index].current == 0 {
                        self.distrust_learned();
                    }
                }
            }
        }
    }

    /// One choice of other jobs has turned out to be wrong here: the others are used only once they are confirmed.
    fn distrust_learned(&mut self) {
        for class in &mut self.classes {
            class.adopt_at = None;
            if class.is_unchecked() {
                class.use_default();
            }
        }
    }
}
