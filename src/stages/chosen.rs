//! What a run has chosen, as it is written down in `choices.json`.

use std::collections::BTreeMap;

use records::{
    Method, Point,
    choices::{Choices, Chosen, Confirmed, Evidence, RunnerUp},
    penalty::Penalties,
    summary::Loading,
};
use verification::{samples::Samples, selection::Choice};

/// Why a method that is a little faster is not chosen, nor one that is faster only by chance.
const NOTHING_FASTER: &str = "no method measured here is significantly faster";

/// The choices of a run by its measurements. `next` gives the next best method of a point and its
/// time in seconds, `doubts` the standard deviation of the logarithm of its gain.
pub fn measured(
    penalties: &Penalties,
    choices: &[Choice],
    next: &dyn Fn(&Choice) -> Option<(Method, f64)>,
    doubts: &BTreeMap<Point, f64>,
) -> Choices {
    let chosen = |choice: &Choice| Chosen {
        collective: choice.point.collective,
        procs: choice.point.procs,
        bytes: choice.point.bytes,
        method: choice.method.clone(),
        seconds: choice.seconds,
        default_seconds: choice.default_seconds,
        rests_on: Evidence::Measured,
        doubt: doubts.get(&choice.point).copied(),
        next: next(choice).map(|(method, seconds)| RunnerUp { method, seconds }),
        default_because: (choice.method == Method::Default).then(|| NOTHING_FASTER.into()),
    };
    Choices {
        platform: penalties.platform.clone(),
        message_size: penalties.message_size.clone(),
        choices: choices.iter().map(chosen).collect(),
        confirmed: Vec::new(),
    }
}

/// The fastest of the other methods that were measured at a choice's point.
pub fn next_measured(samples: &Samples, choice: &Choice) -> Option<(Method, f64)> {
    let others = samples.at(choice.point).filter(|(method, _)| **method != choice.method);
    let timed = others.filter_map(|(method, times)| Some((method, times.midmean()?)));
    let (method, seconds) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some((method.clone(), seconds))
}

/// What is left of `chosen` for one way of loading, after the jobs that confirmed it.
pub fn confirmed(chosen: &[Chosen], choices: &[Choice], loading: &Loading) -> Confirmed {
    let of_point = |(before, choice): (&Chosen, &Choice)| {
        let is_default = choice.method == Method::Default;
        let seconds = if is_default { choice.default_seconds } else { choice.seconds };
        Chosen {
            method: choice.method.clone(),
            seconds,
            default_seconds: choice.default_seconds,
            rests_on: if is_default { Evidence::Measured } else { Evidence::Confirmed },
            default_because: is_default.then(|| why_default(before, loading)),
            ..before.clone()
        }
    };
    let choices = chosen.iter().zip(choices).map(of_point).collect();
    Confirmed { way: loading.way, choices }
}

/// Why a way of loading leaves a point to the default.
fn why_default(chosen: &Chosen, loading: &Loading) -> String {
    let Point { collective, procs, bytes } = chosen.point();
    let is_here = |other: (_, _, _)| other == (collective, procs, bytes);
    let unexpressed =
        loading.unexpressed.iter().find(|one| is_here((one.collective, one.procs, one.bytes)));
    let taken_out =
        loading.taken_out.iter().find(|one| is_here((one.collective, one.procs, one.bytes)));
    match (&chosen.default_because, unexpressed, taken_out) {
        (Some(because), ..) => because.clone(),
        (_, Some(one), _) => format!("{} cannot be loaded: {}", one.method, one.reason),
        (_, _, Some(one)) => {
            format!("{} was not confirmed: speed-up {:.2} when loaded", one.method, one.speed_up)
        }
        _ => format!("the budget ended before {} was confirmed", chosen.method),
    }
}
