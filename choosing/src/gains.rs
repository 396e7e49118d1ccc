//! Updates the estimated gains of choices by the first round of jobs that run with these choices loaded.
//!
//! The gain of a choice is the logarithm of the default's time over the chosen method's. After measuring it
//! has a prior, with a standard deviation. Jobs with the choice loaded, which had no part in choosing,
//! update it at their point and, less, at neighbouring points with the same method. It decides what is tried
//! again in the last round; that round alone confirms ([`evidence`](crate::evidence)).

use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Method, Point, choices::Chosen};
use statistics::PairedJobs;

use crate::{
    belief::{Belief, Prior},
    constants::constants,
    samples::Samples,
    visit_noise::{VisitNoise, decade},
};

/// What is believed of a choice that replaces the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posterior {
    /// How many times as fast as the default it is.
    pub speed_up: f64,
    /// Whether it surely is slower.
    pub is_surely_slower: bool,
}

impl Posterior {
    /// Whether it is rather faster than not.
    pub fn is_faster(&self) -> bool {
        self.speed_up > 1.0
    }
}

/// The gains that are believed of the choices that replace the default: for each method of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Gains {
    tracks: Vec<Belief>,
}

impl Gains {
    /// The priors, before any job; `choices` at all points, ascending, with their doubts. `other` is the standard deviation of an
    /// error that all choices of one method have in common, since what is loaded is not exactly what was measured.
    pub fn new(choices: &[Chosen], other: f64) -> Self {
        let mut tracks: BTreeMap<(Collective, &Method), Vec<usize>> = BTreeMap::new();
        for (index, choice) in choices.iter().enumerate() {
            if choice.method != Method::Default {
                let of = (choice.point.collective, &choice.method);
                tracks.entry(of).or_default().push(index);
            }
        }
        let prior = |choice: &Chosen| {
            let mean = (choice.without_seconds() / choice.seconds).ln();
            Prior { mean, own: choice.doubt.unwrap_or_default().max(constants().min_doubt) }
        };
        let track = |track: Vec<usize>| {
            let points = track.iter().map(|&index| choices[index].point).collect();
            let priors: Vec<Prior> = track.iter().map(|&index| prior(&choices[index])).collect();
            Belief::new(points, &priors, constants().jobs_differ.hypot(other), other)
        };
        Gains { tracks: tracks.into_values().map(track).collect() }
    }

    /// Takes in a round of jobs: the default's times without and with the decision loaded. At the
    /// points that are not `replaced` both ran the same: what they differ by there is the jobs'. A gain is no
    /// surer than the turns of jobs agree on it, however many visits they have: `turns` gives these.
    pub fn observe(
        &mut self,
        default: &Samples,
        loaded: &Samples,
        replaced: &BTreeSet<Point>,
        turns: &dyn Fn(Point) -> PairedJobs,
    ) {
        let noise = VisitNoise::new([default, loaded]);
        let of = |samples: &Samples, point: Point| {
            let times = samples.get(point, &Method::Default)?;
            let seconds = times.midmean().filter(|seconds| *seconds > 0.0)?;
            Some((seconds, noise.variance(point.procs(), seconds, times.visits().count())))
        };
        let pair = |point: Point| {
            let (without, with) = of(default, point).zip(of(loaded, point))?;
            Some(PointPair {
                procs: point.procs(),
                seconds: without.0,
                ratio: (without.0 / with.0).ln(),
                variance: without.1 + with.1,
            })
        };
        let controls = default.points().filter(|point| !replaced.contains(point));
        let jobs = JobDifferences::new(&noise, controls.filter_map(pair));
        for belief in &mut self.tracks {
            let points = belief.points().to_vec().into_iter().enumerate();
            for (index, point) in points.filter(|(_, point)| replaced.contains(point)) {
                if let Some(pair) = pair(point) {
                    let (effect, doubt) = jobs.effect(&pair);
                    let variance = between_jobs(pair.variance, &turns(point)) + doubt;
                    belief.observe(index, pair.ratio - effect, variance);
                }
            }
        }
    }

