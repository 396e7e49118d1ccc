//! Pattern guidelines as users write them: `MPI_Bcast <= MPI_Scatter + MPI_Allgather`.

use std::fmt;

use records::{
    Collective, Method, Point,
    platform::Platform,
    violations::{Class, FasterAlternative, Violations},
};

use crate::guidelines::{Comparison, JobMedians, ViolationTest, judged};

/// A(n) <= B(n): a collective must not be slower than what does the same work.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternGuideline {
    pub collective: Collective,
    /// B.
    pub right: RightSide,
    /// Message sizes of A; all that were measured where there are none.
    pub sizes: Vec<u64>,
    /// Communicator sizes; all that were measured where there are none.
    pub procs: Vec<u32>,
    /// Least relative gain for a violation, where it is another than usual.
    pub tolerance: Option<f64>,
}

/// What a collective is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum RightSide {
    /// Another method for the same call: a mock-up, a plug-in, an algorithm.
    Method(Method),
    /// Other collectives one after the other, each timed by itself: their times are added.
    Sum(Vec<Collective>),
}

/// `bcast <= scatter + allgather`, `bcast <= mockup:bcast_as_allgatherv`
impl fmt::Display for PatternGuideline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.right {
            RightSide::Method(method) => write!(f, "{} <= {method}", self.collective),
            RightSide::Sum(_) => write!(f, "{} <= {}", self.collective, self.better()),
        }
    }
}

impl PatternGuideline {
    /// Whether it is asked at a point.
    pub fn is_at(&self, point: Point) -> bool {
        point.collective == self.collective
            && (self.sizes.is_empty() || self.sizes.contains(&point.bytes))
            && (self.procs.is_empty() || self.procs.contains(&point.procs()))
    }

    /// The right side as it is printed for a violation.
    pub fn better(&self) -> FasterAlternative {
        match &self.right {
            RightSide::Method(method) => FasterAlternative::Method(method.clone()),
            RightSide::Sum(terms) => FasterAlternative::Sum(terms.clone()),
        }
    }

    /// What has to be timed for the right side at a point of the left one: the same amount of data by
    /// each part ([`Collective::data_bytes`]).
    pub fn terms(&self, point: Point) -> Vec<(Point, Method)> {
        let Point { collective, layout, bytes } = point;
        match &self.right {
            RightSide::Method(method) => vec![(point, method.clone())],
            RightSide::Sum(terms) => {
                let data = collective.data_bytes(bytes, layout.procs());
                let of_term = |&collective: &Collective| {
                    let bytes = collective.bytes_of_data(data, layout.procs());
                    (Point { collective, layout, bytes }, Method::Default)
                };
                terms.iter().map(of_term).collect()
            }
        }
    }

    /// The time of the right side in each job, in seconds; nothing where some job lacks a part of it.
    pub fn seconds(&self, jobs: &JobMedians, point: Point) -> Vec<f64> {
        let terms = self.terms(point);
        let of_terms: Vec<&[f64]> =
            terms.iter().map(|(point, method)| jobs.medians_of(*point, method)).collect();
        let count = of_terms.first().map_or(0, |first| first.len());
        if of_terms.iter().any(|medians| medians.len() != count) {
            return Vec::new();
        }
        (0..count).map(|job| of_terms.iter().map(|medians| medians[job]).sum()).collect()
    }
}

/// Judges as [`judge`](crate::guidelines::judge) does, by these patterns alone.
pub fn judge_patterns(
    jobs: &JobMedians,
    settings: &ViolationTest,
    patterns: &[PatternGuideline],
    platform: Platform,
    timing: &str,
) -> Violations {
    let mut comparisons = Vec::new();
    for point in jobs.points() {
        for rule in patterns.iter().filter(|rule| rule.is_at(point)) {
            let settings = ViolationTest {
                least_gain: rule.tolerance.unwrap_or(settings.least_gain),
                ..*settings
            };
            let (slow, fast) = (jobs.of_default(point), rule.seconds(jobs, point));
            comparisons.extend(Comparison::new(
                Class::Pattern,
                point,
                rule.better(),
                slow,
                &fast,
                &settings,
            ));
        }
    }
    judged(jobs, settings, comparisons, platform, timing)
}

#[cfg(test)]
mod tests {
    use records::{Layout, observation::CollectiveCall};

    use super::*;
    use choosing::samples::Samples;

    use crate::testing::call;

    fn sum(collective: Collective, terms: &[Collective]) -> PatternGuideline {
        PatternGuideline {
            collective,
            right: RightSide::Sum(terms.to_vec()),
            sizes: Vec::new(),
            procs: Vec::new(),
            tolerance: None,
        }
    }

