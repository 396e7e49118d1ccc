//! `predict --model simulated` and `draw`.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::support::run;

const FRODO: [&str; 2] = ["--calibration", "preset:frodo"];

const SIMULATE: [&str; 3] = ["predict", "--model", "simulated"];

fn simulate(flags: &str) -> Vec<Value> {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let arguments = [&SIMULATE[..], &["--format", "json"], &FRODO, &flags].concat();
    serde_json::from_str(&run(0, &arguments).0).unwrap()
}

fn draw(code: i32, flags: &str) -> (String, String) {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    run(code, &[&["draw"], &flags[..]].concat())
}

/// Frodo's LogGP (the paper's Table 5): one message of m bytes end to end, and the gap after it.
fn hop_and_gap(bytes: f64) -> (f64, f64) {
    let per_byte = 0.084e-6 * (bytes - 1.0);
    (61.22e-6 + 2.0 * 8.2e-6 + per_byte, 23.8e-6 + per_byte)
}

fn assert_close(row: &Value, wanted: f64) {
    let seconds = row["seconds"].as_f64().unwrap();
    assert!((seconds / wanted - 1.0).abs() < 1e-9, "{row}: expected {wanted}");
}

/// Table 2's pipeline is exact: (P - 1) messages, then a gap for each further segment; so is its
/// binomial tree of one segment, log2 P messages deep.
#[test]
fn simulated_times_equal_the_closed_forms_that_are_exact() {
    let (hop, gap) = hop_and_gap(8192.0);
    for (costs, found_by) in [("loggp", "simulated by loggp"), ("plogp", "simulated")] {
        let rows = simulate(&format!(
            "--collective bcast --algorithm pipeline --segments 8KiB --procs 8,4096 --sizes 1MiB \
             --costs {costs}"
        ));
        assert_eq!(rows.len(), 2);
        for (row, procs) in rows.iter().zip([8_u32, 4096]) {
            assert_close(row, f64::from(procs - 1) * hop + 127.0 * gap);
            assert_eq!(row["messages"], u64::from(procs - 1) * 128);
            assert_eq!(row["found_by"], found_by);
        }
        let rows = simulate(&format!(
            "--collective bcast --algorithm binomial --segments 0 --procs 2,8,64,1024 -m 8KiB \
             --costs {costs} --root 1"
        ));
        for (row, depth) in rows.iter().zip([1.0, 3.0, 6.0, 10.0]) {
            assert_close(row, depth * hop);
        }
    }
}

#[test]
fn rows_name_everything_and_csv_and_table_hold_the_same() {
    let rows = simulate("--collective reduce --algorithm pipeline --segments 1KiB -p 4 -m 64KiB");
    let row = rows[0].as_object().unwrap();
    let wanted = [
        ("collective", "reduce".into()),
        ("algorithm", "pipeline".into()),
        ("method", "own:pipeline,segment=1KiB".into()),
        ("segment_bytes", 1024.into()),
        ("procs", 4.into()),
        ("bytes", 65536.into()),
        ("model", "simulated".into()),
        ("found_by", "simulated".into()),
        ("messages", Value::from(3 * 64)),
    ];
    for (field, value) in wanted {
        assert_eq!(row[field], value, "{field}");
    }
    for format in ["csv", "table"] {
        let arguments = ["--procs", "4", "-m", "1KiB", "--all", "--format", format];
        let (text, _) = run(0, &[&SIMULATE[..], &arguments, &FRODO].concat());
        let rows = simulate("--procs 4 -m 1KiB").len();
        assert_eq!(text.lines().count(), rows + 1, "{text}");
    }
}

