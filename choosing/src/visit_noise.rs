//! How far a visit's median is from the truth, as seen between visits.

use std::collections::BTreeMap;

use records::Point;
use statistics::{DEVIATIONS_PER_MEDIAN, median};

use crate::{belief::octaves, constants::constants, samples::Samples};

/// Steps of the search for the share of strays: each halves what is missing, at least.
const SWEEPS: usize = 30;

/// The noise of one visit's median, by the decade of its time and the number of processes: short calls
/// are noisier, and so are those of many processes that share processors.
pub(crate) struct VisitNoise {
    usual: BTreeMap<(i32, u32), f64>,
    /// Of a decade's visits.
    stray_share: BTreeMap<i32, f64>,
}

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
                let apart = logarithms_apart(two[0], two[1]) / std::f64::consts::SQRT_2;
                between.entry((decade(two[0]), procs)).or_default().push(apart);
            }
            for (visit, &middle) in times.visits().zip(&medians) {
                let apart: Vec<f64> = match visit {
                    // A third and more of the variance is common to the calls of one visit, so that two of them,
                    // which are apart by the root of two of what each varies by, tell about that of visits.
                    &[one, other] => vec![logarithms_apart(one, other)],
                    [_, _, _, ..] => {
                        visit.iter().map(|seconds| logarithms_apart(*seconds, middle)).collect()
                    }
                    _ => continue,
                };
                within.entry((decade(middle), procs)).or_default().extend(apart);
            }
        }
        between.retain(|_, apart| apart.len() >= constants().min_pairs);
        let pooled =
            |(kind, apart): (_, Vec<f64>)| Some((kind, median(&apart)? * DEVIATIONS_PER_MEDIAN));
        let mut usual: BTreeMap<_, f64> = within.into_iter().filter_map(pooled).collect();
        usual.extend(between.iter().filter_map(|(kind, apart)| pooled((*kind, apart.clone()))));
        let mut pairs: BTreeMap<i32, Vec<(f64, f64)>> = BTreeMap::new();
        for (kind, apart) in &between {
            let Some(noise) = usual.get(kind) else { continue };
            let with_noise = apart.iter().map(|apart| (*apart, with_lasting(noise.powi(2))));
            pairs.entry(kind.0).or_default().extend(with_noise);
        }
        let stray_share =
            pairs.into_iter().map(|(decade, of)| (decade, stray_share(&of))).collect();
        VisitNoise { usual, stray_share }
    }

    /// Share of the visits of such a time that stray.
    pub fn stray_share(&self, seconds: f64) -> f64 {
        let known = self.stray_share.get(&decade(seconds));
        known.copied().unwrap_or(constants().stray_share)
    }

    /// Variance of the logarithm of a time on so many processes that was visited so often.
    pub fn variance(&self, procs: u32, seconds: f64, visits: usize) -> f64 {
        let one = self.one(procs, decade(seconds)).unwrap_or(constants().visit_noise);
        with_lasting(one.powi(2) / visits.max(1) as f64)
    }

    /// Of one visit in a decade: of as many processes, or of the nearest number of which it is known,
    /// but no more than an octave away.
    fn one(&self, procs: u32, decade: i32) -> Option<f64> {
        let distance = |other: u32| octaves(other.into(), procs.into());
        let of_decade = self.usual.range((decade, 0)..=(decade, u32::MAX));
        let near = of_decade.filter(|((_, other), _)| distance(*other) <= 1.0);
        let nearest = near.min_by(|a, b| distance(a.0.1).total_cmp(&distance(b.0.1)));
        nearest.map(|(_, noise)| *noise)
    }
}

fn with_lasting(variance: f64) -> f64 {
    variance + constants().lasting_noise.powi(2)
}

/// Variance of the logarithm of a visit that strayed, by that of a usual one.
pub(crate) fn stray_variance(usual: f64) -> f64 {
    constants().straying.powi(2) + constants().straying_of_noise.powi(2) * usual
}

/// How often visits stray, as pairs of visits of one cell show: how far the logarithms of two are apart, over
/// the root of two, each with the variance of a usual visit. The most probable share, by expectation
/// maximisation, after what is believed before: that in [`Constants::stray_share`](crate::constants::Constants)
/// strayed, of so many visits as `stray_visits` says.
fn stray_share(pairs: &[(f64, f64)]) -> f64 {
    let (before, weight) = (constants().stray_share, constants().stray_visits);
    // By logarithms: two visits may be so far apart that no number is small enough for how likely that is.
    let normal = |apart: f64, variance: f64| -apart * apart / variance / 2.0 - variance.ln() / 2.0;
    let mut share = before;
    for _ in 0..SWEEPS {
        let strays = pairs.iter().map(|&(apart, usual)| {
            let stray = stray_variance(usual);
            // None of the two strayed, one, both: apart is of the mean of their variances.
            let parts = [
                ((1.0 - share).powi(2), normal(apart, usual)),
                (2.0 * share * (1.0 - share), normal(apart, f64::midpoint(usual, stray))),
                (share.powi(2), normal(apart, stray)),
            ];
            let greatest = parts.iter().map(|part| part.1).fold(f64::NEG_INFINITY, f64::max);
            let [none, one, both] = parts.map(|(weight, log)| weight * (log - greatest).exp());
            (one + 2.0 * both) / (none + one + both)
        });
        share = (strays.sum::<f64>() + before * weight) / (2.0 * pairs.len() as f64 + weight);
    }
    share
}

