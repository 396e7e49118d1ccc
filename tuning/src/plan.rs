//! What to measure, in which order, within a budget.

use std::collections::{BTreeMap, BTreeSet};

use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    Collective, Layout, Method, Point,
    plan::{Cell, Plan, Visit},
};

use crate::{
    Weights,
    constants::constants,
    costs::{JobCosts, calls},
};

mod hopeful;
mod memory;
mod methods_of;
mod repeated;
mod sizes;
mod thinned;

pub use hopeful::hopeful;
pub use memory::{CutSizes, cut, has_memory_for, rank_bytes};
pub use methods_of::MethodsOf;
pub use repeated::{RepeatedPlan, repeat};
use sizes::fewer;
pub use sizes::{left_out, spread};
pub use thinned::thinned;

/// The points to measure and the methods to compare there.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Ranks of the job.
    pub ranks: u32,
    pub collectives: Vec<Collective>,
    /// Communicators' ranks and nodes, ascending.
    pub layouts: Vec<Layout>,
    /// Message sizes, ascending.
    pub sizes: Vec<u64>,
    /// Segment sizes of what the default is compared with; 0 is unsegmented.
    pub segments: Vec<u64>,
    /// What the default is compared with.
    pub methods: MethodsOf,
    /// How much each point matters; one without weight is left out.
    pub weights: Weights,
    /// Methods beside these, each with its collective.
    pub others: Vec<(Collective, Method)>,
    /// Bytes of memory that a rank may use, where that is known; points that need more are left out.
    pub rank_bytes: Option<u64>,
}

impl Grid {
    /// Communicator sizes, ascending.
    pub fn procs(&self) -> Vec<u32> {
        let procs: BTreeSet<u32> = self.layouts.iter().map(|layout| layout.procs()).collect();
        procs.into_iter().collect()
    }
}

/// What each model says of one cell, in seconds; always the same models in the same order, none where
/// one has nothing to say.
pub type Expectation<'a> = &'a dyn Fn(&Cell) -> Vec<Option<f64>>;

/// The greatest of what the models say.
fn greatest(times: &[Option<f64>]) -> Option<f64> {
    times.iter().copied().flatten().reduce(f64::max)
}

/// The least of what the models say.
fn least(times: &[Option<f64>]) -> Option<f64> {
    times.iter().copied().flatten().reduce(f64::min)
}

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// Every method at every point, in this many rounds.
    Exhaustive {
        /// How often each cell is visited.
        rounds: u32,
    },
    /// As much as fits in this many seconds: what the models hold for hopeless is left out first,
    /// then rounds, then every second message size.
    Within {
        /// The budget.
        seconds: f64,
    },
}

/// A plan, and what to expect of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub plan: Plan,
    /// How long it should take, in seconds.
    pub expected_seconds: f64,
    /// What was left out and why.
    pub notes: Vec<String>,
}

/// A method is hopeless where every model says that it takes this many times what the best takes.
const SKIPPED_BY_MODELS: f64 = 2.0;
/// Fewest and most rounds within a budget: two make the two halves of the observations.
const ROUNDS: std::ops::RangeInclusive<u32> = 2..=6;
/// Calls that are very short are noisy: in every round of an exhaustive plan their cells are visited
/// twice.
const VISITS_OF_VERY_SHORT: usize = 2;
/// Fewest message sizes to which a budget may thin the grid.
pub const FEWEST_SIZES: usize = 4;

/// Makes a plan, by what calls are expected to take and by what jobs cost beside them. The order is random, fixed by
/// the seed: drift is not taken for a difference.
pub fn make(
    grid: &Grid,
    extent: Extent,
    seed: u64,
    expected: Expectation<'_>,
    costs: JobCosts,
) -> Planned {
    let all = cells(grid, &grid.sizes);
    match extent {
        Extent::Exhaustive { rounds } => {
            let costed = Costed::new(all, expected).with_costs(costs);
            let rounds = costed.all(rounds);
            costed.planned(grid.ranks, rounds, seed, Vec::new())
        }
        Extent::Within { seconds } => within(grid, seconds, seed, all, expected, costs),
    }
}

