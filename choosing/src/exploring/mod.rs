//! Choice while an application runs: which method the next call gets, what is tried, and what trying may cost.
//!
//! An [`Explorer`] belongs to one communicator, and each of its ranks has one. They come to the same decisions without
//! a message at each call: all calls of a communicator come in one order on all its ranks, so that an [`Explorer`]
//! counts calls, and decides on nothing but counts and times *summed over the ranks*. These sums it asks for now and
//! then ([`Explorer::agreement`]): one small nonblocking reduction of doubles, begun after one call and finished
//! after a later one.
//!
//! Nothing here calls MPI, reads a clock, or draws random numbers that differ between ranks.

mod class;
mod ledger;
mod log_ratios;
mod size_class;
#[cfg(test)]
mod tests;
mod trial;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use records::{
    Collective, Layout, Method, Point,
    learned::{LearnedClass, LearnedMethod},
};

use class::{Check, CheckReason, Class, Ended, TIMED_RUN, WATCH_SPACING};
use ledger::{ASKING_SECONDS, Ledger, TIMING_SECONDS};
use log_ratios::LogRatios;
pub use size_class::SizeClass;
use trial::{LONGEST_RUN, Question, Trial, TrialCounts, TrialNumbers};

/// A class that was called less often is not tried on.
const LEAST_CALLS: u64 = 20;
/// An untried method is taken to be no slower than by this factor, or than the slowest that was seen.
const FIRST_FACTOR: f64 = 8.0;
/// A method's first call may take so much longer, in seconds, since areas of shared memory are made there (where the
/// time of a call was not predicted; measured: 0.2 to 1 ms); or as what the worst first call took that was seen.
const FIRST_CALL_SECONDS: f64 = 5e-4;
/// And by so many agreements, since connections are.
const FIRST_CALL: f64 = 4.0;
/// A method that may be slower than by this is called once first.
const CAREFUL_FACTOR: f64 = 2.0;
/// A method that one call showed to be slower by this is not called again soon.
const FAR_SLOWER: f64 = 2.5;
/// The gain that is expected of a method that nothing is known of has this deviation (of the logarithm of the
/// ratio); of one that a neighbouring class has shown, this one.
const UNKNOWN_DEVIATION: f64 = 0.5;
const NEIGHBOUR_DEVIATION: f64 = 0.25;
/// Each further candidate is expected to gain so much less.
const ORDER: f64 = 0.95;
/// The first choice of other jobs is checked when the time in collectives is that of so many agreements, each further
/// one after so many more; and after so many calls of its class.
const AGREEMENTS_BEFORE_CHECKS: [f64; 2] = [4.0, 100.0];
const CALLS_BEFORE_CHECK: u64 = 4;
/// Until agreements were timed, one is taken to last as long as a call of so many bytes takes longer than one of
/// nothing ...
const BYTES_OF_AN_AGREEMENT: f64 = 32768.0;
/// ... and as so many calls of nothing, at most and usually.
const CALLS_OF_NOTHING: f64 = 4.0;
const USUAL_CALLS_OF_NOTHING: f64 = 2.0;
/// Watching the default may take this share of the time in collectives.
const WATCHING_SHARE: f64 = 0.001;
/// Of what a method gains, this share may be spent on watching it, in a range of shares of the time.
const WATCHING_SHARE_OF_GAIN: f64 = 0.2;
const WATCHING_A_CHOICE: [f64; 2] = [0.002, 0.01];
/// The default is timed every so many calls at most.
const DEFAULT_SPACING: u64 = 64;
/// And at least so often.
const WIDEST_SPACING: u64 = 4096;
/// Timing the default may take this share of its time.
const TIMING_SHARE: f64 = 0.0003;
/// An agreement is finished at the so many'th call that is asked for after it began: it progresses meanwhile.
const CALLS_OF_AGREEMENT: u32 = 2;
/// A trial is given up after so many calls that are asked for, of all classes, and more where it is long.
const PATIENCE: u64 = 300;
const PATIENCE_PER_CALL: u64 = 20;
/// A trial that is done waits for others as long as so many agreements take: where exploring may take 1 % of the time,
/// agreements are to take half of that.
const BATCH: f64 = 200.0;
/// What a trial pays of the agreement that others pay, too.
const SHARE_OF_AGREEMENT: f64 = 0.25;
/// So many trials at a time, each of another class.
const MOST_TRIALS: usize = 16;
/// Seconds of an agreement while nothing at all is known: only its ratio to the calls is used.
const NOMINAL_AGREEMENT: f64 = 1e-5;
/// What the numbers of an agreement begin with: wishes to give up, what the last agreement took, the state's hash, and
/// its square.
const HEADER: usize = 4;

