//! The part of a report that is to be explored: what each decision function takes at every point, as
//! data for the page's script.

use std::collections::BTreeMap;

use anyhow::Result;
use maud::{Markup, PreEscaped, html};
use records::{
    Method, Point,
    choices::{Choices, Chosen, Evidence},
    penalty::{Penalties, Penalty},
    quantity::{format_bytes, format_seconds},
    summary::{LoadWay, TuningSummary},
};
use serde::Serialize;

use super::loaded::why;
use crate::commands::shared::{output::percent, penalties as regions};

const SCRIPT: &str = include_str!("explore.js");

/// A point of the run.
#[derive(Serialize)]
struct ExploredPoint {
    collective: &'static str,
    layout: String,
    /// The layout in words.
    processes: String,
    size: String,
    answers: Vec<DecidedMethod>,
}

/// What one decision function takes at a point.
#[derive(Serialize)]
struct DecidedMethod {
    decided_by: String,
    method: String,
    seconds: f64,
    time: String,
    /// Names and values.
    details: Vec<(&'static str, String)>,
}

/// The points of a run with all that was decided there.
#[derive(Default)]
pub struct Explored {
    points: BTreeMap<Point, Vec<DecidedMethod>>,
}

impl Explored {
    /// From what of these a run holds.
    pub fn new(
        summary: Option<&TuningSummary>,
        choices: Option<&Choices>,
        penalties: Option<&Penalties>,
        predicted: Option<&Choices>,
    ) -> Self {
        let mut explored = Explored::default();
        if let Some(choices) = choices {
            // What is loaded comes first, of several ways the one that is advised.
            let advised = summary.map(|summary| summary.advised().way);
            let mut ways: Vec<_> = choices.confirmed.iter().collect();
            ways.sort_by_key(|confirmed| Some(confirmed.way) != advised);
            let chosen = if ways.is_empty() { "chosen" } else { "chosen, before it was confirmed" };
            for confirmed in ways {
                let name = match confirmed.way {
                    LoadWay::Rules => "what is loaded: rules file",
                    LoadWay::Preload => "what is loaded: preload library",
                    LoadWay::Both => "what is loaded: both",
                };
                confirmed.choices.iter().for_each(|chosen| explored.add_choice(chosen, name));
            }
            choices.choices.iter().for_each(|one| explored.add_choice(one, chosen));
        }
        let predicted: BTreeMap<(&str, Point), &Chosen> = predicted
            .iter()
            .flat_map(|found| &found.choices)
            .filter_map(|one| Some(((one.model.as_deref()?, one.point), one)))
            .collect();
        for penalty in penalties.map(|found| found.penalties.as_slice()).unwrap_or_default() {
            explored.add_penalty(penalty, &predicted);
        }
        explored
    }

    fn add_choice(&mut self, chosen: &Chosen, name: &str) {
        let Chosen { method, seconds, .. } = chosen;
        let decided_by = chosen.model.clone().unwrap_or_else(|| name.to_owned());
        self.add(chosen.point, decided_by, (method, *seconds), choice_details(chosen));
    }

    fn add_penalty(&mut self, penalty: &Penalty, predicted: &BTreeMap<(&str, Point), &Chosen>) {
        let Penalty { point, decided, decided_seconds, .. } = penalty;
        let mut details = Vec::new();
        if let Some(prediction) = predicted
            .get(&(penalty.decided_by.as_str(), *point))
            .filter(|prediction| prediction.method == *decided)
        {
            details.push(("predicted", with_interval(prediction)));
        }
        details.push(("measured best", named(&penalty.best, penalty.best_seconds)));
        details.push(("penalty", regions::penalty(penalty.penalty)));
        if penalty.machine_limited {
            details.push(("limited by", "the machine under the virtual cluster".into()));
        }
        self.add(*point, penalty.decided_by.clone(), (decided, *decided_seconds), details);
    }

    fn add(
        &mut self,
        point: Point,
        decided_by: String,
        (method, seconds): (&Method, f64),
        details: Vec<(&'static str, String)>,
    ) {
        let (method, time) = (method.short(), format_seconds(seconds));
        let answer = DecidedMethod { decided_by, method, seconds, time, details };
        self.points.entry(point).or_default().push(answer);
    }

    /// The section of the page; nothing where no point was decided. Without a script it stays hidden.
    pub fn section(self) -> Result<Option<Markup>> {
        if self.points.is_empty() {
            return Ok(None);
        }
        let points: Vec<ExploredPoint> = self
            .points
            .into_iter()
            .map(|(point, answers)| ExploredPoint {
                collective: point.collective.name(),
                layout: point.layout.to_string(),
                processes: point.layout.in_words(),
                size: format_bytes(point.bytes),
                answers,
            })
            .collect();
        // A name could hold what ends a script.
        let data = serde_json::to_string(&points)?.replace('<', "\\u003c");
        Ok(Some(html! {
            section id="explore" hidden {
                h2 { "Explore" }
                p { "Point at a cell, or move by the arrow keys: what runs there, its time, and why." }
                label { "Collective " select name="collective" {} }
                " "
                label { "Decided by " select name="decided_by" {} }
                div.panes {
                    div.grid {}
                    div.details aria-live="polite" {}
                    div.curve {}
                }
            }
            script type="application/json" id="points" { (PreEscaped(data)) }
        }))
    }
}

/// What makes a report's tables sort and filter, and its points explorable.
pub fn script() -> Markup {
    html! { script { (PreEscaped(SCRIPT)) } }
}

fn named(method: &Method, seconds: f64) -> String {
    format!("{}, {}", method.short(), format_seconds(seconds))
}

fn with_interval(predicted: &Chosen) -> String {
    let seconds = format_seconds(predicted.seconds);
    match predicted.interval_seconds.map(|ends| ends.map(format_seconds)) {
        Some([low, high]) => format!("{seconds} (95 %: {low} to {high})"),
        None => seconds,
    }
}

fn choice_details(chosen: &Chosen) -> Vec<(&'static str, String)> {
    let mut details = vec![("why", why(chosen))];
    if let Some(default) = chosen.default_seconds {
        details.push(("default", format_seconds(default)));
        details.push(("speed-up", format!("{:.2}", default / chosen.seconds)));
    }
    if let Some(confirmed) = chosen.confirmed {
        let pairs = records::counted(confirmed.pairs, "pair");
        details.push(("speed-up of its range", format!("{confirmed}, by {pairs} of jobs")));
    }
    if let Some(doubt) = chosen.doubt {
        details.push(("its standard deviation", percent(doubt)));
    }
    if let Some([low, high]) = chosen.interval_seconds.map(|ends| ends.map(format_seconds)) {
        details.push(("95 % interval", format!("{low} to {high}")));
    }
    if let Some(next) = &chosen.next {
        details.push(("next best", named(&next.method, next.seconds)));
    }
    let ties: Vec<String> = chosen.ties.iter().map(Method::short).collect();
    if !ties.is_empty() {
        details.push(("not significantly different from", ties.join(", ")));
    }
    let rests_on = match chosen.rests_on {
        Evidence::Predicted => "a prediction",
        Evidence::Measured => "times of the method, forced",
        Evidence::BetweenConfirmed => "the same method confirmed at a smaller and at a larger size",
        Evidence::Confirmed => "jobs with the choice loaded, made after it",
    };
    details.push(("rests on", rests_on.into()));
    details
}
