//! Two decision functions compared by measurements that belong to neither.

use records::{
    Method, Point,
    agreement::{Agreement, Difference},
    platform::Platform,
};
use statistics::{family_wise_control, significance::Test};

use crate::{functions::DecisionFunction, penalty::message_sizes, samples::Samples};

/// The relative difference from which on it matters which of two methods is taken.
pub const TOLERANCE: f64 = 0.05;
/// Level of the test whether a difference is beyond that.
const LEVEL: f64 = 0.05;

/// Where two decision functions take different methods, and how much slower the slower one is, by
/// the midmeans of all observations. Whether it surely is, is told by the medians of visits: the repetitions
/// of one share the state in which it met the machine.
pub fn agreement(
    samples: &Samples,
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
        .filter_map(|(point, methods)| difference(samples, *point, *methods))
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
        beyond: differences.iter().filter(beyond).count() as u32,
        significantly_beyond: differences.iter().filter(beyond).filter(significant).count() as u32,
        greatest: differences.iter().map(|one| one.difference).fold(0.0, f64::max),
        differences,
    }
}

fn difference(
    samples: &Samples,
    point: Point,
    [first, second]: [&Result<Method, String>; 2],
) -> Option<Difference> {
    let (first, second) = (first.as_ref().ok()?, second.as_ref().ok()?);
    let (of_first, of_second) = (samples.get(point, first)?, samples.get(point, second)?);
    let (first_seconds, second_seconds) = (of_first.midmean()?, of_second.midmean()?);
    let (fast, slow) = match first_seconds <= second_seconds {
        true => (of_first, of_second),
        false => (of_second, of_first),
    };
    let allowed: Vec<f64> = fast.medians().map(|seconds| seconds * (1.0 + TOLERANCE)).collect();
    let Point { collective, procs, bytes } = point;
    Some(Difference {
        collective,
        procs,
        bytes,
        first: first.clone(),
        first_seconds,
        second: second.clone(),
        second_seconds,
        difference: (first_seconds / second_seconds).ln().abs().exp_m1(),
        p_value: Test::RankSum.p_value(&allowed, &slow.medians().collect::<Vec<_>>()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use records::{Collective, observation::CollectiveCall};

    use super::*;
    use crate::samples::tests::call;

    const LINEAR: &str = "native:openmpi:linear";
    const BINOMIAL: &str = "native:openmpi:binomial";

    fn function(name: &str, methods: [&str; 4]) -> DecisionFunction {
        let decided = (0..4).zip(methods).map(|(power, method)| {
            let point = Point { collective: Collective::Bcast, procs: 8, bytes: 1 << power };
            (point, method.parse().map_err(|_| method.to_owned()))
        });
        DecisionFunction { name: name.into(), decided: decided.collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn where_two_functions_differ_the_slower_is_compared_with_the_faster() {
        let mut rows = Vec::new();
        for (bytes, linear) in [(1, 1.0), (2, 1.02), (4, 1.5), (8, 1.0)] {
            for step in 0..8 {
                let noise = 1.0 + 0.001 * f64::from(step);
                rows.push(call(LINEAR, "", bytes, linear * noise));
                rows.push(call(BINOMIAL, "", bytes, noise));
            }
        }
        let samples = Samples::gather(&rows);
        let one = function("one", [LINEAR, LINEAR, LINEAR, "algorithm 4"]);
        let other = function("other", [LINEAR, BINOMIAL, BINOMIAL, LINEAR]);
        let found = agreement(&samples, [&one, &other], Platform::default());
        assert_eq!((found.points, found.differing, found.not_measured), (4, 3, 1));
        assert_eq!((found.beyond, found.significantly_beyond), (1, 1));
        assert!((found.greatest - 0.5).abs() < 1e-9);
        let bytes: Vec<u64> = found.differences.iter().map(|difference| difference.bytes).collect();
        assert_eq!(bytes, [2, 4]);
        let turned = agreement(&samples, [&other, &one], Platform::default());
        assert!((turned.greatest - found.greatest).abs() < 1e-9);
    }

    /// Four visits of each with many repetitions; one alone met the machine in its faster state thrice.
    #[test]
    fn repetitions_of_one_visit_are_no_independent_observations() {
        let mut rows = Vec::new();
        for (method, of_visits) in [(LINEAR, [1.3; 4]), (BINOMIAL, [1.0, 1.0, 1.0, 1.3])] {
            for (visit, seconds) in (rows.len() as u32..).zip(of_visits) {
                rows.extend((0..30).map(|step| CollectiveCall {
                    visit,
                    repetition: step,
                    ..call(method, "", 1, seconds * (1.0 + 0.0001 * f64::from(step)))
                }));
            }
        }
        let samples = Samples::gather(&rows);
        let decided = |name, method: &str| {
            let point = Point { collective: Collective::Bcast, procs: 8, bytes: 1 };
            let decided = BTreeMap::from([(point, method.parse().map_err(|_| String::new()))]);
            DecisionFunction { name: String::from(name), decided }
        };
        let [one, other] = [decided("one", LINEAR), decided("other", BINOMIAL)];
        let found = agreement(&samples, [&one, &other], Platform::default());
        assert_eq!((found.beyond, found.significantly_beyond), (1, 0), "{found:?}");
    }
}
