//! Two decision functions compared by measurements that belong to neither.

use records::{
    Method, Point,
    agreement::{Agreement, Difference},
    platform::Platform,
};
use statistics::{PairedJobs, family_wise_control};

use choosing::samples::Samples;

use crate::{functions::DecisionFunction, penalty::message_sizes};

/// The relative difference from which on it matters which of two methods is taken.
pub const TOLERANCE: f64 = 0.05;
/// Level of the test whether a difference is beyond that.
const LEVEL: f64 = 0.05;

/// Where two decision functions take different methods, and how much slower the slower one is, by
/// the midmeans of all observations. Whether it surely is, follows from the ratios in the `jobs` that measured both:
/// the repetitions of one share its state, so that one job shows nothing.
pub fn agreement(
    samples: &Samples,
    jobs: &[Samples],
    [first, second]: [&DecisionFunction; 2],
    platform: Platform,
) -> Agreement {
    let both: Vec<(Point, [&Result<Method, String>; 2])> = first
        .decided
        .iter()
        .filter_map(|(point, one)| Some((*point, [one, second.decided.get(point)?])))
        .collect();
    let differing = both.iter().filter(|(_, [one, other])| one != other);
    let mut differences: Vec<Difference> = differing
        .clone()
        .filter_map(|(point, methods)| difference(samples, jobs, *point, *methods))
        .collect();
    let p_values: Vec<f64> = differences.iter().map(|difference| difference.p_value).collect();
    for (difference, p_value) in differences.iter_mut().zip(family_wise_control(&p_values)) {
        difference.p_value = p_value;
    }
    let differing = differing.count() as u32;
    let beyond = |difference: &&Difference| difference.difference > TOLERANCE;
    let significant = |difference: &&Difference| difference.p_value < LEVEL;
    Agreement {
        platform,
        message_size: message_sizes(both.iter().map(|(point, _)| point.collective)),
        first: first.name.clone(),
        second: second.name.clone(),
        points: both.len() as u32,
        differing,
        not_measured: differing - differences.len() as u32,
        tolerance: TOLERANCE,
        jobs: jobs.len() as u32,
        beyond: differences.iter().filter(beyond).count() as u32,
        significantly_beyond: differences.iter().filter(beyond).filter(significant).count() as u32,
        greatest: differences.iter().map(|one| one.difference).fold(0.0, f64::max),
        differences,
    }
}

fn difference(
    samples: &Samples,
    jobs: &[Samples],
    point: Point,
    [first, second]: [&Result<Method, String>; 2],
) -> Option<Difference> {
    let (first, second) = (first.as_ref().ok()?, second.as_ref().ok()?);
    let (of_first, of_second) = (samples.get(point, first)?, samples.get(point, second)?);
    let (first_seconds, second_seconds) = (of_first.midmean()?, of_second.midmean()?);
    let (fast, slow) = match first_seconds <= second_seconds {
        true => (first, second),
        false => (second, first),
    };
    let of_job = |job: &Samples| {
        let time = |method| job.get(point, method)?.midmean();
        Some([time(fast)?, time(slow)?])
    };
    let pairs: Vec<[f64; 2]> = jobs.iter().filter_map(of_job).collect();
    Some(Difference {
        point,
        first: first.clone(),
        first_seconds,
        second: second.clone(),
        second_seconds,
        difference: (first_seconds / second_seconds).ln().abs().exp_m1(),
        p_value: PairedJobs::new(&pairs).p_value_above(1.0 + TOLERANCE),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use records::{Collective, observation::CollectiveCall};

    use super::*;
    use crate::testing::call;

    const LINEAR: &str = "native:openmpi:linear";
    const BINOMIAL: &str = "native:openmpi:binomial";

    fn function(name: &str, methods: [&str; 4]) -> DecisionFunction {
        let decided = (0..4).zip(methods).map(|(power, method)| {
            let point = Point::flat(Collective::Bcast, 8, 1 << power);
            (point, method.parse().map_err(|_| method.to_owned()))
        });
        DecisionFunction { name: name.into(), decided: decided.collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn where_two_functions_differ_the_slower_is_compared_with_the_faster() {
        let job = |job: u32| {
            let noise = 1.0 + 0.01 * f64::from(job);
            let at = |(bytes, linear): (u64, f64)| {
                [call(LINEAR, "", bytes, linear * noise), call(BINOMIAL, "", bytes, 1.0)]
            };
            [(1, 1.0), (2, 1.02), (4, 1.5), (8, 1.0)].map(at).concat()
        };
        let rows: Vec<Vec<CollectiveCall>> = (0..4).map(job).collect();
        let samples = Samples::gather(&rows.concat(), libraries::ran_as_asked);
        let jobs: Vec<Samples> =
            rows.iter().map(|rows| Samples::gather(rows, libraries::ran_as_asked)).collect();
        let one = function("one", [LINEAR, LINEAR, LINEAR, "algorithm 4"]);
        let other = function("other", [LINEAR, BINOMIAL, BINOMIAL, LINEAR]);
        let found = agreement(&samples, &jobs, [&one, &other], Platform::default());
        assert_eq!((found.points, found.differing, found.not_measured), (4, 3, 1));
        assert_eq!((found.beyond, found.significantly_beyond), (1, 1));
        assert!((found.greatest - 0.5).abs() < 0.05);
        let bytes: Vec<u64> =
            found.differences.iter().map(|difference| difference.point.bytes).collect();
        assert_eq!(bytes, [2, 4]);
        let turned = agreement(&samples, &jobs, [&other, &one], Platform::default());
        assert!((turned.greatest - found.greatest).abs() < 1e-9);
    }

    /// Two jobs with many repetitions; one of them met the machine in another state.
    #[test]
    fn repetitions_of_one_job_are_no_independent_observations() {
        let job = |of_jobs: [f64; 2]| -> Vec<CollectiveCall> {
            let rows = [LINEAR, BINOMIAL].into_iter().zip(of_jobs).flat_map(|(method, seconds)| {
                (0..30).map(move |step| CollectiveCall {
                    repetition: step,
                    ..call(method, "", 1, seconds * (1.0 + 0.0001 * f64::from(step)))
                })
            });
            rows.collect()
        };
        let decided = |name, method: &str| {
            let point = Point::flat(Collective::Bcast, 8, 1);
            let decided = BTreeMap::from([(point, method.parse().map_err(|_| String::new()))]);
            DecisionFunction { name: String::from(name), decided }
        };
        let [one, other] = [decided("one", LINEAR), decided("other", BINOMIAL)];
        let found = |jobs: &[[f64; 2]]| {
            let rows: Vec<Vec<CollectiveCall>> = jobs.iter().map(|of| job(*of)).collect();
            let samples = Samples::gather(&rows.concat(), libraries::ran_as_asked);
            let jobs: Vec<Samples> =
                rows.iter().map(|rows| Samples::gather(rows, libraries::ran_as_asked)).collect();
            let found = agreement(&samples, &jobs, [&one, &other], Platform::default());
            (found.jobs, found.beyond, found.significantly_beyond)
        };
        assert_eq!(found(&[[1.3, 1.0]]), (1, 1, 0), "one job cannot show how jobs differ");
        assert_eq!(found(&[[1.5, 1.0], [1.0, 1.0]]), (2, 1, 0));
        assert_eq!(found(&[[1.3, 1.0], [1.31, 1.0], [1.29, 1.0]]), (3, 1, 1));
    }
}
