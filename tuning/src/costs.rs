//! What measuring costs: jobs, visits and calls.

use records::observation::CollectiveCall;
use serde::{Deserialize, Serialize};

use crate::constants::constants;

/// What a job that has run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobTime {
    /// Seconds beside its visits: to start and to end it.
    pub start: f64,
    /// Seconds of its visits.
    pub visits: f64,
    /// Seconds that it waited for others to leave its processors alone.
    pub waited: f64,
}

impl JobTime {
    /// All of it, in seconds.
    pub fn seconds(&self) -> f64 {
        self.start + self.visits + self.waited
    }
}

/// What jobs cost beside the calls that they make. Before any job has run that is expected from the
/// latency of the network; then it follows from what jobs took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JobCosts {
    /// Latency of a short message, in seconds.
    latency: f64,
    /// Jobs that recorded what they took.
    jobs: u32,
    /// Seconds that starting and ending them took, on average.
    start: f64,
    /// Seconds that their visits took beside the calls.
    beside_calls: f64,
    /// Seconds beside the calls that were expected.
    expected_beside_calls: f64,
}

/// Barriers around a call: one brings the ranks together, the other lets all of them end.
const BARRIERS: f64 = 2.0;

/// A year, in seconds: no job takes that.
const MAX_SECONDS: f64 = 3.2e7;

impl JobCosts {
    /// On a network where a short message takes so many seconds.
    pub const fn expected(latency: f64) -> Self {
        JobCosts { latency, jobs: 0, start: 0.0, beside_calls: 0.0, expected_beside_calls: 0.0 }
    }

    /// What is wrong with what was read from a file; nothing where it is sound: the field, and what would be right.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let seconds = [
            ("latency", self.latency),
            ("start", self.start),
            ("beside_calls", self.beside_calls),
            ("expected_beside_calls", self.expected_beside_calls),
        ];
        let is_wrong = |seconds: &f64| !(0.0..=MAX_SECONDS).contains(seconds);
        let (field, _) = seconds.into_iter().find(|(_, seconds)| is_wrong(seconds))?;
        Some((field, format!("expected seconds from 0 to {MAX_SECONDS}")))
    }

    /// Takes in a job that made these calls. Gives what it took, in seconds: where it did not tell, as much as
    /// is expected.
    pub fn take_in(&mut self, took: Option<JobTime>, rows: &[CollectiveCall]) -> f64 {
        let Some(took) = took else { return self.start_seconds() + self.visits_seconds(rows) };
        self.start += (took.start - self.start) / f64::from(self.jobs + 1);
        self.jobs += 1;
        let calls: f64 = rows.iter().map(|row| row.seconds).sum();
        self.beside_calls += (took.visits - calls).max(0.0);
        self.expected_beside_calls += self.expected_beside(rows);
        took.seconds()
    }

    /// What starting and ending a job takes, in seconds.
    pub fn start_seconds(&self) -> f64 {
        if self.jobs == 0 { constants().start_seconds } else { self.start }
    }

    /// What visits that made these calls cost, in seconds.
    pub fn visits_seconds(&self, rows: &[CollectiveCall]) -> f64 {
        let calls: f64 = rows.iter().map(|row| row.seconds).sum();
        calls + self.factor() * self.expected_beside(rows)
    }

    /// What a visit with so many warm-ups and repetitions of a call of `seconds` costs, in seconds.
    pub(crate) fn visit_seconds(
        &self,
        procs: u32,
        seconds: f64,
        (warmups, repetitions): (u32, u32),
    ) -> f64 {
        let calls = self.calls_seconds(procs, seconds, warmups + repetitions);
        self.factor() * constants().waking_seconds + calls
    }

    /// What the visits take that a call of `seconds` should have in a job of a turn, in seconds: short calls, which are
    /// noisy, are to be visited several times.
    pub(crate) fn turn_seconds(&self, procs: u32, seconds: f64) -> f64 {
        let noise = (constants().noisy_seconds / seconds).min(1.0);
        let visits = (constants().visits_of_short * noise).max(1.0);
        visits * self.visit_seconds(procs, seconds, calls(seconds))
    }

    /// What so many calls of `seconds` cost with the barriers around them, in seconds.
    pub(crate) fn calls_seconds(&self, procs: u32, seconds: f64, calls: u32) -> f64 {
        f64::from(calls) * (seconds + self.factor() * self.expected_beside_call(procs))
    }

    /// How many times as long as expected all that is not a call took so far.
    fn factor(&self) -> f64 {
        let factor = self.beside_calls / self.expected_beside_calls;
        if factor.is_finite() && factor > 0.0 { factor } else { 1.0 }
    }

    fn expected_beside(&self, rows: &[CollectiveCall]) -> f64 {
        let visits = rows.chunk_by(|one, next| one.visit == next.visit).count();
        let calls = rows.iter().map(|row| self.expected_beside_call(row.point.layout.procs()));
        constants().waking_seconds * visits as f64 + calls.sum::<f64>()
    }

    /// The barriers around a call are dissemination barriers: a message for each doubling of the ranks.
    fn expected_beside_call(&self, procs: u32) -> f64 {
        let rounds = f64::from(procs.max(1)).log2().ceil();
        (BARRIERS * rounds * self.latency).max(synchronisation(procs))
    }
}

/// What observations cost where nothing is known of the network and its jobs, starting these not counted, in
/// seconds.
pub fn spent_seconds(rows: &[CollectiveCall]) -> f64 {
    JobCosts::expected(0.0).visits_seconds(rows)
}

/// Warm-ups and repetitions of one visit. Short calls are noisy and cheap, long ones neither. A
/// visit's first call takes longer, as others have been called meanwhile (caches, connections that
/// were idle), and not of every method alike: of pipelines of 3 to 40 ms 5 to 10 % were seen, of
/// linear broadcasts of 70 to 400 ms up to 30 %, of 600 ms 2 to 5 %. What one visit's calls have in
/// common (where the scheduler put the ranks, say) is a third and more of the variance of a short call, so
/// that, as waking the ranks costs about a call, a third one tells less than a further visit does.
pub(crate) fn calls(cost_seconds: f64) -> (u32, u32) {
    match cost_seconds {
        cost if cost < constants().two_calls_seconds => (1, 2),
        cost if cost < constants().warm_up_seconds => (1, 1),
        _ => (0, 1),
    }
}

/// What the barriers before and after a call cost beside it at least, in seconds.
pub(crate) fn synchronisation(procs: u32) -> f64 {
    constants().synchronisation_seconds * f64::from(procs)
}
