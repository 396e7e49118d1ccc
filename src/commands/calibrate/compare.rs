//! What changed between two calibrations.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use models::fit::{MIN_SECONDS, MIN_SECONDS_PER_BYTE};
use records::{
    calibration::{Calibration, Estimate},
    document,
};
use serde::Serialize;
use serde_json::Value;

use crate::commands::shared::{
    calibration::{time_and_interval, time_per_byte_and_interval},
    output::{self, TableFormat},
};
use site::run_directory::file_or_in_run;

/// One parameter in both calibrations.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Change {
    /// Such as `measured.plogp.knots.gap_seconds`.
    parameter: String,
    /// Of which size, number of partners, operation, ...: `bytes=1024`; empty where there is one.
    at: String,
    first: f64,
    first_low: f64,
    first_high: f64,
    second: f64,
    second_low: f64,
    second_high: f64,
    /// second / first - 1; none where the first is 0.
    relative_change: Option<f64>,
    /// Both are determined, and their 95 % intervals have nothing in common.
    significant: bool,
}

/// Reads two calibrations and prints what changed: as a table what did so significantly, as JSON
/// or CSV everything.
///
/// # Errors
/// A file cannot be read.
pub fn run(paths: &[std::path::PathBuf], format: TableFormat) -> Result<()> {
    let (first, first_platform) = read(&paths[0])?;
    let (second, second_platform) = read(&paths[1])?;
    if first_platform != second_platform {
        say!("note: the platforms differ: {first_platform}; then {second_platform}");
    }
    let changes = changes(&first, &second);
    let only = |one: &NamedParameters, other: &NamedParameters| {
        one.keys().filter(|key| !other.contains_key(*key)).count()
    };
    for (path, count) in [(&paths[0], only(&first, &second)), (&paths[1], only(&second, &first))] {
        if count > 0 {
            say!("only in {}: {}", path.display(), records::counted(count, "parameter"));
        }
    }
    let heading = ["parameter", "at", "first", "second", "change"];
    let shown: Vec<Change> = match format {
        TableFormat::Table => changes.iter().filter(|change| change.significant).cloned().collect(),
        TableFormat::Json | TableFormat::Csv => changes.clone(),
    };
    if format != TableFormat::Table || !shown.is_empty() {
        output::rows(format, &shown, &heading, cells)?;
    }
    if format == TableFormat::Table {
        let (some, all) = (shown.len(), changes.len());
        output::print(&format!(
            "{some} of {all} parameters changed significantly (their 95 % intervals do not \
             overlap)\n"
        ))?;
    }
    Ok(())
}

fn cells(change: &Change) -> Vec<String> {
    let value = |value: f64, low: f64, high: f64| {
        let estimate = Estimate { value, low, high };
        let [value, interval] = match change.parameter.ends_with("_per_byte") {
            true => time_per_byte_and_interval(estimate),
            false => time_and_interval(estimate),
        };
        if interval.is_empty() { value } else { format!("{value} ({interval})") }
    };
    vec![
        change.parameter.clone(),
        change.at.clone(),
        value(change.first, change.first_low, change.first_high),
        value(change.second, change.second_low, change.second_high),
        change.relative_change.map_or("from 0".into(), |by| format!("{:+.1} %", by * 100.0)),
    ]
}

/// By name and place.
type NamedParameters = BTreeMap<(String, String), Estimate>;

/// The parameters, and the platform that they were measured on.
fn read(path: &Path) -> Result<(NamedParameters, String)> {
    let path = file_or_in_run(path, "calibration.json");
    let calibration: Calibration = document::read(&path)?;
    let mut found = NamedParameters::new();
    if let Some(inside) = &calibration.inside {
        collect(&serde_json::to_value(inside)?, "inside", "", &mut found);
    }
    for (name, set) in
        [("measured", Some(&calibration.measured)), ("fitted", calibration.fitted.as_ref())]
    {
        if let Some(set) = set {
            collect(&serde_json::to_value(set)?, name, "", &mut found);
        }
    }
    if let Some(algorithms) = &calibration.algorithms {
        for fit in &algorithms.fits {
            let at = format!("{} {} {}", fit.collective, fit.method, fit.model);
            for (name, estimate) in [
                ("alpha_seconds", fit.alpha_seconds),
                ("beta_seconds_per_byte", fit.beta_seconds_per_byte),
            ] {
                found.insert((format!("algorithms.{name}"), at.clone()), estimate);
            }
        }
    }
    Ok((found, calibration.platform.summary()))
}

