//! What `tune` has chosen, exported after the fact: on the results of a frozen run.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    frozen,
    support::{run, run_output},
};

/// The results of the frozen tuning run; its records are not there.
struct Results {
    folder: TempDir,
}

impl Results {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = frozen::completed_run(&[]);
        for name in ["calibration.json", "choices.json", "openmpi.rules"] {
            fs::copy(run.tuning().join(name), folder.path().join(name)).unwrap();
        }
        fs::create_dir(folder.path().join("profiles")).unwrap();
        for entry in fs::read_dir(run.tuning().join("profiles")).unwrap() {
            let from = entry.unwrap().path();
            let to = folder.path().join("profiles").join(from.file_name().unwrap());
            fs::copy(from, to).unwrap();
        }
        Results { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn directory(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    fn choices(&self) -> Value {
        json(&self.path("choices.json"))
    }

    /// Exports to a file; gives it and its report.
    fn export(&self, format: &str, arguments: &[&str]) -> (PathBuf, Value) {
        let path = self.path(&format!("exported-{format}"));
        let to = ["--target", format, "--output", path.to_str().unwrap()];
        run(0, &[&["export", self.directory()], &to[..], arguments].concat());
        let report = json(&self.path(&format!("exported-{format}.export.json")));
        (path, report)
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A point's collective, ranks and bytes.
type PointKey = (String, u64, u64);

fn at(chosen: &Value) -> PointKey {
    let number = |key: &str| chosen[key].as_u64().unwrap();
    (chosen["collective"].as_str().unwrap().into(), number("procs"), number("bytes"))
}

fn methods(chosen: &Value) -> BTreeMap<PointKey, String> {
    let method = |one: &Value| (at(one), one["method"].as_str().unwrap().to_owned());
    chosen.as_array().unwrap().iter().map(method).collect()
}

/// What was confirmed for a way of loading.
fn confirmed(choices: &Value, way: &str) -> BTreeMap<PointKey, String> {
    let ways = choices["confirmed"].as_array().unwrap();
    methods(&ways.iter().find(|one| one["way"] == way).unwrap()["choices"])
}

#[test]
fn what_tune_wrote_is_exported_byte_for_byte() {
    let results = Results::new();
    let (rules, report) = results.export("openmpi", &[]);
    assert_eq!(report["basis"], "confirmed");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let rules = read(&rules);
    assert_eq!(rules, read(&results.path("openmpi.rules")));
    let rested = "# bcast on 4, 8 KiB to 256 KiB: native:openmpi:pipeline,segment=1KiB (confirmed by 3 pairs";
    assert!(rules.contains(rested), "{rules}");

    let (profiles, _) = results.export("profile", &[]);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    };
    let written = results.path("profiles");
    assert_eq!(names(&profiles), names(&written));
    assert!(!names(&written).is_empty());
    for name in names(&written) {
        assert_eq!(read(&profiles.join(&name)), read(&written.join(&name)), "{name:?}");
    }
}

/// Where a target does not tell layouts apart, `tune` has written and confirmed what holds for most ranks per
/// node: the same file comes of an export that names no layouts. What was not confirmed is asked for.
#[test]
fn a_confirmed_file_of_several_layouts_asks_for_none() {
    let results = Results::new();
    let two_per_node = |choices: &mut Value| {
        let all = choices.as_array_mut().unwrap();
        let mut more: Vec<Value> =
            all.iter().filter(|chosen| chosen["procs"] == 4).cloned().collect();
        more.iter_mut().for_each(|chosen| chosen["procs"] = "2x2".into());
        all.extend(more);
    };
    let mut choices = results.choices();
    two_per_node(&mut choices["choices"]);
    let ways = choices["confirmed"].as_array_mut().unwrap();
    ways.iter_mut().for_each(|way| two_per_node(&mut way["choices"]));
    let write = |choices: &Value| fs::write(results.path("choices.json"), choices.to_string());
    write(&choices).unwrap();
    let file = |(path, _): (PathBuf, Value)| fs::read_to_string(path).unwrap();
    let alone = file(results.export("openmpi", &["--commutative"]));
    let named = file(results.export("openmpi", &["--commutative", "--layouts", "2x2"]));
    assert_eq!(alone, named);

    choices["confirmed"] = Value::Array(Vec::new());
    write(&choices).unwrap();
    let (_, stderr) = run(2, &["export", results.directory(), "--target", "openmpi"]);
    assert!(stderr.contains("4x1 and 2x2") && stderr.contains("--layouts 2x2"), "{stderr}");
}

/// Nothing is chosen anew: a run's records may be gone, and what a target cannot be told gives way to
/// the first of what the choices list that it can.
#[test]
fn every_format_is_told_what_was_chosen_or_what_came_next() {
    let results = Results::new();
    let choices = results.choices();
    let library = results.path("libmpich.so");
    fs::write(&library, frozen::LIBRARY_OF_MPICH).unwrap();
    let mpich =
        ["--unconfirmed", "--target-version", "4.0", "--target-library", library.to_str().unwrap()];
    let formats: [(&str, &[&str], BTreeMap<PointKey, String>); 7] = [
        (
            "openmpi-json",
            &["--target-version", "6.0", "--commutative"],
            confirmed(&choices, "rules"),
        ),
        ("pgtune", &[], confirmed(&choices, "preload")),
        ("mpich", &mpich, methods(&choices["choices"])),
        ("intel", &["--unconfirmed", "--target-version", "2021.19"], methods(&choices["choices"])),
        ("ucc", &["--unconfirmed"], methods(&choices["choices"])),
        ("ucc-conf", &["--unconfirmed"], methods(&choices["choices"])),
        ("c", &[], of_any_way(&choices)),
    ];
    for (format, arguments, chosen) in formats {
        let to = results.path(format);
        let to = ["--target", format, "--output", to.to_str().unwrap()];
        let arguments = [&["export", results.directory()], &to[..], arguments].concat();
        let (code, _, stderr) = run_output(&arguments);
        if code == 2 {
            // Nothing in the run is an algorithm of that library's.
            assert!(stderr.contains("can run none of the measured methods"), "{format}: {stderr}");
            assert!(matches!(format, "mpich" | "intel" | "ucc" | "ucc-conf"), "{format}: {stderr}");
            continue;
        }
        assert_eq!(code, 0, "{format}: {stderr}");
        let report = json(&results.path(&format!("{format}.export.json")));
        assert_eq!(report["decisions"], chosen.len(), "{format}");
        for one in report["unexpressed"].as_array().unwrap() {
            assert_eq!(one["method"], chosen[&at(one)], "{format}");
            let exported = one["exported"].as_str().unwrap();
            assert!(exported == "default" || is_listed(&choices, one), "{format}: {one}");
        }
        if matches!(format, "openmpi-json" | "c") {
            assert_eq!(report["unexpressed"].as_array().unwrap().len(), 0, "{format}");
        }
    }
}

/// The records are gone, so that nothing could be chosen by them.
#[test]
fn what_a_target_cannot_be_told_gives_way_to_what_came_next() {
    let results = Results::new();
    let mut choices = results.choices();
    choices["confirmed"] = Value::Array(Vec::new());
    for chosen in choices["choices"].as_array_mut().unwrap() {
        chosen["method"] = "own:double-ring".into();
    }
    fs::write(results.path("choices.json"), choices.to_string()).unwrap();
    let (_, report) = results.export("openmpi", &["--commutative", "--unconfirmed"]);
    assert_eq!(report["basis"], "measured");
    let unexpressed = report["unexpressed"].as_array().unwrap();
    assert_eq!(unexpressed.len(), choices["choices"].as_array().unwrap().len());
    let mut replaced = 0;
    for (one, chosen) in unexpressed.iter().zip(choices["choices"].as_array().unwrap()) {
        let first = chosen["alternatives"]
            .as_array()
            .unwrap()
            .iter()
            .find(|other| other["method"].as_str().unwrap().starts_with("native:openmpi:"));
        let wanted = match first.unwrap() {
            other if other["beats_default"] == true => other["method"].as_str().unwrap(),
            _ => "default",
        };
        assert_eq!(one["exported"], wanted, "{one}");
        replaced += u32::from(wanted != "default");
    }
    assert!(replaced > 0, "nothing beats the default: {choices}");
}

/// Whether what is exported instead of a choice is listed there, as faster than the default.
fn is_listed(choices: &Value, unexpressed: &Value) -> bool {
    let all = choices["choices"].as_array().unwrap();
    let chosen = all.iter().find(|chosen| at(chosen) == at(unexpressed)).unwrap();
    let mut others = chosen["alternatives"].as_array().unwrap().iter();
    others.any(|other| other["method"] == unexpressed["exported"] && other["beats_default"] == true)
}

/// What was confirmed in the way of loading that gained most.
fn of_any_way(choices: &Value) -> BTreeMap<PointKey, String> {
    let mut best: BTreeMap<PointKey, (f64, String)> = BTreeMap::new();
    for way in choices["confirmed"].as_array().unwrap() {
        for one in way["choices"].as_array().unwrap() {
            let method = one["method"].as_str().unwrap().to_owned();
            let seconds = |key: &str| one[key].as_f64().unwrap();
            let gain = match method.as_str() {
                "default" => 1.0,
                _ => seconds("default_seconds") / seconds("seconds"),
            };
            let is_better = best.get(&at(one)).is_none_or(|(before, _)| gain > *before);
            if is_better {
                best.insert(at(one), (gain, method));
            }
        }
    }
    best.into_iter().map(|(at, (_, method))| (at, method)).collect()
}

const IN_C: &str = r#"
#include "exported-c"
#include <stdio.h>
int main(void)
{
    char collective[64];
    unsigned procs;
    unsigned long long bytes;
    while (scanf("%63s %u %llu", collective, &procs, &bytes) == 3) {
        struct colibri_method method = colibri_choose(collective, procs, bytes);
        printf("%s %llu\n", method.name, method.segment_bytes);
    }
    return 0;
}
"#;

const IN_RUST: &str = r#"
mod exported { include!("exported-rust"); }
fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let collective = words.next().unwrap();
        let (procs, bytes) = (words.next().unwrap(), words.next().unwrap());
        let method = exported::choose(collective, procs.parse().unwrap(), bytes.parse().unwrap());
        println!("{} {}", method.name, method.segment_bytes);
    }
}
"#;

/// Compiles and asks it at each point; gives a line for each.
fn answers(compiler: &mut Command, program: &Path, asked: &[PointKey]) -> Vec<String> {
    let built = compiler.arg("-o").arg(program).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert_eq!(String::from_utf8_lossy(&built.stderr), "", "no warnings");
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: String =
        asked.iter().map(|(of, procs, bytes)| format!("{of} {procs} {bytes}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A method as the functions tell it: `own:pipeline 1024`.
fn told(method: &str) -> String {
    let Some((name, segment)) = method.split_once(",segment=") else {
        return format!("{method} 0");
    };
    let bytes = match segment.strip_suffix("KiB") {
        Some(number) => 1024 * number.parse::<u64>().unwrap(),
        None => segment.trim_end_matches('B').parse().unwrap(),
    };
    format!("{name} {bytes}")
}

const DEFAULT: &str = "default 0";

#[test]
fn a_decision_function_in_c_and_in_rust_says_what_was_chosen_at_all_points_and_between() {
    let results = Results::new();
    let chosen = of_any_way(&results.choices());
    assert!(chosen.values().any(|method| method.starts_with("own:")), "{chosen:?}");
    let (header, _) = results.export("c", &[]);
    assert!(fs::read_to_string(&header).unwrap().contains(" (confirmed by 3 pairs of jobs"));
    results.export("rust", &[]);
    let (c, rust) = (results.path("ask.c"), results.path("ask.rs"));
    fs::write(&c, IN_C).unwrap();
    fs::write(&rust, IN_RUST).unwrap();

    let sizes: Vec<u64> =
        (0..=20).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << power]).collect();
    let asked: Vec<PointKey> = ["bcast", "reduce", "allgather"]
        .iter()
        .flat_map(|of| (1..=6).map(move |procs| (*of, procs)))
        .flat_map(|(of, procs)| sizes.iter().map(move |bytes| (of.to_owned(), procs, *bytes)))
        .collect();
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]).arg(&c);
    let of_c = answers(&mut cc, &results.path("ask-c"), &asked);
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-D", "warnings", "-A", "dead_code"]).arg(&rust);
    let of_rust = answers(&mut rustc, &results.path("ask-rust"), &asked);
    assert_eq!(of_c, of_rust);
    let answers: BTreeMap<&PointKey, &String> = asked.iter().zip(&of_c).collect();

