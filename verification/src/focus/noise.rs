//! How far a visit's median is from the truth, as seen between visits.

use std::collections::BTreeMap;

use crate::{samples::Times, statistics::median};

/// Relative noise of one visit, where too few were made to tell.
const NOISE: f64 = 0.1;
/// Relative noise that visits don't take away.
const DRIFT: f64 = 0.005;

/// The noise of one visit's median, by the decade of its time: short calls are noisier.
pub(crate) struct Noise(BTreeMap<i32, f64>);

impl Noise {
    /// From how far the medians of a cell's visits are apart; where there are too few of these, from
    /// how far the observations of one visit are.
    pub fn new<'t>(all: impl Iterator<Item = &'t Times>) -> Self {
        let mut between: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        let mut within: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        for times in all {
            let medians: Vec<f64> = times.visits().filter_map(median).collect();
            for two in medians.windows(2) {
                let apart = (two[0] / two[1]).ln().abs() / std::f64::consts::SQRT_2;
                between.entry(decade(two[0])).or_default().push(apart);
            }
            for (visit, &middle) in
                times.visits().zip(&medians).filter(|(visit, _)| visit.len() > 2)
            {
                let apart = visit.iter().map(|seconds| (seconds / middle).ln().abs());
                within.entry(decade(middle)).or_default().extend(apart);
            }
        }
        between.retain(|_, apart| apart.len() >= LEAST_PAIRS);
        // 1.4826 median absolute deviations are the standard deviation of a normal.
        let pooled = |(decade, apart): (i32, Vec<f64>)| Some((decade, median(&apart)? * 1.4826));
        let mut noise: BTreeMap<i32, f64> = within.into_iter().filter_map(pooled).collect();
        noise.extend(between.into_iter().filter_map(pooled));
        Noise(noise)
    }

    /// Variance of the logarithm of a time that was visited so often.
    pub fn variance(&self, seconds: f64, visits: usize) -> f64 {
        let one = self.0.get(&decade(seconds)).copied().unwrap_or(NOISE);
        one.powi(2) / visits.max(1) as f64 + DRIFT.powi(2)
    }
}

/// Pairs of visits that tell their noise.
const LEAST_PAIRS: usize = 8;

pub(crate) fn decade(seconds: f64) -> i32 {
    seconds.max(1e-9).log10().floor() as i32
}
