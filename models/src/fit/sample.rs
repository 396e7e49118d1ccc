//! Observations of one thing: their centre, and what the centre could have been.
//!
//! What a machine does to a message depends on where processes sleep, on caches and connections,
//! and stays the same for a while: observations of one visit resemble each other more than those
//! of different visits, and those of one job (one start of the launcher) more than those of
//! different jobs. So the median of a *visit* is what counts once, and where there are several
//! jobs their differences are part of the interval.
//!
//! A visit that took more than twice what is usual was disturbed: something else had the
//! processor or the link. Such visits are left out, and counted. Usual is the median of all, or what is usual
//! in one of the slower jobs: those whose ranks share a processor may take three times as long to send, each time.
//!
//! The centre of the others is their mean without the least and the greatest: of few visits the middle
//! half (the midmean), so that one outlier among them does no harm; of many nearly nine tenths. Where a
//! machine is now in one state, now in another, a median jumps from the one to the other with the
//! time spent in each; the more visits are in the mean, the more evenly it moves.

use std::collections::BTreeMap;

use rand::{Rng, RngExt as _};
use statistics::{
    bootstrap_widening, mean, median, trimmed_mean, trimmed_mean_of_counts,
    trimmed_mean_squared_error, variance,
};

/// Below this many observations there is no interval to speak of: the set is left out.
pub(super) const LEAST: usize = 3;
/// With fewer visits every single observation counts.
const VISITS: usize = 5;
/// With fewer jobs how jobs differ is not estimated.
const MIN_JOBS: usize = 3;
/// A visit that took more than so many times the median was disturbed. No state of a machine that was
/// seen makes such a difference.
const DISTURBED_FACTOR: f64 = 2.0;

/// Times of the same thing.
#[derive(Debug)]
pub(super) struct Sample {
    /// What counts once: the medians of visits, or single times; ascending.
    units: Vec<f64>,
    /// How many were left out.
    disturbed: usize,
    /// For each job the places of its units.
    jobs: Vec<Vec<u32>>,
    centre: f64,
    /// How much further than redrawn centres the true one lies, as few units tell it.
    widening: f64,
    /// How far each job is from the middle one, as far as its visits do not explain it.
    deviations: Vec<f64>,
}

impl Sample {
    /// Of (job, visit, seconds); at least two.
    pub(super) fn new(times: &[(u32, u32, f64)]) -> Self {
        let units = units(times);
        let limit = limit(&units);
        let (kept, disturbed): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|(_, seconds)| *seconds <= limit);
        Sample { disturbed: disturbed.len(), ..Sample::of_units(kept) }
    }

    /// Of (job, seconds) of what counts once.
    fn of_units(mut units: Vec<(u32, f64)>) -> Self {
        units.sort_unstable_by(|one, other| one.1.total_cmp(&other.1));
        let mut jobs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (place, (job, _)) in (0..).zip(&units) {
            jobs.entry(*job).or_default().push(place);
        }
        let units: Vec<f64> = units.into_iter().map(|(_, seconds)| seconds).collect();
        let jobs: Vec<Vec<u32>> = jobs.into_values().collect();
        let of_jobs: Vec<Vec<f64>> = jobs
            .iter()
            .map(|places| places.iter().map(|&place| units[place as usize]).collect())
            .collect();
        let deviations = deviations(&of_jobs);
        // What is not distinguished is one: then visits are redrawn from all jobs alike.
        let jobs = if deviations.is_empty() { vec![jobs.concat()] } else { jobs };
        Sample {
            centre: centre(&units),
            widening: bootstrap_widening(units.len()),
            deviations,
            units,
            disturbed: 0,
            jobs,
        }
    }

    /// Of the differences of two things that the same visits timed, where neither was disturbed;
    /// nothing where these are few.
    pub(super) fn of_differences(
        one: &[(u32, u32, f64)],
        other: &[(u32, u32, f64)],
    ) -> Option<Self> {
        let [one, other] = [one, other].map(|times| {
            let mut medians: BTreeMap<(u32, u32), f64> =
                visits(times).into_iter().map(|(visit, times)| (visit, middle(&times))).collect();
            let times = medians.iter().map(|(visit, seconds)| (visit.0, *seconds));
            let limit = limit(&times.collect::<Vec<_>>());
            medians.retain(|_, seconds| *seconds <= limit);
            medians
        });
        let difference =
            |(visit, seconds): (&(u32, u32), &f64)| Some((visit.0, seconds - other.get(visit)?));
        let both: Vec<(u32, f64)> = one.iter().filter_map(difference).collect();
        (both.len() >= VISITS).then(|| Sample::of_units(both))
    }

    /// How many visits were disturbed, and how many there were.
    fn disturbed(&self) -> (usize, usize) {
        (self.disturbed, self.disturbed + self.units.len())
    }

    /// How many visits of several samples were disturbed, and how many there were.
    pub(super) fn all_disturbed<'s>(samples: impl Iterator<Item = &'s Sample>) -> (usize, usize) {
        samples
            .map(Sample::disturbed)
            .fold((0, 0), |(disturbed, all), (one, of)| (disturbed + one, all + of))
    }

    pub(super) fn centre(&self) -> f64 {
        self.centre
    }

    /// A centre that as many observations could have had: the bootstrap over visits within each
    /// job, and over jobs.
    pub(super) fn redraw(&self, random: &mut impl Rng) -> f64 {
        let mut counts = vec![0_u32; self.units.len()];
        for places in &self.jobs {
            for _ in places {
                counts[places[random.random_range(0..places.len())] as usize] += 1;
            }
        }
        let redrawn = trimmed_mean_of_counts(&self.units, |place| f64::from(counts[place]), cut);
        let redrawn = redrawn.unwrap_or(self.centre);
        let jobs = self.deviations.len();
        let of_jobs: f64 =
            (0..jobs).map(|_| self.deviations[random.random_range(0..jobs)]).sum::<f64>();
        let of_jobs = of_jobs / jobs.max(1) as f64;
        (self.centre + self.widening * (redrawn - self.centre) + of_jobs).max(0.0)
    }
}

