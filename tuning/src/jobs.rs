//! What several jobs are to measure, so that they can be compared job by job: a first job tries
//! every cell once or twice, and what it tells makes the plan that all the others repeat.

use std::collections::BTreeMap;

use choosing::samples::Samples;
use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    Collective, Layout, Method, Point,
    plan::{Cell, Plan, Visit},
};
use serde::{Deserialize, Serialize};

use crate::{costs::synchronisation, nrep};

/// Relative standard error of the mean up to which the smallest message is repeated.
const PRECISION: f64 = 0.01;
/// Fewest and most repetitions of a cell in one job.
const REPETITIONS: std::ops::RangeInclusive<u32> = 3..=200;
/// A method that takes so many times what the default takes is usually not measured again.
pub const SKIPPED_AFTER_TRIAL: f64 = 1.5;
/// Calls of each cell in the first job; of the default at the smallest size, which tells how
/// precise the others can be, there are more.
const TRIAL_CALLS: u32 = 2;
const TRIED_AT_SMALLEST: u32 = 10;

/// What a first job tries: every cell, smallest messages first, so that what a short budget does
/// not reach is the largest.
pub fn trial(mut cells: Vec<Cell>, ranks: u32, seed: u64) -> Plan {
    cells.sort_by_key(|cell| cell.point.bytes);
    let smallest = smallest_sizes(&cells);
    let visits = cells.iter().zip(0..).map(|(cell, index)| {
        let first = cell.method == Method::Default
            && smallest.get(&cell.point.line()) == Some(&cell.point.bytes);
        Visit {
            cell: index,
            warmups: 1,
            repetitions: if first { TRIED_AT_SMALLEST } else { TRIAL_CALLS },
            calls: 1,
        }
    });
    Plan { seed, ranks, visits: visits.collect(), cells }
}

/// The smallest size of each collective and layout.
pub fn smallest_sizes(cells: &[Cell]) -> BTreeMap<(Collective, Layout), u64> {
    let mut smallest = BTreeMap::new();
    for cell in cells {
        let least = smallest.entry(cell.point.line()).or_insert(cell.point.bytes);
        *least = cell.point.bytes.min(*least);
    }
    smallest
}

/// What each of the jobs is to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// What all of them measure, each in an order of its own.
    pub cells: Vec<Cell>,
    /// Observations of each cell in one job.
    pub repetitions: Vec<u32>,
    /// How long one job should take.
    pub expected_seconds: f64,
    /// What was left out and why.
    pub notes: Vec<String>,
}

/// The cells that the trial reached and that have a chance, with their least time there; and notes on the
/// others. What took over `skipped_after` times the default's time has no chance.
fn competitive(
    trial: &Plan,
    tried: &Samples,
    skipped_after: f64,
) -> (Vec<(Cell, f64)>, Vec<String>) {
    let least = |cell: &Cell, method: &Method| -> Option<f64> {
        let times = tried.get(cell.point, method)?;
        times.seconds().iter().copied().reduce(f64::min)
    };
    let mut notes = Vec::new();
    let mut hopeless = 0;
    let mut cells: Vec<(Cell, f64)> = Vec::new();
    for cell in &trial.cells {
        let times = (least(cell, &cell.method), least(cell, &Method::Default));
        match times {
            // What the user brings is measured in any case.
            (Some(own), Some(default))
                if own <= skipped_after * default || matches!(cell.method, Method::Plugin(_)) =>
            {
                cells.push((cell.clone(), own))
            }
            (Some(_), Some(_)) => hopeless += 1,
            _ => {}
        }
    }
    if hopeless > 0 {
        notes.push(format!(
            "{hopeless} cells skipped: in the trial they took over {skipped_after} times the default's \
             time"
        ));
    }
    let unreached = trial.cells.len() - cells.len() - hopeless;
    if unreached > 0 {
        notes.push(format!(
            "{unreached} cells skipped: the trial did not reach them, or the library ran another \
             method"
        ));
    }
    (cells, notes)
}