/// Finds every estimate, whatever holds it: a parameter that is added to calibrations is compared
/// without further work.
fn collect(value: &Value, name: &str, at: &str, found: &mut NamedParameters) {
    if let Ok(estimate) = serde_json::from_value::<Estimate>(value.clone()) {
        found.insert((name.into(), at.into()), estimate);
        return;
    }
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                collect(value, &format!("{name}.{field}"), at, found);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                collect(element, name, &place(element, at), found);
            }
        }
        _ => {}
    }
}

/// What tells an element of a list from the others: its plain fields.
fn place(element: &Value, outer: &str) -> String {
    let fields = element.as_object().into_iter().flatten();
    let mut parts: Vec<String> =
        (!outer.is_empty()).then(|| outer.to_owned()).into_iter().collect();
    parts.extend(fields.filter_map(|(field, value)| match value {
        Value::Number(number) => Some(format!("{field}={number}")),
        Value::String(text) => Some(format!("{field}={text}")),
        _ => None,
    }));
    parts.join(" ")
}

/// What is no greater was not determined.
fn least(parameter: &str) -> f64 {
    if parameter.ends_with("_per_byte") { MIN_SECONDS_PER_BYTE } else { MIN_SECONDS }
}

fn changes(first: &NamedParameters, second: &NamedParameters) -> Vec<Change> {
    let in_both = first.iter().filter_map(|(key, one)| Some((key, *one, *second.get(key)?)));
    in_both
        .map(|((parameter, at), one, other)| Change {
            parameter: parameter.clone(),
            at: at.clone(),
            first: one.value,
            first_low: one.low,
            first_high: one.high,
            second: other.value,
            second_low: other.low,
            second_high: other.high,
            relative_change: (one.value != 0.0).then(|| other.value / one.value - 1.0),
            significant: [one, other].iter().all(|it| it.value > least(parameter))
                && (one.high < other.low || other.high < one.low),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> NamedParameters {
        let mut found = NamedParameters::new();
        collect(&serde_json::from_str(text).unwrap(), "measured", "", &mut found);
        found
    }

    #[test]
    fn every_estimate_is_found_with_its_place() {
        let estimate = r#"{"value": 1.0, "low": 0.5, "high": 1.5}"#;
        let found = parameters(&format!(
            r#"{{"loggp": {{"gap_seconds": {estimate}}}, "derived": ["x"],
                "many": [{{"partners": 2, "knots": [{{"bytes": 8, "gap_seconds": {estimate}}}]}}]}}"#
        ));
        let keys: Vec<(&str, &str)> =
            found.keys().map(|(name, at)| (name.as_str(), at.as_str())).collect();
        assert_eq!(
            keys,
            [
                ("measured.loggp.gap_seconds", ""),
                ("measured.many.knots.gap_seconds", "partners=2 bytes=8"),
            ]
        );
    }

    #[test]
    fn intervals_that_meet_are_no_change() {
        let of = |value: f64, low: f64, high: f64| {
            NamedParameters::from([(("g".into(), String::new()), Estimate { value, low, high })])
        };
        let (a, b, c) = (of(1.0, 0.9, 1.1), of(1.2, 1.05, 1.3), of(1.5, 1.4, 1.6));
        assert!(!changes(&a, &b)[0].significant);
        let none = of(0.0, 0.0, 0.1);
        assert!(!changes(&a, &none)[0].significant, "one of them is not determined");
        let change = &changes(&a, &c)[0];
        assert!(change.significant && (change.relative_change.unwrap() - 0.5).abs() < 1e-12);
        assert!(changes(&a, &NamedParameters::new()).is_empty());
        let zero = of(0.0, 0.0, 0.0);
        assert_eq!(changes(&zero, &a)[0].relative_change, None);
    }
}