    /// 100 bytes on 8 ranks are scattered in blocks of 13 bytes, and an allgather of blocks of 100 bytes
    /// moves as much as an allreduce of 800.
    #[test]
    fn both_sides_carry_the_same_data() {
        let sizes = |rule: &PatternGuideline, bytes| -> Vec<u64> {
            let point = Point { collective: rule.collective, layout: Layout::flat(8), bytes };
            rule.terms(point).iter().map(|(point, _)| point.bytes).collect()
        };
        let bcast = sum(Collective::Bcast, &[Collective::Scatter, Collective::Allgather]);
        assert_eq!(sizes(&bcast, 100), [13, 13]);
        assert_eq!(bcast.to_string(), "bcast <= scatter + allgather");
        assert_eq!(sizes(&sum(Collective::Allgather, &[Collective::Allreduce]), 100), [800]);
        assert_eq!(sizes(&sum(Collective::Gather, &[Collective::Allgather]), 100), [100]);
        assert_eq!(sizes(&sum(Collective::Bcast, &[Collective::Barrier]), 100), [0]);
    }

    #[test]
    fn times_are_added_job_by_job_where_each_job_has_all() {
        let job = |scatter: f64, allgather: Option<f64>| {
            let mut rows = vec![
                CollectiveCall {
                    point: Point {
                        collective: Collective::Scatter,
                        ..call("default", "", 2, scatter).point
                    },
                    ..call("default", "", 2, scatter)
                },
                call("default", "", 16, 9.0),
            ];
            rows.extend(allgather.map(|seconds| CollectiveCall {
                point: Point {
                    collective: Collective::Allgather,
                    ..call("default", "", 2, seconds).point
                },
                ..call("default", "", 2, seconds)
            }));
            Samples::gather(&rows, libraries::ran_as_asked)
        };
        let rule = sum(Collective::Bcast, &[Collective::Scatter, Collective::Allgather]);
        let point = Point { collective: Collective::Bcast, layout: Layout::flat(8), bytes: 16 };
        let whole = JobMedians::new(&[job(1.0, Some(0.5)), job(2.0, Some(0.25))]);
        assert_eq!(rule.seconds(&whole, point), [1.5, 2.25]);
        let lacking = JobMedians::new(&[job(1.0, Some(0.5)), job(2.0, None)]);
        assert!(rule.seconds(&lacking, point).is_empty());
    }

    /// The sum takes 0.7 of the default's time; a guideline of another size, of other processes, or that
    /// allows twice the time is not violated.
    #[test]
    fn a_guideline_of_the_users_is_judged_where_it_holds_and_by_its_tolerance() {
        let mut samples = Vec::new();
        for job in 0..6 {
            let noise = 1.0 + 0.001 * f64::from(job);
            let of = |collective, bytes, seconds: f64| CollectiveCall {
                point: Point { collective, ..call("default", "", bytes, seconds * noise).point },
                ..call("default", "", bytes, seconds * noise)
            };
            samples.push(Samples::gather(
                &[
                    of(Collective::Bcast, 64, 1.0),
                    of(Collective::Scatter, 8, 0.3),
                    of(Collective::Allgather, 8, 0.4),
                ],
                libraries::ran_as_asked,
            ));
        }
        let right = RightSide::Sum(vec![Collective::Scatter, Collective::Allgather]);
        let rule = PatternGuideline {
            collective: Collective::Bcast,
            right,
            sizes: Vec::new(),
            procs: Vec::new(),
            tolerance: None,
        };
        let found = |rule: PatternGuideline| {
            let jobs = JobMedians::new(&samples);
            let found =
                judge_patterns(&jobs, &ViolationTest::default(), &[rule], Platform::default(), "");
            found.violations.into_iter().filter(|one| one.class == Class::Pattern).count()
        };
        assert_eq!(found(rule.clone()), 1);
        assert_eq!(found(PatternGuideline { sizes: vec![64], procs: vec![8], ..rule.clone() }), 1);
        assert_eq!(found(PatternGuideline { sizes: vec![32], ..rule.clone() }), 0);
        assert_eq!(found(PatternGuideline { procs: vec![4], ..rule.clone() }), 0);
        assert_eq!(found(PatternGuideline { tolerance: Some(1.0), ..rule.clone() }), 0);
        let jobs = JobMedians::new(&samples);
        let judged =
            judge_patterns(&jobs, &ViolationTest::default(), &[rule], Platform::default(), "")
                .judged;
        assert_eq!(judged[0].right, "scatter + allgather");
        assert_eq!(
            (judged[0].sizes.as_slice(), judged[0].violated.as_slice()),
            (&[64][..], &[64][..])
        );
    }
}