    /// What is believed of a choice; nothing where the default was left.
    pub fn posterior(&self, point: Point) -> Option<Posterior> {
        self.tracks.iter().find_map(|belief| {
            let index = belief.points().iter().position(|&of| of == point)?;
            let gain = belief.mean(index);
            let is_surely_slower = -gain > constants().surely * belief.variance(index).sqrt();
            Some(Posterior { speed_up: gain.exp(), is_surely_slower })
        })
    }
}

/// The variance of a gain, from its visits and from its turns of jobs. A variance from few turns is uncertain. So it
/// is averaged with that of the visits, which counts as `visits_as_turns` turns and is the lower limit (a
/// moderated variance, Smyth 2004).
fn between_jobs(of_visits: f64, turns: &PairedJobs) -> f64 {
    let Some(of_turns) = turns.squared_error() else { return of_visits };
    let freedom = turns.count() as f64 - 1.0;
    let prior = constants().visits_as_turns;
    let moderated = (prior * of_visits + freedom * of_turns) / (prior + freedom);
    moderated.max(of_visits)
}

/// A point in two jobs.
struct PointPair {
    procs: u32,
    /// The time in the first.
    seconds: f64,
    /// Logarithm of how many times as long that is as in the second, and its variance.
    ratio: f64,
    variance: f64,
}

/// By how much the times of two jobs differ where both run the same: for each decade of the time, the
/// mean logarithm of the ratio with its variance.
struct JobDifferences<'n> {
    noise: &'n VisitNoise,
    seen: BTreeMap<i32, (f64, f64)>,
}

impl<'n> JobDifferences<'n> {
    fn new(noise: &'n VisitNoise, controls: impl Iterator<Item = PointPair>) -> Self {
        let mut jobs = JobDifferences { noise, seen: BTreeMap::new() };
        for pair in controls {
            // The posterior of a normal.
            let (mean, before) = jobs.effect(&pair);
            let weight = before / (before + pair.variance);
            let after = (mean + weight * (pair.ratio - mean), before * (1.0 - weight));
            jobs.seen.insert(decade(pair.seconds), after);
        }
        jobs
    }

    fn effect(&self, pair: &PointPair) -> (f64, f64) {
        let noise = self.noise.variance(pair.procs, pair.seconds, 1);
        let before =
            (constants().jobs_differ_of_noise.powi(2) * noise).max(constants().jobs_differ.powi(2));
        self.seen.get(&decade(pair.seconds)).copied().unwrap_or((0.0, before))
    }
}

#[cfg(test)]
mod tests {
    use records::observation::CollectiveCall;

    use super::*;
    use crate::testing::{any, call};

    const METHOD: &str = "native:openmpi:binomial";

    /// Eight sizes, all of one region, each 1.2 times as fast.
    fn gains(doubt: f64, other: f64) -> Gains {
        let choice = |bytes| {
            let point = Point::flat(Collective::Bcast, 8, bytes);
            let chosen = Chosen::measured(point, METHOD.parse().unwrap(), 1.0, 1.2);
            Chosen { doubt: Some(doubt), ..chosen }
        };
        let choices: Vec<Chosen> = (0..8).map(|power| choice(1 << power)).collect();
        Gains::new(&choices, other)
    }

    /// Four visits of each size; those of one size differ by 10 %.
    fn samples(seconds: impl Fn(u64) -> f64) -> Samples {
        let visits = (0..32_u32).map(|visit| {
            let bytes = 1 << (visit % 8);
            let noise = if visit / 8 % 2 == 0 { 1.0 } else { 1.1 };
            CollectiveCall { visit, ..call("default", "", bytes, noise * seconds(bytes)) }
        });
        Samples::gather(&visits.collect::<Vec<_>>(), any)
    }

    fn speed_up(gains: &Gains, bytes: u64) -> f64 {
        let point = Point::flat(Collective::Bcast, 8, bytes);
        gains.posterior(point).unwrap().speed_up
    }

