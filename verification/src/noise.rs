//! How noisy observations are.

use std::collections::BTreeMap;

use records::plan::Cell;

use crate::{samples::Samples, statistics::median};

/// Relative noise of one observation, where too few were made to tell.
const NOISE: f64 = 0.1;
/// Relative noise that repetitions don't take away.
const DRIFT: f64 = 0.01;

/// The noise of one observation, by the decade of its time: short calls are noisier.
pub struct Noise(BTreeMap<i32, f64>);

impl Noise {
    pub fn new(cells: &[Cell], samples: &Samples) -> Self {
        let mut spreads: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        for cell in cells {
            let Some(times) = samples.get(cell.point(), &cell.method) else { continue };
            if let (Some(middle), true) = (times.median(), times.count() >= 3) {
                let deviations: Vec<f64> =
                    times.seconds().iter().map(|seconds| (seconds / middle).ln().abs()).collect();
                // 1.4826 median absolute deviations are the standard deviation of a normal.
                let spread = median(&deviations).unwrap_or(NOISE) * 1.4826;
                spreads.entry(decade(middle)).or_default().push(spread);
            }
        }
        let pooled = |(decade, spreads): (i32, Vec<f64>)| Some((decade, median(&spreads)?));
        Noise(spreads.into_iter().filter_map(pooled).collect())
    }

    /// Variance of the logarithm of the median of so many observations.
    pub fn variance(&self, seconds: f64, count: usize) -> f64 {
        let one = self.0.get(&decade(seconds)).copied().unwrap_or(NOISE);
        // The median of n normal values varies by pi/2 of what their mean does.
        std::f64::consts::FRAC_PI_2 * one.powi(2) / count.max(1) as f64 + DRIFT.powi(2)
    }
}

fn decade(seconds: f64) -> i32 {
    seconds.max(1e-9).log10().floor() as i32
}
