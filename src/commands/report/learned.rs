//! What applications have taught, as tables.

use choosing::learned::{shown_faster, speed_up};
use maud::{Markup, html};
use records::{
    Method,
    confirmed::sizes,
    counted,
    learned::{Learned, LearnedClass},
    quantity::format_seconds,
};
use stages::learned::{about, platform};

use super::table;
use crate::commands::shared::output::{aligned, percent};

const HEADING: [&str; 10] = [
    "collective",
    "procs",
    "sizes",
    "calls",
    "default",
    "chosen",
    "speed-up",
    "95 % interval",
    "trials",
    "methods tried",
];

/// For a terminal.
pub(super) fn text(learned: &Learned) -> String {
    let table = match learned.classes.is_empty() {
        true => String::new(),
        false => aligned(&HEADING, rows(learned)),
    };
    format!("{}\n{}\n\n{table}", about(learned), gained(learned))
}

/// For a page.
pub(super) fn section(learned: &Learned) -> Markup {
    html! {
        h2 { "What applications have taught: " (platform(learned)) }
        p { (about(learned)) " " (gained(learned)) }
        @if !learned.classes.is_empty() {
            (table("Calls by layout, collective and size", &HEADING, rows(learned)))
        }
    }
}

/// What the choices are worth by the evidence: calls times mean times.
fn gained(learned: &Learned) -> String {
    let default: f64 = learned.classes.iter().map(LearnedClass::seconds).sum();
    let chosen: f64 = learned.classes.iter().map(seconds).sum();
    let faster = learned.classes.iter().filter(|class| shown_faster(class).is_some()).count();
    let kinds = counted(learned.classes.len(), "kind");
    let mut text =
        format!("Trials show a method faster than the default for {faster} of {kinds} of calls.");
    if default > 0.0 {
        text += &format!(
            " All calls take {} by the default, {} by what is chosen ({} less).",
            format_seconds(default),
            format_seconds(chosen),
            percent(1.0 - chosen / default)
        );
    }
    text
}

/// What the calls of a class take by what is chosen, as far as trials tell.
fn seconds(class: &LearnedClass) -> f64 {
    class.seconds() * class.evidence().map_or(1.0, |tried| tried.ratios.mean.exp())
}

/// Where most time is spent first.
fn rows(learned: &Learned) -> Vec<Vec<String>> {
    let mut classes: Vec<&LearnedClass> = learned.classes.iter().collect();
    classes.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
    classes.into_iter().map(row).collect()
}

fn row(class: &LearnedClass) -> Vec<String> {
    let tried = class.evidence().filter(|_| class.chosen != Method::Default);
    let shown = tried.and_then(speed_up);
    vec![
        class.point.collective.to_string(),
        class.point.layout.to_string(),
        sizes(class.point.bytes, class.last_bytes),
        class.calls.to_string(),
        format_seconds(class.default_seconds),
        class.chosen.short(),
        tried.map_or_else(String::new, |tried| format!("{:.2}", (-tried.ratios.mean).exp())),
        shown.map_or_else(String::new, |of| format!("{:.2} to {:.2}", of.low, of.high)),
        tried.map_or_else(String::new, |tried| tried.ratios.trials.to_string()),
        class.tried.len().to_string(),
    ]
}