/// The times of each visit, by its job and number.
pub(super) fn visits(times: &[(u32, u32, f64)]) -> BTreeMap<(u32, u32), Vec<f64>> {
    let mut visits: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for &(job, visit, seconds) in times {
        visits.entry((job, visit)).or_default().push(seconds);
    }
    visits
}

/// The median of each visit with its job; single times where there are few visits.
fn units(times: &[(u32, u32, f64)]) -> Vec<(u32, f64)> {
    let visits = visits(times);
    if visits.len() < VISITS {
        return times.iter().map(|&(job, _, seconds)| (job, seconds)).collect();
    }
    visits.into_iter().map(|((job, _), times)| (job, middle(&times))).collect()
}

/// What takes longer was disturbed, of (job, seconds) of what counts once; of fewer than three it is not known which one.
fn limit(units: &[(u32, f64)]) -> f64 {
    if units.len() < LEAST {
        return f64::INFINITY;
    }
    let mut of_jobs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(job, seconds) in units {
        of_jobs.entry(job).or_default().push(seconds);
    }
    let of_all: Vec<f64> = units.iter().map(|(_, seconds)| *seconds).collect();
    let several = of_jobs.into_values().filter(|times| times.len() >= LEAST);
    let mut usual: Vec<f64> = several.map(|times| middle(&times)).collect();
    usual.sort_unstable_by(f64::total_cmp);
    // Of four jobs the second slowest: two alike are a state, one may have been disturbed as a whole.
    let slow = usual.get(3 * usual.len().saturating_sub(1) / 4).copied().unwrap_or_default();
    DISTURBED_FACTOR * middle(&of_all).max(slow)
}

/// The median of a visit's times; a visit has at least one.
pub(super) fn middle(times: &[f64]) -> f64 {
    median(times).unwrap_or_default()
}

/// How many of so many values are left out at either end, in parts: a quarter of up to 20; of more, three
/// and a tenth.
fn cut(count: f64) -> f64 {
    (count / 4.0).min(3.0 + count / 10.0)
}

/// The mean of ascending values without the least and the greatest; 0 of nothing.
fn centre(sorted: &[f64]) -> f64 {
    trimmed_mean(sorted, cut(sorted.len() as f64)).unwrap_or_default()
}