/// Calls that are one to the explorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallClass {
    pub collective: Collective,
    pub size: SizeClass,
}

/// A method that may be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub method: Method,
    /// A call takes a rank no longer than this, in seconds, as far as anybody could predict.
    pub max_seconds: Option<f64>,
}

/// What the next call of a class is carried out by: 0 is the library's default, the others are the class's
/// candidates, counted from 1.
pub type Arm = u32;

/// The next call of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub arm: Arm,
    /// Whether its time is wanted.
    pub is_timed: bool,
}

/// How a call ended on this rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallEnd {
    /// Seconds in the call on this rank, where they were wanted.
    pub seconds: Option<f64>,
    /// Whether the method could not carry it out, so that the library's default did.
    pub was_declined: bool,
}

/// Calls of a class that need not be asked for: the next `calls` are by `arm`, untimed.
///
/// Whoever makes a call takes one off. The explorer sees by what is left how many were made, and may set it to 0 at
/// any time. Only the thread that is in a call on the communicator touches it.
#[derive(Debug, Default)]
pub struct CallsAlone {
    pub calls: AtomicU32,
    pub arm: AtomicU32,
}

impl CallsAlone {
    /// Takes one call off: its arm, or nothing where the explorer is to be asked.
    #[inline(always)]
    pub fn take(&self) -> Option<Arm> {
        let left = self.calls.load(Ordering::Relaxed).checked_sub(1)?;
        self.calls.store(left, Ordering::Relaxed);
        Some(self.arm.load(Ordering::Relaxed))
    }

    /// Takes one off that is the default's; whether there was one.
    #[inline(always)]
    pub fn take_default(&self) -> bool {
        self.arm.load(Ordering::Relaxed) == 0 && self.take().is_some()
    }

    /// A call that was taken did not happen: the library refused it.
    pub fn put_back(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// What is to be done for the agreement of the ranks after a call.
#[derive(Debug, Clone, PartialEq)]
pub enum AgreementStep {
    Nothing,
    /// Begin to sum these numbers over the ranks.
    Begin(Vec<f64>),
    /// Finish that, and hand the sums to [`Explorer::agreed`].
    Finish,
}

/// What exploring has cost and gained on one communicator, in seconds summed over its ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Account {
    /// In all collectives that are explored.
    pub collectives: f64,
    /// What the same calls would have taken longer by the default.
    pub gained: f64,
    /// What trials, timing and agreements took.
    pub spent: f64,
    /// What they may still take.
    pub budget: f64,
}

/// What is known of the classes of one communicator, and what comes next.
#[derive(Debug)]
pub struct Explorer {
    layout: Layout,
    classes: Vec<Class>,
    ledger: Ledger,
    agreement: Option<Agreement>,
    /// An agreement was found to be due at the end of the last call.
    is_due: Option<Cause>,
    /// Trials begun.
    trials: u64,
    /// Calls that were asked for.
    asked: u64,
    /// When `asked` is so much, what comes next is thought about again.
    next_plan: u64,
    /// Time in collectives when the last agreement began.
    time_at_agreement: f64,
    /// Time in collectives when the first trial was done that is to be agreed on.
    first_trial_done: f64,
    /// The slowest method that was seen, as a factor.
    worst_factor: f64,
    /// What a first call took beyond the factor that was reckoned with, at worst, in seconds.
    worst_first_call: f64,
    /// Trials of choices of other jobs.
    checks_of_learned: u64,
    has_given_up: bool,
    /// This rank wishes to give up, but not all know yet.
    wants_to_give_up: bool,
    /// Seconds of this rank in agreements since it last told.
    took: f64,
}

/// A class of an explorer.
pub type ClassIndex = usize;

/// Why an agreement begins; the more urgent later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    WatchDefault,
    FirstLook,
    WatchChoice,
    Trial,
}

