//! What a run has chosen, as it is written down in `choices.json`.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use choosing::{
    evidence::Shown,
    halves::alternatives,
    samples::{MethodTimes, Samples},
};
use records::{
    FileError, Method, Point,
    choices::{Choices, Chosen, Evidence, TimedMethod},
    document::{self, Document as _},
    penalty::Penalties,
    reading,
};
use tuning::LoadCandidate;

use crate::foreign_json;
use site::{run_directory::RunDirectory, usage};

/// Reads a file of choices.
///
/// # Errors
/// As [`document::read`].
pub fn read(path: &Path) -> Result<Choices> {
    let text = reading::text_file(path)?;
    parse(&text, path)
}

/// Choices from the text of their file; `path` is for the errors.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<Choices> {
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
            "{directory}: the tuning is not complete; 'colibri tune {directory} --resume' completes it"
        ),
        false => usage!(
            "{directory}: holds no choices yet; 'colibri verify {directory} --from-record' makes \
             them from the measurements"
        ),
    }
}

/// Why a method that is a little faster is not chosen, nor one that is faster only by chance.
const NOTHING_FASTER: &str = "no method measured here is significantly faster";

/// The choices of a run by its measurements.
pub fn measured(penalties: &Penalties, samples: &Samples, choices: &[Chosen]) -> Choices {
    let chosen = |choice: &Chosen| {
        let Chosen { point, method, .. } = choice;
        // Models that were right elsewhere may choose what was not tried here.
        let rests_on = match samples.get(*point, method) {
            Some(_) => Evidence::Measured,
            None => Evidence::Predicted,
        };
        Chosen {
            rests_on,
            alternatives: alternatives(samples, *point, method),
            default_because: (*method == Method::Default).then(|| NOTHING_FASTER.into()),
            disturbed: is_disturbed(samples, *point, method),
            ..choice.clone()
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

/// Whether a method, or the default beside it, was timed at a point only while others took too much of the
/// processors; where neither was, whether the default was so wherever it was timed on this layout.
pub fn is_disturbed(samples: &Samples, point: Point, method: &Method) -> bool {
    let is =
        |point: Point, method: &Method| samples.get(point, method).map(MethodTimes::is_disturbed);
    if let Some(of_default) = is(point, &Method::Default) {
        return of_default || is(point, method).unwrap_or(false);
    }
    let on_layout = samples
        .points()
        .filter(|other| (other.collective, other.layout) == (point.collective, point.layout));
    let disturbed: Vec<bool> = on_layout.filter_map(|other| is(other, &Method::Default)).collect();
    !disturbed.is_empty() && disturbed.iter().all(|is_disturbed| *is_disturbed)
}

/// What is left of the choices of one way of loading, with what the jobs showed of them; `chosen` is what was chosen at
/// measured points, whatever loads it, and `loaded` gives what is loaded for a method.
pub fn with_evidence(
    chosen: &[Chosen],
    candidate: &LoadCandidate,
    loaded: &dyn Fn(Point, &Method) -> Result<Method, String>,
    samples: &Samples,
) -> Vec<Chosen> {
    let chosen: BTreeMap<Point, &Chosen> = chosen.iter().map(|one| (one.point, one)).collect();
    let of_point = |(tried, choice): (&Chosen, &Chosen)| {
        let point = choice.point;
        let before = chosen.get(&point).copied();
        let is_default = choice.method == Method::Default;
        let shown = candidate.shown.get(&point);
        let (rests_on, evidence) = match shown {
            Some(Shown::Faster(evidence)) => (Evidence::Confirmed, Some(*evidence)),
            Some(Shown::Between(_, evidence)) => (Evidence::BetweenConfirmed, Some(*evidence)),
            _ if before.is_some() => (Evidence::Measured, None),
            _ => (Evidence::Predicted, None),
        };
        let withheld = Withheld { tried, candidate, loaded, samples, before };
        Chosen {
            seconds: if is_default { choice.without_seconds() } else { choice.seconds },
            rests_on,
            doubt: before.and_then(|before| before.doubt),
            next: before.and_then(|before| before.next.clone()),
            default_because: is_default.then(|| withheld.why_default()),
            confirmed: evidence,
            unconfirmed: if is_default { withheld.unconfirmed() } else { None },
            by_other_layout: candidate.chosen.shadowed_points.contains_key(&point),
            ..choice.clone()
        }
    };
    candidate.chosen.choices.iter().zip(&candidate.choices).map(of_point).collect()
}

/// A point that is left to the default.
struct Withheld<'a> {
    /// What was chosen there for this way of loading.
    tried: &'a Chosen,
    candidate: &'a LoadCandidate,
    loaded: &'a dyn Fn(Point, &Method) -> Result<Method, String>,
    samples: &'a Samples,
    /// What was chosen there, if it was measured.
    before: Option<&'a Chosen>,
}

impl Withheld<'_> {
    /// What had been chosen there and may be asked for though it was not confirmed.
    fn unconfirmed(&self) -> Option<TimedMethod> {
        let Chosen { point, method, seconds, .. } = self.tried;
        let loading = &self.candidate.loading;
        let is_ruled_out = *method == Method::Default
            || loading.rejected.iter().any(|out| out.point == *point)
            || loading.unexpressed.iter().any(|one| one.point == *point)
            || is_disturbed(self.samples, *point, method);
        let method = (self.loaded)(*point, method).ok().filter(|_| !is_ruled_out)?;
        let is_measured = self.samples.get(*point, &self.tried.method).is_some();
        let rests_on = if is_measured { Evidence::Measured } else { Evidence::Predicted };
        Some(TimedMethod { rests_on: Some(rests_on), ..TimedMethod::new(method, *seconds) })
    }

    /// Why a way of loading leaves the point to the default.
    fn why_default(&self) -> String {
        let Chosen { point, method, .. } = self.tried;
        let LoadCandidate { chosen, loading, shown, .. } = self.candidate;
        let unexpressed = loading.unexpressed.iter().find(|one| one.point == *point);
        let rejected = loading.rejected.iter().find(|one| one.point == *point);
        if chosen.shadowed_points.contains_key(point) {
            return OTHER_LAYOUT.into();
        }
        if let Some(one) = unexpressed {
            return format!("{} cannot be loaded: {}", one.method, one.reason);
        }
        if let Some(one) = rejected {
            return format!(
                "{} is not faster when loaded: speed-up {:.2}",
                one.method, one.speed_up
            );
        }
        match (shown.get(point), self.before) {
            (Some(Shown::Open(speed_up)), _) => format!(
                "{method} was not confirmed: speed-up {speed_up:.2} when loaded, with an interval that \
                 holds 1"
            ),
            (Some(_), _) => match is_disturbed(self.samples, *point, method) {
                true => format!("{method} was {}", DISTURBED),
                false => format!("{method} was not confirmed: too few pairs of jobs"),
            },
            (None, None) => NOT_MEASURED.into(),
            (None, Some(before)) => before.default_because.clone().unwrap_or_else(|| {
                format!(
                    "no method that can be loaded this way is significantly faster ({} cannot be)",
                    before.method
                )
            }),
        }
    }
}

/// Why a point is left to the default whatever is asked for.
pub const DISTURBED: &str = "timed only while other processes took too much of the processors";

/// Why the default stays at a size that was not measured.
const NOT_MEASURED: &str = "not measured; nothing is faster by the measurements at other sizes";

/// Why nothing is chosen where another layout's choice holds.
const OTHER_LAYOUT: &str = "the file applies what was chosen for another layout of as many ranks";

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
    use records::{
        Collective, confirmed::LoadedCounts, observation::CollectiveCall, plan::Cell,
        summary::LoadWay,
    };
    use tuning::WayChoices;

    use super::*;

    fn point() -> Point {
        Point::flat(Collective::Bcast, 8, 64)
    }

    fn method(text: &str) -> Method {
        text.parse().unwrap()
    }

    /// What is left of a candidate of which the jobs showed this.
    fn left(chosen: &str, shown: Option<Shown>, samples: &Samples) -> Chosen {
        let best = Chosen::new(point(), method("own:linear"), (1.0, Some(2.0)), Evidence::Measured);
        let choice = |method: Method| Chosen::measured(point(), method, 1.0, 2.0);
        let chosen = WayChoices { choices: vec![choice(method(chosen))], ..WayChoices::default() };
        let loaded = |_: Point, method: &Method| Ok(method.clone());
        let mut candidate =
            LoadCandidate::new(LoadWay::Rules, "openmpi.rules".into(), chosen, &loaded, &|_, _| {
                false
            });
        candidate.choices = vec![choice(Method::Default)];
        candidate.shown = shown.into_iter().map(|shown| (point(), shown)).collect();
        assert_eq!(candidate.loading.counts, LoadedCounts::default());
        with_evidence(&[best], &candidate, &loaded, samples).remove(0)
    }

    /// A rules file has no methods of Colibri's: that one of them is the fastest is no matter of the budget.
    #[test]
    fn what_a_way_cannot_load_is_not_said_to_have_wanted_time() {
        let nothing = left("default", None, &Samples::default());
        assert_eq!(
            nothing.default_because.unwrap(),
            "no method that can be loaded this way is significantly faster (own:linear cannot be)"
        );
        let native = "native:mpich:binomial";
        let withheld = left(native, Some(Shown::TooFewPairs), &Samples::default());
        let wanted = format!("{native} was not confirmed: too few pairs of jobs");
        assert_eq!(withheld.default_because.unwrap(), wanted);
        assert_eq!(withheld.unconfirmed.unwrap().method, method(native));
    }

    /// It is told, and not loaded whatever is asked for.
    #[test]
    fn what_was_timed_only_while_others_disturbed_it_cannot_be_asked_for() {
        let native = "native:mpich:binomial";
        let withheld = |status: &str| {
            let row = |method: &str| {
                let cell = Cell { point: point(), method: method.parse().unwrap() };
                let status = serde_json::from_value(status.into()).unwrap();
                CollectiveCall { status, ..CollectiveCall::timed(&cell, 1.0) }
            };
            let samples = Samples::gather(&[row("default"), row(native)], libraries::ran_as_asked);
            left(native, Some(Shown::TooFewPairs), &samples)
        };
        assert!(withheld("ok").unconfirmed.is_some());
        let disturbed = withheld("disturbed");
        assert_eq!(disturbed.unconfirmed, None);
        let why = disturbed.default_because.unwrap();
        assert!(why.contains("only while other processes took too much"), "{why}");
    }
}
