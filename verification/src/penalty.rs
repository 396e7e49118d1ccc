//! What it costs to follow a decision function instead of the measured best.

use std::collections::{BTreeMap, BTreeSet};

use choosing::samples::{MethodTimes, ObservationHalf, Samples};
use records::{
    Collective, Layout, Point,
    penalty::{BusyLinks, Penalties, Penalty, PenaltySummary, Region, RegionSummary},
    platform::Platform,
};

use crate::{
    functions::DecisionFunction,
    links::is_limited,
    noise::{distribution, noise},
};

/// How the best was chosen and timed, in words, for the file.
const BEST: &str = "least midmean (mean of the middle half of the observations) of all measured \
                    methods, the default included; methods with less than a quarter of the most \
                    visits are excluded; chosen on one half of the visits (observations, where \
                    there was one visit) and timed on the other, both ways";

/// The penalties of decision functions at every point measured. `busy_links` says where the
/// machine under a virtual cluster is the limit.
///
/// A point has no penalty where the method decided for was not measured there: such are counted and
/// reported, and no other method stands in for it.
pub fn penalties(
    samples: &Samples,
    functions: &[DecisionFunction],
    busy_links: Vec<BusyLinks>,
    platform: Platform,
    timing: &str,
) -> Penalties {
    let mut all = Vec::new();
    let mut missing: Vec<(Point, &str)> = Vec::new();
    let mut warnings = samples.warnings.clone();
    for function in functions {
        let mut examples: BTreeMap<String, u32> = BTreeMap::new();
        for (&point, decided) in &function.decided {
            match penalty(samples, function, point) {
                Some(penalty) => {
                    let machine_limited = is_limited(&busy_links, point);
                    all.push(Penalty { machine_limited, ..penalty });
                }
                None => {
                    missing.push((point, &function.name));
                    let text = decided.as_ref().map_or_else(Clone::clone, ToString::to_string);
                    *examples.entry(text).or_default() += 1;
                }
            }
        }
        warnings.extend(not_measured(&function.name, &examples));
        let undecided = samples.points().filter(|point| !function.decided.contains_key(point));
        warnings.extend(undecided_in_words(&function.name, undecided.count()));
    }
    all.sort_by(|a, b| order(a).cmp(&order(b)));
    warnings.extend(limited_in_words(&all));
    let summaries = summed_up(&all, &missing, |_| ()).into_iter().map(|(_, summary)| summary);
    let regions = summed_up(&all, &missing, |point| Region::containing(point.procs(), point.bytes));
    let regions = regions.into_iter().map(|(region, summary)| RegionSummary { region, summary });
    Penalties {
        platform,
        timing: timing.into(),
        best: BEST.into(),
        message_size: message_sizes(all.iter().map(|penalty| penalty.point.collective)),
        summaries: summaries.collect(),
        regions: regions.collect(),
        prediction_errors: Vec::new(),
        noise: noise(samples),
        busy_links,
        penalties: all,
        warnings,
    }
}

/// What the best is where times are compared with the limit.
const LIMIT: &str =
    "the limit: what no algorithm of messages gets below on the network as it was calibrated";

/// By how much the same decisions are above the limit, in seconds, of each point; nothing where there is
/// none. A time below it says that the calibration is wrong, or that a rank has more than one port.
pub fn above_limit(
    penalties: &Penalties,
    limit: impl Fn(Point) -> Option<f64>,
) -> Option<Penalties> {
    let above = |penalty: &Penalty| {
        let limit = limit(penalty.point).filter(|limit| *limit > 0.0)?;
        let above = penalty.decided_seconds / limit - 1.0;
        Some(Penalty { best_seconds: limit, penalty: above, ..penalty.clone() })
    };
    let all: Vec<Penalty> = penalties.penalties.iter().filter_map(above).collect();
    let below = all.iter().filter(|one| one.penalty < -MUCH);
    let (by_shared, by_others): (Vec<&Penalty>, Vec<&Penalty>) =
        below.partition(|one| one.decided.shares_memory());
    let (shared, others, of) = (by_shared.len(), by_others.len(), all.len());
    let summaries = summed_up(&all, &[], |_| ()).into_iter().map(|(_, summary)| summary).collect();
    let regions =
        summed_up(&all, &[], |point| Region::containing(point.layout.procs(), point.bytes));
    let regions = regions.into_iter().map(|(region, summary)| RegionSummary { region, summary });
    let of_shared = format!(
        "{shared} of {of} times are more than 5 % below the limit and of Colibri's methods of shared memory: the \
         limit is one of messages, and does not hold for them"
    );
    let of_others = format!(
        "{others} of {of} times are more than 5 % below the limit: the calibration does not hold there, or the \
         MPI library uses shared memory, or ranks have several ports"
    );
    let warnings = [(shared, of_shared), (others, of_others)];
    let warnings = warnings.into_iter().filter(|(times, _)| *times > 0);
    (!all.is_empty()).then(|| Penalties {
        best: LIMIT.into(),
        summaries,
        regions: regions.collect(),
        prediction_errors: Vec::new(),
        noise: Vec::new(),
        warnings: warnings.map(|(_, warning)| warning).collect(),
        penalties: all,
        ..penalties.clone()
    })
}

