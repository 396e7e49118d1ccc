//! The decisive cells have their visits at even distances in time, whatever else goes on.
//!
//! What a message costs drifts over seconds: a hypervisor moves virtual processors, a clock rate
//! changes. What is looked at only in a part of the run shows that part's state, and differences of
//! what was measured at different times would be the drift's. So a *round* over all these cells
//! is due every fraction of a second, and each round counts as much as any other.

use super::{cells::SizedExperiment, visit::VisitTimes};

/// When the next round is due, and what its visits cost.
#[derive(Debug)]
pub struct Pace {
    tasks: Vec<(SizedExperiment, f64)>,
    /// Seconds from one round to the next, if a round does not take too much of them.
    period: f64,
    due: f64,
    /// When it ends.
    until: f64,
    /// The cell that a round begins with: each in turn, since the first one finds the ranks as
    /// what came before left them.
    turn: usize,
}

impl Pace {
    /// Rounds that a short measurement shall have.
    const ROUNDS: f64 = 64.0;
    /// Seconds between them: drifts last longer.
    const MAX_SECONDS: f64 = 0.25;
    /// What the rounds may take, as a part of the time.
    pub const SHARE: f64 = 0.2;
    /// What a repetition is taken for before the first.
    const UNKNOWN_SECONDS: f64 = 2e-3;

    /// For those of the cells that are decisive, from `now` to `until`, in seconds of the budget.
    pub fn new(cells: &[SizedExperiment], now: f64, until: f64) -> Self {
        let decisive = cells.iter().filter(|cell| cell.is_decisive());
        Pace {
            tasks: decisive.map(|cell| (*cell, Self::UNKNOWN_SECONDS)).collect(),
            period: ((until - now).max(0.0) / Self::ROUNDS).min(Self::MAX_SECONDS),
            due: now,
            until,
            turn: 0,
        }
    }

    /// Whether there are rounds after that time, too.
    pub fn goes_on_after(&self, seconds: f64) -> bool {
        seconds < self.until
    }

    /// The cells of a round, where one is due.
    pub fn round(&mut self, now: f64) -> Vec<usize> {
        if now < self.due {
            return Vec::new();
        }
        let count = self.tasks.len();
        self.turn += 1;
        (0..count).map(|place| (self.turn + place) % count).collect()
    }

    /// A cell, the visit to it, and about the seconds that takes.
    pub fn visit(&self, index: usize) -> (SizedExperiment, VisitTimes, f64) {
        let (cell, seconds) = self.tasks[index];
        let visit = VisitTimes::for_call_time(seconds);
        (cell, visit, f64::from(visit.repetitions()) * seconds)
    }

    /// What a repetition took.
    pub fn learn(&mut self, index: usize, seconds: f64) {
        let known = &mut self.tasks[index].1;
        *known = seconds.max((*known + seconds) / 2.0);
    }

    /// What was due from `begun` on has been done at `ended`. The next round is due a period after
    /// this one was; what was held up for longer is not caught up.
    pub fn rest(&mut self, begun: f64, ended: f64) {
        if begun < self.due {
            return;
        }
        let period = self.period.max((ended - begun) / Self::SHARE);
        let next = self.due + period;
        self.due = if next > ended { next } else { ended + period / 2.0 };
    }
}
