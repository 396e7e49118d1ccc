use std::collections::BTreeMap;

use choosing::drift;
use choosing::{halves, samples::Samples};
use models::fit::{self, GroupSamples, MethodTime};
use records::{
    Point,
    disturbance::Disturbance,
    group_observation::GroupObservation,
    observation::{ClockError, CollectiveCall, PointToPoint},
    pairs::{Member, PairMap},
};
use tuning::state;
use verification::{
    functions::DecisionFunction,
    guidelines::{self, JobMedians},
    penalty, profiles, splits,
};

use super::{reads_back, record};
use crate::{Answer, Inputs, Parser, files};

const COMMON: &[&str] = &[
    "#@schema=",
    "#@platform=",
    "#@spent_seconds=",
    "#@resumed",
    "#@disturbance=",
    "#@waited_seconds=",
    "\"stolen\":",
    "null",
    "disturbed",
    "ok",
    "warmup",
    "late",
    ",",
    ",,",
    "\n",
    "1e400",
    "inf",
    "NaN",
    "-1",
    "kind",
    "status",
    "default",
];

fn parser(
    name: &'static str,
    samples: Vec<String>,
    inputs: Inputs,
    read: fn(&[u8]) -> Answer,
) -> Parser {
    let samples = samples.into_iter().map(String::into_bytes).collect();
    Parser { name, samples, words: COMMON, inputs, read }
}

/// What was timed between two ranks, and the parameters fitted to it.
pub fn observations() -> Parser {
    parser("observations", vec![files::observations()], Inputs::LARGE, |input| {
        record::<PointToPoint>(input, |record| {
            if let Ok(parameters) = fit::fit_values(&record.rows) {
                reads_back(&files::calibration_of(parameters));
            }
        })
    })
}

/// What was timed of more than two ranks, and the parameters fitted to it.
pub fn groups() -> Parser {
    parser("groups", vec![files::groups()], Inputs::LARGE, |input| {
        record::<GroupObservation>(input, |record| {
            let Ok(groups) = GroupSamples::new(&record.rows) else { return };
            let mut measured = files::parameters();
            groups.complete(&mut measured);
            reads_back(&files::calibration_of(measured.clone()));
            if let Some(fitted) = groups.fit(&measured) {
                reads_back(&files::calibration_of(fitted.parameters));
            }
        })
    })
}

/// All links of a virtual cluster at once.
pub fn links() -> Parser {
    parser("links", vec![files::links()], Inputs::LARGE, |input| {
        record::<GroupObservation>(input, |record| {
            let busy = verification::links::busy_links(&record.rows);
            for point in super::points().take(42) {
                let _ = verification::links::is_limited(&busy, point);
            }
            let mut all = files::judged(&files::samples());
            all.busy_links = busy;
            reads_back(&all);
        })
    })
}

/// The links between all pairs of ranks.
pub fn pair_times() -> Parser {
    parser("pair times", vec![files::pair_times()], Inputs::LARGE, |input| {
        record::<PointToPoint>(input, |record| {
            let links = verification::pairs::links(&record.rows, 65_536);
            let findings = verification::pairs::findings(&links, "rank", |rank| rank);
            let members = (0..4).map(|rank| Member { rank, host: format!("n{rank}") }).collect();
            reads_back(&PairMap {
                platform: files::platform(),
                one_per_node: true,
                bytes: 65_536,
                at_once: 1,
                members,
                links,
                findings,
                warnings: Vec::new(),
            });
        })
    })
}

/// How far clocks are apart.
pub fn clock_errors() -> Parser {
    parser("clock errors", vec![files::clock_errors()], Inputs::LARGE, |input| {
        record::<ClockError>(input, |_| ())
    })
}

/// Timed collectives, and all that is made of them.
pub fn measurements() -> Parser {
    parser("measurements", vec![files::measurements()], Inputs::LARGE, |input| {
        record::<CollectiveCall>(input, |record| {
            let told = Disturbance::from_stretches(&record.stretches, record.waited_seconds());
            if let Some(told) = told {
                assert!((0.0..=1.0).contains(&told.disturbed), "{told:?}");
                assert!(!told.sentence().contains("NaN"), "{}", told.sentence());
                let _ = told.warning();
            }
            judge(&record.rows)
        })
    })
}

fn judge(rows: &[CollectiveCall]) {
    let samples = Samples::gather(rows, libraries::ran_as_asked);
    reads_back(&files::judged(&samples));
    let functions = [
        DecisionFunction::default(&samples),
        DecisionFunction::measured(&halves::choose(&samples)),
    ];
    let penalties =
        penalty::penalties(&samples, &functions, Vec::new(), files::platform(), "barrier");
    assert!(penalties.penalties.len() <= 2 * samples.points().count());
    // By clocks that are apart a call may seem to end before it began.
    assert!(state::spent_seconds(rows).is_finite());
    let (is_it, spent) = (libraries::ran_as_asked, state::spent_seconds);
    let _ = drift::without_drift(rows.to_vec(), is_it, spent);

    let jobs = JobMedians::new([&samples, &samples, &samples, &samples]);
    let settings = guidelines::ViolationTest::default();
    let found = guidelines::judge(&jobs, &settings, files::platform(), "barrier");
    let _ = splits::plan(&found.violations, 8, 1);
    profiles::profiles(&jobs, &settings).iter().for_each(reads_back);

    let mut timed: BTreeMap<(Point, String), MethodTime> = BTreeMap::new();
    for point in samples.points() {
        for (method, times) in samples.at(point) {
            if let Some(seconds) = times.median() {
                timed.insert(
                    (point, method.to_string()),
                    MethodTime { point, method: method.clone(), seconds },
                );
            }
        }
    }
    let timed: Vec<MethodTime> = timed.into_values().take(24).collect();
    let _ = fit::algorithms(&timed, &files::parameters()).map_err(|error| error.to_string());
}