fn within(
    grid: &Grid,
    seconds: f64,
    seed: u64,
    all: Vec<Cell>,
    expected: Expectation<'_>,
    costs: JobCosts,
) -> Planned {
    let mut notes = Vec::new();
    let mut sizes = grid.sizes.clone();
    let count = all.len();
    let mut hopeful = Costed::new(competitive(all, expected), expected).with_costs(costs);
    if hopeful.cells.len() < count {
        let left = count - hopeful.cells.len();
        notes.push(format!(
            "{left} of {count} cells skipped: every model predicts over {SKIPPED_BY_MODELS} times the best \
             method's time"
        ));
    }
    loop {
        let fitting = ROUNDS
            .rev()
            .map(|rounds| hopeful.all(rounds))
            .find(|all| hopeful.seconds(all) <= seconds);
        if let Some(rounds) = fitting {
            return hopeful.planned(grid.ranks, rounds, seed, notes);
        }
        let coarser = fewer(&sizes, sizes.len());
        if coarser.len() < FEWEST_SIZES {
            let fewest = hopeful.all(*ROUNDS.start());
            notes.push(format!(
                "even the coarsest grid ({} message sizes, {} visits of each method) needs about {:.1} times \
                 the budget; points that are not reached will be listed",
                sizes.len(),
                ROUNDS.start(),
                hopeful.seconds(&fewest) / seconds,
            ));
            return hopeful.planned(grid.ranks, fewest, seed, notes);
        }
        notes.push(format!(
            "message sizes thinned from {} to {}: the budget is too short for all",
            sizes.len(),
            coarser.len()
        ));
        sizes = coarser;
        hopeful.retain(|cell| sizes.contains(&cell.point.bytes));
    }
}

/// Every method at every point with a weight, the default first.
pub fn cells(grid: &Grid, sizes: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &collective in &grid.collectives {
        for &layout in &grid.layouts {
            for bytes in point_sizes(grid, sizes, collective, layout) {
                let point = Point { collective, layout, bytes };
                if !has_memory_for(point, grid.rank_bytes) {
                    continue;
                }
                let compared = grid.methods.at(point, &grid.segments);
                let others = grid.others.iter().filter(|(of, _)| *of == collective);
                let others = others.map(|(_, method)| method.clone());
                let methods = std::iter::once(Method::Default).chain(compared).chain(others);
                cells.extend(methods.map(|method| Cell { point, method }));
            }
        }
    }
    cells
}

/// The sizes with a weight at which a collective is measured with a layout.
fn point_sizes<'a>(
    grid: &'a Grid,
    sizes: &'a [u64],
    collective: Collective,
    layout: Layout,
) -> impl Iterator<Item = u64> + Clone + 'a {
    // A barrier has no message.
    let sizes = if collective == Collective::Barrier { &[0] } else { sizes };
    let weighted =
        move |bytes: &u64| grid.weights.at(Point { collective, layout, bytes: *bytes }) != 0.0;
    sizes.iter().copied().filter(weighted)
}

/// What two calls of every default should take, in seconds: as much as the slowest method that a
/// model knows at its point.
pub fn defaults_seconds(cells: &[Cell], expected: Expectation<'_>, costs: &JobCosts) -> f64 {
    let costed = Costed::new(cells.to_vec(), expected);
    let defaults = costed.cells.iter().filter(|(cell, _)| cell.method == Method::Default);
    defaults.map(|(cell, cost)| costs.calls_seconds(cell.point.layout.procs(), *cost, 2)).sum()
}

/// What a call of each cell should take at most, in seconds: what no model knows as much as the
/// slowest that one knows at its point.
pub fn expected_seconds(cells: &[Cell], expected: Expectation<'_>) -> Vec<f64> {
    Costed::new(cells.to_vec(), expected).cells.into_iter().map(|(_, cost)| cost).collect()
}

