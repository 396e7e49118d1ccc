//! Split-robustness really run: k calls in a row on a part of the data each, against one call on
//! all of it, in one job.
//!
//! PGMPI predicts k times the time of one call; calls in a row may overlap, or wait for each other.

use std::collections::BTreeMap;

use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    Method, Point,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    violations::{Class, FasterAlternative, Violation},
};
use statistics::median;

/// Rounds in which both are observed, once each in random order, and observations of a round.
const ROUNDS: u32 = 4;
const REPETITIONS: u32 = 3;
/// More calls are not run: the guideline is then broken in a way of its own.
const MAX_CALLS: u32 = 64;

/// What is to be run for the splits among these violations; nothing where there are none. The
/// second number tells how many have too many calls.
pub fn plan(violations: &[Violation], ranks: u32, seed: u64) -> (Option<Plan>, usize) {
    let mut plan = Plan { seed, ranks, cells: Vec::new(), visits: Vec::new() };
    let mut visits = Vec::new();
    let mut left_out = 0;
    for violation in violations {
        let Some((calls, part)) = split(violation) else { continue };
        if calls > MAX_CALLS {
            left_out += 1;
            continue;
        }
        for (bytes, calls) in [(violation.point.bytes, 1), (part, calls)] {
            let cell = plan.cells.len() as u32;
            plan.cells
                .push(Cell { point: Point { bytes, ..violation.point }, method: Method::Default });
            visits.push(Visit { cell, warmups: 1, repetitions: REPETITIONS, calls });
        }
    }
    let mut random = Pcg64::seed_from_u64(seed);
    for _ in 0..ROUNDS {
        visits.shuffle(&mut random);
        plan.visits.extend_from_slice(&visits);
    }
    ((!plan.visits.is_empty()).then_some(plan), left_out)
}

fn split(violation: &Violation) -> Option<(u32, u64)> {
    match violation.better {
        FasterAlternative::Calls { calls, bytes } if violation.class == Class::SplitRobustness => {
            Some((calls, bytes))
        }
        _ => None,
    }
}

/// Books what the k calls of each split took, and what they gained against one call in the same
/// job.
pub fn book(violations: &mut [Violation], plan: &Plan, rows: &[CollectiveCall]) {
    let mut times: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    let counts = |row: &&CollectiveCall| {
        !matches!(row.status, ObservationStatus::Warmup | ObservationStatus::Disturbed)
    };
    for row in rows.iter().filter(counts) {
        let Some(visit) = plan.visits.get(row.visit as usize) else { continue };
        times.entry((visit.cell as usize, visit.calls)).or_default().push(row.seconds);
    }
    let of_pair = |whole: usize, calls: u32| {
        let seconds = |cell, calls| median(times.get(&(cell, calls))?);
        Some((seconds(whole, 1)?, seconds(whole + 1, calls)?))
    };
    for violation in violations {
        let Some((calls, part)) = split(violation) else { continue };
        let place = |cell: &Cell, bytes| cell.point == Point { bytes, ..violation.point };
        let pairs = plan.cells.chunks(2);
        let found = pairs.into_iter().position(|pair| {
            place(&pair[0], violation.point.bytes)
                && pair.get(1).is_some_and(|cell| place(cell, part))
        });
        if let Some((whole, in_calls)) = found.and_then(|pair| of_pair(2 * pair, calls)) {
            violation.calls_seconds = Some(in_calls);
            violation.calls_gain = Some(whole / in_calls - 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;
    use crate::testing::call;

    fn split_of(bytes: u64, calls: u32, part: u64) -> Violation {
        Violation {
            class: Class::SplitRobustness,
            point: Point::flat(Collective::Bcast, 8, bytes),
            better: FasterAlternative::Calls { calls, bytes: part },
            seconds: 2.0,
            better_seconds: 1.0,
            gain: 1.0,
            p_value: None,
            corrected_p_value: None,
            calls_seconds: None,
            calls_gain: None,
            gains_less_than_a_barrier: None,
        }
    }

    #[test]
    fn one_call_and_k_calls_are_run_in_turn_and_booked() {
        let mut violations =
            vec![split_of(100, 4, 30), split_of(1000, 100, 10), split_of(64, 2, 32)];
        let (plan, left_out) = plan(&violations, 8, 5);
        let plan = plan.unwrap();
        assert_eq!((plan.cells.len(), plan.visits.len(), left_out), (4, 16, 1));
        let mut rows = Vec::new();
        for (visit, index) in plan.visits.iter().zip(0..) {
            let cell = &plan.cells[visit.cell as usize];
            for (seconds, status) in
                [(9.0, ObservationStatus::Warmup), (1.0, ObservationStatus::Ok)]
            {
                // A call takes as many seconds as it has bytes; calls in a row save a tenth.
                let seconds = seconds * cell.point.bytes as f64 * f64::from(visit.calls);
                let seconds = if visit.calls > 1 { seconds * 0.9 } else { seconds };
                let row = call("default", "", cell.point.bytes, seconds);
                rows.push(CollectiveCall { visit: index, status, ..row });
            }
        }
        book(&mut violations, &plan, &rows);
        let gains: Vec<Option<f64>> = violations.iter().map(|one| one.calls_gain).collect();
        assert!((gains[0].unwrap() - (100.0 / 108.0 - 1.0)).abs() < 1e-9, "{gains:?}");
        assert_eq!((gains[1], violations[1].calls_seconds), (None, None));
        assert!((violations[2].calls_seconds.unwrap() - 57.6).abs() < 1e-9);
        assert_eq!(super::plan(&[], 8, 5), (None, 0));
    }
}
