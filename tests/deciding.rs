//! `decide` in its short forms, and `explain`.

use std::{fs, path::Path, process::Command};

use crate::support::run;

const MAP: [&str; 11] = [
    "decide",
    "--calibration",
    "preset:frodo",
    "--collective",
    "bcast",
    "--procs",
    "3..12",
    "--sizes",
    "1..8MiB",
    "--model",
    "loggp",
];

/// The method of each point, as (algorithm, segment): by the plain decision function.
fn decisions() -> Vec<(u64, u64, String)> {
    let (json, _) = run(0, &[&MAP[..], &["--format", "json"]].concat());
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let row = |row: &serde_json::Value| {
        let number = |field: &str| row[field].as_u64().unwrap();
        (number("procs"), number("bytes"), row["method"].as_str().unwrap().to_owned())
    };
    rows.iter().map(row).collect()
}

/// Source code of the function, with a main that prints the comment's name of each point's method.
fn answers(directory: &Path, language: &str, shape: &str) -> Vec<String> {
    let flags = ["--compress", shape, "--code", language];
    let (mut source, _) = run(0, &[&MAP[..], &flags].concat());
    let points = decisions();
    let program = directory.join(format!("{shape}-{language}"));
    let output = if language == "c" {
        source += "#include <stdio.h>\nint main(void) {\n";
        for (procs, bytes, _) in &points {
            source += &format!(
                "{{ const struct colibri_bcast_method *m = &colibri_bcast_methods[colibri_bcast(\
                 {procs}, {bytes})]; printf(\"%s %zu\\n\", m->algorithm, m->segment_bytes); }}\n"
            );
        }
        source += "return 0; }\n";
        let file = directory.join(format!("{shape}.c"));
        fs::write(&file, source).unwrap();
        Command::new("cc")
            .args(["-std=c99", "-Wall", "-Werror", "-o"])
            .arg(&program)
            .arg(&file)
            .output()
            .unwrap()
    } else {
        source += "fn main() {\n";
        for (procs, bytes, _) in &points {
            source += &format!(
                "let (a, _, s) = BCAST_METHODS[bcast({procs}, {bytes})]; println!(\"{{a}} {{s}}\");\n"
            );
        }
        source += "}\n";
        let file = directory.join(format!("{shape}.rs"));
        fs::write(&file, source).unwrap();
        Command::new("rustc")
            .args(["--edition", "2024", "-o"])
            .arg(&program)
            .arg(&file)
            .output()
            .unwrap()
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = Command::new(&program).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The method that the nodes of a function in JSON lead to.
fn follow(function: &serde_json::Value, procs: u64, bytes: u64) -> String {
    let mut node = &function["nodes"][0];
    loop {
        if let Some(method) = node["method"].as_u64() {
            return function["methods"][method as usize].as_str().unwrap().to_owned();
        }
        let (question, size) = match node.get("procs") {
            Some(question) => (question, procs),
            None => (&node["bytes"], bytes),
        };
        let second = usize::from(size >= question["from"].as_u64().unwrap());
        node = &function["nodes"][question["then"][second].as_u64().unwrap() as usize];
    }
}

#[test]
fn source_code_decides_as_the_model() {
    let directory = tempfile::tempdir().unwrap();
    for (language, shape) in [("c", "table"), ("c", "tree"), ("rust", "quadtree")] {
        let answers = answers(directory.path(), language, shape);
        let flags = ["--compress", shape, "--format", "json"];
        let (json, _) = run(0, &[&MAP[..], &flags].concat());
        let functions: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(answers.len(), decisions().len());
        for (answer, (procs, bytes, decided)) in answers.iter().zip(decisions()) {
            let method = follow(&functions[0], procs, bytes).parse::<records::Method>().unwrap();
            let wanted = format!("{} {}", method.algorithm().unwrap(), method.segment_bytes());
            assert_eq!(*answer, wanted, "{shape} {procs} {bytes}");
            // Trees may take another one of those that cost the same.
            if shape == "table" {
                assert_eq!(method.to_string(), decided, "{procs} {bytes}");
            }
        }
    }
}

#[test]
fn a_short_form_states_its_size_and_penalty() {
    let flags = ["--compress", "tree", "--within", "0.05", "--format", "json"];
    let (json, _) = run(0, &[&MAP[..], &flags].concat());
    let functions: serde_json::Value = serde_json::from_str(&json).unwrap();
    let function = &functions[0];
    assert_eq!(function["model"], "loggp");
    assert!(function["greatest_penalty"].as_f64().unwrap() <= 0.05);
    let entries = function["entries"].as_u64().unwrap() as usize;
    assert_eq!(function["nodes"].as_array().unwrap().len(), 2 * entries - 1);
    let auto = ["--compress", "tree", "--segments", "auto"];
    let (_, error) = run(2, &[&MAP[..], &auto].concat());
    assert!(error.contains("listed"), "{error}");
    let (_, error) = run(2, &[&MAP[..], &["--depth", "3"]].concat());
    assert!(error.contains("--compress"), "{error}");
}

#[test]
fn an_explanation_orders_the_candidates_and_sums_their_terms() {
    let explain = [
        "explain",
        "--calibration",
        "preset:frodo",
        "--collective",
        "bcast",
        "--procs",
        "24",
        "-m",
        "64KiB",
    ];
    let (json, _) = run(0, &[&explain[..], &["--format", "json"]].concat());
    let models: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let names: Vec<&str> = models.iter().map(|one| one["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["hockney", "loggp", "plogp", "refined"]);
    for model in &models {
        let candidates = model["candidates"].as_array().unwrap();
        let seconds = |one: &serde_json::Value| one["seconds"].as_f64().unwrap();
        assert!(candidates.len() > 10 && candidates.is_sorted_by_key(seconds));
        for candidate in candidates {
            let terms = candidate["terms"].as_array().unwrap();
            let sum: f64 = terms.iter().map(seconds).sum();
            assert!((sum / seconds(candidate) - 1.0).abs() < 1e-4, "{candidate}");
        }
    }
    let (table, _) = run(0, &[&explain[..], &["--model", "loggp"]].concat());
    assert!(
        table.contains("own:pipeline,segment=1KiB wins: against own:splitted-binary"),
        "{table}"
    );
    let (_, error) = run(2, &explain[..7]);
    assert!(error.contains("-m 64KiB"), "{error}");
}