/// A time so much below the limit is no noise.
const MUCH: f64 = 0.05;

fn order(penalty: &Penalty) -> (Collective, &str, Layout, u64) {
    (penalty.point.collective, &penalty.decided_by, penalty.point.layout, penalty.point.bytes)
}

/// What a message size means for each of the collectives named.
pub fn message_sizes(
    collectives: impl IntoIterator<Item = Collective>,
) -> BTreeMap<Collective, String> {
    collectives
        .into_iter()
        .map(|collective| (collective, collective.message_size().into()))
        .collect()
}

fn penalty(samples: &Samples, function: &DecisionFunction, point: Point) -> Option<Penalty> {
    let decided = function.decided.get(&point)?.as_ref().ok()?;
    let (best, _) = samples.least(point, MethodTimes::midmean)?;
    let times = samples.get(point, decided)?;
    // What is best by one half is timed by the other, and so is what was decided.
    let ratio = |half: ObservationHalf| {
        let (_, best_seconds) = samples.best(point, half)?;
        Some(times.midmean_of(half.other())? / best_seconds)
    };
    let ratio = (ratio(ObservationHalf::Choosing)? * ratio(ObservationHalf::Timing)?).sqrt();
    let decided_seconds = times.midmean()?;
    Some(Penalty {
        point,
        decided_by: function.name.clone(),
        decided: decided.clone(),
        decided_seconds,
        best: best.clone(),
        best_seconds: decided_seconds / ratio,
        penalty: ratio - 1.0,
        machine_limited: false,
    })
}

/// Which methods were decided for and not measured, the most frequent first.
fn not_measured(name: &str, methods: &BTreeMap<String, u32>) -> Option<String> {
    const NAMED: usize = 3;
    let count: u32 = methods.values().sum();
    let mut methods: Vec<(&String, &u32)> = methods.iter().collect();
    methods.sort_by(|a, b| b.1.cmp(a.1));
    let named: Vec<String> =
        methods.iter().take(NAMED).map(|(method, count)| format!("{method} at {count}")).collect();
    let more = if methods.len() > NAMED { ", ..." } else { "" };
    (count > 0).then(|| {
        format!(
            "{name}: at {count} points the decided method was not measured, so there is no penalty \
             ({}{more})",
            named.join(", ")
        )
    })
}

fn undecided_in_words(name: &str, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{name}: decides nothing at {count} of the points measured"))
}

fn limited_in_words(penalties: &[Penalty]) -> Option<String> {
    let points: BTreeSet<Point> = penalties.iter().map(|penalty| penalty.point).collect();
    let limited = penalties.iter().filter(|penalty| penalty.machine_limited);
    let limited: BTreeSet<Point> = limited.map(|penalty| penalty.point).collect();
    let layouts: BTreeSet<Layout> = limited.iter().map(|point| point.layout).collect();
    (!limited.is_empty()).then(|| {
        format!(
            "{} of {} points are limited by this machine: on {} it cannot carry all links of the \
             virtual cluster at once",
            limited.len(),
            points.len(),
            Layout::all_in_words(layouts)
        )
    })
}

