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
    assert!(error.contains("a list of segment sizes"), "{error}");
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

#[test]
fn an_explanation_has_each_candidate_s_formula_with_numbers() {
    let explain = ["explain", "--calibration", "preset:frodo", "--procs", "8", "-m", "64KiB"];
    let (table, _) = run(0, &[&explain[..], &["--model", "loggp"]].concat());
    // 7 messages of 1 KiB and 63 gaps; the symbols with their values.
    for wanted in [
        "(P - 1)(L + 2 o + (m_s - 1) G) + (n_s - 1) max{g + (m_s - 1) G, 2 o}",
        "= 1.14 ms + 6.91 ms",
        "P = 8, L = 61.2 us, o = 8.20 us, m_s = 1024 bytes, G = 84.0 ns/byte, n_s = 64",
    ] {
        assert!(table.contains(wanted), "{wanted}: {table}");
    }
    let (json, _) = run(0, &[&explain[..], &["--format", "json"]].concat());
    let models: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    for candidate in models.iter().flat_map(|model| model["candidates"].as_array().unwrap()) {
        let formula = &candidate["formula"];
        let parts = formula["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["seconds"].as_f64().unwrap()).sum();
        let seconds = candidate["seconds"].as_f64().unwrap();
        assert!(parts.is_empty() || (sum / seconds - 1.0).abs() < 1e-9, "{candidate}");
        assert!(!formula["text"].as_str().unwrap().is_empty());
    }
}

/// Frodo has 32 nodes.
#[test]
fn what_lies_beyond_the_calibration_is_marked_everywhere() {
    let grid = ["--calibration", "preset:frodo", "--collective", "bcast", "-m", "1KiB"];
    let at = |command: &str, procs: &str, more: &[&str]| {
        run(0, &[&[command][..], &grid, &["--procs", procs, "--model", "loggp"], more].concat()).0
    };
    for command in ["predict", "decide"] {
        let json = at(command, "32,33", &["--format", "json"]);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        assert!(rows.len() >= 2);
        assert!(rows.iter().all(|row| row["extrapolated"] == (row["procs"] == 33)), "{json}");
        let csv = at(command, "33", &["--format", "csv"]);
        assert!(csv.lines().next().unwrap().split(',').any(|name| name == "extrapolated"));
        assert!(at(command, "33", &[]).contains("yes") && !at(command, "32", &[]).contains("yes"));
    }
    let barrier = ["--calibration", "preset:frodo", "--collective", "barrier", "--procs", "8"];
    let (text, _) = run(0, &[&["explain"], &barrier[..], &["--model", "hockney"]].concat());
    assert!(text.starts_with("barrier on 8 ranks, by hockney"), "{text}");
    let code = at("decide", "32,64", &["--compress", "tree", "--code", "c"]);
    let note = " * Extrapolated in part: up to 64 ranks, calibrated with 32.\n";
    assert!(code.contains(note), "{code}");
    assert!(!at("decide", "16,32", &["--compress", "tree", "--code", "c"]).contains("xtrapol"));
    let explained = at("explain", "64", &[]);
    assert!(explained.contains("extrapolated: 64 ranks, calibrated with 32"), "{explained}");
    assert!(!at("explain", "32", &[]).contains("extrapolated"));
    let dir = tempfile::tempdir().unwrap();
    let [map, curves] = ["map.svg", "curves.svg"].map(|name| dir.path().join(name));
    at("decide", "16..40", &["--figure", map.to_str().unwrap()]);
    assert!(fs::read_to_string(map).unwrap().contains("extrapolated beyond what was calibrated"));
    at("predict", "2..40", &["--figure", curves.to_str().unwrap()]);
    let curves = fs::read_to_string(curves).unwrap();
    assert!(curves.contains("extrapolated from there on: 33 ranks, calibrated with 32"));
}

/// Of each method at a point, by another call of the command.
fn predicted(procs: u64, bytes: u64, method: &str) -> f64 {
    let method: records::Method = method.parse().unwrap();
    let [procs, bytes, segment] =
        [procs, bytes, method.segment_bytes()].map(|number| number.to_string());
    let algorithm = method.algorithm().unwrap().name();
    let flags = ["--algorithm", algorithm, "--segments", &segment, "--procs", &procs];
    let predict = ["predict", "--calibration", "preset:frodo", "--collective", "bcast"];
    let rest = ["-m", &bytes, "--model", "refined", "--format", "json"];
    let (json, _) = run(0, &[&predict[..], &flags, &rest].concat());
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    rows[0]["seconds"].as_f64().unwrap()
}

#[test]
fn two_decision_functions_are_compared_by_what_following_the_second_costs() {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (both, one, figure) = (name("both.json"), name("one.json"), name("difference.svg"));
    let decide = ["decide", "--calibration", "preset:frodo", "--collective", "bcast", "-p", "3..9"];
    let hockney_and_loggp = ["--sizes", "1..1MiB", "--model", "hockney,loggp", "-o", &both];
    run(0, &[&decide[..], &hockney_and_loggp].concat());
    run(0, &[&decide[..], &["--sizes", "1KiB..8MiB", "--model", "loggp", "-o", &one]].concat());
    let first = format!("{both}:hockney");
    let judge = ["--calibration", "preset:frodo", "--model", "refined"];
    let compare = [&["decide", &first, "--against", &one][..], &judge].concat();
    let flags = ["--format", "json", "--figure", &figure];
    let (json, _) = run(0, &[&compare[..], &flags].concat());
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len(), 7 * 11, "the points that both have: 1 KiB to 1 MiB");
    let different: Vec<_> = rows.iter().filter(|row| row["same"] == false).collect();
    assert!(different.len() > 5 && different.len() < rows.len());
    for row in different.iter().step_by(7) {
        let at = [&row["procs"], &row["bytes"]].map(|number| number.as_u64().unwrap());
        let [first, second] =
            ["first", "second"].map(|name| predicted(at[0], at[1], row[name].as_str().unwrap()));
        assert_eq!(row["first_seconds"].as_f64(), Some(first));
        assert_eq!(row["second_seconds"].as_f64(), Some(second));
        let cost = row["relative_cost"].as_f64().unwrap();
        assert!((cost - (second / first - 1.0)).abs() < 1e-12, "{row}");
    }
    let (table, _) = run(0, &compare);
    let last =
        format!("They differ at {} of 77 points; there the second's time differs", different.len());
    assert!(table.contains(&last), "{table}");
    let svg = fs::read_to_string(&figure).unwrap();
    assert!(svg.contains("predicted by refined with preset:frodo"), "{svg}");

    let same = [&["decide", &one, "--against", &one][..], &judge].concat();
    assert_eq!(run(0, &same).0, "They differ at 0 of 98 points.\n");
    let (wrong, missing) = (format!("{both}:plogp"), format!("{both}:plogpp"));
    for (arguments, wanted) in [
        (vec![both.as_str(), "--calibration", "preset:frodo"], "--model refined"),
        (vec![both.as_str()], "--run DIR"),
        ([&[both.as_str()][..], &judge].concat(), "both.json:hockney"),
        ([&[wrong.as_str()][..], &judge].concat(), "it has: hockney, loggp"),
        ([&[missing.as_str()][..], &judge].concat(), "did you mean 'plogp'?"),
        (
            [&[first.as_str(), "--collective", "reduce"][..], &judge].concat(),
            "for reduce (both do for --collective bcast)",
        ),
        (vec![first.as_str(), "--run", "/no/such/run"], "not a run directory"),
        (vec![first.as_str(), "-p", "4"], "cannot be used with"),
        (vec!["--compress", "table"], "cannot be used with"),
    ] {
        let (_, stderr) = run(2, &[&["decide", "--against", &one][..], &arguments].concat());
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
    let (_, stderr) =
        run(1, &[&["decide", "/no/such.json", "--against", &one][..], &judge].concat());
    assert!(stderr.contains("/no/such.json: cannot read"), "{stderr}");

    // What a model decides on a grid is the first where no file is named.
    let grid = ["--collective", "bcast", "-p", "3..9", "--sizes", "1..1MiB"];
    let hockney = ["decide", "--calibration", "preset:frodo", "--model", "hockney"];
    let compared = [&hockney[..], &grid, &["--against", &one, "--format", "json"]].concat();
    let compared: Vec<serde_json::Value> = serde_json::from_str(&run(0, &compared).0).unwrap();
    let firsts = |rows: &[serde_json::Value]| -> Vec<serde_json::Value> {
        rows.iter().map(|row| row["first"].clone()).collect()
    };
    assert_eq!(firsts(&compared), firsts(&rows));
}
