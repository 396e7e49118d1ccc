//! What runs with a decision loaded say of the gains that were believed of it.
//!
//! The gain of each choice, the logarithm of the default's time over the chosen method's, is
//! believed with some doubt when the measuring is over. Runs with the decision loaded, which had no
//! part in choosing, make it surer or take it away, at a point itself and, less, at its neighbours
//! of the same method: a short call's gain shows over a region of sizes long before it shows at one
//! of them.

use std::collections::BTreeMap;

use records::{Collective, Method, Point};

use crate::{
    belief::{Belief, Prior},
    focus::noise::Noise,
    samples::{Samples, Times},
    selection::Choice,
};

/// What two jobs differ by, relatively, beside the noise of their visits.
const JOBS: f64 = 0.02;
/// Least doubt of a gain.
const LEAST_DOUBT: f64 = 0.05;

/// Standard deviations by which a choice must be believed to be faster than the default: 5 % of those
/// that are no faster would be.
const SURELY: f64 = 1.645;

/// What is believed of a choice that replaces the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Believed {
    /// How many times as fast as the default it is.
    pub speed_up: f64,
    /// Whether it is surely faster at all.
    pub is_faster: bool,
}

/// The gains that are believed of the choices that replace the default.
#[derive(Debug, Clone)]
pub struct Confirmation(BTreeMap<(Collective, Method), Belief>);

impl Confirmation {
    /// Before any run. `doubts` are standard deviations of the logarithm of the gain; `other` is
    /// one of an error that all choices of one method have in common, because what is loaded is not
    /// what was measured.
    pub fn new(choices: &[Choice], doubts: &BTreeMap<Point, f64>, other: f64) -> Self {
        let mut tracks: BTreeMap<(Collective, Method), (Vec<Point>, Vec<Prior>)> = BTreeMap::new();
        for choice in choices.iter().filter(|choice| choice.method != Method::Default) {
            let of = (choice.point.collective, choice.method.clone());
            let (points, priors) = tracks.entry(of).or_default();
            let doubt = doubts.get(&choice.point).copied().unwrap_or_default();
            points.push(choice.point);
            priors.push(Prior {
                mean: (choice.default_seconds / choice.seconds).ln(),
                own: doubt.max(LEAST_DOUBT),
            });
        }
        let belief = |(of, (points, priors)): (_, (_, Vec<Prior>))| {
            (of, Belief::new(points, &priors, JOBS.hypot(other), other))
        };
        Confirmation(tracks.into_iter().map(belief).collect())
    }

    /// Takes in a round of jobs: the default's times without and with the decision loaded.
    pub fn observe(&mut self, default: &Samples, loaded: &Samples) {
        let of_default = |samples| all(samples).map(|(_, times)| times);
        let noise = Noise::new(of_default(default).chain(of_default(loaded)));
        let variance = |times: &Times, seconds| noise.variance(seconds, times.visits().count());
        for belief in self.0.values_mut() {
            for (index, point) in belief.points().to_vec().into_iter().enumerate() {
                let pair = [default, loaded].map(|samples| {
                    let times = samples.get(point, &Method::Default)?;
                    Some((times, times.median().filter(|seconds| *seconds > 0.0)?))
                });
                if let [Some((default, without)), Some((loaded, with))] = pair {
                    let noise = variance(default, without) + variance(loaded, with);
                    belief.observe(index, (without / with).ln(), noise + JOBS.powi(2));
                }
            }
        }
    }

    /// What is believed of a choice; nothing where the default was left.
    pub fn believed(&self, point: Point) -> Option<Believed> {
        self.0.values().find_map(|belief| {
            let index = belief.points().iter().position(|&of| of == point)?;
            let (gain, deviation) = (belief.mean(index), belief.variance(index).sqrt());
            Some(Believed { speed_up: gain.exp(), is_faster: gain > SURELY * deviation })
        })
    }
}

fn all(samples: &Samples) -> impl Iterator<Item = (&Method, &Times)> {
    samples.points().flat_map(|point| samples.at(point))
}

#[cfg(test)]
mod tests {
    use records::observation::CollectiveCall;

    use super::*;
    use crate::samples::tests::call;

    const METHOD: &str = "native:openmpi:binomial";

    fn confirmation(doubt: f64, other: f64) -> Confirmation {
        let choice = |bytes| Choice {
            point: Point { collective: Collective::Bcast, procs: 8, bytes },
            method: METHOD.parse().unwrap(),
            seconds: 1.0,
            default_seconds: 1.2,
        };
        let choices: Vec<Choice> = (0..8).map(|power| choice(1 << power)).collect();
        let doubts = choices.iter().map(|choice| (choice.point, doubt)).collect();
        Confirmation::new(&choices, &doubts, other)
    }

    /// Four visits of each size; those of one size differ by 10 %.
    fn samples(seconds: impl Fn(u64) -> f64) -> Samples {
        let visits = (0..32_u32).map(|visit| {
            let bytes = 1 << (visit % 8);
            let noise = if visit / 8 % 2 == 0 { 1.0 } else { 1.1 };
            CollectiveCall { visit, ..call("default", "", bytes, noise * seconds(bytes)) }
        });
        Samples::gather(&visits.collect::<Vec<_>>())
    }

    fn speed_up(confirmation: &Confirmation, bytes: u64) -> f64 {
        let point = Point { collective: Collective::Bcast, procs: 8, bytes };
        confirmation.believed(point).unwrap().speed_up
    }

    #[test]
    fn one_unlucky_size_does_not_overthrow_what_its_neighbours_confirm() {
        let mut confirmation = confirmation(0.1, 0.05);
        assert!((speed_up(&confirmation, 8) - 1.2).abs() < 1e-9);
        let unlucky = |bytes| if bytes == 8 { 1.02 } else { 0.83 };
        confirmation.observe(&samples(|_| 1.0), &samples(unlucky));
        assert!(speed_up(&confirmation, 8) > 1.0 && speed_up(&confirmation, 8) < 1.2);
        assert!(speed_up(&confirmation, 64) > 1.15);
        let point = Point { collective: Collective::Bcast, procs: 8, bytes: 64 };
        assert!(confirmation.believed(point).unwrap().is_faster);
        assert_eq!(confirmation.believed(Point { procs: 4, ..point }), None);
    }

    #[test]
    fn what_is_slower_everywhere_is_seen_at_once() {
        let mut confirmation = confirmation(0.1, 0.2);
        confirmation.observe(&samples(|_| 1.0), &samples(|_| 1.3));
        for power in 0..8 {
            assert!(speed_up(&confirmation, 1 << power) < 0.9);
        }
    }

    #[test]
    fn a_single_size_that_is_much_slower_is_seen_too() {
        let mut confirmation = confirmation(0.2, 0.05);
        confirmation
            .observe(&samples(|_| 1.0), &samples(|bytes| if bytes == 8 { 2.0 } else { 0.83 }));
        assert!(speed_up(&confirmation, 8) < 0.9);
        assert!(speed_up(&confirmation, 64) > 1.1);
    }
}
