//! In which order visits are made: as planned, and then those again that others disturbed.

use std::collections::{BTreeMap, VecDeque};

use records::{
    observation::{CollectiveCall, ObservationStatus},
    plan::Plan,
};

use super::work::OpenVisit;
use crate::disturbance::allowance::DisturbanceAllowance;

/// How often a visit is made again at most.
const MAX_TIMES: u32 = 2;
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
    allowance: DisturbanceAllowance,
}

impl VisitQueue {
    /// In the order given.
    pub fn new(planned: &[OpenVisit]) -> Self {
        VisitQueue {
            planned: planned.iter().copied().collect(),
            again: VecDeque::new(),
            times: BTreeMap::new(),
            present: BTreeMap::new(),
            allowance: DisturbanceAllowance::default(),
        }
    }

    /// The next visit, `elapsed` seconds after the start of the job.
    pub fn next(&mut self, elapsed: f64) -> Option<Next> {
        if let Some(visit) = self.planned.pop_front() {
            return Some(Next::Planned(visit));
        }
        let visit = self.again.pop_front().filter(|_| self.allowance.left(elapsed) > 0.0)?;
        *self.times.entry(visit.index).or_default() += 1;
        Some(Next::Again(visit))
    }

    /// A visit was made again in so many seconds.
    pub fn made_again(&mut self, seconds: f64) {
        self.allowance.made_again(seconds);
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
        let wait = self.allowance.close(disturbed, elapsed);
        if !disturbed {
            return None;
        }
        for (index, (lost, next_repetition)) in present {
            let times = self.times.get(&index).copied().unwrap_or_default();
            if lost > 0 && times < MAX_TIMES {
                let warmups = plan.visits[index as usize].warmups;
                let visit = OpenVisit { index, warmups, repetitions: lost, next_repetition };
                self.again.push_back(visit);
            }
        }
        wait
    }

    /// It was waited; gives how long in all.
    pub fn waited(&mut self, seconds: f64) -> f64 {
        self.allowance.waited(seconds)
    }

    /// Visits that stay disturbed.
    pub fn left(&self) -> usize {
        self.again.len()
    }
}

#[cfg(test)]
mod tests {
    use records::{Collective, Method, Point, plan};

    use super::*;

    fn setting() -> (Plan, Vec<OpenVisit>) {
        let cell =
            plan::Cell { point: Point::flat(Collective::Bcast, 4, 8), method: Method::Default };
        let visit = plan::Visit { cell: 0, warmups: 1, repetitions: 2, calls: 1 };
        let plan = Plan { seed: 1, ranks: 4, cells: vec![cell], visits: vec![visit; 3] };
        let visit = |index| OpenVisit { index, warmups: 1, repetitions: 2, next_repetition: 0 };
        (plan, (0..3).map(visit).collect())
    }

    fn call(visit: u32, repetition: u32) -> CollectiveCall {
        CollectiveCall {
            visit,
            point: Point::flat(Collective::Bcast, 4, 8),
            method: Method::Default,
            ran: String::new(),
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
