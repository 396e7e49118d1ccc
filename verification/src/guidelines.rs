//! Performance guidelines: what an MPI library must not be slower than, and where it is.
//!
//! After PGMPI (Hunold, Carpen-Amarie, Lübbe and Träff, EuroMPI 2016) and PGMPITuneLib (HPC Asia
//! 2018). What is compared is the median of each job, since times vary more from job to job than
//! within one.

use std::collections::BTreeMap;

use records::{
    Collective, Layout, Method, Point,
    platform::Platform,
    violations::{Class, FasterAlternative, Violation, ViolationCriteria, Violations},
};
use statistics::{false_discovery_control, median, significance::Test};

use choosing::samples::Samples;

use crate::{penalty::message_sizes, violation_counts::ViolationCounts};

/// How a violation is distinguished from noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViolationTest {
    /// How samples are compared.
    pub test: Test,
    /// Greatest share of false ones among the violations.
    pub level: f64,
    /// Least relative gain for a violation of pattern and monotony.
    pub least_gain: f64,
    /// Least relative gain of a replacement in a profile (PGMPITuneLib: 10 %).
    pub replacement_gain: f64,
    /// Relative gain from which k calls on a part violate split-robustness (PGMPI: 5 %).
    pub split_tolerance: f64,
}

impl Default for ViolationTest {
    fn default() -> Self {
        ViolationTest {
            test: Test::RankSum,
            level: 0.05,
            least_gain: 0.05,
            replacement_gain: 0.10,
            split_tolerance: 0.05,
        }
    }
}

/// The medians of several jobs that measured the same cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobMedians {
    medians: BTreeMap<Point, BTreeMap<Method, Vec<f64>>>,
}

impl JobMedians {
    /// Of each job's observations.
    pub fn new<'a>(jobs: impl IntoIterator<Item = &'a Samples>) -> Self {
        let mut all = JobMedians::default();
        for samples in jobs {
            for point in samples.points() {
                for (method, times) in samples.at(point) {
                    let medians = all.medians.entry(point).or_default();
                    medians.entry(method.clone()).or_default().extend(times.median());
                }
            }
        }
        all
    }

    /// The points measured, ascending.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.medians.keys().copied()
    }

    /// The methods measured at a point, with the median of each job in seconds.
    pub fn at(&self, point: Point) -> impl Iterator<Item = (&Method, &[f64])> {
        let methods = self.medians.get(&point).into_iter().flatten();
        methods.map(|(method, medians)| (method, medians.as_slice()))
    }

    /// The median of each job in seconds; empty where nothing was measured.
    pub fn medians_of(&self, point: Point, method: &Method) -> &[f64] {
        self.medians.get(&point).and_then(|methods| methods.get(method)).map_or(&[], Vec::as_slice)
    }

    /// The median of the jobs' medians, in seconds.
    pub fn median(&self, point: Point, method: &Method) -> Option<f64> {
        median(self.medians_of(point, method))
    }

    /// How many jobs measured the cell that most of them did; others' jobs measure different cells.
    fn most_of_a_cell(&self) -> u32 {
        let cells = self.medians.values().flat_map(BTreeMap::values);
        cells.map(|medians| medians.len() as u32).max().unwrap_or(0)
    }

    pub(crate) fn of_default(&self, point: Point) -> &[f64] {
        self.medians_of(point, &Method::Default)
    }
}

/// A pair of samples to be distinguished.
pub(crate) struct Comparison {
    class: Class,
    point: Point,
    better: FasterAlternative,
    seconds: f64,
    better_seconds: f64,
    p_value: f64,
    /// The least that samples of these sizes can give.
    least_p_value: f64,
    /// Least relative gain for a violation.
    least_gain: f64,
}

/// Judges every guideline at every point at which the default was measured on `platform`, timed as `timing` says.
pub fn judge(
    jobs: &JobMedians,
    settings: &ViolationTest,
    platform: Platform,
    timing: &str,
) -> Violations {
    judged(jobs, settings, patterns(jobs, settings), platform, timing)
}