    for (point, method) in &chosen {
        assert_eq!(answers[point], &told(method), "{point:?}");
    }
    for ((of, procs, bytes), answer) in answers {
        let around = |(other, at, _): &&PointKey| other == of && at <= procs;
        // A size between two measured ones takes the smaller one's choices; none beyond the largest.
        let nearest = chosen.keys().filter(around).map(|(_, at, _)| *at).max();
        let largest = chosen.keys().map(|(_, at, _)| *at).max().unwrap();
        let nearest = nearest.filter(|_| *procs <= largest);
        let at = |bytes: &u64| Some(told(chosen.get(&(of.clone(), nearest?, *bytes))?));
        let measured: Vec<u64> = chosen
            .keys()
            .filter(|(other, at, _)| other == of && Some(*at) == nearest)
            .map(|(_, _, bytes)| *bytes)
            .collect();
        let below = measured.iter().filter(|size| *size <= bytes).max().and_then(at);
        let above = measured.iter().filter(|size| *size >= bytes).min().and_then(at);
        match (below, above) {
            (Some(below), Some(above)) => {
                assert!(*answer == below || *answer == above, "{of} {procs} {bytes}: {answer}");
            }
            _ => assert_eq!(answer, DEFAULT, "nothing is claimed of {of} {procs} {bytes}"),
        }
    }
}

