//! Whether what was chosen still holds, by pairs of jobs made long after: one as it is, one with the choice loaded.
//!
//! What was confirmed is confirmed anew by [`evidence`], and what does harm is found by
//! [`harm`], both over all points together. What is neither was shown to gain nothing if its interval
//! (95 % for all points together, Bonferroni) lies below one plus the tolerance; else it is undecided.

use records::{Method, check::PointVerdict, confirmed::MIN_PAIRS};
use statistics::PairedJobs;

use crate::{
    evidence::{self, Shown},
    harm::{self, LEVEL, TOLERANCE},
    pairs::PairedTimes,
};

/// Why a point can't be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// There were fewer than [`MIN_PAIRS`] pairs of jobs.
    TooFewPairs,
    /// There were enough, but others disturbed them.
    Disturbed,
    /// The interval holds a gain as well as none.
    Noisy,
}

/// What is shown of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    pub verdict: PointVerdict,
    /// Where it is undecided.
    pub doubt: Option<Doubt>,
    /// default / loaded: geometric mean over the pairs.
    pub speed_up: Option<f64>,
    /// Its interval: 95 % for all points together.
    pub interval: Option<[f64; 2]>,
    /// Where it is now slower.
    pub p_value: Option<f64>,
}

/// Judges all points together; they ascend.
pub fn judge(points: &[PairedTimes]) -> Vec<Judged> {
    let jobs: Vec<PairedJobs> = points.iter().map(PairedTimes::speed_ups).collect();
    let enough = points.iter().zip(&jobs).filter(|(_, jobs)| evidence::is_enough(jobs));
    let compared: Vec<PairedTimes> = enough.map(|(one, _)| one.clone()).collect();
    let harm = harm::test(&compared);
    let confidence = 1.0 - LEVEL / compared.len().max(1) as f64;
    let shown = evidence::shown(points, &|_, _| false);
    let of_one = |((one, jobs), shown): ((&PairedTimes, &PairedJobs), Shown)| {
        let of_all = jobs.estimate(confidence);
        let slower = harm.slower.iter().find(|slower| slower.point == one.point);
        let is_loaded = one.method != Method::Default;
        let is_faster = matches!(shown, Shown::Faster(_) | Shown::Between(..));
        let (verdict, doubt) = match of_all {
            _ if slower.is_some() => (PointVerdict::NowSlower, None),
            _ if !evidence::is_enough(jobs) && one.made >= MIN_PAIRS as usize => {
                (PointVerdict::CannotTell, Some(Doubt::Disturbed))
            }
            _ if !evidence::is_enough(jobs) => (PointVerdict::CannotTell, Some(Doubt::TooFewPairs)),
            _ if is_loaded && is_faster => (PointVerdict::Holds, None),
            Some(now) if is_loaded && now.high < 1.0 + TOLERANCE => {
                (PointVerdict::NoLongerFaster, None)
            }
            Some(now) if !is_loaded && now.low > 1.0 / (1.0 + TOLERANCE) => {
                (PointVerdict::Holds, None)
            }
            _ => (PointVerdict::CannotTell, Some(Doubt::Noisy)),
        };
        Judged {
            verdict,
            doubt,
            speed_up: jobs.ratio(),
            interval: of_all.filter(|_| evidence::is_enough(jobs)).map(|now| [now.low, now.high]),
            p_value: slower.map(|slower| slower.p_value),
        }
    };
    points.iter().zip(&jobs).zip(shown).map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use records::{Collective, Point};

    use super::*;
    use crate::testing::paired_jobs;

    /// Twelve sizes with something loaded and four sentinels, in so many turns of jobs that differ so much. `slowness` says
    /// how long a call with it takes, relative to the default.
    fn points(
        seed: u64,
        turns: usize,
        noise: f64,
        slowness: impl Fn(usize) -> f64,
    ) -> Vec<PairedTimes> {
        let of = |(index, times): (usize, Vec<[f64; 2]>)| PairedTimes {
            point: Point::flat(Collective::Bcast, 8, 1 << index),
            method: if index < 12 { "own:binomial" } else { "default" }.parse().unwrap(),
            turns: times.into_iter().enumerate().collect(),
            made: turns,
        };
        let times = paired_jobs(seed, turns, noise, (0..16).map(slowness));
        times.into_iter().enumerate().map(of).collect()
    }

    fn verdicts(points: &[PairedTimes]) -> Vec<PointVerdict> {
        judge(points).iter().map(|judged| judged.verdict).collect()
    }

    #[test]
    fn what_is_still_faster_holds_and_sentinels_take_as_long() {
        let found = judge(&points(1, 6, 0.005, |index| if index < 12 { 0.7 } else { 1.0 }));
        assert!(found.iter().all(|one| one.verdict == PointVerdict::Holds), "{found:?}");
        let [low, high] = found[0].interval.unwrap();
        assert!(low < 1.43 && high > 1.43 && low > 1.2 && high < 1.7, "{low} {high}");
    }

    #[test]
    fn what_became_slower_is_found_at_its_points_alone() {
        let of = |index| match index {
            4 | 5 => 1.4,
            12.. => 1.0,
            _ => 0.7,
        };
        let found = judge(&points(2, 6, 0.01, of));
        let slower: Vec<usize> =
            (0..16).filter(|&index| found[index].verdict == PointVerdict::NowSlower).collect();
        assert_eq!(slower, [4, 5], "{found:?}");
        assert!(found[4].p_value.unwrap() < 0.05 && found[4].speed_up.unwrap() < 0.8);
        assert!(found[3].verdict == PointVerdict::Holds && found[3].p_value.is_none());
    }

    #[test]
    fn what_gains_nothing_any_more_is_told_apart_from_what_cannot_be_told() {
        let quiet = verdicts(&points(3, 8, 0.005, |_| 1.0));
        let no_longer = |all: &[PointVerdict]| {
            all.iter().filter(|one| **one == PointVerdict::NoLongerFaster).count()
        };
        assert_eq!(no_longer(&quiet), 12, "{quiet:?}");
        assert_eq!(quiet[15], PointVerdict::Holds);
        let noisy = judge(&points(3, 4, 0.3, |_| 1.0));
        let doubts = noisy.iter().filter(|one| one.doubt == Some(Doubt::Noisy)).count();
        assert!(doubts >= 15, "{noisy:?}");
    }

    #[test]
    fn few_or_disturbed_pairs_tell_nothing() {
        let mut few = points(4, 2, 0.01, |_| 3.0);
        assert!(judge(&few).iter().all(|one| one.doubt == Some(Doubt::TooFewPairs)));
        few.iter_mut().for_each(|one| one.made = 5);
        let found = judge(&few);
        assert!(found.iter().all(|one| one.doubt == Some(Doubt::Disturbed)), "{found:?}");
        assert!(found.iter().all(|one| one.interval.is_none()));
        assert!(judge(&[]).is_empty());
    }

    /// Of 200 checks in which nothing has changed, be it by much noise or by little, as few call anything slower as the
    /// level says; and as few give up a gain of a fifth.
    #[test]
    fn pure_noise_raises_no_more_alarms_than_the_level_says() {
        let alarms = |noise: f64, slowness: f64, wanted: PointVerdict| {
            let of = |index| if index < 12 { slowness } else { 1.0 };
            let is_alarmed = |&seed: &u64| verdicts(&points(seed, 5, noise, of)).contains(&wanted);
            (0..200).filter(is_alarmed).count()
        };
        for noise in [0.01, 0.05, 0.2] {
            // 10 are expected at most; three standard deviations are 9.
            let slower = alarms(noise, 1.0, PointVerdict::NowSlower);
            assert!(slower <= 19, "{slower} of 200 with a noise of {noise}");
            let at_the_line = alarms(noise, 1.0 + TOLERANCE, PointVerdict::NowSlower);
            assert!(at_the_line <= 19, "{at_the_line} of 200 with a noise of {noise}");
            let given_up = alarms(noise, 1.0 / 1.2, PointVerdict::NoLongerFaster);
            assert!(given_up <= 19, "{given_up} of 200 with a noise of {noise}");
        }
    }
}
