//! How much of what a record says is noise: its two halves compared.

use std::collections::BTreeMap;

use records::{
    Collective, Point,
    penalty::{Distribution, Noise},
};
use statistics::{mean, median, quantile};

use choosing::samples::{MethodTimes, ObservationHalf, Samples};

/// The noise of a record, per collective: over the points at which at least two well visited methods
/// were observed at least twice, and those methods.
pub fn noise(samples: &Samples) -> Vec<Noise> {
    let mut of_collective: BTreeMap<Collective, (u32, Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for point in samples.points() {
        let halves = halves(samples, point);
        if halves.len() < 2 {
            continue;
        }
        let (points, choice, apart) = of_collective.entry(point.collective).or_default();
        *points += 1;
        choice.push(regret(&halves, |half| half));
        choice.push(regret(&halves, |[one, other]| [other, one]));
        apart.extend(halves.iter().map(|[one, other]| (one / other).ln().abs().exp_m1()));
    }
    let noise = |(collective, (points, choice, apart)): (_, (_, Vec<f64>, Vec<f64>))| {
        let (choice, halves) = (distribution(&choice)?, distribution(&apart)?);
        Some(Noise { collective, points, choice, halves })
    };
    of_collective.into_iter().filter_map(noise).collect()
}

/// Mean, median, 95th percentile and greatest; nothing of nothing.
pub(crate) fn distribution(values: &[f64]) -> Option<Distribution> {
    Some(Distribution {
        mean: mean(values)?,
        median: median(values)?,
        percentile_95: quantile(values, 0.95)?,
        greatest: quantile(values, 1.0)?,
    })
}

/// The midmeans of both halves, for each method with observations in both.
fn halves(samples: &Samples, point: Point) -> Vec<[f64; 2]> {
    let of_method = |times: &MethodTimes| {
        let midmean = |half| times.midmean_of(half).filter(|seconds| *seconds > 0.0);
        Some([midmean(ObservationHalf::Choosing)?, midmean(ObservationHalf::Timing)?])
    };
    let often = samples.well_visited(point).filter(|(_, times)| times.count() > 1);
    often.filter_map(|(_, times)| of_method(times)).collect()
}

/// What the best by the first half costs by the second, against the best of that.
fn regret(halves: &[[f64; 2]], order: impl Fn([f64; 2]) -> [f64; 2]) -> f64 {
    let ordered = || halves.iter().map(|&half| order(half));
    let chosen = ordered().min_by(|a, b| a[0].total_cmp(&b[0])).map_or(0.0, |[_, other]| other);
    let best = ordered().map(|[_, other]| other).fold(f64::INFINITY, f64::min);
    chosen / best - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;

    #[test]
    fn the_choice_of_one_half_is_timed_by_the_other() {
        let (linear, binomial) = ("native:openmpi:linear", "native:openmpi:binomial");
        // By the first half linear is best (1 against 2), by the other binomial (3 against 2).
        let rows: Vec<_> = [(linear, 1.0), (linear, 3.0), (binomial, 2.0), (binomial, 2.0)]
            .into_iter()
            .map(|(method, seconds)| call(method, "", 64, seconds))
            .chain([call("default", "", 64, 9.0)])
            .collect();
        let [noise] = noise(&Samples::gather(&rows, libraries::ran_as_asked)).try_into().unwrap();
        assert_eq!(noise.points, 1);
        // Linear costs 3 where 2 is to be had; binomial 2 where 1 is.
        assert!((noise.choice.mean - 0.75).abs() < 1e-12 && noise.choice.greatest == 1.0);
        // Linear's times differ by 200 %, binomial's not at all.
        assert!(
            (noise.halves.greatest - 2.0).abs() < 1e-9 && (noise.halves.mean - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn one_method_or_one_observation_tells_nothing() {
        let rows = [call("default", "", 64, 1.0), call("native:openmpi:linear", "", 64, 1.0)];
        assert!(noise(&Samples::gather(&rows, libraries::ran_as_asked)).is_empty());
    }
}
