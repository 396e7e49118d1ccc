//! The same cells over and over, in jobs that differ by what is loaded.

use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::plan::{Cell, Plan, Visit};

use crate::{
    constants::constants,
    costs::{JobCosts, calls},
};

/// Plans of jobs that visit the same cells, each equally often in every job.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedPlan {
    /// One for each job.
    pub plans: Vec<Plan>,
    /// How long all of them together should take, in seconds.
    pub expected_seconds: f64,
}

/// Visits each cell at least once and at most 96 times, as often as `within` seconds allow all jobs
/// together: so often that the variances of what is seen of all cells, relative to their times, have
/// the least sum (Neyman's allocation: in proportion to the deviation over the root of the cost).
/// Short calls, which are noisy and cheap, are visited most; what is long is repeated where that is
/// sure. A cell's visits are spread evenly over its job; every job makes the same.
///
/// `seconds` are, for each job, what a call of each cell takes there; nothing where the job leaves
/// the cell out. `costs` tell what is spent beside the calls.
pub fn repeat(
    cells: &[Cell],
    seconds: &[Vec<Option<f64>>],
    ranks: u32,
    within: f64,
    seed: u64,
    costs: &JobCosts,
) -> RepeatedPlan {
    let of_cells: Vec<Cost> =
        (0..cells.len()).map(|cell| Cost::new(cells, seconds, cell, costs)).collect();
    let visits = as_many_as_fit(&of_cells, within);
    let order = spread(&visits, seed).concat();
    let plan = |seconds: &Vec<Option<f64>>| {
        let visit = |&cell: &usize| {
            let (warmups, repetitions) = calls(seconds[cell]?);
            Some(Visit { cell: cell as u32, warmups, repetitions, calls: 1 })
        };
        let visits = order.iter().filter_map(visit).collect();
        Plan { seed, ranks, cells: cells.to_vec(), visits }
    };
    RepeatedPlan {
        plans: seconds.iter().map(plan).collect(),
        expected_seconds: total(&of_cells, &visits),
    }
}

struct Cost {
    /// What a visit of a cell costs in all jobs together, in seconds.
    visit: f64,
    /// What visits are to be in proportion to.
    worth: f64,
}

impl Cost {
    fn new(cells: &[Cell], seconds: &[Vec<Option<f64>>], cell: usize, costs: &JobCosts) -> Self {
        let times = || seconds.iter().filter_map(|job| job[cell]);
        let procs = cells[cell].point.layout.procs();
        let visit =
            times().map(|seconds| costs.visit_seconds(procs, seconds, calls(seconds))).sum::<f64>();
        let variance = (constants().noisy_seconds / times().fold(f64::INFINITY, f64::min)).min(1.0);
        Cost { visit, worth: (variance / visit.max(f64::MIN_POSITIVE)).sqrt() }
    }
}

fn total(costs: &[Cost], visits: &[u32]) -> f64 {
    costs.iter().zip(visits).map(|(cost, &visits)| f64::from(visits) * cost.visit).sum()
}

