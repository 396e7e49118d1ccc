//! Which measurements could still change a decision.
//!
//! Of every method at every point it is believed something ([`Beliefs`]): first what the models
//! predict, then what was observed there and nearby. From that follows the *expected regret* of a
//! decision: how much slower it is expected to be than what might turn out better. Measured next
//! is what takes away most regret for its cost; a method that has no chance any more is not
//! measured again, a switching point is closed in on from both sides, and the measuring ends when
//! the regret left is small or the time is used up.

mod batch;
mod models;
mod prior;

use std::collections::{BTreeMap, BTreeSet};

pub use self::batch::Batch;
use self::prior::Priors;
pub use crate::costs::spent_seconds;
use choosing::{
    constants::constants as believing,
    expected::{Beliefs, MethodPrior, TrackIndex},
    samples::Samples,
};
use records::{Collective, Method, Point, plan::Cell, summary::Regret};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::{Weights, costs::JobCosts, plan::Expectation};

/// The state of the knowledge about a grid of cells.
pub struct TuningState {
    /// What is believed of them.
    pub beliefs: Beliefs,
    /// Indices of the cells of each track's points.
    cells: Vec<Vec<u32>>,
    /// Cells that are to be seen at least once, if there is time.
    wanted: BTreeSet<u32>,
    weights: Weights,
    costs: JobCosts,
    /// A cell costs as much as any other, whatever it takes.
    counts_cells: bool,
    /// What no method takes less than, as the logarithm of the seconds.
    limits: BTreeMap<Point, f64>,
    /// What was measured so far took so many seconds.
    spent: f64,
}

impl TuningState {
    /// What is known of `cells` after `samples`.
    pub fn new(cells: &[Cell], expected: Expectation<'_>, samples: &Samples) -> Self {
        let priors = Priors::new(cells, expected, samples);
        let mut by_method: BTreeMap<(Collective, &Method), Vec<u32>> = BTreeMap::new();
        for (cell, index) in cells.iter().zip(0..) {
            by_method.entry((cell.point.collective, &cell.method)).or_default().push(index);
        }
        // Of methods that are alike the first by name is chosen.
        let prior = |((_, method), indices): (&(Collective, &Method), &Vec<u32>)| {
            let points = indices.iter().map(|&index| cells[index as usize].point).collect();
            let belief = priors.belief(indices, points);
            MethodPrior { method: Method::clone(method), belief }
        };
        TuningState {
            beliefs: Beliefs::new(by_method.iter().map(prior), samples, libraries::is_run_of),
            cells: by_method.into_values().collect(),
            wanted: BTreeSet::new(),
            weights: Weights::default(),
            costs: JobCosts::expected(0.0),
            counts_cells: false,
            limits: BTreeMap::new(),
            spent: 0.0,
        }
    }

    /// Asks that these cells (by index) be seen at least once, if there is time when nothing is in
    /// doubt any more: what others decided for, so that what that costs can be reported.
    #[must_use]
    pub fn with_wanted_cells(self, cells: impl IntoIterator<Item = u32>) -> Self {
        TuningState { wanted: cells.into_iter().collect(), ..self }
    }

    /// Says what jobs cost beside their calls.
    #[must_use]
    pub fn with_costs(self, costs: JobCosts) -> Self {
        TuningState { costs, ..self }
    }

    /// Says that a cell costs as much as any other, as where a record is replayed, and not the time that it takes.
    #[must_use]
    pub fn with_cells_counted(self) -> Self {
        TuningState { counts_cells: true, ..self }
    }

    /// Says how many seconds the batches so far took.
    #[must_use]
    pub fn with_spent(self, spent: f64) -> Self {
        TuningState { spent, ..self }
    }

    /// Says below how many seconds no method can get at a point: what is as fast as that needs no rival.
    ///
    /// Limits rest on the calibration. Where a method of a collective was seen to be faster, those of
    /// this collective are not believed.
    #[must_use]
    pub fn with_limits(self, limits: &BTreeMap<Point, f64>) -> Self {
        let sound = limits.iter().filter(|(_, limit)| **limit > 0.0);
        let limits: BTreeMap<Point, f64> =
            sound.map(|(&point, limit)| (point, limit.ln())).collect();
        let of = &self.beliefs;
        let is_below = |&one: &TrackIndex| {
            let limit = limits.get(&of.point(one));
            of.is_seen(one)
                && limit.is_some_and(|limit| of.mean(one) < limit - believing().alike.ln_1p())
        };
        let passed: BTreeSet<Collective> = of
            .points()
            .filter(|(_, candidates)| candidates.iter().any(is_below))
            .map(|(point, _)| point.collective)
            .collect();
        let believed = limits.into_iter().filter(|(point, _)| !passed.contains(&point.collective));
        TuningState { limits: believed.collect(), ..self }
    }

    /// Says how much each point matters: the regret is weighted by it.
    #[must_use]
    pub fn with_weights(self, weights: Weights) -> Self {
        TuningState { weights, ..self }
    }

    /// The regret of the decisions: the expected gain of what might be better, relative; its mean
    /// is weighted.
    pub fn regret(&self) -> Regret {
        let worst = |candidates: &[TrackIndex]| {
            let others = self.challengers(candidates);
            others.map(|(_, regret)| regret).fold(0.0, f64::max)
        };
        let (mut sum, mut weights, mut greatest) = (0.0, 0.0, 0.0_f64);
        for (point, candidates) in self.beliefs.points() {
            let (regret, weight) = (worst(candidates), self.weights.at(point));
            sum += weight * regret;
            weights += weight;
            greatest = greatest.max(regret);
        }
        let mean = if weights > 0.0 { sum / weights } else { 0.0 };
        Regret { mean, greatest }
    }

    /// The other candidates, each with the regret of not taking it: the expected gain, where it is
    /// one, of it over the decided method, relative to that one's time, as far as it goes beyond what is
    /// alike.
    fn challengers<'s>(
        &'s self,
        candidates: &'s [TrackIndex],
    ) -> impl Iterator<Item = (TrackIndex, f64)> + 's {
        let of = &self.beliefs;
        let decided = of.decided(candidates);
        let is_default = of.is_default(decided);
        // Nothing gains more over a method that was seen than what that is above the limit.
        let limit = self.limits.get(&of.point(decided)).filter(|_| of.is_seen(decided));
        let room = limit.map_or(f64::INFINITY, |limit| of.mean(decided) - limit);
        let room = (room - believing().alike.ln_1p()).max(0.0);
        let others = candidates
            .iter()
            .filter(move |&&other| other != decided && !(is_default && of.is_default(other)));
        others.map(move |&other| {
            let lead = of.mean(decided) - of.mean(other) - believing().alike.ln_1p();
            let spread = (of.variance(decided) + of.variance(other)).sqrt();
            (other, expected_gain(lead, spread).min(room))
        })
    }
}

/// E[max(0, X)] for a normal X.
fn expected_gain(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let normal = Normal::standard();
    let z = mean / deviation;
    deviation * normal.pdf(z) + mean * normal.cdf(z)
}
