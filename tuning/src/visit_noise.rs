//! How far a visit's median is from the truth, as seen between visits.

use std::collections::BTreeMap;

use records::Point;
use statistics::{DEVIATIONS_PER_MEDIAN, median};
use verification::samples::Samples;

use crate::{belief::octaves, constants::constants};

/// The noise of one visit's median, by the decade of its time and the number of processes: short calls
/// are noisier, and so are those of many processes that share processors.
pub(crate) struct VisitNoise(BTreeMap<(i32, u32), f64>);

impl VisitNoise {
    /// From how far the medians of a cell's visits are apart; where there are too few of these, from
    /// how far the observations of one visit are.
    pub fn new<'s>(all: impl IntoIterator<Item = &'s Samples>) -> Self {
        let mut between: BTreeMap<(i32, u32), Vec<f64>> = BTreeMap::new();
        let mut within: BTreeMap<(i32, u32), Vec<f64>> = BTreeMap::new();
        let of_point = |(point, samples): (Point, &'s Samples)| {
            samples.at(point).map(move |(_, times)| (point.procs(), times))
        };
        let points = all.into_iter().flat_map(|of| of.points().map(move |point| (point, of)));
        for (procs, times) in points.flat_map(of_point) {
            let medians: Vec<f64> = times.medians().collect();
            for two in medians.windows(2) {
                let apart = (two[0] / two[1]).ln().abs() / std::f64::consts::SQRT_2;
                between.entry((decade(two[0]), procs)).or_default().push(apart);
            }
            for (visit, &middle) in
                times.visits().zip(&medians).filter(|(visit, _)| visit.len() > 2)
            {
                let apart = visit.iter().map(|seconds| (seconds / middle).ln().abs());
                within.entry((decade(middle), procs)).or_default().extend(apart);
            }
        }
        between.retain(|_, apart| apart.len() >= constants().least_pairs);
        let pooled =
            |(kind, apart): (_, Vec<f64>)| Some((kind, median(&apart)? * DEVIATIONS_PER_MEDIAN));
        let mut noise: BTreeMap<_, f64> = within.into_iter().filter_map(pooled).collect();
        noise.extend(between.into_iter().filter_map(pooled));
        VisitNoise(noise)
    }

    /// Variance of the logarithm of a time on so many processes that was visited so often.
    pub fn variance(&self, procs: u32, seconds: f64, visits: usize) -> f64 {
        let one = self.one(procs, decade(seconds)).unwrap_or(constants().visit_noise);
        one.powi(2) / visits.max(1) as f64 + constants().lasting_noise.powi(2)
    }

    /// Of one visit in a decade: of as many processes, or of the nearest number of which it is known,
    /// but no more than an octave away.
    fn one(&self, procs: u32, decade: i32) -> Option<f64> {
        let distance = |other: u32| octaves(other.into(), procs.into());
        let of_decade = self.0.range((decade, 0)..=(decade, u32::MAX));
        let near = of_decade.filter(|((_, other), _)| distance(*other) <= 1.0);
        let nearest = near.min_by(|a, b| distance(a.0.1).total_cmp(&distance(b.0.1)));
        nearest.map(|(_, noise)| *noise)
    }
}

pub(crate) fn decade(seconds: f64) -> i32 {
    seconds.max(1e-9).log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use records::{Layout, observation::CollectiveCall};

    use super::*;
    use crate::testing::call;

    /// Twenty visits on each number of processes, all of about 20 ms, in turn longer and shorter.
    fn samples(apart: &[(u32, f64)]) -> Samples {
        let visit = |&(procs, apart): &(u32, f64)| {
            (0..20).map(move |visit| {
                let seconds = if visit % 2 == 0 { 0.02 } else { 0.02 * f64::exp(apart) };
                CollectiveCall {
                    visit: 100 * procs + visit,
                    layout: Layout::flat(procs),
                    ..call("default", "", 64, seconds)
                }
            })
        };
        Samples::gather(&apart.iter().flat_map(visit).collect::<Vec<_>>())
    }

    /// Many visits on two processes, which are precise, say nothing of those on sixteen.
    #[test]
    fn each_number_of_processes_has_its_noise() {
        let noise = VisitNoise::new([&samples(&[(2, 0.004), (16, 0.12)])]);
        let deviation =
            |procs| (noise.variance(procs, 0.02, 1) - constants().lasting_noise.powi(2)).sqrt();
        let of = |apart: f64| DEVIATIONS_PER_MEDIAN * apart / std::f64::consts::SQRT_2;
        let near =
            |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 1e-6, "{got} {wanted}");
        near(deviation(2), of(0.004));
        near(deviation(16), of(0.12));
        near(deviation(11), of(0.12));
        near(deviation(5), constants().visit_noise);
        near(
            noise.variance(16, 0.5, 1),
            constants().visit_noise.powi(2) + constants().lasting_noise.powi(2),
        );
    }
}
