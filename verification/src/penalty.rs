//! What it costs to follow a decision function instead of the measured best.

use std::collections::BTreeMap;

use records::{
    Collective, Method, Point,
    decisions::Decision,
    penalty::{Penalties, Penalty, Summary},
    platform::Platform,
};

use crate::{
    samples::{Half, Samples},
    selection::Choice,
    statistics::{median, quantile},
};

/// How the best was chosen and timed, in words, for the file.
const BEST: &str = "least median over every method measured, the default included; chosen on the odd \
    visits (observations, where there was one visit), timed on the even ones";

/// The penalties of each model's decisions, of the library's default and of the choice to be
/// exported (`measured`), at every point measured.
pub fn penalties(
    samples: &Samples,
    decisions: &[Decision],
    choices: &[Choice],
    platform: Platform,
    timing: &str,
) -> Penalties {
    let mut penalties = Vec::new();
    let mut warnings = samples.warnings.clone();
    for (decided_by, decided) in decision_functions(samples, decisions, choices) {
        let mut missing = 0;
        for (point, method) in decided {
            match penalty(samples, &decided_by, point, &method) {
                Some(penalty) => penalties.push(penalty),
                None => missing += 1,
            }
        }
        if missing > 0 {
            warnings.push(format!(
                "{decided_by}: at {missing} points the method decided for was not measured; left out"
            ));
        }
    }
    penalties.sort_by(|a, b| order(a).cmp(&order(b)));
    let collectives = penalties.iter().map(|penalty| penalty.collective);
    Penalties {
        platform,
        timing: timing.into(),
        best: BEST.into(),
        message_size: message_sizes(collectives),
        summaries: summaries(&penalties),
        penalties,
        warnings,
    }
}

fn order(penalty: &Penalty) -> (Collective, &str, u32, u64) {
    (penalty.collective, &penalty.decided_by, penalty.procs, penalty.bytes)
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

type Decided = Vec<(Point, Method)>;

fn decision_functions(
    samples: &Samples,
    decisions: &[Decision],
    choices: &[Choice],
) -> BTreeMap<String, Decided> {
    let mut functions: BTreeMap<String, Decided> = BTreeMap::new();
    for decision in decisions {
        let Decision { collective, procs, bytes, .. } = *decision;
        let point = Point { collective, procs, bytes };
        if samples.at(point).next().is_some() {
            let decided = functions.entry(decision.model.clone()).or_default();
            decided.push((point, decision.method.clone()));
        }
    }
    let default = samples.points().map(|point| (point, Method::Default)).collect();
    let measured = choices.iter().map(|choice| (choice.point, choice.method.clone())).collect();
    functions.insert("default".into(), default);
    functions.insert("measured".into(), measured);
    functions
}

fn penalty(samples: &Samples, by: &str, point: Point, decided: &Method) -> Option<Penalty> {
    let (best, best_seconds) = samples.best(point)?;
    let decided_seconds = samples.get(point, decided)?.median_of(Half::Timing)?;
    Some(Penalty {
        collective: point.collective,
        decided_by: by.into(),
        procs: point.procs,
        bytes: point.bytes,
        decided: decided.clone(),
        decided_seconds,
        best: best.clone(),
        best_seconds,
        penalty: decided_seconds / best_seconds - 1.0,
    })
}

fn summaries(penalties: &[Penalty]) -> Vec<Summary> {
    let mut groups: BTreeMap<(Collective, &str), Vec<f64>> = BTreeMap::new();
    for penalty in penalties {
        let group = groups.entry((penalty.collective, &penalty.decided_by)).or_default();
        group.push(penalty.penalty);
    }
    groups
        .into_iter()
        .map(|((collective, decided_by), values)| Summary {
            collective,
            decided_by: decided_by.into(),
            points: values.len() as u32,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: median(&values).unwrap_or_default(),
            percentile_95: quantile(&values, 0.95).unwrap_or_default(),
            greatest: quantile(&values, 1.0).unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{samples::tests::call, selection::choose};

    fn decision(model: &str, method: &str, bytes: u64) -> Decision {
        Decision {
            collective: Collective::Bcast,
            model: model.into(),
            procs: 8,
            bytes,
            method: method.parse().unwrap(),
            seconds: 1.0,
            low_seconds: 1.0,
            high_seconds: 1.0,
            ties: Vec::new(),
            extrapolated: false,
        }
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
        let samples = Samples::gather(&rows);
        let decisions = [
            decision("loggp", "native:openmpi:linear", 64),
            decision("loggp", "native:openmpi:pipeline", 128),
            decision("loggp", "native:openmpi:linear", 4096),
        ];
        let all = penalties(&samples, &decisions, &choose(&samples), Platform::default(), "global");
        let of = |by: &str| -> Vec<f64> {
            let by_it = all.penalties.iter().filter(|penalty| penalty.decided_by == by);
            by_it.map(|penalty| penalty.penalty).collect()
        };
        assert_eq!(of("default"), [1.0, 0.5]);
        assert_eq!(of("measured"), [0.0, 0.0]);
        assert_eq!(of("loggp"), [0.0], "what was not measured has no penalty");
        assert!(all.warnings[0].contains("loggp: at 1 points"), "{:?}", all.warnings);
        let default = all.summaries.iter().find(|summary| summary.decided_by == "default").unwrap();
        assert_eq!((default.mean, default.median, default.greatest), (0.75, 0.75, 1.0));
    }
}
