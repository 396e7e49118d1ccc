//! Compares what steps print and write as results: numbers, methods and structure. How it is worded, laid out and drawn
//! may change.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::Value;

/// What a step has printed and written, by file name.
pub type Outputs = BTreeMap<String, Vec<u8>>;

/// Fields of JSON that hold sentences.
const PROSE: &[&str] = &["about", "default_because", "origin", "reason", "warnings"];

/// What of a text is a result, by the name of the file that holds it; nothing of what is read by people alone.
pub fn result(name: &str, text: &str) -> Option<String> {
    let until = |mark: &'static str| {
        move |line: &str| line.split(mark).next().unwrap_or_default().trim_end().to_owned()
    };
    let without = |of_line: &dyn Fn(&str) -> String| {
        let lines = text.lines().map(of_line).filter(|line| !line.is_empty());
        lines.map(|line| line + "\n").collect()
    };
    match Path::new(name).extension()?.to_str()? {
        "json" => {
            let mut value: Value = serde_json::from_str(text).unwrap();
            drop_prose(&mut value);
            Some(serde_json::to_string_pretty(&value).unwrap() + "\n")
        }
        "csv" | "dot" => Some(text.to_owned()),
        "rules" | "han" | "sh" | "prf" => Some(without(&until("#"))),
        "rs" => Some(without(&until("//"))),
        "c" => Some(without_block_comments(text)),
        _ => None,
    }
}

fn drop_prose(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !PROSE.contains(&name.as_str()));
            fields.values_mut().for_each(drop_prose);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_prose),
        _ => {}
    }
}

fn without_block_comments(text: &str) -> String {
    let mut left = String::new();
    for (number, part) in text.split("/*").enumerate() {
        left +=
            if number == 0 { part } else { part.split_once("*/").map_or("", |(_, after)| after) };
    }
    left.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")).collect()
}

/// In which files results differ, with the first line that does.
pub fn differences(expected: &Outputs, actual: &Outputs) -> String {
    let names: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
    let mut text = String::new();
    for name in names {
        match (expected.get(name), actual.get(name)) {
            (Some(expected), Some(actual)) if are_alike(expected, actual) => {}
            (Some(expected), Some(actual)) => text += &first_difference(name, expected, actual),
            (Some(_), None) => text += &format!("  {name}: was not written\n"),
            (None, _) => text += &format!("  {name}: was not expected\n"),
        }
    }
    text
}

/// Numbers with a fraction may differ in what processors round differently: the libraries under us
/// take other instructions on each.
const ROUNDING: f64 = 1e-9;

/// Whether two outputs are the same but for the rounding of numbers.
fn are_alike(expected: &[u8], actual: &[u8]) -> bool {
    let [expected, actual] = [expected, actual].map(|bytes| String::from_utf8_lossy(bytes));
    expected == actual
        || (expected.lines().count() == actual.lines().count()
            && expected.lines().zip(actual.lines()).all(|(one, other)| are_lines_alike(one, other))
            && expected.ends_with('\n') == actual.ends_with('\n'))
}

fn are_lines_alike(expected: &str, actual: &str) -> bool {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    let (mut expected, mut actual) =
        (expected.split_inclusive(is_end), actual.split_inclusive(is_end));
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || are_near(one, other) => {}
            _ => return false,
        }
    }
}

/// Whether both are numbers with a fraction that differ by no more than rounding does, with the same
/// character behind them.
fn are_near(one: &str, other: &str) -> bool {
    let split = |text: &str| {
        let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let value = number.parse::<f64>().ok().filter(|_| number.contains(['.', 'e']));
        Some((value?, text[number.len()..].to_owned()))
    };
    let (Some((a, after_one)), Some((b, after_other))) = (split(one), split(other)) else {
        return false;
    };
    after_one == after_other && (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

fn first_difference(name: &str, expected: &[u8], actual: &[u8]) -> String {
    let [expected, actual] = [expected, actual].map(|bytes| String::from_utf8_lossy(bytes));
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    for number in 1.. {
        let (wanted, found) = (expected.next(), actual.next());
        let is_alike =
            wanted.zip(found).is_some_and(|(wanted, found)| are_lines_alike(wanted, found));
        if !is_alike && wanted != found {
            let text = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
            let (wanted, found) = (text(wanted), text(found));
            return format!("  {name}, line {number}:\n    - {wanted}\n    + {found}\n");
        }
        if wanted.is_none() {
            break;
        }
    }
    format!("  {name}: another end of line\n")
}

#[test]
fn only_rounding_is_passed_over() {
    let alike = |one: &str, other: &str| are_alike(one.as_bytes(), other.as_bytes());
    assert!(alike("\"a\": 1.00000000000001e-5,\n", "\"a\": 1.00000000000002e-5,\n"));
    assert!(!alike("1.000001,", "1.000002,"));
    assert!(!alike("100000000001,", "100000000002,"), "a count");
    assert!(!alike("1.5 a", "1.5 b") && !alike("1.5,", "1.5;") && !alike("1.5", "1.5,2"));
}

#[test]
fn sentences_are_no_results_and_all_else_is() {
    let of = |name: &str, text: &str| result(name, text);
    assert_eq!(of("a.svg", "<svg/>"), None);
    assert_eq!(of("a.rules", "# bcast\n64 1 0 0 # linear\n"), Some("64 1 0 0\n".into()));
    assert_eq!(of("a.c", "/* a\n b */\nint x; /* y */\n"), Some("int x; \n".into()));
    assert_eq!(of("a.rs", "// a\nlet x = 1; // b\n"), Some("let x = 1;\n".into()));
    let json = of("a.json", r#"{"b": {"reason": "why", "a": 1.5}, "warnings": []}"#).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), serde_json::json!({"b": {"a": 1.5}}));
}

#[test]
fn a_difference_is_reported_with_its_line() {
    let outputs = |texts: &[(&str, &str)]| -> Outputs {
        texts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    };
    let expected = outputs(&[("a", "1.5\n2\n"), ("b", "1\n"), ("c", "1\n")]);
    assert_eq!(differences(&expected, &expected), "");
    let actual = outputs(&[("a", "1.50000000000001\n3\n"), ("b", "1"), ("d", "")]);
    assert_eq!(
        differences(&expected, &actual),
        "  a, line 2:\n    - 2\n    + 3\n  b: another end of line\n  c: was not written\n  d: was \
         not expected\n"
    );
}