/// The cells that the trial reached and that have a chance, repeated as PGMPITuneLib predicts and
/// as `seconds` for one job allow, where an observation costs `overhead` seconds beside its call. What took
/// over `skipped_after` times the default's time has no chance.
pub fn repeated(
    trial: &Plan,
    tried: &Samples,
    seconds: f64,
    overhead: f64,
    skipped_after: f64,
) -> JobPlan {
    let (cells, mut notes) = competitive(trial, tried, skipped_after);
    let spend = seconds_to_spend(trial, tried);
    // Halved until it fits; the fewest repetitions are kept even where they don't fit.
    let counts = |scale: f64| -> Vec<u32> {
        let count = |(cell, least): &(Cell, f64)| {
            let spend = spend.get(&cell.point.line()).copied().unwrap_or(0.0);
            nrep::repetitions(spend * scale, *least, *REPETITIONS.start(), *REPETITIONS.end())
        };
        cells.iter().map(count).collect()
    };
    let expected = |counts: &[u32]| -> f64 {
        let cost = |((cell, least), count): (&(Cell, f64), &u32)| {
            // Two visits, each with a warm-up.
            let overhead = overhead.max(synchronisation(cell.point.layout.procs()));
            f64::from(count + 2) * (least + overhead)
        };
        cells.iter().zip(counts).map(cost).sum()
    };
    let mut scale = 1.0;
    let mut repetitions = counts(scale);
    while expected(&repetitions) > seconds && scale > 1e-6 {
        scale /= 2.0;
        repetitions = counts(scale);
    }
    let expected_seconds = expected(&repetitions);
    if expected_seconds > seconds {
        notes.push(format!(
            "{} observations of each cell need about {expected_seconds:.0} s in each job, more \
             than the {seconds:.0} s available; cells that are not reached will be listed",
            REPETITIONS.start()
        ));
    }
    let cells = cells.into_iter().map(|(cell, _)| cell).collect();
    JobPlan { cells, repetitions, expected_seconds, notes }
}

/// What the smallest message needs to be precise, per collective and layout.
fn seconds_to_spend(trial: &Plan, tried: &Samples) -> BTreeMap<(Collective, Layout), f64> {
    let spend = |((collective, layout), bytes): (_, u64)| {
        let times = tried.get(Point { collective, layout, bytes }, &Method::Default)?;
        Some(((collective, layout), nrep::seconds_per_cell(times.seconds(), PRECISION)?))
    };
    smallest_sizes(&trial.cells).into_iter().filter_map(spend).collect()
}

impl JobPlan {
    /// The plan of one job: half of each cell's observations in a first round, half in a second,
    /// both in random order, so that drift is not taken for a difference.
    pub fn plan(&self, ranks: u32, seed: u64) -> Plan {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut visits = Vec::new();
        for second in [false, true] {
            let mut order: Vec<u32> = (0..self.cells.len() as u32).collect();
            order.shuffle(&mut random);
            for cell in order {
                let all = self.repetitions[cell as usize];
                let repetitions = if second { all / 2 } else { all - all / 2 };
                visits.push(Visit { cell, warmups: 1, repetitions, calls: 1 });
            }
        }
        Plan { seed, ranks, cells: self.cells.clone(), visits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::observation::CollectiveCall;

    fn cell(method: &str, bytes: u64) -> Cell {
        Cell { point: Point::flat(Collective::Bcast, 8, bytes), method: method.parse().unwrap() }
    }

    fn call(method: &str, bytes: u64, seconds: f64) -> CollectiveCall {
        CollectiveCall::timed(&cell(method, bytes), seconds)
    }

    const SPLIT: &str = "mockup:bcast_as_scatter_allgather";

    fn cells() -> Vec<Cell> {
        [1024, 8]
            .into_iter()
            .flat_map(|bytes| [cell("default", bytes), cell(SPLIT, bytes)])
            .collect()
    }

    #[test]
    fn the_trial_begins_with_the_smallest_and_looks_longest_at_its_default() {
        let plan = trial(cells(), 8, 1);
        assert_eq!(plan.cells[0], cell("default", 8));
        let repetitions: Vec<u32> = plan.visits.iter().map(|visit| visit.repetitions).collect();
        assert_eq!(repetitions, [10, 2, 2, 2]);
    }

    #[test]
    fn what_is_hopeless_or_was_not_reached_is_left_out_and_told() {
        let rows = [
            call("default", 8, 1e-3),
            call("default", 8, 1.2e-3),
            call(SPLIT, 8, 5e-3),
            call("default", 1024, 20e-3),
        ];
        let of = |seconds, skipped_after| {
            let tried = Samples::gather(&rows, libraries::ran_as_asked);
            repeated(&trial(cells(), 8, 1), &tried, seconds, 0.0, skipped_after)
        };
        assert_eq!(of(60.0, f64::INFINITY).cells.len(), 3, "all that was reached");
        let repeated = of(60.0, SKIPPED_AFTER_TRIAL);
        assert_eq!(repeated.cells, [cell("default", 8), cell("default", 1024)]);
        assert_eq!(repeated.notes.len(), 2, "{:?}", repeated.notes);
        // Mean 1.1 ms, deviation 0.141 ms: 166 calls of 1.1 ms are 183 ms, and so are 10 of 20 ms.
        assert_eq!(repeated.repetitions, [183, 10]);
        let short = of(0.4, SKIPPED_AFTER_TRIAL);
        assert!(short.expected_seconds <= 0.4, "{short:?}");
        let plan = repeated.plan(8, 3);
        let all: u32 = plan.visits.iter().map(|visit| visit.repetitions).sum();
        assert_eq!(all, 193);
    }
}
