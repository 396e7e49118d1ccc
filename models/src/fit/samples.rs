//! The observations by what was timed, their medians, and the bootstrap of these.

use std::collections::BTreeMap;

use rand::{Rng, RngExt as _};
use rand_distr::{Beta, Distribution as _};
use records::observation::{PointToPoint, PointToPointKind, Status};

use super::{FitError, kind_name};

/// Below this many observations there is no interval to speak of: the set is left out.
pub(super) const LEAST: usize = 3;
/// Below this many in time, late ones are used too.
const ENOUGH: usize = 5;

/// What was timed: kind, message size, messages in the train.
pub(super) type Key = (PointToPointKind, u64, u32);

/// The usable observations, in the order of their keys.
#[derive(Debug)]
pub(super) struct Samples(Vec<(Key, Sample)>);

/// The medians of [`Samples`], in the same order.
#[derive(Debug)]
pub(super) struct Medians<'a> {
    samples: &'a Samples,
    pub(super) seconds: Vec<f64>,
}

impl Medians<'_> {
    /// What was timed, and where its median stands.
    pub(super) fn keys(&self) -> impl Iterator<Item = (Key, usize)> {
        self.samples.0.iter().enumerate().map(|(index, (key, _))| (*key, index))
    }
}

impl Samples {
    pub(super) fn collect(
        observations: &[PointToPoint],
        warnings: &mut Vec<String>,
    ) -> Result<Self, FitError> {
        let mut sets: BTreeMap<Key, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for observation in observations {
            let &PointToPoint { kind, bytes, messages, repetition, seconds, status, .. } =
                observation;
            if !(seconds.is_finite() && seconds >= 0.0) {
                return Err(FitError::Observation { kind, bytes, repetition, seconds });
            }
            let (in_time, late) = sets.entry((kind, bytes, messages)).or_default();
            match status {
                Status::Ok => in_time.push(seconds),
                Status::Late => late.push(seconds),
                Status::Warmup => {}
            }
        }
        let (mut with_late, mut rough, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let mut samples = Vec::new();
        for (key, (mut times, late)) in sets {
            if times.len() < ENOUGH && !late.is_empty() {
                times.extend(late);
                with_late.push(key);
            }
            match Sample::new(times) {
                Some(sample) => {
                    if sample.sorted.len() < ENOUGH {
                        rough.push(key);
                    }
                    samples.push((key, sample));
                }
                None => left_out.push(key),
            }
        }
        for (problem, keys) in [
            ("late observations were used, for want of others", with_late),
            ("few observations, so their intervals are rough", rough),
            ("fewer than 3 observations, so they were left out", left_out),
        ] {
            if !keys.is_empty() {
                warnings.push(format!("{problem}: {}", list(&keys)));
            }
        }
        Ok(Samples(samples))
    }

    pub(super) fn medians(&self) -> Medians<'_> {
        let seconds = self.0.iter().map(|(_, sample)| sample.median()).collect();
        Medians { samples: self, seconds }
    }

    /// The medians of as many observations, drawn from these with replacement.
    pub(super) fn redraw(&self, random: &mut impl Rng) -> Medians<'_> {
        let seconds = self.0.iter().map(|(_, sample)| sample.redraw_median(random)).collect();
        Medians { samples: self, seconds }
    }
}

/// `round-trip of 1024 bytes, train of 20 x 0 bytes`.
fn list(keys: &[Key]) -> String {
    let one = |(kind, bytes, messages): &Key| match kind {
        PointToPointKind::Clock => kind_name(*kind).to_owned(),
        PointToPointKind::Train => format!("train of {messages} x {bytes} bytes"),
        _ => format!("{} of {bytes} bytes", kind_name(*kind)),
    };
    keys.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// At least [`LEAST`] times of the same thing, ascending.
#[derive(Debug)]
pub(super) struct Sample {
    sorted: Vec<f64>,
    /// Where the (lower) middle of as many uniform draws falls.
    middle: Beta<f64>,
}

impl Sample {
    /// None if there are too few times.
    pub(super) fn new(mut times: Vec<f64>) -> Option<Self> {
        if times.len() < LEAST {
            return None;
        }
        times.sort_unstable_by(f64::total_cmp);
        let count = times.len();
        let below = count.div_ceil(2) as f64;
        let middle = Beta::new(below, count as f64 + 1.0 - below).ok()?;
        Some(Sample { sorted: times, middle })
    }

    pub(super) fn median(&self) -> f64 {
        let (below, above) = (self.sorted.len().div_ceil(2) - 1, self.sorted.len() / 2);
        f64::midpoint(self.sorted[below], self.sorted[above])
    }

    /// The median of a resample, drawn without resampling: a resample is as many uniform draws
    /// mapped to the sorted times by a function that rises, so its median is what that function
    /// makes of the draws' median, an order statistic whose distribution is known (Beta).
    pub(super) fn redraw_median(&self, random: &mut impl Rng) -> f64 {
        let count = self.sorted.len();
        let at = |uniform: f64| self.sorted[((uniform * count as f64) as usize).min(count - 1)];
        let lower = self.middle.sample(random);
        if count % 2 == 1 {
            return at(lower);
        }
        // The draws above the lower middle are uniform; the least of them is the upper middle.
        let above = (count / 2) as f64;
        let upper = 1.0 - (1.0 - lower) * random.random::<f64>().powf(1.0 / above);
        f64::midpoint(at(lower), at(upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Sample::new(vec![3.0, 1.0, 2.0]).unwrap().median(), 2.0);
        assert_eq!(Sample::new(vec![4.0, 1.0, 3.0, 2.0]).unwrap().median(), 2.5);
        assert!(Sample::new(vec![1.0, 2.0]).is_none());
    }

    /// The short way has the distribution of the long way: both empirical distributions of
    /// medians agree at every observed time.
    #[test]
    fn redrawn_medians_are_those_of_resampling() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        for count in [3_usize, 4, 9, 20] {
            let times: Vec<f64> = (0..count).map(|i| (i * i) as f64).collect();
            let sample = Sample::new(times.clone()).unwrap();
            let draws = 20_000;
            let short: Vec<f64> = (0..draws).map(|_| sample.redraw_median(&mut random)).collect();
            let long: Vec<f64> = (0..draws)
                .map(|_| {
                    let resample =
                        (0..count).map(|_| times[random.random_range(0..count)]).collect();
                    Sample::new(resample).unwrap().median()
                })
                .collect();
            for time in &times {
                let share = |draws: &[f64]| {
                    draws.iter().filter(|draw| *draw <= time).count() as f64 / draws.len() as f64
                };
                // Five standard errors of the difference of two shares.
                assert!((share(&short) - share(&long)).abs() < 0.025, "{count} {time}");
            }
        }
    }
}