/// How often each cell is visited.
fn as_many_as_fit(costs: &[Cost], within: f64) -> Vec<u32> {
    let visits = |scale: f64| -> Vec<u32> {
        costs
            .iter()
            .map(|cost| (scale * cost.worth).clamp(1.0, constants().max_visits) as u32)
            .collect()
    };
    let least_worth = costs.iter().map(|cost| cost.worth).fold(1.0, f64::min);
    let (mut fits, mut exceeds) = (0.0, 2.0 * constants().max_visits / least_worth.max(1e-6));
    // Far finer than one visit.
    for _ in 0..60 {
        let middle = (fits + exceeds) / 2.0;
        match total(costs, &visits(middle)) <= within {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    visits(fits)
}

/// The cells in the order of their visits, which are spread evenly over as many rounds as the cell
/// visited most has visits; a round's order is random.
fn spread(visits: &[u32], seed: u64) -> Vec<Vec<usize>> {
    let most = visits.iter().copied().max().unwrap_or_default();
    let mut rounds = vec![Vec::new(); most as usize];
    for (cell, &visits) in visits.iter().enumerate() {
        for nth in 0..visits {
            rounds[((2 * nth + 1) * most / (2 * visits)) as usize].push(cell);
        }
    }
    let mut random = Pcg64::seed_from_u64(seed);
    rounds.iter_mut().for_each(|round| round.shuffle(&mut random));
    rounds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use records::{Collective, Layout, Method, Point};

    use super::*;

    const UNKNOWN: JobCosts = JobCosts::expected(0.0);

    fn cells(count: usize) -> Vec<Cell> {
        let cell = |power| Cell {
            point: Point::new(Collective::Bcast, Layout::flat(8), 1_u64 << power),
            method: Method::Default,
        };
        (0..count).map(cell).collect()
    }

    fn visits(plan: &Plan) -> Vec<usize> {
        let of = |cell| plan.visits.iter().filter(|visit| visit.cell == cell).count();
        (0..plan.cells.len() as u32).map(of).collect()
    }

    #[test]
    fn short_calls_are_repeated_most_and_long_ones_where_there_is_time() {
        let seconds = [vec![Some(0.3), Some(2e-4), Some(0.05)]];
        let within = |within| {
            let RepeatedPlan { plans, expected_seconds } =
                repeat(&cells(3), &seconds, 8, within, 1, &UNKNOWN);
            (visits(&plans[0]), expected_seconds)
        };
        assert_eq!(within(0.0).0, [1, 1, 1], "each at least once");
        let (some, expected) = within(1.4);
        assert_eq!(some[0], 1, "{some:?}");
        assert!(some[1] > 10 && some[2] < some[1] / 4 && expected <= 1.4, "{some:?}: {expected} s");
        assert_eq!(within(200.0).0, [96; 3]);
        assert_eq!(repeat(&[], &seconds, 8, 1.0, 1, &UNKNOWN).expected_seconds, 0.0);
    }

    #[test]
    fn each_job_warms_up_by_what_it_runs_and_visits_what_it_loads() {
        let (long, short) = (Some(0.6), Some(2e-4));
        let seconds = [vec![long, short], vec![short, None]];
        let RepeatedPlan { plans, .. } = repeat(&cells(2), &seconds, 8, 1.4, 3, &UNKNOWN);
        assert_eq!(visits(&plans[0])[0], visits(&plans[1])[0], "what is compared is seen alike");
        assert_eq!(visits(&plans[1])[1], 0);
        let calls = |plan: &Plan, cell| {
            let first = plan.visits.iter().find(|visit| visit.cell == cell).unwrap();
            (first.warmups, first.repetitions)
        };
        assert_eq!((calls(&plans[0], 0), calls(&plans[1], 0)), ((0, 1), (1, 2)));
    }

    proptest! {
        #[test]
        fn more_time_never_takes_visits_away_and_what_fits_is_kept(
            times in prop::collection::vec(1e-5..1.0_f64, 1..40),
            within in 0.1..100.0_f64,
            seed: u64,
        ) {
            let cells = cells(times.len());
            let seconds = [times.iter().copied().map(Some).collect::<Vec<_>>()];
            let made = |within| repeat(&cells, &seconds, 8, within, seed, &UNKNOWN);
            let (less, more) = (made(within), made(2.0 * within));
            let (fewer, most) = (visits(&less.plans[0]), visits(&more.plans[0]));
            prop_assert!(fewer.iter().zip(&most).all(|(fewer, most)| fewer <= most));
            let once = made(0.0).expected_seconds;
            prop_assert!(less.expected_seconds <= within.max(once) * (1.0 + 1e-12));
            prop_assert_eq!(&less, &made(within));
        }

        /// Between two visits of a cell lie as many of the others as between any others.
        #[test]
        fn visits_are_spread_over_the_job(counts in prop::collection::vec(1..24_u32, 1..20)) {
            let order = spread(&counts, 5).concat();
            let most = *counts.iter().max().unwrap();
            for (cell, &count) in counts.iter().enumerate() {
                let visited = order.iter().filter(|&&visited| visited == cell).count();
                prop_assert_eq!(visited, count as usize);
                // Its own rounds, in terms of the cell that is in every one.
                let always = counts.iter().position(|&count| count == most).unwrap();
                let mut round = 0;
                let mut rounds = Vec::new();
                for &visited in &order {
                    round += u32::from(visited == always);
                    if visited == cell { rounds.push(round); }
                }
                let even = f64::from(most) / f64::from(count);
                prop_assert!(rounds.windows(2).all(|two| f64::from(two[1] - two[0]) < even + 2.1));
            }
        }
    }
}