/// Summaries per collective, decision function and whatever a point's `part` is, ascending in this
/// order. A part all of whose decisions were not measured has none.
fn summed_up<'a, Part: Ord>(
    penalties: &'a [Penalty],
    missing: &[(Point, &'a str)],
    part: impl Fn(Point) -> Part,
) -> Vec<(Part, PenaltySummary)> {
    type Group = (Vec<f64>, u32);
    let mut groups: BTreeMap<(Collective, &str, Part), Group> = BTreeMap::new();
    for penalty in penalties {
        let part = part(penalty.point);
        let group =
            groups.entry((penalty.point.collective, &penalty.decided_by, part)).or_default();
        group.0.push(penalty.penalty);
    }
    for &(point, decided_by) in missing {
        groups.entry((point.collective, decided_by, part(point))).or_default().1 += 1;
    }
    let summary = |((collective, decided_by, part), group): ((_, &str, Part), Group)| {
        let (values, not_measured) = group;
        let summary = PenaltySummary {
            collective,
            decided_by: decided_by.into(),
            points: values.len() as u32,
            not_measured,
            penalty: distribution(&values)?,
        };
        Some((part, summary))
    };
    groups.into_iter().filter_map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use choosing::halves::choose;

    use crate::testing::call;
    use records::choices::Chosen;

    fn decision(model: &str, method: &str, bytes: u64) -> Chosen {
        let point = Point::flat(Collective::Bcast, 8, bytes);
        Chosen::predicted(point, model, method.parse().unwrap(), 1.0)
    }

    #[test]
    fn penalties_are_relative_to_the_best_and_summed_up() {
        let rows: Vec<_> = [(64, 2.0, 1.0), (128, 3.0, 2.0)]
            .into_iter()
            .flat_map(|(bytes, default, linear)| {
                [
                    call("default", "", bytes, default),
                    call("default", "", bytes, default),
                    call("native:openmpi:linear", "", bytes, linear),
                    call("native:openmpi:linear", "", bytes, linear),
                ]
            })
            .collect();
        let samples = Samples::gather(&rows, libraries::ran_as_asked);
        let decisions = [
            decision("loggp", "native:openmpi:linear", 64),
            decision("loggp", "native:openmpi:pipeline", 128),
            decision("loggp", "native:openmpi:linear", 4096),
        ];
        let mut functions = DecisionFunction::of_models(&decisions, &samples);
        functions.push(DecisionFunction::default(&samples));
        functions.push(DecisionFunction::measured(&choose(&samples)));
        let all = penalties(&samples, &functions, Vec::new(), Platform::default(), "global");
        let of = |by: &str| -> Vec<f64> {
            let by_it = all.penalties.iter().filter(|penalty| penalty.decided_by == by);
            by_it.map(|penalty| penalty.penalty).collect()
        };
        assert_eq!(of("default"), [1.0, 0.5]);
        assert_eq!(of("measured"), [0.0, 0.0]);
        assert_eq!(of("loggp"), [0.0], "what was not measured has no penalty");
        assert!(all.warnings[0].contains("loggp: at 1 points"), "{:?}", all.warnings);
        let loggp = all.summaries.iter().find(|summary| summary.decided_by == "loggp").unwrap();
        assert_eq!((loggp.points, loggp.not_measured), (1, 1));
        let default = all.summaries.iter().find(|summary| summary.decided_by == "default").unwrap();
        assert_eq!(
            (default.penalty.mean, default.penalty.median, default.penalty.greatest),
            (0.75, 0.75, 1.0)
        );
    }

    #[test]
    fn times_above_the_limit_are_told_by_the_same_decisions() {
        let rows: Vec<_> = [(64, 2.0), (128, 3.0)]
            .into_iter()
            .flat_map(|(bytes, seconds)| [0, 1].map(|_| call("default", "", bytes, seconds)))
            .collect();
        let samples = Samples::gather(&rows, libraries::ran_as_asked);
        let functions = [DecisionFunction::default(&samples)];
        let all = penalties(&samples, &functions, Vec::new(), Platform::default(), "global");
        let limit = |point: Point| Some(if point.bytes == 64 { 1.6 } else { 4.0 });
        let above = above_limit(&all, limit).unwrap();
        let values: Vec<f64> = above.penalties.iter().map(|penalty| penalty.penalty).collect();
        assert_eq!(values, [0.25, -0.25]);
        assert_eq!((above.summaries[0].points, above.summaries[0].penalty.greatest), (2, 0.25));
        assert!(above.warnings[0].starts_with("1 of 2 times"), "{:?}", above.warnings);
        assert!(above.best.starts_with("the limit"));
        // The limit is one of messages.
        let mut shared = all.clone();
        shared.penalties[1].decided = "own:shared-cells".parse().unwrap();
        let warnings = above_limit(&shared, limit).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("1 of 2 times"), "{warnings:?}");
        assert!(warnings[0].contains("does not hold for them"), "{warnings:?}");
        assert_eq!(above_limit(&all, |_| None), None);
    }

    #[test]
    fn regions_share_the_penalties_among_them() {
        let rows: Vec<_> = [(64, 2.0), (8191, 3.0), (8192, 4.0), (1 << 20, 1.0)]
            .into_iter()
            .flat_map(|(bytes, default)| {
                [call("default", "", bytes, default), call("native:openmpi:linear", "", bytes, 1.0)]
            })
            .collect();
        let samples = Samples::gather(&rows, libraries::ran_as_asked);
        let decisions =
            [64, 1 << 20].map(|bytes| decision("loggp", "native:openmpi:pipeline", bytes));
        let mut functions = DecisionFunction::of_models(&decisions, &samples);
        functions.push(
            DecisionFunction::of_models(
                &[64, 8192].map(|bytes| decision("plogp", "native:openmpi:linear", bytes)),
                &samples,
            )
            .remove(0),
        );
        functions.push(DecisionFunction::default(&samples));
        let all = penalties(&samples, &functions, Vec::new(), Platform::default(), "global");
        let told: Vec<_> = all
            .regions
            .iter()
            .map(|one| {
                (
                    one.summary.decided_by.as_str(),
                    one.region,
                    one.summary.points,
                    one.summary.penalty.mean,
                )
            })
            .collect();
        let [short, medium, long] = [64, 8192, 1 << 20].map(|bytes| Region::containing(8, bytes));
        assert_eq!(
            told,
            [
                ("default", short, 2, 1.5),
                ("default", medium, 1, 3.0),
                ("default", long, 1, 0.0),
                ("plogp", short, 1, 0.0),
                ("plogp", medium, 1, 0.0),
            ],
            "nothing of loggp's was measured"
        );
    }
}
