//! The observations by what was timed, their medians, and these drawn anew.

use std::collections::BTreeMap;

use rand::{Rng, RngExt as _};
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

    /// Medians that as many observations could have had.
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
}

impl Sample {
    /// None if there are too few times.
    pub(super) fn new(mut times: Vec<f64>) -> Option<Self> {
        if times.len() < LEAST {
            return None;
        }
        times.sort_unstable_by(f64::total_cmp);
        Some(Sample { sorted: times })
    }

    pub(super) fn median(&self) -> f64 {
        let (below, above) = (self.sorted.len().div_ceil(2) - 1, self.sorted.len() / 2);
        f64::midpoint(self.sorted[below], self.sorted[above])
    }

    /// Where the median of what the times were drawn from may lie.
    ///
    /// Each time is below that median as often as not, whatever the distribution, so the number of
    /// times below it is binomial(n, 1/2) (the sign test): drawn, and then a place between the
    /// times next to it. The median of a plain resample falls on the times themselves, and its
    /// percentiles hold the truth 92 to 93 times of 100 instead of 95. What is drawn is then
    /// brought as near to the median as makes its variance that of a median of so many: what is
    /// summed from several medians needs that.
    pub(super) fn redraw_median(&self, random: &mut impl Rng) -> f64 {
        let count = self.sorted.len();
        let below = coins(count, random);
        // Beyond the ends as far as the next time is from the end.
        let step = |one: usize, other: usize| self.sorted[other] - self.sorted[one];
        let low = match below.checked_sub(1) {
            Some(last) => self.sorted[last],
            None => (self.sorted[0] - step(0, 1)).max(0.0),
        };
        let high = match self.sorted.get(below) {
            Some(&next) => next,
            None => self.sorted[count - 1] + step(count - 2, count - 1),
        };
        let drawn = low + random.random::<f64>() * (high - low);
        let median = self.median();
        (median + spread(count) * (drawn - median)).max(0.0)
    }
}

/// How much nearer to the median than the variances alone say. A few neighbouring times tell little of
/// how they are spread, so the sign test's interval of one median is wide on average to hold the
/// truth 95 times of 100; what is summed from several would be held 98 to 99 times. By this, one is
/// held 93 to 95 times and a sum 95 to 97 (tests of coverage, 12 to 40 observations).
const NEARER: f64 = 0.95;

/// Standard deviation of the median of so many uniform draws, over that of a place drawn between
/// order statistics by the binomial distribution.
fn spread(count: usize) -> f64 {
    let n = count as f64;
    let of_median = if count.is_multiple_of(2) {
        n / (4.0 * (n + 1.0) * (n + 2.0))
    } else {
        1.0 / (4.0 * (n + 2.0))
    };
    let of_place = (n / 4.0 + 1.0 / 12.0) / (n + 1.0).powi(2);
    NEARER * (of_median / of_place).sqrt()
}

/// How many of so many tossed coins show heads.
fn coins(count: usize, random: &mut impl Rng) -> usize {
    let words = (0..count / 64).map(|_| random.random::<u64>().count_ones()).sum::<u32>();
    let rest = match count % 64 {
        0 => 0,
        bits => (random.random::<u64>() >> (64 - bits)).count_ones(),
    };
    (words + rest) as usize
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

    /// The number of drawn medians up to each time against the binomial distribution, as it is
    /// tabulated: P(X <= k) of 8 coins is 1, 9, 37, 93, 163, 219, 247, 255, 256 of 256.
    #[test]
    fn redrawn_medians_are_distributed_as_the_sign_test_says() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        let sample = Sample::new((1..=8).map(f64::from).collect()).unwrap();
        let draws: Vec<f64> = (0..50_000).map(|_| sample.redraw_median(&mut random)).collect();
        let tabulated = [1, 9, 37, 93, 163, 219, 247, 255].map(|of| f64::from(of) / 256.0);
        for (time, wanted) in sample.sorted.iter().zip(tabulated) {
            let place = 4.5 + spread(8) * (time - 4.5);
            let share = draws.iter().filter(|draw| **draw <= place).count() as f64 / 50_000.0;
            // Four standard errors.
            assert!((share - wanted).abs() < 0.009, "{time}: {share}, wanted {wanted}");
        }
    }

    /// The spread of drawn medians is that of medians of other observations of the same.
    #[test]
    fn redrawn_medians_vary_as_medians_do() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(3);
        let mut uniform =
            |count: usize| -> Vec<f64> { (0..count).map(|_| random.random::<f64>()).collect() };
        let deviation = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            (squares / values.len() as f64).sqrt()
        };
        for count in [9, 20] {
            let medians: Vec<f64> =
                (0..20_000).map(|_| Sample::new(uniform(count)).unwrap().median()).collect();
            let even: Vec<f64> =
                (1..=count).map(|place| place as f64 / (count + 1) as f64).collect();
            let sample = Sample::new(even).unwrap();
            let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(4);
            let drawn: Vec<f64> = (0..20_000).map(|_| sample.redraw_median(&mut random)).collect();
            let ratio = deviation(&drawn) / deviation(&medians) / NEARER;
            assert!((ratio - 1.0).abs() < 0.03, "{count}: {ratio}");
        }
    }

    #[test]
    fn coins_are_fair_however_many() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        for count in [3_usize, 64, 100] {
            let heads: usize = (0..10_000).map(|_| coins(count, &mut random)).sum();
            let share = heads as f64 / (10_000 * count) as f64;
            assert!((share - 0.5).abs() < 0.015, "{count}: {share}");
        }
    }
}
