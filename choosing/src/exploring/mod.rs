//! Choice while an application runs: which method the next call gets, what is tried, and what trying may cost.
//!
//! An [`Explorer`] belongs to one communicator, and each of its ranks has one. They come to the same decisions without
//! a message at each call: all calls of a communicator come in one order on all its ranks, so that an [`Explorer`]
//! counts calls, and decides on nothing but counts and times *summed over the ranks*. These sums it asks for now and
//! then ([`Explorer::agreement`]): one small nonblocking reduction of doubles, begun after one call and finished
//! after a later one.
//!
//! - A class's first calls are the default's, or go by what other jobs have chosen. Some are timed, so that the ranks
//!   agree on what a call takes.
//! - What promises most for what it costs is tried next (`planning`), in runs of calls by turns with what is used
//!   (`trial`), where the budget covers the most that it may cost (`ledger`).
//! - What is clearly slower is dropped; what is faster in enough trials is chosen (`class/judging`).
//! - What is chosen is timed now and then, and compared with the default again (`class/watching`).
//!
//! Ranks that do not begin with the same candidates see so at the first agreement, and give up.
//!
//! Nothing here calls MPI, reads a clock, or draws random numbers that differ between ranks.

mod agreeing;
mod arm;
mod class;
mod ledger;
mod log_ratios;
mod planning;
mod size_class;
#[cfg(test)]
mod tests;
mod trial;

use std::{
    ops::AddAssign,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use records::{
    Collective, Layout, Method, Point,
    learned::{LearnedClass, LearnedMethod},
};
use serde::{Deserialize, Serialize};

use agreeing::{Agreement, Cause};
use class::{Class, Ended, TIMED_RUN, WATCH_SPACING};
use ledger::{ASKING_SECONDS, Ledger, TIMING_SECONDS};
use planning::FIRST_CALL_SECONDS;
pub use size_class::SizeClass;

/// Until agreements were timed, one is taken to last as long as a call of so many bytes takes longer than one of
/// nothing ...
const BYTES_OF_AN_AGREEMENT: f64 = 32768.0;
/// ... and as so many calls of nothing.
const CALLS_OF_NOTHING: f64 = 4.0;
/// Of what a method gains, this share may be spent on watching it, in a range of shares of the time.
const WATCHING_SHARE_OF_GAIN: f64 = 0.2;
const WATCHING_A_CHOICE: [f64; 2] = [0.002, 0.01];
/// The default is timed every so many calls at most.
const DEFAULT_SPACING: u64 = 64;
/// And at least so often.
const WIDEST_SPACING: u64 = 4096;
/// Timing the default may take this share of its time.
const TIMING_SHARE: f64 = 0.0003;
/// Seconds of an agreement while nothing at all is known: only its ratio to the calls is used.
const NOMINAL_AGREEMENT: f64 = 1e-5;

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

/// Calls of a class that need not be asked for: the next ones are by one arm, first some that are not timed, then some
/// of a timed run.
///
/// Whoever makes a call takes one off. The explorer sees by what is left how many were made, and may take back the rest
/// at any time. Only the thread that is in a call on the communicator touches it. It has a line of the cache for itself:
/// little of what a call needs is still at hand.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CallsAlone {
    calls: AtomicU32,
    arm: AtomicU32,
    /// Timed calls after these.
    timed: AtomicU32,
    /// How many of them the method could not carry out.
    declined: AtomicU32,
    /// What they took, the last first.
    nanoseconds: [AtomicU64; Self::MOST_TIMED],
}

impl CallsAlone {
    /// The last call of a timed run is asked for.
    const MOST_TIMED: usize = TIMED_RUN as usize - 1;

    /// Takes one call off that is not timed: its arm, or nothing where there is none.
    #[inline(always)]
    pub fn take(&self) -> Option<Arm> {
        let left = self.calls.load(Ordering::Relaxed).checked_sub(1)?;
        self.calls.store(left, Ordering::Relaxed);
        Some(self.arm.load(Ordering::Relaxed))
    }

