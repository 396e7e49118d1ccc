//! In which order visits are made: as planned, and then those again that others disturbed.

use std::collections::{BTreeMap, VecDeque};

use records::{
    observation::{CollectiveCall, ObservationStatus},
    plan::Plan,
};

use super::work::OpenVisit;

/// What of a job's time may go to waiting for others to end and to making visits again, as a part of all that
/// has passed.
const PART: f64 = 0.25;
/// How often a visit is made again at most.
const MOST_TIMES: u32 = 2;
/// The first wait of a row of disturbed stretches, in seconds; each is twice as long as the one before.
const FIRST_WAIT: f64 = 0.5;
/// The longest.
const LONGEST_WAIT: f64 = 8.0;

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// A visit for the first time.
    Planned(OpenVisit),
    /// A visit that was disturbed.
    Again(OpenVisit),
}

/// The visits that are left, and what was made in the present stretch.
#[derive(Debug)]
pub struct VisitQueue {
    planned: VecDeque<OpenVisit>,
    again: VecDeque<OpenVisit>,
    /// By visit how often it was made again.
    times: BTreeMap<u32, u32>,
    /// By visit the observations of the present stretch, and the number of its next one.
    present: BTreeMap<u32, (u32, u32)>,
    /// Disturbed stretches in a row.
    disturbed: u32,
    waited_seconds: f64,
    again_seconds: f64,
}

impl VisitQueue {
    /// In the order given.
    pub fn new(planned: &[OpenVisit]) -> Self {
        VisitQueue {
            planned: planned.iter().copied().collect(),
            again: VecDeque::new(),
            times: BTreeMap::new(),
            present: BTreeMap::new(),
            disturbed: 0,
            waited_seconds: 0.0,
            again_seconds: 0.0,
        }
    }

    /// The next visit, `elapsed` seconds after the start of the job.
    pub fn next(&mut self, elapsed: f64) -> Option<Next> {
        if let Some(visit) = self.planned.pop_front() {
            return Some(Next::Planned(visit));
        }
        let visit = self.again.pop_front().filter(|_| self.allowance(elapsed) > 0.0)?;
        *self.times.entry(visit.index).or_default() += 1;
        Some(Next::Again(visit))
    }

    /// Seconds that may still go to disturbance.
    fn allowance(&self, elapsed: f64) -> f64 {
        PART * elapsed - self.waited_seconds - self.again_seconds
    }

    /// A visit was made again in so many seconds.
    pub fn made_again(&mut self, seconds: f64) {
        self.again_seconds += seconds;
    }

    /// An observation was made.
    pub fn made(&mut self, call: &CollectiveCall) {
        let (lost, next) = self.present.entry(call.visit).or_default();
        *lost += u32::from(call.status != ObservationStatus::Warmup);
        *next = call.repetition.saturating_add(1);
    }

    /// The present stretch is over; how long it should be waited for others to end. What was made in a
    /// disturbed one is made again; of several in a row, which last, the end is awaited.
    pub fn close(&mut self, disturbed: bool, plan: &Plan, elapsed: f64) -> Option<f64> {
        let present = std::mem::take(&mut self.present);
        if !disturbed {
            self.disturbed = 0;
            return None;
        }
        for (index, (lost, next_repetition)) in present {
            let times = self.times.get(&index).copied().unwrap_or_default();
            if lost > 0 && times < MOST_TIMES {
                let warmups = plan.visits[index as usize].warmups;
                let visit = OpenVisit { index, warmups, repetitions: lost, next_repetition };
                self.again.push_back(visit);
            }
        }
        self.disturbed += 1;
        let doublings = self.disturbed.checked_sub(2)?;
        let wait = FIRST_WAIT * 2.0_f64.powi(doublings.min(16) as i32);
        Some(wait.min(LONGEST_WAIT).min(self.allowance(elapsed))).filter(|wait| *wait > 0.0)
    }

    /// It was waited; gives how long in all.
    pub fn waited(&mut self, seconds: f64) -> f64 {
        self.waited_seconds += seconds;
        self.waited_seconds
    }

    /// Visits that stay disturbed.
    pub fn left(&self) -> usize {
        self.again.len()
    }
}

#[cfg(test)]
mod tests {
    use records::{Collective, Layout, Method, plan};

    use super::*;

    fn setting() -> (Plan, Vec<OpenVisit>) {
        let cell = plan::Cell {
            collective: Collective::Bcast,
            method: Method::Default,
            layout: Layout::flat(4),
            bytes: 8,
        };
        let visit = plan::Visit { cell: 0, warmups: 1, repetitions: 2, calls: 1 };
        let plan = Plan { seed: 1, ranks: 4, cells: vec![cell], visits: vec![visit; 3] };
        let visit = |index| OpenVisit { index, warmups: 1, repetitions: 2, next_repetition: 0 };
        (plan, (0..3).map(visit).collect())
    }

    fn call(visit: u32, repetition: u32) -> CollectiveCall {
        CollectiveCall {
            visit,
            collective: Collective::Bcast,
            method: Method::Default,
            ran: String::new(),
            layout: Layout::flat(4),
            bytes: 8,
            repetition,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds: 1e-3,
            status: if repetition.is_multiple_of(3) {
                ObservationStatus::Warmup
            } else {
                ObservationStatus::Ok
            },
        }
    }

    #[test]
    fn what_was_disturbed_is_made_again_at_the_end_but_not_for_ever() {
        let (plan, visits) = setting();
        let mut queue = VisitQueue::new(&visits);
        for visit in 0..3 {
            assert_eq!(queue.next(10.0), Some(Next::Planned(visits[visit as usize])));
            (0..3).for_each(|repetition| queue.made(&call(visit, repetition)));
            queue.close(visit == 1, &plan, 10.0);
        }
        for (times, next_repetition) in [(1, 3), (2, 6)] {
            let again = OpenVisit { index: 1, warmups: 1, repetitions: 2, next_repetition };
            assert_eq!(queue.next(10.0), Some(Next::Again(again)), "time {times}");
            let numbers = next_repetition..next_repetition + 3;
            numbers.for_each(|repetition| queue.made(&call(1, repetition)));
            queue.close(true, &plan, 10.0);
        }
        assert_eq!(queue.next(10.0), None);
    }

    #[test]
    fn what_lasts_is_waited_out_within_a_part_of_the_time() {
        let (plan, visits) = setting();
        let mut queue = VisitQueue::new(&visits);
        let mut waits = Vec::new();
        for _ in 0..6 {
            queue.made(&call(0, 1));
            let wait = queue.close(true, &plan, 20.0);
            waits.extend(wait);
            queue.waited(wait.unwrap_or_default());
        }
        assert_eq!(waits, [0.5, 1.0, 2.0, 1.5], "a quarter of 20 s");
        queue.planned.clear();
        assert_eq!((queue.next(20.0), queue.left()), (None, 5));
        assert_eq!(queue.close(false, &plan, 80.0), None);
        assert_eq!(queue.close(true, &plan, 80.0), None, "a hiccup is not waited for");
        assert_eq!(queue.close(true, &plan, 80.0), Some(0.5));
    }
}