/// Skips methods that no model finds competitive. The default stays, and what no model knows.
fn competitive(cells: Vec<Cell>, expected: Expectation<'_>) -> Vec<Cell> {
    let times: Vec<_> = cells.iter().map(expected).collect();
    let mut bounds: BTreeMap<Point, f64> = BTreeMap::new();
    for (cell, times) in cells.iter().zip(&times) {
        if let Some(high) = greatest(times) {
            let bound = bounds.entry(cell.point).or_insert(high);
            *bound = bound.min(high);
        }
    }
    let has_chance =
        |cell: &Cell, times: &[Option<f64>]| match (least(times), bounds.get(&cell.point)) {
            (Some(low), Some(bound)) => low <= SKIPPED_BY_MODELS * bound,
            _ => true,
        };
    let hopeful = cells.into_iter().zip(times).filter(|(cell, times)| has_chance(cell, times));
    hopeful.map(|(cell, _)| cell).collect()
}

/// Cells with what a call of each should cost at most, in seconds.
struct Costed {
    cells: Vec<(Cell, f64)>,
    costs: JobCosts,
}

impl Costed {
    /// A method that no model knows is taken for as slow as the slowest that one knows there.
    fn new(cells: Vec<Cell>, expected: Expectation<'_>) -> Self {
        let known: Vec<Option<f64>> = cells.iter().map(|cell| greatest(&expected(cell))).collect();
        let mut slowest: BTreeMap<Point, f64> = BTreeMap::new();
        for (cell, known) in cells.iter().zip(&known) {
            let slowest = slowest.entry(cell.point).or_default();
            *slowest = slowest.max(known.unwrap_or_default());
        }
        let costed = cells.into_iter().zip(known).map(|(cell, known)| {
            let cost = known.unwrap_or_else(|| slowest[&cell.point]);
            (cell, cost)
        });
        Costed { cells: costed.collect(), costs: JobCosts::expected(0.0) }
    }

    /// With what jobs cost beside their calls.
    fn with_costs(self, costs: JobCosts) -> Self {
        Costed { costs, ..self }
    }

    fn retain(&mut self, keep: impl Fn(&Cell) -> bool) {
        self.cells.retain(|(cell, _)| keep(cell));
    }

    /// What a call of a cell costs, in seconds.
    fn cost(&self, cell: u32) -> f64 {
        self.cells[cell as usize].1
    }

    /// What a visit costs, in seconds.
    fn visit_seconds(&self, cell: u32) -> f64 {
        let (Cell { point: Point { layout, .. }, .. }, cost) = &self.cells[cell as usize];
        self.costs.visit_seconds(layout.procs(), *cost, calls(*cost))
    }

    /// All cells in so many rounds.
    fn all(&self, rounds: u32) -> Vec<Vec<u32>> {
        let visits = |cell: u32| match self.cost(cell) {
            cost if cost < constants().very_short_seconds => VISITS_OF_VERY_SHORT,
            _ => 1,
        };
        let cells = 0..self.cells.len() as u32;
        let of_round = cells.flat_map(|cell| std::iter::repeat_n(cell, visits(cell))).collect();
        vec![of_round; rounds as usize]
    }

    /// What these cells in each round cost, in seconds.
    fn seconds(&self, rounds: &[Vec<u32>]) -> f64 {
        rounds.iter().flatten().map(|&cell| self.visit_seconds(cell)).sum()
    }

    /// These cells in each round, in random order.
    fn planned(self, ranks: u32, rounds: Vec<Vec<u32>>, seed: u64, notes: Vec<String>) -> Planned {
        let expected_seconds = self.seconds(&rounds);
        let mut random = Pcg64::seed_from_u64(seed);
        let mut visits = Vec::new();
        for mut order in rounds {
            order.shuffle(&mut random);
            visits.extend(order.into_iter().map(|cell| {
                let (warmups, repetitions) = calls(self.cost(cell));
                Visit { cell, warmups, repetitions, calls: 1 }
            }));
        }
        let cells = self.cells.into_iter().map(|(cell, _)| cell).collect();
        Planned { plan: Plan { seed, ranks, cells, visits }, expected_seconds, notes }
    }
}

#[cfg(test)]
mod tests;