#[test]
fn a_file_of_choices_is_exported_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let decided = path("decided.json");
    let grid = ["--collective", "bcast", "--procs", "4,8", "--sizes", "64,64KiB"];
    let decide = ["decide", "--calibration", "preset:frodo", "--output", &decided];
    run(0, &[&decide[..], &grid, &["--model", "plogp,loggp"]].concat());
    let document = json(Path::new(&decided));
    assert_eq!(document["schema"], "colibri/choices/1");
    assert_eq!(document["prediction"]["calibration"], "preset:frodo");
    let all = document["choices"].as_array().unwrap();
    assert_eq!(all.len(), 2 * 4);
    assert!(all.iter().all(|one| one["rests_on"] == "predicted"), "{document}");

    let (_, stderr) = run(2, &["export", &decided, "--target", "c"]);
    assert!(stderr.contains("holds predictions of models alone"), "{stderr}");
    let decided_c = ["export", "--unconfirmed", &decided, "--target", "c"];
    let (_, stderr) = run(2, &decided_c);
    assert!(stderr.contains("--model plogp (there are those of: loggp, plogp)"), "{stderr}");
    let (text, _) = run(0, &[&decided_c[..], &["--model", "loggp"]].concat());
    let of_loggp = all.iter().filter(|one| one["model"] == "loggp");
    for one in of_loggp {
        let line = format!("{} (predicted, not confirmed)", one["method"].as_str().unwrap());
        assert!(text.contains(&line), "{line}\n{text}");
    }
    // The same as by naming what the file itself names.
    let named =
        ["export", "--unconfirmed", "--decisions", &decided, "--calibration", "preset:frodo"];
    let to = ["--target", "openmpi", "--model", "loggp"];
    let (by_name, _) = run(0, &[&named[..], &to].concat());
    let (alone, _) = run(0, &[&["export", "--unconfirmed", &decided], &to[..]].concat());
    assert_eq!(by_name, alone);
}
