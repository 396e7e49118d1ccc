//! What is known of one method for the calls of one class.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use records::learned::LogRatios;

use super::Candidate;

/// A method that seemed slower is tried once more after so many times as many calls.
pub(super) const AGAIN_AFTER: u64 = 4;

/// Whether a method may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trying {
    Open,
    /// Not before there were so many calls of the class.
    RestsUntil(u64),
    /// Not before the default's time changes.
    Dropped,
    /// Never.
    Declined,
}

/// One method of a class.
#[derive(Debug)]
pub(super) struct ArmState {
    /// Nothing for the default.
    pub candidate: Option<Candidate>,
    /// A hash of the method: the same in all classes and on all ranks.
    pub identity: u64,
    /// Against the default, by earlier jobs.
    pub before: LogRatios,
    /// Against the default, by this one.
    pub here: LogRatios,
    /// Against what is used now.
    pub against: LogRatios,
    pub has_run: bool,
    /// How many times what is used took the longest call that was seen, while nothing better is known.
    pub seen_factor: Option<f64>,
    /// Whether it may be called more than once in a row: it is not slower by far.
    pub is_bounded: bool,
    /// Calls of a run in the next trial.
    pub run: u32,
    /// At so many trials it is looked whether it is to be chosen; looks before.
    pub next_look: u64,
    pub looks: u32,
    pub trying: Trying,
    /// Trials have shown it faster than it was in use.
    pub has_misled: bool,
}

impl ArmState {
    pub fn new(candidate: Option<Candidate>, before: LogRatios) -> Self {
        let mut hasher = DefaultHasher::new();
        candidate.as_ref().map(|candidate| &candidate.method).hash(&mut hasher);
        ArmState {
            candidate,
            identity: hasher.finish(),
            before,
            here: LogRatios::default(),
            against: LogRatios::default(),
            has_run: false,
            seen_factor: None,
            is_bounded: false,
            run: 1,
            next_look: 0,
            looks: 0,
            trying: Trying::Open,
            has_misled: false,
        }
    }

    /// Whether it may be tried after so many calls of the class.
    pub fn is_open(&self, calls: u64) -> bool {
        match self.trying {
            Trying::Open => true,
            Trying::RestsUntil(at) => calls >= at,
            Trying::Dropped | Trying::Declined => false,
        }
    }

    /// How it compares with the default: by this job, or else by earlier ones.
    pub fn shown(&self) -> LogRatios {
        if self.here.trials > 0 { self.here } else { self.before }
    }

    /// Compared anew, with another method than before.
    pub fn starts_anew(&mut self) {
        self.against = LogRatios::default();
        (self.looks, self.next_look) = (0, 0);
    }
}