    /// All sizes of [`gains`].
    fn replaced() -> BTreeSet<Point> {
        let point = |power| Point::flat(Collective::Bcast, 8, 1_u64 << power);
        (0..8_u32).map(point).collect()
    }

    #[test]
    fn one_unlucky_size_does_not_overthrow_what_its_neighbours_confirm() {
        let mut gains = gains(0.1, 0.05);
        assert!((speed_up(&gains, 8) - 1.2).abs() < 1e-9);
        let unlucky = |bytes| if bytes == 8 { 1.02 } else { 0.83 };
        gains
            .observe(&samples(|_| 1.0), &samples(unlucky), &replaced(), &|_| PairedJobs::default());
        assert!(speed_up(&gains, 8) > 1.0 && speed_up(&gains, 8) < 1.2);
        assert!(speed_up(&gains, 64) > 1.15);
        let elsewhere = Point::flat(Collective::Bcast, 4, 8);
        assert_eq!(gains.posterior(elsewhere), None);
    }

    #[test]
    fn what_is_slower_everywhere_is_seen_at_once() {
        let mut gains = gains(0.1, 0.2);
        gains
            .observe(&samples(|_| 1.0), &samples(|_| 1.3), &replaced(), &|_| PairedJobs::default());
        for power in 0..8 {
            assert!(speed_up(&gains, 1 << power) < 0.95);
        }
    }

    #[test]
    fn a_single_size_that_is_much_slower_is_seen_too() {
        let mut gains = gains(0.2, 0.05);
        let loaded = samples(|bytes| if bytes == 8 { 2.0 } else { 0.83 });
        gains.observe(&samples(|_| 1.0), &loaded, &replaced(), &|_| PairedJobs::default());
        assert!(speed_up(&gains, 8) < 0.9);
        assert!(speed_up(&gains, 64) > 1.1);
        let eight = Point::flat(Collective::Bcast, 8, 8);
        let believed = gains.posterior(eight).unwrap();
        assert!(!believed.is_faster(), "among sizes that are: {believed:?}");
    }

    #[test]
    fn a_gain_is_no_surer_than_its_turns_agree() {
        let turns = |ratios: &[f64]| {
            PairedJobs::new(&ratios.iter().map(|ratio| [1.0, *ratio]).collect::<Vec<_>>())
        };
        assert_eq!(between_jobs(0.01, &turns(&[])), 0.01);
        assert_eq!(between_jobs(0.01, &turns(&[0.9])), 0.01);
        assert_eq!(between_jobs(0.01, &turns(&[0.9, 0.9, 0.9])), 0.01);
        let apart = [0.5, 2.0, 0.6, 1.7, 0.5, 1.9, 0.6, 2.0];
        let told = between_jobs(1e-4, &turns(&apart));
        assert!((0.02..0.05).contains(&told), "{told}");
        assert!(
            between_jobs(1e-4, &turns(&apart[..3])) < turns(&apart[..3]).squared_error().unwrap()
        );
    }

    /// The loaded job ran while the machine was slower, and gains nothing: seen where nothing is
    /// replaced.
    #[test]
    fn what_two_jobs_differ_by_where_both_run_the_default_is_no_gain() {
        let replaced: BTreeSet<Point> =
            replaced().into_iter().filter(|point| point.bytes >= 16).collect();
        let gain = |slower: f64| {
            let mut gains = gains(0.1, 0.2);
            let loaded = samples(|bytes| slower * if bytes >= 16 { 0.83 } else { 1.0 });
            gains.observe(&samples(|_| 1.0), &loaded, &replaced, &|_| PairedJobs::default());
            speed_up(&gains, 64)
        };
        assert!((gain(1.0) - 1.2).abs() < 0.02, "{}", gain(1.0));
        assert!(
            (gain(1.08) - gain(1.0)).abs() < 0.05,
            "{} where the machine is slower",
            gain(1.08)
        );
    }
}