#[test]
fn every_collective_with_schedules_is_simulated_by_all_its_algorithms() {
    let rows = simulate("--collective all -p 1,6,8 -m 4KiB --segments 1001");
    let mut all: BTreeSet<(String, String)> = BTreeSet::new();
    for entry in schedules::ENTRIES {
        all.insert((entry.collective.to_string(), entry.name.into()));
        if entry.algorithm.plain().is_some() {
            // Another form of an algorithm is simulated where it is named.
            let named = format!("--collective {} --algorithm {}", entry.collective, entry.name);
            assert_eq!(simulate(&format!("{named} -p 6 -m 4KiB --segments 0")).len(), 1, "{named}");
            all.remove(&(entry.collective.to_string(), entry.name.into()));
        }
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of_row = |row: &Value| (text(&row["collective"]), text(&row["algorithm"]));
    assert_eq!(rows.iter().map(of_row).collect::<BTreeSet<_>>(), all);
    for row in &rows {
        assert_eq!(row["messages"] == 0, row["procs"] == 1, "{row}");
        let seconds = row["seconds"].as_f64().unwrap();
        assert_eq!(seconds > 0.0, row["procs"] != 1, "{row}");
        assert_eq!(row["bytes"] == 0, row["collective"] == "barrier", "{row}");
    }
}

#[test]
fn a_rendezvous_costs_its_handshake_and_an_odd_number_leaves_an_algorithm_out() {
    let one = "--collective bcast --algorithm binomial --segments 0 -p 2 -m 8KiB";
    let eager = simulate(one)[0]["seconds"].as_f64().unwrap();
    let meets = simulate(&format!("{one} --rendezvous 8KiB"))[0]["seconds"].as_f64().unwrap();
    let above = simulate(&format!("{one} --rendezvous 8193"))[0]["seconds"].as_f64().unwrap();
    // There and back, without a byte.
    assert!((meets - eager - 2.0 * 61.22e-6).abs() < 1e-9, "{meets} {eager}");
    assert_eq!(above, eager);
    for (cost, added) in [("round-trip", 2.0 * 61.22e-6), ("0", 0.0), ("30e-6", 30e-6)] {
        let flags = format!("{one} --rendezvous 8KiB --rendezvous-cost {cost}");
        let told = simulate(&flags)[0]["seconds"].as_f64().unwrap();
        assert!((told - eager - added).abs() < 1e-9, "{cost}: {told} {eager}");
    }

    let arguments = ["--collective", "allgather", "-p", "7", "-m", "1KiB"];
    let (_, stderr) = run(0, &[&SIMULATE[..], &arguments, &FRODO].concat());
    assert!(stderr.contains("neighbor-exchange skipped for 7 ranks"), "{stderr}");
}

#[test]
fn wrong_simulations_are_answered_with_what_would_be_right() {
    for (flags, wanted) in [
        ("--algorithm pipelin", "did you mean 'pipeline'?"),
        ("--collective bcats", "did you mean 'bcast'?"),
        ("--collective allgather --algorithm neighbor-exchange -p 7", "needs an even number"),
        ("--procs 4 --root 4", "ranks 0 to 3"),
        ("--procs 0", "expected 1 to 16777216 ranks"),
        ("--collective barrier --root 1", "none of the collectives has a root"),
        ("--algorithm binary --fan-out 3", "k-chain and k-nomial"),
        ("--algorithm k-nomial --fan-out 1", "at least 2"),
        ("--segments none", "or `auto`"),
        ("--costs hockney", "[possible values: loggp, plogp]"),
        ("--rendezvous 64kb", "4KiB"),
        ("--rendezvous 64KiB --rendezvous-cost -1e-6", "0 or more, such as 0 or 30e-6"),
        ("--rendezvous 64KiB --rendezvous-cost free", "round-trip or seconds"),
        ("--rendezvous-cost 0", "--rendezvous <SIZE>"),
        ("--collective alltoallv", "Colibri has none in any model"),
        ("--sizes 8589934592GiB -p 2", "overflow"),
        ("--parameters fitted", "--parameters measured"),
        ("--layouts 2x2 -p 8", "cannot be used with"),
        ("--layouts 0x2", "'0x2'"),
        ("--algorithm two-level", "give --layouts, such as 8x4"),
        ("--layouts 2x2 --algorithm two-levl", "did you mean 'two-level'?"),
        ("--layouts 2x2 --algorithm multi-lane --inter bruck", "'bruck' (known: binary"),
        ("--layouts 2x2 --collective scan --algorithm two-level", "scan has no two-level"),
        ("--inter ring", "--layouts <LIST>"),
    ] {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let (stdout, stderr) = run(2, &[&SIMULATE[..], &FRODO, &flags].concat());
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
        assert_eq!(stdout, "", "{flags:?}");
    }
    assert!(run(2, &SIMULATE).1.contains("--calibration"));
    for flags in [&["--costs", "loggp"][..], &["--rendezvous", "1KiB", "--model", "refined"]] {
        let (_, stderr) = run(2, &[&["predict"], &FRODO[..], flags].concat());
        assert!(stderr.contains("give --model simulated"), "{stderr}");
    }
}

/// One message between two nodes, then one inside the second: two-level by flat trees.
#[test]
fn messages_cost_what_their_level_does() {
    let seconds = |flags: &str| {
        let rows =
            simulate(&format!("--collective bcast -m 8KiB --segments 0 --costs loggp {flags}"));
        assert_eq!(rows.len(), 1);
        (rows[0].clone(), rows[0]["seconds"].as_f64().unwrap())
    };
    let (_, between) = seconds("--algorithm linear -p 2");
    let inside = "--inside preset:boba";
    let (_, within) = seconds(&format!("--algorithm linear --layouts 1x2 {inside}"));
    assert!(within < 0.9 * between, "boba is quicker: {within} {between}");
    for layout in ["2x2", "2x2:cyclic"] {
        let levels = format!("--inter linear --intra linear --layouts {layout} {inside}");
        let (row, both) = seconds(&format!("--algorithm two-level {levels}"));
        // The root's message inside does not hold up the one between nodes: each has a port.
        assert!((both / (between + within) - 1.0).abs() < 1e-9, "{row}");
        assert_eq!(row["procs"], layout);
        assert_eq!(
            (&row["method"], &row["messages"]),
            (&"own:two-level,inter=linear,intra=linear".into(), &3.into())
        );
    }
    // A chain from node to node crosses once, dealt in turn three times, if it is not renumbered.
    let chain = |flags: &str| seconds(&format!("--algorithm pipeline {inside} {flags}")).1;
    assert!((chain("--layouts 2x2") / (between + 2.0 * within) - 1.0).abs() < 1e-9);
    assert!((chain("--layouts 2x2:cyclic") / (3.0 * between) - 1.0).abs() < 1e-9);
    assert!(
        (chain("--layouts 2x2:cyclic --by-node") / (between + 2.0 * within) - 1.0).abs() < 1e-9
    );
    let all = simulate(&format!("--collective allgather -m 1KiB --layouts 2x2:cyclic {inside}"));
    assert!(all.iter().any(|row| row["algorithm"] == "multi-lane"), "{all:?}");
}

#[test]
fn a_topology_goes_to_stdout_as_graphviz_text() {
    let (text, _) = draw(0, "--topology k-nomial --procs 7 --fan-out 3 --root 2");
    let wanted = "digraph \"k-nomial\" {\n  label=\"k-nomial tree of 7 ranks, radix 3, root 2\";\n  \
                  ordering=out;\n  node [shape=circle];\n  2 [shape=doublecircle];\n  \
                  2 -> 3;\n  2 -> 4;\n  2 -> 5;\n  2 -> 1;\n  5 -> 6;\n  5 -> 0;\n}\n";
    assert_eq!(text, wanted);
    let (text, _) = draw(0, "--topology binomial --procs 4 --order descending");
    assert!(text.contains("  0 -> 2;\n  0 -> 1;\n  2 -> 3;\n"), "{text}");
}

#[test]
fn pictures_have_the_form_of_their_ending() {
    let dir = tempfile::tempdir().unwrap();
    let tree = "--topology binomial --procs 16";
    let schedule = "--schedule --collective reduce --algorithm binomial --procs 8 --sizes 64KiB \
                    --segments 8KiB --calibration preset:frodo";
    for (what, ending, start) in [
        (tree, "svg", &b"<svg "[..]),
        (tree, "png", b"\x89PNG"),
        (tree, "dot", b"digraph"),
        (schedule, "svg", b"<svg "),
        (schedule, "png", b"\x89PNG"),
    ] {
        let path = dir.path().join(format!("picture.{ending}"));
        let flags = format!("{what} --output {}", path.display());
        assert_eq!(draw(0, &flags), (String::new(), String::new()));
        let first = fs::read(&path).unwrap();
        assert!(first.starts_with(start), "{what} {ending}");
        draw(0, &flags);
        assert!(fs::read(&path).unwrap() == first, "{what} {ending}: not the same again");
    }
    let left: BTreeSet<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["svg", "svg.csv", "svg.gp", "png", "png.csv", "png.gp", "dot"];
    assert_eq!(left, expected.map(|ending| format!("picture.{ending}")).into());
}

/// Through shared memory there are flags for arrows, also inside nodes beside messages.
#[test]
fn what_goes_through_shared_memory_is_drawn_with_its_flags() {
    let node =
        format!("{}/models/tests/models/data/node16/calibration.json", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let arrows = |flags: &str| {
        let svg = folder.path().join("drawn.svg");
        draw(0, &format!("--schedule {flags} --output {}", svg.display()));
        let table = fs::read_to_string(folder.path().join("drawn.svg.csv")).unwrap();
        let number =
            |name: &str| table.lines().filter(|row| row.split(',').nth(1) == Some(name)).count();
        ["flag", "message", "copies"].map(number)
    };
    let cells = format!("--collective bcast --algorithm shared-cells --calibration {node}");
    assert_eq!(arrows(&format!("{cells} --procs 8 --sizes 8")), [7, 0, 7]);
    let barrier = format!("--collective barrier --algorithm shared-flags --calibration {node}");
    // To the first rank and back, in groups by way of their first ranks.
    assert_eq!(arrows(&format!("{barrier} --procs 16")), [30, 0, 0]);
    assert_eq!(arrows(&format!("{barrier} --procs 16 --fan-out 4")), [30, 0, 0]);
    let nodes = "--collective bcast --algorithm two-level --intra shared-cells --layouts 2x4 --procs 8 --sizes 8";
    let [flags, messages, _] =
        arrows(&format!("{nodes} --calibration preset:frodo --inside {node}"));
    assert_eq!((flags, messages), (6, 1));
    let (_, stderr) =
        draw(2, &format!("--schedule {barrier} --procs 16 --fan-out 1 --output never.svg"));
    assert!(stderr.contains("fan-out 1; expected at least 2"), "{stderr}");
    let (_, stderr) = draw(
        2,
        &format!("--schedule {cells} --procs 4 --sizes 8 --costs loggp --output never.svg"),
    );
    assert!(stderr.contains("with the parameters of plogp"), "{stderr}");
}

#[test]
fn wrong_drawings_are_answered_with_what_would_be_right() {
    let schedule = "--schedule --collective bcast --algorithm pipeline --calibration preset:frodo \
                    --procs 4 --sizes 64KiB";
    for (flags, wanted) in [
        (String::from("--procs 4"), "--topology"),
        ("--topology k-nominal --procs 4".into(), "did you mean 'k-nomial'?"),
        ("--topology binary --procs 0".into(), "1.."),
        ("--topology binary --procs 4 --root 4".into(), "expected 0 to 3"),
        ("--topology binary --procs 4 --fan-out 2".into(), "k-chain and k-nomial"),
        ("--topology k-nomial --procs 4 --fan-out 1".into(), "at least 2"),
        ("--topology flat --procs 129 -o /nowhere/x.svg".into(), "at most 128"),
        ("--topology flat --procs 4000000000".into(), "at most 1048576"),
        ("--topology flat --procs 4 -o tree.pdf".into(), ".dot, .svg or .png"),
        ("--topology flat --procs 4 --calibration preset:frodo".into(), "--schedule"),
        ("--topology flat --procs 4 --sizes 1KiB".into(), "cannot be used with"),
        (schedule.into(), "--output"),
        (format!("{schedule} -o x.dot"), ".svg or .png"),
        (format!("{schedule} -o /nowhere/x.svg --procs 65"), "cannot be used multiple times"),
        (format!("{schedule} -o /nowhere/x.svg --segments 1"), "at most 1000"),
        (format!("{schedule} -o /nowhere/x.svg --segments 100"), "at most 1000"),
        (format!("{schedule} -o /nowhere/x.svg --root 4"), "expected 0 to 3"),
        (format!("{schedule} -o /nowhere/x.svg --fan-out 3"), "k-chain and k-nomial"),
        (schedule.replace("pipeline", "pipelin") + " -o /nowhere/x.svg", "'pipeline'?"),
        (schedule.replace("--procs 4", "--procs 65") + " -o /nowhere/x.svg", "at most 64"),
        (schedule.replace("--procs 4", "--procs 1") + " -o /nowhere/x.svg", "no time passes"),
        (schedule.replace("--sizes 64KiB", "") + " -o /nowhere/x.svg", "--sizes"),
        (schedule.replace("--calibration preset:frodo", "-o /nowhere/x.svg"), "--calibration"),
    ] {
        let (stdout, stderr) = draw(2, &flags);
        assert!(stderr.contains(wanted), "{flags}: {stderr}");
        assert_eq!(stdout, "", "{flags}");
    }
    let (_, stderr) = draw(1, &format!("{schedule} --output /no/such/place.svg"));
    assert!(stderr.contains("/no/such/place.svg") && stderr.contains("no such file"), "{stderr}");
    let (_, stderr) = draw(1, "--topology flat --procs 4 --output /no/such/place.dot");
    assert!(stderr.contains("/no/such/place.dot"), "{stderr}");
}
