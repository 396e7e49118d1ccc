//! One method over a range of sizes unless a change is proven: where the choices of a layout leave a method for a few
//! sizes and come back to it, it holds there, too, unless it is surely slower or by more than what is no harm.

use records::{Method, Point};
use verification::harm;

use super::{TrackIndex, TuningState};
use crate::constants::constants;

/// What can be loaded at a point, the default, and what is decided for.
pub(super) struct Decided {
    pub point: Point,
    pub can_be_had: Vec<TrackIndex>,
    pub default: TrackIndex,
    pub decided: TrackIndex,
}

impl TuningState {
    /// Takes out of `decided`, ascending, the islands that nothing proves.
    pub(super) fn join_over_islands(&self, decided: &mut [Decided]) {
        let line = |one: &Decided| one.point.line();
        for sizes in decided.chunk_by_mut(|one, next| line(one) == line(next)) {
            // What costs least first: each of these makes the islands fewer.
            while let Some((island, method)) = self.least_proven(sizes) {
                for one in &mut sizes[island] {
                    if let Some(other) = self.with(one, &method) {
                        one.decided = other;
                    }
                }
            }
        }
    }

    /// The island that costs least to give up among those that nothing proves, with the method around it.
    fn least_proven(&self, sizes: &[Decided]) -> Option<(std::ops::Range<usize>, Method)> {
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        for (index, one) in sizes.iter().enumerate() {
            match runs.last_mut() {
                Some(last)
                    if self.method(sizes[last.start].decided) == self.method(one.decided) =>
                {
                    last.end = index + 1;
                }
                _ => runs.push(index..index + 1),
            }
        }
        let method = |run: &std::ops::Range<usize>| self.method(sizes[run.start].decided);
        let islands = runs.windows(3).filter_map(|three| {
            let [before, island, after] = three else { return None };
            let around = method(before);
            if around != method(after) || *around == Method::Default {
                return None;
            }
            let lost = self.lost(&sizes[island.clone()], around)?;
            Some((lost, island.clone(), around.clone()))
        });
        let (_, island, around) = islands.min_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
        Some((island, around))
    }

    /// What is expected to be lost, as a logarithm on average, by taking a method at these sizes; nothing where it cannot
    /// be had at all of them, or loses surely, or so much that it would do harm.
    fn lost(&self, sizes: &[Decided], method: &Method) -> Option<f64> {
        let (mut sum, mut variances) = (0.0, 0.0);
        for one in sizes {
            let other = self.with(one, method)?;
            let belief = |of: TrackIndex| {
                let belief = &self.tracks[of.track].belief;
                (belief.mean(of.index), belief.variance(of.index))
            };
            let ((mean, variance), (decided, doubt)) = (belief(other), belief(one.decided));
            sum += mean - decided;
            variances += variance + doubt;
        }
        let lost = sum / sizes.len() as f64;
        let is_proven = sum > constants().surely * f64::sqrt(variances);
        (!is_proven && lost <= harm::TOLERANCE.ln_1p()).then_some(lost)
    }

    /// A method at a point, where it can be had there.
    fn with(&self, at: &Decided, method: &Method) -> Option<TrackIndex> {
        at.can_be_had.iter().copied().find(|&one| self.method(one) == method)
    }
}
