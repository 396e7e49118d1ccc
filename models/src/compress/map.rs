//! What every method costs over a grid.

use records::{Collective, Method};

use crate::{
    Point, Predictor,
    decide::{DecideError, seconds_of},
};

/// A decision function over a grid, with what every candidate costs at every point of it.
#[derive(Debug, Clone)]
pub struct DecisionGrid {
    pub(super) collective: Collective,
    pub(super) procs: Vec<u32>,
    pub(super) bytes: Vec<u64>,
    pub(super) methods: Vec<Method>,
    /// By procs, bytes and method: time over the least time, less one.
    penalties: Vec<f64>,
}

impl DecisionGrid {
    /// Predicts every method at every point of a grid; both sizes ascend.
    ///
    /// # Errors
    /// The grid is empty or does not ascend, a method has no prediction, or none is a candidate
    /// somewhere.
    pub fn new(
        predictor: &Predictor,
        collective: Collective,
        (procs, bytes): (&[u32], &[u64]),
        methods: &[Method],
    ) -> Result<Self, DecideError> {
        let ascends =
            procs.windows(2).all(|pair| pair[0] < pair[1]) && bytes.is_sorted_by(|a, b| a < b);
        if procs.is_empty() || bytes.is_empty() || !ascends {
            return Err(DecideError::Grid);
        }
        let mut penalties = Vec::with_capacity(procs.len() * bytes.len() * methods.len());
        for &procs in procs {
            for &bytes in bytes {
                let point = Point::flat(collective, procs, bytes);
                let seconds = seconds_of(predictor, point, methods)?;
                let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
                if !least.is_finite() {
                    let reason = "none of the methods is one there";
                    return Err(DecideError::NoCandidate { point, reason });
                }
                // One process: all cost nothing.
                let penalty = |seconds: f64| if least > 0.0 { seconds / least - 1.0 } else { 0.0 };
                penalties.extend(seconds.into_iter().map(penalty));
            }
        }
        Ok(DecisionGrid {
            collective,
            procs: procs.to_vec(),
            bytes: bytes.to_vec(),
            methods: methods.to_vec(),
            penalties,
        })
    }

    pub(super) fn penalty(&self, row: usize, column: usize, method: usize) -> f64 {
        self.penalties[(row * self.bytes.len() + column) * self.methods.len() + method]
    }

    pub(super) fn best(&self, row: usize, column: usize) -> usize {
        let start = (row * self.bytes.len() + column) * self.methods.len();
        let penalties = &self.penalties[start..start + self.methods.len()];
        penalties.iter().position(|penalty| *penalty <= 1e-12).unwrap_or(0)
    }

    /// Where a size begins that is nearer to the grid's size at `column` than to the one before.
    pub(super) fn border(&self, column: usize) -> u64 {
        let (below, above) = (self.bytes[column - 1], self.bytes[column]);
        let mean = (below.max(1) as f64 * above as f64).sqrt().ceil() as u64;
        mean.clamp(below + 1, above)
    }
}