/// For each job how far its centre is from the mean of them, shrunk by what the spread of its
/// visits explains, and widened as a mean of so few demands (the random-effects bootstrap of
/// Davison and Hinkley 1997, Bootstrap Methods and their Application, section 3.8).
///
/// Nothing where fewer than three jobs have the two units that tell their spread: two jobs tell as
/// good as nothing of how jobs differ (Student's t of one degree of freedom is 12.7).
fn deviations(jobs: &[Vec<f64>]) -> Vec<f64> {
    let jobs: Vec<&Vec<f64>> = jobs.iter().filter(|units| units.len() > 1).collect();
    if jobs.len() < MIN_JOBS {
        return Vec::new();
    }
    let count = jobs.len() as f64;
    let centres: Vec<f64> = jobs.iter().map(|units| centre(units)).collect();
    let (Some(mean), Some(between)) = (mean(&centres), variance(&centres)) else {
        return Vec::new();
    };
    let within = jobs.iter().map(|units| squared_error(units)).sum::<f64>() / count;
    let own = if between > 0.0 { (1.0 - within / between).max(0.0).sqrt() } else { 0.0 };
    centres.iter().map(|centre| own * bootstrap_widening(jobs.len()) * (centre - mean)).collect()
}

/// The squared standard error of the centre of ascending values, two or more.
fn squared_error(sorted: &[f64]) -> f64 {
    let cut = cut(sorted.len() as f64) as usize;
    trimmed_mean_squared_error(sorted, cut).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use rand_distr::{Distribution as _, Normal};

    fn singles(times: &[f64]) -> Sample {
        let times: Vec<_> = (0..).zip(times).map(|(visit, &seconds)| (0, visit, seconds)).collect();
        Sample::new(&times)
    }

    #[test]
    fn of_few_the_centre_is_the_mean_of_the_middle_half() {
        assert_eq!(centre(&[1.0, 2.0, 3.0, 100.0]), 2.5);
        assert_eq!(centre(&[1.0, 3.0]), 2.0);
        let wild = singles(&[1.0, 1.1, 0.9, 1.0, 1e9, 1.05, 0.95, 1e9]).centre();
        assert!(wild < 1.2, "{wild}");
    }

    /// A machine that is in one state for half of the time and in another for the rest: a little more of
    /// the one moves the centre by little more than its share.
    #[test]
    fn a_mixture_of_two_states_moves_the_centre_as_the_mean() {
        let centre = |slow: u32| {
            let times: Vec<f64> =
                (0..200).map(|visit| if visit < slow { 17.0 } else { 12.0 }).collect();
            singles(&times).centre()
        };
        let moved = centre(120) - centre(80);
        assert!((moved - 0.2 * 5.0).abs() < 0.4, "{moved}");
        let mut times = vec![1.0; 198];
        times.extend([1e9; 2]);
        assert_eq!(singles(&times).centre(), 1.0, "one outlier in a hundred is left out");
    }

    /// A sixth of the visits while something else has the processors, in one job of four.
    #[test]
    fn disturbed_visits_are_left_out_and_counted() {
        let long = |visit: u32| if visit % 24 < 4 { 4.0 } else { 1.0 };
        let times = |seconds: f64| -> Vec<(u32, u32, f64)> {
            (0..96).map(|visit| (visit / 24, visit, seconds * long(visit))).collect()
        };
        let sample = Sample::new(&times(2.0));
        assert_eq!((sample.centre(), sample.disturbed()), (2.0, (16, 96)));
        let few = Sample::new(&times(2.0)[3..7]);
        assert_eq!((few.centre(), few.disturbed()), (2.0, (1, 4)));
        let first_of_a_size = singles(&[9.256, 4.166, 4.148]);
        assert_eq!((first_of_a_size.centre(), first_of_a_size.disturbed()), (4.157, (1, 3)));
        assert_eq!(singles(&[8.0, 2.0]).disturbed(), (0, 2), "nothing is usual among two");
        let difference = Sample::of_differences(&times(3.0), &times(2.0)).unwrap();
        assert_eq!((difference.units.len(), difference.centre()), (80, 1.0));
        let zero = Sample::new(&[0.0; 6].map(|seconds| (0, seconds as u32, seconds)));
        assert_eq!(zero.centre(), 0.0);
    }

    /// Sends of 6 us where ranks have a processor each, of 19 where they share one: with a few more fast visits
    /// than slow ones all slow ones were left out, and o was 6.6 us in one calibration of ten, 9.9 in the others.
    #[test]
    fn jobs_in_a_slower_state_are_not_disturbed() {
        let times = |fast: u32| -> Vec<(u32, u32, f64)> {
            let visits = |(job, count): (u32, u32)| (0..count).map(move |visit| (job, visit));
            let jobs = [(0, fast), (1, 15), (2, fast), (3, 15)].into_iter().flat_map(visits);
            let seconds = |job| if job % 2 == 0 { 6.0 } else { 19.0 };
            jobs.map(|(job, visit)| (job, 100 * job + visit, seconds(job))).collect()
        };
        for fast in [14, 15, 16] {
            let sample = Sample::new(&times(fast));
            assert_eq!(sample.disturbed().0, 0);
            assert!((sample.centre() - 12.5).abs() < 1.0, "{}", sample.centre());
        }
        let mut one_disturbed = times(15);
        one_disturbed.retain(|(job, ..)| job % 2 == 0);
        one_disturbed.extend((0..15).flat_map(|visit| [(4, visit, 6.0), (5, visit, 19.0)]));
        assert_eq!(Sample::new(&one_disturbed).disturbed(), (15, 60));
    }

    /// 8 observations of a visit say hardly more than one, whose state they share.
    #[test]
    fn a_visit_counts_once() {
        let mut times: Vec<(u32, u32, f64)> = (0..6).map(|visit| (0, visit, 1.0)).collect();
        times.extend([(0, 6, 1.5); 60]);
        let sample = Sample::new(&times);
        assert_eq!(sample.units, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5]);
        assert_eq!(sample.centre(), 1.0);
        let few = Sample::new(&[(0, 0, 1.0), (0, 0, 2.0), (0, 1, 3.0)]);
        assert_eq!(few.units, [1.0, 2.0, 3.0]);
    }

    /// What drifts from visit to visit is not in the differences.
    #[test]
    fn differences_are_taken_within_visits() {
        let drift = |visit: u32| 1.0 + f64::from(visit % 7);
        let short: Vec<_> = (0..20).map(|visit| (0, visit, drift(visit))).collect();
        let long: Vec<_> = (5..30).map(|visit| (0, visit, drift(visit) + 0.5)).collect();
        let sample = Sample::of_differences(&long, &short).unwrap();
        assert_eq!((sample.units.len(), sample.centre()), (15, 0.5));
        assert!(Sample::of_differences(&long, &short[..8]).is_none(), "3 visits are few");
    }

    /// Most was measured in one job, a little in another.
    #[test]
    fn two_jobs_make_no_interval_of_twelve_deviations() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(5);
        let mut times: Vec<_> =
            (0..10).map(|visit| (0, visit, 1.0 + 0.01 * f64::from(visit))).collect();
        times.extend([(1, 10, 1.02), (1, 11, 1.03)]);
        let sample = Sample::new(&times);
        assert_eq!((sample.jobs.len(), sample.jobs[0].len()), (1, 12));
        let far = (0..500).map(|_| (sample.redraw(&mut random) - sample.centre()).abs());
        assert!(far.fold(0.0, f64::max) < 0.1);
    }

    /// Jobs that are apart make the interval wide; jobs that are not leave it as it was.
    #[test]
    fn what_jobs_differ_by_is_in_the_interval() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(11);
        let noise = Normal::new(0.0, 0.05).unwrap();
        let mut held = [0; 2];
        const TRIALS: u32 = 300;
        for (held, apart) in held.iter_mut().zip([0.0, 0.1]) {
            let of_jobs = Normal::new(0.0, apart).unwrap();
            for _ in 0..TRIALS {
                let mut times = Vec::new();
                for job in 0..4 {
                    let level = 1.0 + of_jobs.sample(&mut random);
                    times.extend(
                        (0..12).map(|visit| (job, visit, level + noise.sample(&mut random))),
                    );
                }
                let sample = Sample::new(&times);
                let mut drawn: Vec<f64> = (0..400).map(|_| sample.redraw(&mut random)).collect();
                drawn.sort_unstable_by(f64::total_cmp);
                *held += u32::from(drawn[10] <= 1.0 && 1.0 <= drawn[389]);
            }
        }
        let shares = held.map(|held| f64::from(held) / f64::from(TRIALS));
        assert!(shares.iter().all(|share| (0.9..0.99).contains(share)), "{shares:?}");
    }
}