/// An agreement under way.
#[derive(Debug)]
struct Agreement {
    /// Calls that were asked for since it began.
    asked: u32,
    is_finishing: bool,
    /// What its numbers are of, in their order.
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Class(ClassIndex),
    Trial(ClassIndex, TrialCounts),
}

impl Explorer {
    /// `layout`: of the communicator's ranks; `budget`: the share of the time in collectives that exploring may
    /// cost, e.g. 0.01.
    pub fn new(layout: Layout, budget: f64) -> Self {
        Explorer {
            layout,
            classes: Vec::new(),
            ledger: Ledger::new(budget),
            agreement: None,
            is_due: None,
            trials: 0,
            asked: 0,
            next_plan: 0,
            time_at_agreement: 0.0,
            first_trial_done: 0.0,
            worst_factor: FIRST_FACTOR,
            worst_first_call: FIRST_CALL_SECONDS,
            checks_of_learned: 0,
            has_given_up: false,
            wants_to_give_up: false,
            took: 0.0,
        }
    }

    /// The layout of the communicator.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// A class that is called for the first time, with what may be tried in this order, and what is known of it from
    /// before. Candidates that are not in `learned` are tried as if nothing were known of them.
    pub fn add_class(
        &mut self,
        class: CallClass,
        candidates: Vec<Candidate>,
        learned: Option<&LearnedClass>,
    ) -> (ClassIndex, Arc<CallsAlone>) {
        let mut class = Class::new(class, candidates, learned);
        if self.has_given_up {
            class.give_up();
        } else if self.agreement.is_some() {
            class.ask_for_all();
        }
        let alone = Arc::clone(&class.alone);
        self.classes.push(class);
        (self.classes.len() - 1, alone)
    }

    /// What the next call of a class gets, where [`CallsAlone::take`] has none. Asking twice gives the same.
    pub fn next(&self, class: ClassIndex) -> Turn {
        if self.has_given_up {
            return Turn { arm: 0, is_timed: false };
        }
        self.classes[class].turn()
    }

    /// The call of the last [`Self::next`] has ended. It must not be told of one that the library refused.
    pub fn ended(&mut self, class: ClassIndex, end: CallEnd) {
        if self.has_given_up {
            self.classes[class].give_up();
            return;
        }
        self.asked += 1;
        self.ledger.spend(ASKING_SECONDS);
        if let Some(agreement) = &mut self.agreement {
            agreement.asked += 1;
        }
        let agreement_seconds = self.agreement_seconds();
        let state = &mut self.classes[class];
        let is_first = state.seconds.is_none();
        let is_chosen = state.current != 0;
        match state.ended(end, |class| spacing(class, agreement_seconds)) {
            Ended::Trial => self.trial_is_done(),
            Ended::Run => {
                self.is_due = self.is_due.max(Some(match (is_chosen, is_first) {
                    (true, false) => Cause::WatchChoice,
                    (_, true) => Cause::FirstLook,
                    (false, false) => Cause::WatchDefault,
                }));
            }
            Ended::Nothing => {}
        }
        if self.agreement.is_none() && self.asked >= self.next_plan {
            self.plan();
        }
        let state = &mut self.classes[class];
        if self.agreement.is_none() && state.trial.is_none() {
            state.leave_alone_until_run();
        }
    }