/// Clocks tick in nanoseconds, and what a root sees may be no longer than what is taken off for timing it.
const TICK: f64 = 1e-9;

pub(crate) fn logarithm(seconds: f64) -> f64 {
    seconds.max(TICK).ln()
}

fn logarithms_apart(one: f64, other: f64) -> f64 {
    (logarithm(one) - logarithm(other)).abs()
}

pub(crate) fn decade(seconds: f64) -> i32 {
    seconds.max(TICK).log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use records::{Layout, observation::CollectiveCall};

    use super::*;
    use crate::testing::{any, call};

    /// Twenty visits on each number of processes, all of about 20 ms, in turn longer and shorter.
    fn samples(apart: &[(u32, f64)]) -> Samples {
        let visit = |&(procs, apart): &(u32, f64)| {
            (0..20).map(move |visit| {
                let seconds = if visit % 2 == 0 { 0.02 } else { 0.02 * f64::exp(apart) };
                CollectiveCall {
                    visit: 100 * procs + visit,
                    point: Point {
                        layout: Layout::flat(procs),
                        ..call("default", "", 64, seconds).point
                    },
                    ..call("default", "", 64, seconds)
                }
            })
        };
        Samples::gather(&apart.iter().flat_map(visit).collect::<Vec<_>>(), any)
    }

    /// Pairs of visits of which each strays with a probability, by a generator with a seed.
    fn pairs(share: f64, count: usize, seed: u64) -> Vec<(f64, f64)> {
        use rand::{RngExt, SeedableRng};
        use rand_distr::StandardNormal;
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let usual = 0.02_f64.powi(2);
        let mut visit = || {
            let strays = random.random::<f64>() < share;
            let variance = if strays { stray_variance(usual) } else { usual };
            random.sample::<f64, _>(StandardNormal) * variance.sqrt()
        };
        (0..count).map(|_| ((visit() - visit()).abs() / std::f64::consts::SQRT_2, usual)).collect()
    }

    #[test]
    fn pairs_of_visits_tell_how_many_stray() {
        let before = constants().stray_share;
        assert!((stray_share(&[]) - before).abs() < 1e-12);
        for share in [0.0, 0.05, 0.3] {
            let told: Vec<f64> = (0..8).map(|seed| stray_share(&pairs(share, 400, seed))).collect();
            let mean = told.iter().sum::<f64>() / told.len() as f64;
            assert!((mean - share).abs() < 0.03, "{share}: {told:?}");
        }
    }

    /// Seen: while others had the processors, a call of 0.4 us took 22 ms.
    #[test]
    fn visits_as_far_apart_as_can_be_are_strays() {
        for apart in [5.0, 8.0, 20.0, 700.0] {
            let told = stray_share(&[(apart, 1e-4), (0.0, 1e-4)]);
            assert!((constants().stray_share..0.25).contains(&told), "{apart}: {told}");
        }
    }

    #[test]
    fn a_few_pairs_that_agree_tell_little() {
        let told = stray_share(&pairs(0.0, 4, 1));
        assert!(told > 0.6 * constants().stray_share, "{told}");
    }

    /// Before anything was visited twice.
    #[test]
    fn two_calls_of_single_visits_tell_the_noise_of_visits() {
        let rows = (0..20).flat_map(|visit| {
            [0.02, 0.02 * f64::exp(0.01)].into_iter().zip(0..).map(move |(seconds, repetition)| {
                let call = call("default", "", 64 << visit, seconds);
                CollectiveCall {
                    visit,
                    repetition,
                    point: Point { layout: Layout::flat(16), ..call.point },
                    ..call
                }
            })
        });
        let noise = VisitNoise::new([&Samples::gather(&rows.collect::<Vec<_>>(), any)]);
        let wanted = (DEVIATIONS_PER_MEDIAN * 0.01).powi(2) + constants().lasting_noise.powi(2);
        assert!((noise.variance(16, 0.02, 1) / wanted - 1.0).abs() < 1e-6);
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