    /// The arm of the next call, where [`Self::take`] has none and it is timed without being asked for. It is taken off
    /// by [`Self::add_timed`].
    #[inline(always)]
    pub fn timed_arm(&self) -> Option<Arm> {
        (self.timed.load(Ordering::Relaxed) > 0).then(|| self.arm.load(Ordering::Relaxed))
    }

    /// Whether the next call is the default's without being asked for.
    #[inline(always)]
    pub fn is_default(&self) -> bool {
        self.arm.load(Ordering::Relaxed) == 0
    }

    /// The call of the last [`Self::timed_arm`] has ended. It must not be told of one that the library refused.
    #[inline(always)]
    pub fn add_timed(&self, nanoseconds: u64, was_declined: bool) {
        let Some(left) = self.timed.load(Ordering::Relaxed).checked_sub(1) else { return };
        let Some(place) = self.nanoseconds.get(left as usize) else { return };
        place.store(nanoseconds, Ordering::Relaxed);
        self.timed.store(left, Ordering::Relaxed);
        if was_declined {
            self.declined.store(self.declined.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// A call that was taken did not happen: the library refused it.
    pub fn put_back(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Every further call is asked for, and none of those before is known any more.
    pub fn clear(&self) {
        self.grant(0, 0, 0);
    }

    /// The next calls are by this arm, these of them not timed, and then these timed.
    fn grant(&self, arm: Arm, calls: u32, timed: u32) {
        self.arm.store(arm, Ordering::Relaxed);
        self.calls.store(calls, Ordering::Relaxed);
        self.timed.store(timed, Ordering::Relaxed);
        self.declined.store(0, Ordering::Relaxed);
    }

    /// What is left of both.
    fn left(&self) -> (u32, u32) {
        (self.calls.load(Ordering::Relaxed), self.timed.load(Ordering::Relaxed))
    }

    /// The arm and the seconds of the timed calls that were made, where so many were granted; and how many of them the
    /// method could not carry out.
    fn made(&self, granted: u32) -> (Arm, impl Iterator<Item = f64>, u32) {
        let (_, left) = self.left();
        let places = self.nanoseconds.get(left as usize..granted as usize).unwrap_or_default();
        let seconds = places.iter().map(|place| place.load(Ordering::Relaxed) as f64 * 1e-9);
        (self.arm.load(Ordering::Relaxed), seconds, self.declined.load(Ordering::Relaxed))
    }
}

/// What is to be done for the agreement of the ranks after a call.
#[derive(Debug, Clone, PartialEq)]
pub enum AgreementStep {
    /// Begin to sum these numbers over the ranks.
    Begin(Vec<f64>),
    /// Finish that, and hand the sums to [`Explorer::agreed`].
    Finish,
}

/// What exploring has cost and gained on one communicator, in seconds summed over its ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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

impl AddAssign for Account {
    fn add_assign(&mut self, other: Account) {
        self.collectives += other.collectives;
        self.gained += other.gained;
        self.spent += other.spent;
        self.budget += other.budget;
    }
}

/// What is known of the classes of one communicator, and what comes next.
#[derive(Debug)]
pub struct Explorer {
    layout: Layout,
    classes: Vec<Class>,
    /// The classes of each collective.
    of_collective: [Vec<ClassIndex>; Collective::ALL.len()],
    ledger: Ledger,
    agreement: Option<Agreement>,
    /// An agreement was found to be due at the end of the last call.
    is_due: Option<Cause>,
    /// Trials begun.
    trials: u64,
    /// Calls that were asked for, or timed.
    asked: u64,
    /// When `asked` is so much, what comes next is thought about again.
    next_plan: u64,
    /// When `asked` is so much, it is looked again whether an agreement that can wait is worth it.
    next_look: u64,
    /// Time in collectives when the last agreement began.
    time_at_agreement: f64,
    /// Time in collectives when the first trial was done that is to be agreed on.
    first_trial_done: f64,
    /// What a first call took beyond the factor that was reckoned with, at worst, in seconds.
    worst_first_call: f64,
    has_given_up: bool,
    /// This rank wishes to give up, but not all know yet.
    wants_to_give_up: bool,
    /// Seconds of this rank in agreements since it last told.
    took: f64,
}

/// A class of an explorer.
pub type ClassIndex = usize;

impl Explorer {
    /// `layout`: of the communicator's ranks; `budget`: the share of the time in collectives that exploring may
    /// cost, e.g. 0.01.
    pub fn new(layout: Layout, budget: f64) -> Self {
        Explorer {
            layout,
            classes: Vec::new(),
            of_collective: Default::default(),
            ledger: Ledger::new(budget),
            agreement: None,
            is_due: None,
            trials: 0,
            asked: 0,
            next_plan: 0,
            next_look: 0,
            time_at_agreement: 0.0,
            first_trial_done: 0.0,
            worst_first_call: FIRST_CALL_SECONDS,
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
        self.of_collective[class.call.collective as usize].push(self.classes.len());
        self.classes.push(class);
        (self.classes.len() - 1, alone)
    }

    /// What the first call of a class gets, which is added when it has ended: what was learned before.
    pub fn first_arm(
        &self,
        class: CallClass,
        candidates: Vec<Candidate>,
        learned: Option<&LearnedClass>,
    ) -> Arm {
        if self.has_given_up { 0 } else { Class::new(class, candidates, learned).current }
    }

    /// What the next call of a class gets, where [`CallsAlone`] has none. Asking twice gives the same.
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
        self.asked += 1 + self.classes[class].timed_alone();
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

    /// What an agreement takes, in seconds.
    fn agreement_seconds(&self) -> f64 {
        let by_class = |class: &Class| {
            class.seconds.or(class.expected_seconds).map(|seconds| seconds / agreements_of(class))
        };
        self.ledger.agreement_seconds().unwrap_or_else(|| {
            self.classes.iter().filter_map(by_class).reduce(f64::min).unwrap_or(NOMINAL_AGREEMENT)
        })
    }

    /// The time in collectives so far, in seconds, the mean of the ranks.
    fn time(&self) -> f64 {
        let agreement = self.agreement_seconds();
        self.classes.iter().map(|class| time(class, agreement)).sum()
    }

    /// The ranks find that nothing may be tried any more on this communicator, such as where two threads call on it: all
    /// learn it by the next agreement, and all calls after that are the default's.
    pub fn give_up(&mut self) {
        self.wants_to_give_up = true;
    }

    /// Whether all ranks have given up: everything is the default's.
    pub fn has_given_up(&self) -> bool {
        self.has_given_up
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
                let ratios = class.arms[arm].here;
                (ratios.trials > 0).then(|| LearnedMethod { method: method(arm), ratios })
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
                chosen: method(class.chosen() as usize),
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

/// Time of all calls of a class, in seconds; of one that nobody timed, as many agreements as its calls are taken for.
fn time(class: &Class, agreement_seconds: f64) -> f64 {
    class.time(class.expected_seconds.unwrap_or(agreements_of(class) * agreement_seconds))
}

/// How many agreements take as long as a call of the class, while no agreement was timed.
fn agreements_of(class: &Class) -> f64 {
    1.0 / CALLS_OF_NOTHING + class.call.size.first_bytes() as f64 / BYTES_OF_AN_AGREEMENT
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
    let run_seconds = f64::from(TIMED_RUN) * (TIMING_SECONDS + ASKING_SECONDS);
    let calls = run_seconds / (TIMING_SHARE * seconds);
    (calls as u64).max(class.calls() / 8).clamp(DEFAULT_SPACING, WIDEST_SPACING)
}