    /// What is to be done for the agreement, after [`Self::ended`].
    pub fn agreement(&mut self) -> AgreementStep {
        if let Some(agreement) = &mut self.agreement {
            if agreement.is_finishing || agreement.asked < CALLS_OF_AGREEMENT {
                return AgreementStep::Nothing;
            }
            agreement.is_finishing = true;
            return AgreementStep::Finish;
        }
        match self.is_due {
            Some(cause) if !self.has_given_up && self.is_worth(cause) => self.begin(cause),
            _ => AgreementStep::Nothing,
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
                    || self.classes.iter().any(|class| class.is_news && class.is_unchecked())
                        && time >= agreement * self.agreements_before_check()
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
        let trials = || self.classes.iter().filter_map(|class| class.trial.as_ref());
        // What may be wrong is in use.
        let is_urgent =
            |trial: &Box<Trial>| trial.is_done() && trial.question == Question::StillFaster;
        time >= self.first_trial_done + BATCH * agreement
            || trials().any(is_urgent)
            || trials().all(|trial| trial.is_done())
    }

    /// One more trial is done.
    fn trial_is_done(&mut self) {
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
            if class.is_news {
                class.is_news = false;
                numbers.extend(class.run_numbers());
                parts.push(Part::Class(index));
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
        for part in agreement.parts {
            match part {
                Part::Class(index) => {
                    let Some((&[seconds, declined], others)) = rest.split_first_chunk() else {
                        return;
                    };
                    rest = others;
                    self.watched(index, seconds / ranks, declined);
                }
                Part::Trial(index, counts) => {
                    let Some((numbers, others)) = rest.split_at_checked(TrialNumbers::COUNT) else {
                        return;
                    };
                    rest = others;
                    let means = numbers.iter().map(|sum| sum / ranks);
                    let means: Vec<f64> = means.collect();
                    let trial = self.classes[index].trial.take();
                    if let Some((trial, numbers)) = trial.zip(TrialNumbers::of(&means)) {
                        self.tried(index, &trial, counts, numbers);
                    }
                }
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
            let beyond = numbers.not_compared - self.worst_factor * usual - FIRST_CALL * agreement;
            self.worst_first_call = self.worst_first_call.max(beyond);
        }
        let calls = (compared + counts.not_compared) as f64;
        self.ledger.spend(costly + numbers.not_compared - calls * usual);
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
                        state.trying = class::Trying::RestsUntil(4 * calls);
                        self.worst_factor = self.worst_factor.max(factor);
                    } else {
                        state.is_bounded = true;
                    }
                }
            }
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
                    if matches!(reason, Some(CheckReason::Learned | CheckReason::Unexpected)) {
                        self.checks_of_learned += 1;
                        if self.classes[index].current == 0 {
                            self.distrust_learned();
                        }
                    }
                }
            }
        }
    }

    /// One choice of other jobs has turned out to be wrong here: the others are used only once they are confirmed.
    fn distrust_learned(&mut self) {
        for class in &mut self.classes {
            if class.is_unchecked() {
                class.use_default();
            }
        }
    }

    /// What an agreement takes, in seconds.
    fn agreement_seconds(&self) -> f64 {
        let by_class = |class: &Class| {
            class
                .seconds
                .or(class.expected_seconds)
                .map(|seconds| seconds / agreements_of(class, USUAL_CALLS_OF_NOTHING))
        };
        self.ledger.agreement_seconds().unwrap_or_else(|| {
            self.classes.iter().filter_map(by_class).reduce(f64::min).unwrap_or(NOMINAL_AGREEMENT)
        })
    }

    /// The time in collectives so far, in seconds, the mean of the ranks.
    fn time(&self) -> f64 {
        let agreement = self.agreement_seconds();
        let of = |class: &Class| {
            class.time(
                class
                    .expected_seconds
                    .unwrap_or(agreements_of(class, CALLS_OF_NOTHING) * agreement),
            )
        };
        self.classes.iter().map(of).sum()
    }

    /// Begins the trials that promise most for what they cost, as far as the budget allows them.
    fn plan(&mut self) {
        self.next_plan = self.asked + 8 + self.asked / 32;
        if self.agreement.is_some() || self.has_given_up {
            return;
        }
        let asked = self.asked;
        let mut has_ended = false;
        for class in &mut self.classes {
            class.count_time();
            let is_late = class.trial.as_ref().is_some_and(|trial| {
                asked - trial.began > PATIENCE + PATIENCE_PER_CALL * trial.calls_left() as u64
            });
            has_ended |= class.end_trial(is_late);
        }
        if has_ended {
            self.trial_is_done();
        }
        for _ in 0..MOST_TRIALS {
            let Some(plan) = self.best_plan() else { return };
            self.start(plan);
        }
    }

    /// The trial that promises most for what it costs.
    fn best_plan(&mut self) -> Option<Plan> {
        let agreement = self.agreement_seconds();
        let trials = || self.classes.iter().filter_map(|class| class.trial.as_ref());
        let is_shared = trials().any(|trial| !trial.is_done());
        let agreement = agreement * if is_shared { SHARE_OF_AGREEMENT } else { 1.0 };
        let reserved: f64 = trials().map(|trial| trial.reserved).sum();
        if trials().count() >= MOST_TRIALS {
            return None;
        }
        // What nobody knows much of is tried one at a time: it may cost more than is foreseen.
        let is_unknown =
            |question: Question| matches!(question, Question::FirstCall | Question::FarSlower);
        let has_unknown = trials().any(|trial| is_unknown(trial.question));
        let balance = self.ledger.balance(self.time()) - reserved;
        let mut best: Option<(f64, Plan)> = None;
        for index in 0..self.classes.len() {
            let class = &self.classes[index];
            if class.trial.is_some() {
                continue;
            }
            if class.current != 0 && class.check.is_none() && class.calls() >= class.routine_at {
                self.begin_routine(index, balance, agreement);
            }
            let class = &self.classes[index];
            let mut offer = |offered: Option<(f64, Plan)>| {
                let is_better = |(score, plan): &(f64, Plan)| {
                    best.is_none_or(|(best, _)| *score > best)
                        && !(has_unknown && is_unknown(plan.question))
                };
                best = offered.filter(is_better).or(best);
            };
            if let Some(check) = class.check {
                offer(self.plan_check(index, check));
            } else if class.seconds.is_some() && class.calls() >= LEAST_CALLS {
                for arm in 1..class.arms.len() {
                    offer(self.score(index, arm as Arm, balance, agreement));
                }
            }
        }
        best.map(|(_, plan)| plan)
    }

    fn start(&mut self, plan: Plan) {
        let class = &mut self.classes[plan.class];
        class.forget_run();
        class.ask_for_all();
        self.trials += 1;
        let random = (self.asked ^ self.trials << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let other = if plan.question == Question::StillFaster { 0 } else { class.current };
        let has_run = |arm: Arm| class.arms[arm as usize].has_run;
        let mut trial = Trial::new(plan.question, [plan.arm, other], plan.run, random, has_run);
        (trial.reserved, trial.began) = (plan.cost, self.asked);
        class.trial = Some(Box::new(trial));
    }

    /// The next trial of a choice against the default, and how it ranks: before trials of anything new, where most
    /// time goes first.
    fn plan_check(&self, class: ClassIndex, check: Check) -> Option<(f64, Plan)> {
        const BEFORE_TRIALS: f64 = 1e100;
        const BEFORE_CHECKS: f64 = 1e200;
        let state = &self.classes[class];
        let agreement = self.agreement_seconds();
        let time = state.time(state.expected_seconds.unwrap_or(agreement));
        let (run, rank) = match check.reason {
            CheckReason::Learned => {
                // A wrong choice costs at each call, so that this may overdraw the budget. One that is right makes
                // others likely to be.
                let least = agreement * self.agreements_before_check();
                if state.calls() < CALLS_BEFORE_CHECK || self.time() < least {
                    return None;
                }
                (if check.ratios.trials == 0 { 1 } else { 2 }, BEFORE_TRIALS)
            }
            CheckReason::Suspicion | CheckReason::Unexpected => (2, BEFORE_CHECKS),
            CheckReason::Routine => (4, BEFORE_TRIALS),
        };
        let gain = state.default_seconds.zip(state.seconds).map(|(default, own)| default - own);
        let cost = agreement + f64::from(2 * run) * gain.unwrap_or(0.0).max(0.0);
        let plan = Plan { class, arm: state.current, question: Question::StillFaster, run, cost };
        Some((rank * time, plan))
    }

    /// The time in collectives, in agreements, before which the next choice of other jobs is not checked.
    fn agreements_before_check(&self) -> f64 {
        let [first, further] = AGREEMENTS_BEFORE_CHECKS;
        first + further * self.checks_of_learned as f64
    }

    /// Compares what is used with the default, where the budget allows.
    fn begin_routine(&mut self, index: ClassIndex, balance: f64, agreement: f64) {
        let class = &mut self.classes[index];
        let Some((seconds, default)) = class.seconds.zip(class.default_seconds) else { return };
        if balance >= agreement + 8.0 * (default - seconds).max(0.0) {
            class.check =
                Some(Check { reason: CheckReason::Routine, ratios: LogRatios::default() });
        }
    }

    /// What a method's next trial promises for what it costs, where the budget allows it and it is worth it.
    fn score(
        &self,
        index: ClassIndex,
        arm: Arm,
        balance: f64,
        agreement: f64,
    ) -> Option<(f64, Plan)> {
        let class = &self.classes[index];
        let state = &class.arms[arm as usize];
        let seconds = class.seconds.filter(|seconds| *seconds > 0.0)?;
        if arm == class.current || !state.is_open(class.calls()) {
            return None;
        }
        let (prior, error) = self.belief(index, arm);
        // As many calls are to come as came.
        let promise = class.known_time() * prior.plausible_gain(error);
        if promise <= agreement {
            return None;
        }
        let bound = self.factor_bound(index, arm, seconds, prior, error);
        let (question, mut run) = if state.is_bounded || bound <= CAREFUL_FACTOR {
            (Question::Faster, state.run)
        } else if state.has_run {
            (Question::FarSlower, 1)
        } else {
            (Question::FirstCall, 0)
        };
        // A trial should not be long beside all calls so far.
        while run > 1 && u64::from(4 * run) > class.calls() / 8 {
            run /= 2;
        }
        let cost_of = |run: u32| {
            let of_arm = match question {
                Question::FirstCall | Question::FarSlower => 1,
                _ => 2 * run + u32::from(!state.has_run),
            };
            let timed = f64::from(2 * of_arm);
            let first_call = match &state.candidate {
                _ if state.has_run => 0.0,
                Some(Candidate { max_seconds: Some(_), .. }) => FIRST_CALL * agreement,
                _ => FIRST_CALL * agreement + self.worst_first_call,
            };
            f64::from(of_arm) * (bound - 1.0).max(0.0) * seconds
                + first_call
                + agreement
                + timed * TIMING_SECONDS
        };
        while run > 1 && cost_of(run) > balance {
            run /= 2;
        }
        let cost = cost_of(run);
        let to_come = 6_u64.saturating_sub(state.against.trials).max(1) as f64;
        if cost > balance
            || to_come * (agreement + TIMING_SECONDS * f64::from(2 * LONGEST_RUN))
                + (cost - agreement)
                > promise
        {
            return None;
        }
        Some((promise / cost, Plan { class: index, arm, question, run, cost }))
    }

    /// What is believed of ln(time of a method / time of what is used), and the standard error of that.
    fn belief(&self, index: ClassIndex, arm: Arm) -> (LogRatios, f64) {
        let class = &self.classes[index];
        let state = &class.arms[arm as usize];
        let current = &class.arms[class.current as usize];
        if state.against.trials > 0 {
            return (state.against, state.against.error());
        }
        let of_current =
            if current.here.trials > 0 { current.here.mean } else { current.before.mean };
        let against = |ratios: LogRatios| LogRatios { mean: ratios.mean - of_current, ..ratios };
        if state.here.trials > 0 {
            return (against(state.here), state.here.error().max(0.1));
        }
        if state.before.trials > 0 {
            return (against(state.before), state.before.error().max(0.1));
        }
        if let Some((distance, neighbour)) = self.neighbour(index, arm) {
            let error = (NEIGHBOUR_DEVIATION * f64::from(distance)).min(UNKNOWN_DEVIATION);
            return (against(neighbour), error.hypot(neighbour.error()));
        }
        let unknown = LogRatios::default();
        (against(unknown), UNKNOWN_DEVIATION * ORDER.powi(arm as i32))
    }

    /// What the same method has shown in the nearest class of the collective, and how many classes away that is.
    fn neighbour(&self, index: ClassIndex, arm: Arm) -> Option<(u32, LogRatios)> {
        let own = &self.classes[index];
        let method = &own.arms[arm as usize].candidate.as_ref()?.method;
        let of = |class: &Class| {
            if class.call.collective != own.call.collective || class.call.size == own.call.size {
                return None;
            }
            let is_same = |state: &&class::ArmState| {
                state.here.trials > 0
                    && state.candidate.as_ref().is_some_and(|other| other.method == *method)
            };
            let state = class.arms.iter().find(is_same)?;
            let distance = class.call.size.index().abs_diff(own.call.size.index()) as u32;
            Some((distance, state.here))
        };
        self.classes.iter().filter_map(of).min_by_key(|(distance, _)| *distance)
    }

    /// How many times as long as what is used a call by the method may take, as far as anybody knows.
    fn factor_bound(
        &self,
        index: ClassIndex,
        arm: Arm,
        seconds: f64,
        belief: LogRatios,
        error: f64,
    ) -> f64 {
        let state = &self.classes[index].arms[arm as usize];
        if state.against.trials > 0 {
            return (belief.mean + error).exp();
        }
        if let Some(seen) = state.seen_factor {
            return if state.is_bounded { seen } else { seen.min(FIRST_FACTOR) };
        }
        if state.here.trials > 0 || state.before.trials > 0 {
            return (belief.mean + 2.0 * error).exp();
        }
        if let Some((distance, neighbour)) = self.neighbour(index, arm) {
            // A neighbouring class shows how slow it can be, less how fast it must be; a distant one not even that.
            let doubt = 2.0 * neighbour.error().hypot(NEIGHBOUR_DEVIATION * f64::from(distance));
            return (belief.mean.max(0.0) + doubt.min(self.worst_factor.ln())).exp();
        }
        let predicted = state.candidate.as_ref().and_then(|candidate| candidate.max_seconds);
        match predicted.filter(|predicted| *predicted > 0.0) {
            Some(predicted) => predicted / seconds,
            None => self.worst_factor,
        }
    }

    /// The ranks find that nothing may be tried any more on this communicator, such as where two threads call on it: all
    /// learn it by the next agreement, and all calls after that are the default's.
    pub fn give_up(&mut self) {
        self.wants_to_give_up = true;
    }

    /// What this explorer itself has learned of each class that it knows the time of; nothing of what
    /// [`Self::add_class`] was told.
    pub fn learned(&self) -> Vec<LearnedClass> {
        let of = |class: &Class| {
            let method = |arm: usize| {
                let candidate = class.arms[arm].candidate.as_ref();
                candidate.map_or(Method::Default, |candidate| candidate.method.clone())
            };
            let tried = |arm: usize| {
                let LogRatios { trials, mean, squares } = class.arms[arm].here;
                let method = method(arm);
                (trials > 0).then_some(LearnedMethod { method, trials, log_ratio: mean, squares })
            };
            Some(LearnedClass {
                point: Point {
                    collective: class.call.collective,
                    layout: self.layout,
                    bytes: class.call.size.first_bytes(),
                },
                last_bytes: class.call.size.last_bytes(),
                calls: class.calls(),
                default_seconds: class.default_seconds?,
                chosen: method(class.current as usize),
                tried: (1..class.arms.len()).filter_map(tried).collect(),
            })
        };
        self.classes.iter().filter_map(of).collect()
    }

    /// What exploring has cost and gained so far.
    pub fn account(&self) -> Account {
        let ranks = f64::from(self.layout.procs());
        let known = |class: &Class| class.time(0.0);
        let collectives: f64 = self.classes.iter().map(known).sum();
        Account {
            collectives: ranks * collectives,
            gained: ranks * self.ledger.gained(),
            spent: ranks * self.ledger.spent(),
            budget: ranks * self.ledger.balance(collectives).max(0.0),
        }
    }
}

