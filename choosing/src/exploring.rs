//! Choice while an application runs: which method the next call gets, what is tried, and what trying may cost.
//!
//! An [`Explorer`] belongs to one communicator, and each of its ranks has one. They come to the same decisions without
//! a message at each call: all calls of a communicator come in one order on all its ranks, so that an [`Explorer`]
//! counts calls, and decides on nothing but counts and times *summed over the ranks*. These sums it asks for now and
//! then ([`Explorer::agreement`]): one small nonblocking reduction of doubles, begun after one call and finished
//! after a later one.
//!
//! Nothing here calls MPI, reads a clock, or draws random numbers that differ between ranks.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use records::{Collective, Layout, Method, learned::LearnedClass};

/// Message sizes that are one to the explorer: nothing, or from a power of two up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// How many classes there are.
    pub const COUNT: usize = 65;

    /// The class of a message.
    pub fn of(bytes: u64) -> Self {
        SizeClass(bytes.checked_ilog2().map_or(0, |power| power as u8 + 1))
    }

    /// From 0 to [`Self::COUNT`] - 1, by size.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The least message of the class, in bytes.
    pub fn first_bytes(self) -> u64 {
        self.0.checked_sub(1).map_or(0, |power| 1 << power)
    }

    /// The largest.
    pub fn last_bytes(self) -> u64 {
        self.0.checked_sub(1).map_or(0, |power| u64::MAX >> (63 - power))
    }
}

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
    classes: Vec<Arc<CallsAlone>>,
}

/// A class of an explorer.
pub type ClassIndex = usize;

impl Explorer {
    /// `layout`: of the communicator's ranks; `budget`: the share of the time in collectives that exploring may
    /// cost, e.g. 0.01.
    pub fn new(layout: Layout, budget: f64) -> Self {
        let _ = budget;
        Explorer { layout, classes: Vec::new() }
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
        let _ = (class, candidates, learned);
        let alone = Arc::new(CallsAlone::default());
        self.classes.push(Arc::clone(&alone));
        (self.classes.len() - 1, alone)
    }

    /// What the next call of a class gets, where [`CallsAlone::take`] has none. Asking twice gives the same.
    pub fn next(&self, class: ClassIndex) -> Turn {
        let _ = class;
        Turn { arm: 0, is_timed: true }
    }

    /// The call of the last [`Self::next`] has ended. It must not be told of one that the library refused.
    pub fn ended(&mut self, class: ClassIndex, end: CallEnd) {
        let _ = (class, end);
    }

    /// What is to be done for the agreement, after [`Self::ended`].
    pub fn agreement(&mut self) -> AgreementStep {
        AgreementStep::Nothing
    }

    /// What the last step of the agreement took on this rank, in seconds.
    pub fn agreement_took(&mut self, seconds: f64) {
        let _ = seconds;
    }

    /// The sums over the ranks of the numbers of the last [`AgreementStep::Begin`].
    pub fn agreed(&mut self, sums: &[f64]) {
        let _ = sums;
    }

    /// The ranks find that nothing may be tried any more on this communicator, such as where two threads call on it: all
    /// learn it by the next agreement, and all calls after that are the default's.
    pub fn give_up(&mut self) {}

    /// What has been learned of each class.
    pub fn learned(&self) -> Vec<LearnedClass> {
        Vec::new()
    }

    /// What exploring has cost and gained so far.
    pub fn account(&self) -> Account {
        Account::default()
    }
}
