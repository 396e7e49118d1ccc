//! What a run has chosen, as it is written down in `choices.json`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use records::{
    FileError, Method, Point,
    choices::{Choices, Chosen, Confirmed, Evidence, RunnerUp},
    decisions::Decisions,
    document::{self, Document as _},
    penalty::Penalties,
    platform::Platform,
    reading,
    summary::{Gain, Loading},
};
use verification::{
    samples::Samples,
    selection::{TimedChoice, alternatives},
};

use crate::{error::usage, site::run_directory::RunDirectory, stages::foreign_json};

/// Reads a file of choices; an older decisions.json too, whose choices rest on predictions.
///
/// # Errors
/// As [`document::read`].
pub fn read(path: &Path) -> Result<Choices> {
    let text = reading::text(path).map_err(|e| FileError::io(path, "read", &e))?;
    parse(&text, path)
}

/// The same from its text; `path` is for the errors.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<Choices> {
    if document::schema(text).as_deref() == Some(Decisions::SCHEMA) {
        let decisions = document::parse(text, path)?;
        return Ok(Choices::predicted(Platform::default(), decisions));
    }
    if let Some(kind) = foreign_json::kind(text) {
        return Err(FileError::new(path, format!("{kind}; expected {}", Choices::SCHEMA)).into());
    }
    Ok(document::parse(text, path)?)
}

/// What a run has chosen.
///
/// # Errors
/// Nothing yet.
pub fn of_run(run: &RunDirectory) -> Result<Choices> {
    let path = run.choices();
    if path.exists() {
        return Ok(document::read(&path)?);
    }
    let directory = run.path().display();
    match run.options().exists() {
        true => usage!(
            "{directory}: the tuning is not complete, or an older Colibri made it; 'colibri tune \
             {directory} --resume' completes it"
        ),
        false => usage!(
            "{directory}: holds no choices yet; 'colibri verify {directory} --from-record' makes \
             them from the measurements"
        ),
    }
}

/// Why a method that is a little faster is not chosen, nor one that is faster only by chance.
const NOTHING_FASTER: &str = "no method measured here is significantly faster";

/// The choices of a run by its measurements. `next` gives the next best method of a point and its
/// time in seconds, `doubts` the standard deviation of the logarithm of its gain.
pub fn measured(
    penalties: &Penalties,
    samples: &Samples,
    choices: &[TimedChoice],
    next: &dyn Fn(&TimedChoice) -> Option<(Method, f64)>,
    doubts: &BTreeMap<Point, f64>,
) -> Choices {
    let chosen = |choice: &TimedChoice| {
        let times = (choice.seconds, Some(choice.default_seconds));
        let TimedChoice { point, method, .. } = choice;
        // Models that were right elsewhere may choose what was not tried here.
        let rests_on = match samples.get(*point, method) {
            Some(_) => Evidence::Measured,
            None => Evidence::Predicted,
        };
        Chosen {
            doubt: doubts.get(point).copied(),
            next: next(choice).map(|(method, seconds)| RunnerUp { method, seconds }),
            alternatives: alternatives(samples, *point, method),
            default_because: (*method == Method::Default).then(|| NOTHING_FASTER.into()),
            ..Chosen::new(*point, method.clone(), times, rests_on)
        }
    };
    Choices {
        platform: penalties.platform.clone(),
        message_size: penalties.message_size.clone(),
        prediction: None,
        choices: choices.iter().map(chosen).collect(),
        confirmed: Vec::new(),
    }
}

/// The fastest of the other methods that were measured at a choice's point.
pub fn next_measured(samples: &Samples, choice: &TimedChoice) -> Option<(Method, f64)> {
    let others = samples.at(choice.point).filter(|(method, _)| **method != choice.method);
    let timed = others.filter_map(|(method, times)| Some((method, times.midmean()?)));
    let (method, seconds) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some((method.clone(), seconds))
}