/// A trial that could come next.
#[derive(Debug, Clone, Copy)]
struct Plan {
    class: ClassIndex,
    arm: Arm,
    question: Question,
    run: u32,
    /// What it may cost, in seconds.
    cost: f64,
}

/// How many agreements take as long as a call of the class, where one takes as long as so many calls of nothing.
fn agreements_of(class: &Class, calls_of_nothing: f64) -> f64 {
    1.0 / calls_of_nothing + class.call.size.first_bytes() as f64 / BYTES_OF_AN_AGREEMENT
}

/// After how many calls a class is timed again.
fn spacing(class: &Class, agreement_seconds: f64) -> u64 {
    let Some(seconds) = class.seconds.filter(|seconds| *seconds > 0.0) else {
        return class.calls().clamp(16, WIDEST_SPACING);
    };
    if class.current != 0 {
        let gain = class.default_seconds.map_or(0.0, |default| 1.0 - seconds / default);
        let [least, most] = WATCHING_A_CHOICE;
        let share = (WATCHING_SHARE_OF_GAIN * gain).clamp(least, most);
        let calls = agreement_seconds / (share * seconds);
        // Soon at first: what was fast in trials need not be in use.
        let in_use = class.calls() - class.chosen_at.min(class.calls());
        return (calls as u64).min(in_use).clamp(WATCH_SPACING, WIDEST_SPACING);
    }
    let calls = f64::from(TIMED_RUN) * TIMING_SECONDS / (TIMING_SHARE * seconds);
    (calls as u64).max(class.calls() / 8).clamp(DEFAULT_SPACING, WIDEST_SPACING)
}
