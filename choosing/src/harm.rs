//! No harm: whether a loaded decision makes a call slower than the library's default.

use records::summary::{Harm, Slower};
use statistics::{PairedJobs, family_wise_control, median};

use crate::pairs::PairedTimes;

/// How much slower a call may be, relatively: what is less is no harm.
pub const TOLERANCE: f64 = 0.05;
/// Probability of calling anything harm that is none, over all cells together.
pub const LEVEL: f64 = 0.05;
/// A detectable slowdown above this (a hundredfold) tells nothing but that there were too few turns: of two
/// that disagree it is beyond all numbers.
const TELLING: f64 = 100.0;

/// With which probability a slowdown that is reported to be detectable would have been found.
pub const POWER: f64 = 0.8;

/// Tests all points at which the loaded decision differs from the default, together: by the ratio of the
/// times in each turn of two jobs, however often the jobs repeated the call ([`PairedJobs`]), against one of
/// 1 + [`TOLERANCE`], at [`LEVEL`] corrected for their number (Holm).
pub fn test(cells: &[PairedTimes]) -> Harm {
    let jobs: Vec<PairedJobs> = cells.iter().map(PairedTimes::slowdowns).collect();
    let p_values: Vec<f64> = jobs.iter().map(|jobs| jobs.p_value_above(1.0 + TOLERANCE)).collect();
    let corrected = family_wise_control(&p_values);
    let tested = cells.iter().zip(&jobs).zip(&corrected);
    let slower = tested.filter(|(_, p)| **p < LEVEL);
    let slower = slower.filter_map(|((cell, jobs), &p_value)| slower_point(cell, jobs, p_value));
    let ratios = jobs.iter().filter_map(PairedJobs::ratio).map(|ratio| ratio - 1.0);
    let level = LEVEL / cells.len().max(1) as f64;
    let detectable: Vec<f64> = jobs.iter().filter_map(|jobs| detectable(jobs, level)).collect();
    Harm {
        points: cells.len() as u32,
        jobs: jobs.iter().map(PairedJobs::count).max().unwrap_or_default() as u32,
        tolerance: TOLERANCE,
        level: LEVEL,
        greatest_slowdown: ratios.reduce(f64::max),
        detectable: median(&detectable).filter(|slowdown| *slowdown <= TELLING),
        slower: slower.collect(),
        too_few: jobs.iter().filter(|jobs| jobs.count() < 2).count() as u32,
    }
}

/// Which slowdown would have been found with [`POWER`].
fn detectable(jobs: &PairedJobs, level: f64) -> Option<f64> {
    Some((1.0 + TOLERANCE) * jobs.detectable(level, POWER)? - 1.0)
}

fn slower_point(cell: &PairedTimes, jobs: &PairedJobs, p_value: f64) -> Option<Slower> {
    let times = |which: usize| median(&cell.turns.values().map(|of| of[which]).collect::<Vec<_>>());
    Some(Slower {
        point: cell.point,
        method: cell.method.clone(),
        default_seconds: times(0)?,
        loaded_seconds: times(1)?,
        slowdown: jobs.ratio()? - 1.0,
        p_value,
    })
}

#[cfg(test)]
mod tests {
    use records::{Collective, Method, Point};

    use super::*;
    use crate::testing::paired_jobs;

    /// 60 points in so many turns of jobs that differ so much; `factor` says how much slower what is loaded is.
    fn cells(
        seed: u64,
        turns: usize,
        deviation: f64,
        factor: impl Fn(u64) -> f64,
    ) -> Vec<PairedTimes> {
        let cell = |(bytes, turns): (u64, Vec<[f64; 2]>)| PairedTimes {
            point: Point::flat(Collective::Bcast, 8, bytes),
            method: Method::Default,
            made: turns.len(),
            turns: turns.into_iter().enumerate().collect(),
        };
        let times = paired_jobs(seed, turns, deviation, (1..=60).map(factor));
        (1..).zip(times).map(cell).collect()
    }

    #[test]
    fn what_is_much_slower_is_found_and_nothing_else() {
        let slow = |bytes| if bytes == 7 || bytes == 40 { 1.5 } else { 0.9 };
        let harm = test(&cells(1, 8, 0.03, slow));
        let found: Vec<u64> = harm.slower.iter().map(|slower| slower.point.bytes).collect();
        assert_eq!(found, [7, 40]);
        assert!(harm.slower.iter().all(|slower| (slower.slowdown - 0.5).abs() < 0.1));
        assert_eq!((harm.points, harm.jobs, harm.too_few), (60, 8, 0));
        assert!(harm.greatest_slowdown.unwrap() > 0.4);
        let detectable = harm.detectable.unwrap();
        assert!((0.1..0.5).contains(&detectable), "{detectable}");
    }

    /// Of 200 sets of 60 points each that are slower by just what is allowed, few are blamed, however much
    /// the jobs differ.
    #[test]
    fn equal_times_are_seldom_called_harm() {
        for effect in [0.03, 0.2] {
            let blamed = |factor: f64| {
                let judged =
                    |&seed: &u64| !test(&cells(seed, 6, effect, |_| factor)).slower.is_empty();
                (0..200).filter(judged).count()
            };
            let at_the_line = blamed(1.05);
            assert!(at_the_line <= 18, "{at_the_line} of 200 sets; 10 are expected at most");
        }
    }

    /// As was seen on a busy machine: the summary could not be written.
    #[test]
    fn two_turns_that_disagree_tell_no_detectable_slowdown() {
        let cell = |bytes| PairedTimes {
            point: Point::flat(Collective::Bcast, 8, bytes),
            method: Method::Default,
            turns: [[1e-4, 1.1e-4], [1e-4, 3.0e-4]].into_iter().enumerate().collect(),
            made: 2,
        };
        let harm = test(&(0..40).map(cell).collect::<Vec<_>>());
        assert_eq!(harm.detectable, None, "{harm:?}");
    }

    /// As was seen: a job of 117 % more, whose repetitions all agree.
    #[test]
    fn one_pair_of_jobs_shows_nothing_however_often_it_repeated_the_call() {
        let point = Point::flat(Collective::Allgather, 2, 64);
        let turns = [(0, [1e-4, 2.17e-4])].into();
        let harm = test(&[PairedTimes { point, method: Method::Default, turns, made: 1 }]);
        assert!(harm.slower.is_empty() && harm.too_few == 1, "{harm:?}");
        assert_eq!(harm.detectable, None);
        assert_eq!(test(&[]).points, 0);
    }
}