/// What is left of `chosen` for one way of loading, after the jobs that confirmed its `candidates`: the best that it
/// loads at each point. Points `elsewhere`, at which its file runs what was chosen for another layout, keep their
/// candidates as they were measured, for whoever exports that layout.
pub fn confirmed(
    chosen: &[Chosen],
    (candidates, choices): (&[TimedChoice], &[TimedChoice]),
    elsewhere: &BTreeSet<Point>,
    loading: &Loading,
) -> Confirmed {
    let gains: BTreeSet<Point> = loading.gains.iter().map(Gain::point).collect();
    let of_point = |((before, candidate), choice): ((&Chosen, &TimedChoice), &TimedChoice)| {
        let choice = if elsewhere.contains(&choice.point) { candidate } else { choice };
        let is_default = choice.method == Method::Default;
        let seconds = if is_default { choice.default_seconds } else { choice.seconds };
        let rests_on = match (is_default, gains.contains(&choice.point)) {
            (true, _) => Evidence::Measured,
            (false, true) => Evidence::Confirmed,
            // There was no time to confirm it.
            (false, false) => before.rests_on,
        };
        Chosen {
            method: choice.method.clone(),
            seconds,
            default_seconds: Some(choice.default_seconds),
            rests_on,
            default_because: is_default.then(|| why_default(before, &candidate.method, loading)),
            // What came next was not confirmed.
            alternatives: Vec::new(),
            ..before.clone()
        }
    };
    let choices = chosen.iter().zip(candidates).zip(choices).map(of_point).collect();
    Confirmed { way: loading.way, choices }
}

/// A choice at a size that was not measured, between sizes that were.
pub fn predicted(choice: &TimedChoice) -> Chosen {
    let is_default = choice.method == Method::Default;
    let because =
        if choice.seconds < choice.default_seconds { TAKEN_OUT_NEARBY } else { NOT_MEASURED };
    let seconds = if is_default { choice.default_seconds } else { choice.seconds };
    let times = (seconds, Some(choice.default_seconds));
    Chosen {
        default_because: is_default.then(|| because.into()),
        ..Chosen::new(choice.point, choice.method.clone(), times, Evidence::Predicted)
    }
}

/// Why the default stays at a size that was not measured.
const NOT_MEASURED: &str = "not measured; nothing is faster by the measurements at other sizes";

/// The same where something is believed to be faster.
const TAKEN_OUT_NEARBY: &str =
    "not measured; the method expected to be faster was not confirmed at the nearest measured size";

/// Why a way of loading leaves a point to the default, for which it had a candidate.
fn why_default(chosen: &Chosen, candidate: &Method, loading: &Loading) -> String {
    let Point { collective, layout, bytes } = chosen.point();
    let is_here = |other: (_, _, _)| other == (collective, layout, bytes);
    let unexpressed =
        loading.unexpressed.iter().find(|one| is_here((one.collective, one.layout, one.bytes)));
    let taken_out =
        loading.taken_out.iter().find(|one| is_here((one.collective, one.layout, one.bytes)));
    match (&chosen.default_because, unexpressed, taken_out) {
        (Some(because), ..) => because.clone(),
        (_, Some(one), _) => format!("{} cannot be loaded: {}", one.method, one.reason),
        (_, _, Some(one)) => {
            format!("{} was not confirmed: speed-up {:.2} when loaded", one.method, one.speed_up)
        }
        _ if *candidate == Method::Default => format!(
            "no method that can be loaded this way is significantly faster ({} cannot be)",
            chosen.method
        ),
        _ => format!("the budget ended before {candidate} was confirmed"),
    }
}

/// The decision functions that choices hold: one for each model that has chosen, or the one that was
/// measured, what was confirmed first.
pub fn functions(choices: &Choices) -> Vec<(Option<&str>, Vec<&Chosen>)> {
    let models = choices.models();
    if !models.is_empty() {
        let of_model = |model| (Some(model), choices.of_model(Some(model)).collect());
        return models.into_iter().map(of_model).collect();
    }
    let confirmed = choices.confirmed_in_any_way();
    vec![(None, confirmed.unwrap_or_else(|| choices.choices.iter().collect()))]
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;

    /// A rules file has no methods of Colibri's: that one of them is the fastest is no matter of the budget.
    #[test]
    fn what_a_way_cannot_load_is_not_said_to_have_wanted_time() {
        let point = Point::flat(Collective::Bcast, 8, 64);
        let method = |text: &str| text.parse::<Method>().unwrap();
        let best = Chosen::new(point, method("own:linear"), (1.0, Some(2.0)), Evidence::Measured);
        let text = r#"{"way": "rules", "file": "mpich.json", "gains": [], "taken_out": [],
            "mean_speed_up": 1, "calls_observed": 0, "calls_as_told": 0}"#;
        let loading: Loading = serde_json::from_str(text).unwrap();
        let why = |candidate: &str| why_default(&best, &method(candidate), &loading);
        assert_eq!(
            why("default"),
            "no method that can be loaded this way is significantly faster (own:linear cannot be)"
        );
        let native = "native:mpich:binomial";
        assert_eq!(why(native), format!("the budget ended before {native} was confirmed"));
    }
}