/// Judges these patterns, monotony and split-robustness.
pub(crate) fn judged(
    jobs: &JobMedians,
    settings: &ViolationTest,
    mut comparisons: Vec<Comparison>,
    platform: Platform,
    timing: &str,
) -> Violations {
    comparisons.extend(monotonies(jobs, settings));
    let p_values: Vec<f64> = comparisons.iter().map(|comparison| comparison.p_value).collect();
    let corrected = false_discovery_control(&p_values);
    let mut counts = ViolationCounts::default();
    let mut violations = Vec::new();
    for (comparison, corrected) in comparisons.iter().zip(corrected) {
        counts.judged(comparison.class, comparison.point, &comparison.better);
        let violation = comparison.violation(jobs, corrected);
        if corrected <= settings.level && violation.gain >= comparison.least_gain {
            counts.violated(&violation);
            violations.push(violation);
        }
    }
    for (point, violation) in splits(jobs, settings.split_tolerance) {
        counts.judged(Class::SplitRobustness, point, &FasterAlternative::Bytes(point.bytes));
        violations.extend(violation.inspect(|violation| counts.violated(violation)));
    }
    violations.sort_by_key(|v| (v.class, v.point));
    let least_p_value = comparisons.iter().map(|one| one.least_p_value).fold(1.0, f64::min);
    let judged = counts.judged_guidelines();
    let counts = counts.into_counts();
    Violations {
        platform,
        timing: timing.into(),
        message_size: message_sizes(counts.iter().map(|count| count.collective)),
        verdict: ViolationCriteria {
            unit: "the median of one job's observations".into(),
            jobs: jobs.most_of_a_cell(),
            test: settings.test.name().into(),
            level: settings.level,
            least_gain: settings.least_gain,
            split_tolerance: settings.split_tolerance,
            comparisons: comparisons.len() as u32,
            least_p_value,
        },
        judged,
        counts,
        violations,
        warnings: Vec::new(),
    }
}

impl Comparison {
    /// Nothing where a sample is empty.
    pub(crate) fn new(
        class: Class,
        point: Point,
        better: FasterAlternative,
        slow: &[f64],
        fast: &[f64],
        settings: &ViolationTest,
    ) -> Option<Self> {
        Some(Comparison {
            class,
            point,
            better,
            seconds: median(slow)?,
            better_seconds: median(fast)?,
            p_value: settings.test.p_value(fast, slow),
            least_gain: settings.least_gain,
            least_p_value: Test::least_p_value(fast.len(), slow.len()),
        })
    }

    fn violation(&self, jobs: &JobMedians, corrected: f64) -> Violation {
        let Point { layout, .. } = self.point;
        Violation {
            class: self.class,
            point: self.point,
            better: self.better.clone(),
            seconds: self.seconds,
            better_seconds: self.better_seconds,
            gain: self.seconds / self.better_seconds - 1.0,
            p_value: Some(self.p_value),
            corrected_p_value: Some(corrected),
            calls_seconds: None,
            calls_gain: None,
            gains_less_than_a_barrier: less_than_a_barrier(
                jobs,
                layout,
                self.seconds - self.better_seconds,
            ),
        }
    }
}

fn less_than_a_barrier(jobs: &JobMedians, layout: Layout, gained: f64) -> Option<bool> {
    let barrier = Point { collective: Collective::Barrier, layout, bytes: 0 };
    jobs.median(barrier, &Method::Default).map(|seconds| gained < seconds)
}

/// The default against every mock-up. Our own algorithms and forced ones break no guideline of
/// the interface; they are for profiles.
fn patterns(jobs: &JobMedians, settings: &ViolationTest) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for point in jobs.points() {
        for (method, fast) in jobs.at(point) {
            if matches!(method, Method::Mockup(_)) {
                let better = FasterAlternative::Method(method.clone());
                let slow = jobs.of_default(point);
                comparisons.extend(Comparison::new(
                    Class::Pattern,
                    point,
                    better,
                    slow,
                    fast,
                    settings,
                ));
            }
        }
    }
    comparisons
}

/// Every size against the next larger one.
fn monotonies(jobs: &JobMedians, settings: &ViolationTest) -> Vec<Comparison> {
    let points: Vec<Point> = jobs.points().collect();
    let series = |pair: &&[Point]| {
        (pair[0].collective, pair[0].layout) == (pair[1].collective, pair[1].layout)
    };
    let compare = |pair: &[Point]| {
        let better = FasterAlternative::Bytes(pair[1].bytes);
        let (slow, fast) = (jobs.of_default(pair[0]), jobs.of_default(pair[1]));
        Comparison::new(Class::Monotony, pair[0], better, slow, fast, settings)
    };
    points.windows(2).filter(series).filter_map(compare).collect()
}

/// Every size against k calls of each smaller one. For each size at most one violation is reported:
/// the one with the fewest calls.
fn splits(jobs: &JobMedians, tolerance: f64) -> Vec<(Point, Option<Violation>)> {
    let mut judged = Vec::new();
    let points: Vec<Point> = jobs.points().filter(|point| point.bytes > 0).collect();
    for &point in &points {
        let Some(seconds) = jobs.median(point, &Method::Default) else { continue };
        let series = (point.collective, point.layout);
        let smaller = points.iter().rev().filter(|other| {
            (other.collective, other.layout) == series && other.bytes < point.bytes
        });
        let mut parts = smaller.peekable();
        if parts.peek().is_none() {
            continue;
        }
        let violation = parts.find_map(|part| {
            let calls = u32::try_from(point.bytes.div_ceil(part.bytes)).ok()?;
            let better_seconds = f64::from(calls) * jobs.median(*part, &Method::Default)?;
            let gain = seconds / better_seconds - 1.0;
            (gain > tolerance).then(|| Violation {
                class: Class::SplitRobustness,
                point,
                better: FasterAlternative::Calls { calls, bytes: part.bytes },
                seconds,
                better_seconds,
                gain,
                p_value: None,
                corrected_p_value: None,
                calls_seconds: None,
                calls_gain: None,
                gains_less_than_a_barrier: less_than_a_barrier(
                    jobs,
                    point.layout,
                    seconds - better_seconds,
                ),
            })
        });
        judged.push((point, violation));
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;

    /// Six jobs of bcast at the sizes and times given, each a little different.
    fn jobs(cells: &[(&str, u64, f64)]) -> JobMedians {
        let samples: Vec<Samples> = (0..6)
            .map(|job| {
                let noise = 1.0 + 0.001 * f64::from(job);
                let rows: Vec<_> = cells
                    .iter()
                    .map(|&(method, bytes, seconds)| call(method, "", bytes, seconds * noise))
                    .collect();
                Samples::gather(&rows, libraries::ran_as_asked)
            })
            .collect();
        JobMedians::new(&samples)
    }

    fn found(cells: &[(&str, u64, f64)]) -> Vec<Violation> {
        judge(&jobs(cells), &ViolationTest::default(), Platform::default(), "").violations
    }

    #[test]
    fn a_mock_up_that_is_faster_is_found_and_nothing_else() {
        let cells = [
            ("default", 8, 1.0),
            ("mockup:bcast_as_allgatherv", 8, 0.5),
            ("mockup:bcast_as_scatter_allgather", 8, 0.97),
            ("own:linear", 8, 0.1),
            ("default", 16, 1.5),
            ("mockup:bcast_as_allgatherv", 16, 1.6),
        ];
        let violations = found(&cells);
        assert_eq!(violations.len(), 1, "{violations:?}");
        let violation = &violations[0];
        let mockup = Method::Mockup("bcast_as_allgatherv".into());
        assert_eq!(
            (violation.point.bytes, &violation.better),
            (8, &FasterAlternative::Method(mockup))
        );
        assert!((violation.gain - 1.0).abs() < 1e-9);
        assert!(violation.corrected_p_value >= violation.p_value);
    }

    #[test]
    fn less_time_for_more_data_breaks_monotony_at_the_smaller_size() {
        let violations = found(&[("default", 8, 1.0), ("default", 16, 2.0), ("default", 32, 1.8)]);
        let monotony: Vec<_> = violations.iter().filter(|v| v.class == Class::Monotony).collect();
        assert_eq!(monotony.len(), 1);
        assert_eq!(
            (monotony[0].point.bytes, &monotony[0].better),
            (16, &FasterAlternative::Bytes(32))
        );
    }

    #[test]
    fn of_the_splits_that_are_faster_the_one_with_the_fewest_calls_is_told() {
        // 100 bytes in 4 calls of 30 (120 bytes) or in 13 of 8.
        let violations =
            found(&[("default", 8, 1.0), ("default", 30, 4.0), ("default", 100, 20.0)]);
        let splits: Vec<_> =
            violations.iter().filter(|v| v.class == Class::SplitRobustness).collect();
        assert_eq!(splits.len(), 1, "{splits:?}");
        assert_eq!(
            (splits[0].point.bytes, &splits[0].better),
            (100, &FasterAlternative::Calls { calls: 4, bytes: 30 })
        );
        assert!((splits[0].gain - 0.25).abs() < 1e-9);
        // At 2 % there is none: the tolerance is 5 %, not a factor of 2.05.
        assert!(found(&[("default", 8, 1.0), ("default", 16, 2.04)]).is_empty());
        assert_eq!(found(&[("default", 8, 1.0), ("default", 16, 2.2)]).len(), 1);
    }

    #[test]
    fn three_jobs_find_nothing_and_the_verdict_says_why() {
        let cells = [("default", 8, 1.0), ("mockup:bcast_as_allgatherv", 8, 0.5)];
        let mut samples: Vec<Samples> = (0..3)
            .map(|_| {
                Samples::gather(
                    &cells.map(|(method, bytes, s)| call(method, "", bytes, s)),
                    libraries::ran_as_asked,
                )
            })
            .collect();
        // A job that measured another cell repeats none of these.
        samples.push(Samples::gather(&[call("default", "", 16, 2.0)], libraries::ran_as_asked));
        let strict = ViolationTest { level: 0.01, ..ViolationTest::default() };
        let found = judge(&JobMedians::new(&samples), &strict, Platform::default(), "");
        assert!(found.violations.is_empty());
        assert!((found.verdict.least_p_value - 0.05).abs() < 1e-12);
        assert_eq!((found.verdict.jobs, found.counts[0].points), (3, 1));
    }
}
