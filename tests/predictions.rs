//! `predict` and `decide` on the paper's parameters.

use serde_json::Value;

use crate::support::{levelled_calibration, run};

fn rows(arguments: &[&str]) -> Vec<Value> {
    let (stdout, _) = run(0, arguments);
    serde_json::from_str(&stdout).unwrap()
}

/// bcast of 64 KiB on 8 ranks of Frodo by LogGP, in microseconds, worked out by hand from
/// Table 2 with Table 5's parameters.
#[test]
fn the_reference_points_of_table_2_hold_printed_and_corrected() {
    for (algorithm, segments, wanted) in [("pipeline", "1KiB", 8058.0), ("linear", "0", 38755.0)] {
        for forms in ["printed", "corrected"] {
            let rows = rows(&[
                "predict",
                "--calibration",
                "preset:frodo",
                "--collective",
                "bcast",
                "--algorithm",
                algorithm,
                "--segments",
                segments,
                "--procs",
                "8",
                "--sizes",
                "64KiB",
                "--model",
                "loggp",
                "--forms",
                forms,
                "--format",
                "json",
            ]);
            assert_eq!(rows.len(), 1);
            let row = &rows[0];
            let microseconds = row["seconds"].as_f64().unwrap() * 1e6;
            assert!((microseconds - wanted).abs() < 0.05, "{algorithm} {forms}: {microseconds}");
            assert_eq!(row["algorithm"], algorithm);
            assert_eq!(row["procs"], 8);
            assert_eq!(row["bytes"], 65536);
            assert_eq!(row["model"], "loggp");
        }
    }
}

#[test]
fn every_model_and_algorithm_is_predicted_and_csv_and_table_hold_the_same_rows() {
    let arguments = [
        "predict",
        "--calibration",
        "preset:boba",
        "--collective",
        "bcast,reduce,barrier,alltoall",
    ];
    let with =
        |format| [&arguments[..], &["--format", format, "--procs", "4", "-m", "1KiB"]].concat();
    let json = rows(&with("json"));
    let (csv, _) = run(0, &with("csv"));
    let (table, _) = run(0, &[&with("table")[..], &["--all"]].concat());
    // Segments {0, 1 KiB, 8 KiB} for bcast's 5, reduce's 4 and the linear alltoall; one each for
    // the 4 barriers and the pairwise alltoall; by 4 models.
    assert_eq!(json.len(), ((5 + 4 + 1) * 3 + 4 + 1) * 4);
    assert_eq!(csv.lines().count(), json.len() + 1);
    assert_eq!(table.lines().count(), json.len() + 1);
    assert!(json.iter().all(|row| row["seconds"].as_f64().unwrap() > 0.0));
}

#[test]
fn an_algorithm_without_segments_has_its_one_row_whatever_segments_are_asked_for() {
    let arguments =
        ["predict", "--calibration", "preset:boba", "--collective", "barrier", "--procs", "4"];
    let rows = rows(&[&arguments[..], &["--segments", "8KiB", "--format", "json"]].concat());
    assert_eq!(rows.len(), 4 * 4);
    assert!(rows.iter().all(|row| row["segment_bytes"] == 0));
}

/// Table 1: the flat-tree barrier's T_max is T_min and (P - 2) o.
#[test]
fn both_bounds_of_the_barrier_are_told_and_times_have_every_digit() {
    let arguments = ["predict", "--calibration", "preset:frodo", "--collective", "barrier"];
    let rows = rows(
        &[&arguments[..], &["--procs", "10", "--model", "loggp", "--format", "json"]].concat(),
    );
    let linear = rows.iter().find(|row| row["algorithm"] == "linear").unwrap();
    let least = 8.0 * 23.8e-6 + 2.0 * (61.22e-6 + 2.0 * 8.2e-6);
    assert!((linear["seconds"].as_f64().unwrap() / least - 1.0).abs() < 1e-15);
    let greatest = linear["greatest_seconds"].as_f64().unwrap();
    assert!((greatest / (least + 8.0 * 8.2e-6) - 1.0).abs() < 1e-15, "{greatest}");
    assert!(rows.iter().all(|row| row["greatest_seconds"].is_f64() == (row == linear)));
}

#[test]
fn the_fastest_of_each_point_and_model_come_first_and_the_rest_on_request() {
    let arguments =
        ["predict", "--calibration", "preset:frodo", "--collective", "bcast", "--model"];
    let arguments = [&arguments[..], &["all", "--procs", "8", "-m", "8KiB,64KiB"]].concat();
    let rows = rows(&[&arguments[..], &["--format", "json"]].concat());
    let of = |row: &Value| (row["bytes"].as_u64().unwrap(), row["model"].to_string());
    let groups: Vec<&[Value]> = rows.chunk_by(|a, b| of(a) == of(b)).collect();
    assert_eq!(groups.len(), 2 * 6, "each point and model stands together");
    for group in &groups {
        let times: Vec<f64> = group.iter().map(|row| row["seconds"].as_f64().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        // The paper tells no errors, so that nothing is a tie but what is the same.
        let ties = group.iter().filter(|row| row["tie"] == true);
        assert!(ties.clone().all(|row| row["seconds"].as_f64() == Some(times[0])), "{group:?}");
        assert!(group.iter().all(|row| row["low_seconds"].is_null()), "an invented interval");
    }
    let lines = |more: &[&str]| {
        let (table, told) = run(0, &[&arguments[..], more].concat());
        (table.lines().map(ToOwned::to_owned).collect::<Vec<_>>(), told)
    };
    let (short, told) = lines(&[]);
    assert_eq!(short.len(), 1 + 3 * groups.len());
    let best = short.iter().skip(1).filter(|line| line.contains(" best "));
    assert_eq!(best.count(), groups.len());
    assert!(told.contains("--all prints") && told.contains("no intervals"), "{told}");
    // A column without a value is left out.
    assert!(!short[0].contains("interval") && !short[0].contains("T_max"), "{}", short[0]);
    assert_eq!(lines(&["--all"]).0.len(), 1 + rows.len());
}

/// What the calibration's uncertainty does not tell apart is one thing for all commands.
#[test]
fn ties_are_those_that_decide_names() {
    let copies = crate::frozen::RunCopies::new();
    let calibration = copies.path().join("tune/calibration.json");
    let calibration = calibration.to_str().unwrap();
    let of = [
        "--collective",
        "bcast,reduce",
        "--procs",
        "2,4",
        "-m",
        "64,8KiB",
        "--model",
        "hockney,plogp",
    ];
    let at = ["--calibration", calibration, "--segments", "0,1KiB,8KiB"];
    let predicted = rows(&[&["predict", "--format", "json"], &at[..], &of].concat());
    let file = copies.path().join("decisions-of-all.json");
    run(0, &[&["decide", "--output", file.to_str().unwrap()], &at[..], &of].concat());
    let decided: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let decided = decided["choices"].as_array().unwrap();
    assert_eq!(decided.len(), 2 * 2 * 2 * 2);
    let mut tied = 0;
    for choice in decided {
        let is_here = |row: &&Value| {
            ["collective", "procs", "bytes", "model"].iter().all(|key| row[key] == choice[key])
        };
        let here: Vec<&Value> = predicted.iter().filter(is_here).collect();
        let ties = choice["ties"].as_array().map_or(0, Vec::len);
        let is_whole = |row: &&&Value| {
            let segment = row["segment_bytes"].as_u64().unwrap();
            segment == 0 || segment < row["bytes"].as_u64().unwrap()
        };
        let marked = here.iter().filter(|row| row["tie"] == true).filter(is_whole).count();
        assert_eq!(marked.saturating_sub(1), ties, "{choice}\n{here:#?}");
        tied += usize::from(ties > 0);
    }
    assert!(tied > 2, "{tied}");
}

/// Figures 2, 3 and 5: all methods by all models, over the message size and over the ranks.
#[test]
fn predictions_are_drawn_over_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("times.svg");
    let arguments = ["predict", "--calibration", "preset:frodo", "--model", "all", "--figure"];
    for (flags, x) in [
        (["--collective", "bcast", "--procs", "8", "-m", "1KiB,8KiB"], "message size"),
        (["--collective", "reduce", "--procs", "2..9", "-m", "2KiB"], "ranks"),
        (["--collective", "barrier", "--procs", "4,8", "-m", "1KiB"], "ranks"),
    ] {
        let with_file = [&arguments[..], &[file.to_str().unwrap()], &flags].concat();
        run(0, &with_file);
        let svg = std::fs::read_to_string(&file).unwrap();
        for wanted in [x, "(a) hockney", "(f) simulated", "predicted time", "limit"] {
            assert!(svg.contains(wanted), "{flags:?}: {wanted}");
        }
    }
    let both = ["--collective", "bcast", "--procs", "4,8", "-m", "1,2", "x.svg"];
    let (_, stderr) = run(2, &[&arguments[..5], &both[..6], &["--figure", both[6]]].concat());
    assert!(stderr.contains("give one value of the other"), "{stderr}");
}

/// The paper's section 6.3: small messages without segments, pipelines for the largest.
#[test]
fn decisions_on_frodo_have_the_shape_that_the_paper_describes() {
    let rows = rows(&[
        "decide",
        "--calibration",
        "preset:frodo",
        "--collective",
        "bcast",
        "--procs",
        "16",
        "--sizes",
        "1,8MiB",
        "--model",
        "loggp",
        "--format",
        "json",
    ]);
    assert_eq!(rows[0]["method"], "own:binomial");
    assert_eq!(rows[1]["method"], "own:pipeline,segment=8KiB");
}

#[test]
fn what_open_mpi_cannot_be_told_is_not_decided_for_it() {
    let rows = rows(&[
        "decide",
        "--calibration",
        "preset:frodo",
        "--collective",
        "bcast",
        "--procs",
        "8",
        "--sizes",
        "1..1MiB",
        "--target",
        "openmpi",
        "--format",
        "json",
    ]);
    for row in rows {
        let method = row["method"].as_str().unwrap();
        assert!(method.starts_with("native:openmpi:"), "{method}");
        let halves_hold_a_segment = row["bytes"].as_u64().unwrap() >= 2048;
        assert!(!method.contains("splitted-binary,segment") || halves_hold_a_segment, "{row}");
    }
}

#[test]
fn a_target_is_any_format_and_takes_only_what_it_can_name() {
    let decide = |target: &[&str]| {
        let grid = ["--collective", "allgather", "--procs", "6,8", "--sizes", "1KiB..1MiB"];
        let model = ["--model", "refined", "--calibration", "preset:frodo", "--format", "json"];
        rows(&[&["decide"][..], &grid, &model, &["--target"], target].concat())
    };
    for (target, prefix) in [
        (&["openmpi"][..], "native:openmpi:"),
        (&["openmpi-json"], "native:openmpi:"),
        (&["mpich", "--target-version", "4.0"], "native:mpich:"),
        (&["intel"], "native:intel:"),
        (&["profile"], "own:"),
        (&["ucc"], "own:"),
    ] {
        let rows = decide(target);
        assert_eq!(rows.len(), 22, "{target:?}");
        for row in rows {
            let method = row["method"].as_str().unwrap();
            assert!(method.starts_with(prefix), "{target:?}: {row}");
            let is_doubling = method.contains("recursive-doubling");
            assert!(!(is_doubling && row["procs"] == 6 && prefix.contains("mpi")), "{row}");
        }
    }
    let of_pgtune = ["decide", "--calibration", "preset:frodo", "--target", "pgtune"];
    let (_, stderr) = run(2, &of_pgtune);
    assert!(stderr.contains("no algorithm of PGMPITuneLib for bcast"), "{stderr}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let command = format!(
        "{} predict --calibration preset:frodo --procs 2..64 --format json | head -n 1",
        env!("CARGO_BIN_EXE_colibri")
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// On nodes of several ranks what is predicted is what the simulation says, of each level's parameters.
#[test]
fn nodes_of_several_ranks_are_simulated_whatever_the_model() {
    let call = ["--calibration", "preset:frodo", "--inside", "preset:boba", "--layouts", "4x4"];
    let of = ["--collective", "bcast", "-m", "64KiB", "--segments", "8KiB", "--format", "json"];
    for model in ["loggp", "plogp", "simulated"] {
        let costs = if model == "loggp" { "loggp" } else { "plogp" };
        let rows_of = |by: &[&str]| rows(&[&["predict", "--model"][..], by, &call, &of].concat());
        let predicted = rows_of(&[model]);
        let simulated = rows_of(&["simulated", "--costs", costs]);
        assert!(predicted.len() >= 7, "{predicted:?}");
        for row in &predicted {
            assert_eq!((&row["model"], &row["procs"]), (&model.into(), &"4x4".into()), "{row}");
            assert_eq!(row["found_by"], "simulated", "{row}");
            let same = simulated.iter().any(|same| same["seconds"] == row["seconds"]);
            assert!(same, "{row} {simulated:?}");
        }
        assert!(predicted.iter().any(|row| row["method"] == "own:two-level,segment=8KiB"));
    }
    // One list of layouts.
    let several = ["--layouts", "1x4,16x1,4x4", "--algorithm", "pipeline", "--model", "loggp"];
    let got = rows(&[&["predict"][..], &call[..4], &several, &of].concat());
    let found: Vec<(&Value, &Value)> =
        got.iter().map(|row| (&row["procs"], &row["found_by"])).collect();
    let form = Value::from("closed form");
    assert_eq!(
        found,
        [(&"1x4".into(), &form), (&16.into(), &form), (&"4x4".into(), &"simulated".into())]
    );
    let seconds = |row: &Value| row["seconds"].as_f64().unwrap();
    assert!(seconds(&got[2]) < seconds(&got[1]), "boba's messages are the faster: {got:?}");
    // What ignores nodes says so.
    let ignoring = ["--calibration", "preset:frodo", "--layouts", "1x4", "--model", "loggp"];
    for row in rows(&[&["predict"][..], &ignoring, &of].concat()) {
        assert_eq!(row["found_by"], "closed form, nodes ignored", "{row}");
    }
    let (_, stderr) = run(
        2,
        &[&["predict"][..], &call[..4], &several[..2], &["--algorithm", "two-levl"]].concat(),
    );
    assert!(stderr.contains("did you mean 'two-level'"), "{stderr}");
    let flat = ["--layouts", "16x1", "--algorithm", "two-level"];
    let (_, stderr) = run(2, &[&["predict"][..], &call[..4], &flat].concat());
    assert!(stderr.contains("give --layouts, such as 8x4"), "{stderr}");
}

/// 32 ranks as 32 nodes and as 8 with 4 ranks each: decisions of one calibration of two levels.
#[test]
fn decisions_by_layout_differ_where_they_should() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("calibration.json");
    levelled_calibration(&file);
    let (file, figure, choices) = (
        file.to_str().unwrap(),
        dir.path().join("map.svg").to_str().unwrap().to_owned(),
        dir.path().join("choices.json").to_str().unwrap().to_owned(),
    );
    let of = ["decide", "--calibration", file, "--layouts", "8x4,32x1,8x4:cyclic"];
    let at = ["--collective", "allgather", "-m", "1KiB,16KiB", "--model", "refined"];
    let made = ["--figure", &figure, "--output", &choices, "--format", "json"];
    let decided = rows(&[&of[..], &at, &made].concat());
    assert_eq!(decided.len(), 6);
    let method = |layout: &str, bytes: u64| {
        let row = decided.iter().find(|row| {
            let procs = row["procs"].as_str().map_or(row["procs"].to_string(), str::to_owned);
            procs == layout && row["bytes"] == bytes
        });
        row.unwrap_or_else(|| panic!("{layout} {bytes}: {decided:?}")).clone()
    };
    let [flat, block, cyclic] = ["32", "8x4", "8x4:cyclic"].map(|layout| method(layout, 16 << 10));
    assert_eq!(
        (&block["found_by"], &cyclic["found_by"]),
        (&"simulated".into(), &"simulated".into())
    );
    assert!(block["method"] != flat["method"], "{flat} {block}");
    let cyclic = cyclic["method"].as_str().unwrap();
    assert!(["two-level", "multi-lane", "order=node"].iter().any(|one| cyclic.contains(one)));
    assert!(std::fs::read_to_string(&figure).unwrap().starts_with("<svg"));
    let text = std::fs::read_to_string(&choices).unwrap();
    assert!(text.contains("\"8x4:cyclic\""), "{text}");
    let (text, _) = run(
        0,
        &["explain", "--calibration", file, "--layouts", "8x4", "-m", "16KiB", "--model", "loggp"],
    );
    assert!(text.contains("32 ranks (8 nodes x 4), by loggp"), "{text}");
    assert!(text.contains(" G inside (") && text.contains("own:two-level"), "{text}");
    let compress = ["--compress", "table", "--collective", "bcast", "--layouts"];
    let (_, stderr) = run(2, &[&of[..3], &compress, &["8x4"]].concat());
    assert!(stderr.contains("such as 8x1, in place of 8x4"), "{stderr}");
    let (_, stderr) = run(0, &[&of[..3], &compress, &["8x4,32x1"]].concat());
    assert!(stderr.contains("skipped: 8x4"), "{stderr}");
}

/// With ranks alike the root is one of them; where nodes hold unequal numbers it is not.
#[test]
fn another_root_is_predicted_where_it_means_something() {
    let seconds = |layout: &str, root: &str| {
        let of = ["predict", "--calibration", "preset:frodo", "--inside", "preset:boba"];
        let call = ["--collective", "gather", "--algorithm", "linear", "--model", "refined"];
        let at = ["--sizes", "8KiB", "--format", "json", "--layouts", layout, "--root", root];
        rows(&[&of[..], &call, &at].concat())[0]["seconds"].as_f64().unwrap()
    };
    assert_eq!(seconds("6", "last"), seconds("6", "0"));
    assert!(seconds("4+1+1", "last") > 1.2 * seconds("4+1+1", "0"));
    let decide = ["decide", "--calibration", "preset:frodo", "--sizes", "64"];
    for (flags, part) in [
        (["--collective", "bcast", "--procs", "4,8", "--root", "8"], "ranks 0 to 7"),
        (["--collective", "allgather", "--procs", "8", "--root", "1"], "has a root"),
        (["--collective", "bcast", "--procs", "8", "--root", "first"], "number of a rank, or last"),
    ] {
        let (_, stderr) = run(2, &[&decide[..], &flags].concat());
        assert!(stderr.contains(part), "{flags:?}: {stderr}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("decisions.json");
    let root = ["--root", "last", "--output", file.to_str().unwrap()];
    run(0, &[&decide[..], &["--procs", "8"], &root].concat());
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(told.to_string().contains("measured, root last"), "{told:#}");
}

/// `93.4 us .. 93.4 us` would be a certainty that nobody has.
#[test]
fn decisions_by_parameters_without_errors_have_no_intervals() {
    let decide = ["decide", "--calibration", "preset:boba", "-p", "4", "-m", "1KiB"];
    let (table, _) = run(0, &[&decide[..], &["--collective", "bcast"]].concat());
    assert!(table.contains("own:") && !table.contains(" .. "), "{table}");
}

/// Wherever a file of a run is asked for, the run will do.
#[test]
fn a_run_stands_for_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    levelled_calibration(&dir.path().join("calibration.json"));
    let directory = dir.path().to_str().unwrap();
    let (file, decisions) = (path("calibration.json"), path("decisions.json"));
    for command in ["predict", "decide", "explain"] {
        let at = ["--layouts", "2x4", "-m", "1KiB", "--collective", "bcast"];
        let at = if command == "explain" { &["-p", "8", "-m", "1KiB"][..] } else { &at[..] };
        let with = |given: &str| run(0, &[&[command, "--calibration", given], at].concat());
        assert_eq!(with(directory), with(&file), "{command}");
    }
    let (changes, _) = run(0, &["calibrate", "--compare", directory, &file]);
    assert!(changes.starts_with("0 of "), "{changes}");
    let other = path("other.json");
    let mut calibration: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    calibration["platform"]["mpi_library"] = "Open MPI v9.9.9".into();
    std::fs::write(&other, calibration.to_string()).unwrap();
    let (_, stderr) = run(0, &["calibrate", "--compare", &file, &other]);
    assert!(stderr.contains("the platforms differ") && stderr.contains("v9.9.9"), "{stderr}");
    let decide = ["decide", "--calibration", directory, "-p", "4,8", "-m", "1KiB"];
    run(0, &[&decide[..], &["--model", "plogp", "--output", &decisions]].concat());
    let export = |given: &str| {
        run(0, &["export", "--unconfirmed", "--decisions", given, "--target", "openmpi"])
    };
    assert_eq!(export(directory), export(&decisions));
    let inside = ["predict", "--calibration", "preset:frodo", "--layouts", "2x4", "-m", "1KiB"];
    let with = |given: &str| run(0, &[&inside[..], &["--inside", given]].concat());
    assert_eq!(with(directory), with(&file));
    let (_, stderr) = run(1, &["tune", &path("run"), "--trace", directory]);
    assert!(stderr.contains("usage.json: cannot read: no such file"), "{stderr}");
}

/// A simulation of many steps is run once, not once more at each end of each parameter's interval.
#[test]
fn a_simulation_that_takes_long_is_run_once_and_has_no_interval() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calibration.json");
    let mut calibration = models::presets::preset("frodo").unwrap();
    let latency = &mut calibration.measured.loggp.latency_seconds;
    (latency.low, latency.high) = (0.9 * latency.value, 1.1 * latency.value);
    records::document::write(&path, &calibration).unwrap();
    let call = ["predict", "--model", "simulated", "--costs", "loggp", "--calibration"];
    let barrier = ["--collective", "barrier", "--algorithm", "bruck", "--format", "json"];
    let of = |procs: &str| {
        let at = [path.to_str().unwrap(), "--procs", procs];
        rows(&[&call[..], &at, &barrier].concat()).remove(0)
    };
    let short = of("1024");
    assert_eq!(short["messages"], 1024 * 10);
    let [low, seconds, high] =
        ["low_seconds", "seconds", "high_seconds"].map(|name| short[name].as_f64().unwrap());
    assert!(low < seconds && seconds < high, "{short}");
    // 2 x 18 x 2^18 steps, more than 2^23.
    let long = of("262144");
    assert_eq!(long["messages"], 262_144 * 18);
    assert!(long["low_seconds"].is_null() && long["high_seconds"].is_null(), "{long}");
}

/// A node of 16 cores whose flags and reads were measured: `predict`, `decide` and `explain` know what goes through its
/// memory, and files of rules, which cannot name it, are decided without.
#[test]
fn methods_of_shared_memory_are_known_where_their_costs_are() {
    let calibration = "models/tests/models/data/node16/calibration.json";
    let calibration = format!("{}/{calibration}", env!("CARGO_MANIFEST_DIR"));
    let of = |command: &str, further: &[&str]| {
        let common = ["--calibration", &calibration, "--model", "refined", "--collective", "bcast"];
        let point = ["--procs", "16", "--sizes", "32KiB", "--format", "json"];
        let (stdout, _) = run(0, &[&[command], &common[..], &point, further].concat());
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let all = of("predict", &["--segments", "0", "--all"]);
    let all = all.as_array().unwrap();
    assert!(all.len() > 5, "{all:?}");
    assert_eq!((&all[0]["method"], &all[0]["messages"]), (&"own:shared-cells".into(), &0.into()));
    // The limit is one of messages.
    assert!(all[0].get("limit_seconds").is_none_or(Value::is_null), "{:?}", all[0]);
    assert!(all[1]["limit_seconds"].is_number(), "{:?}", all[1]);
    let named = of("predict", &["--segments", "0", "--algorithm", "shared-cells"]);
    assert_eq!(named[0]["seconds"], all[0]["seconds"]);
    let method = |decided: &Value| decided[0]["method"].as_str().map(str::to_owned);
    let decided = of("decide", &[]);
    assert!(method(&decided).unwrap().starts_with("own:shared-cells"), "{decided}");
    let rules = of("decide", &["--target", "openmpi"]);
    assert!(method(&rules).unwrap().starts_with("native:openmpi:"), "{rules}");
}

/// Of several such nodes only compositions go through memory, also where a format is decided for.
#[test]
fn on_several_nodes_shared_memory_is_the_part_inside() {
    let node =
        format!("{}/models/tests/models/data/node16/calibration.json", env!("CARGO_MANIFEST_DIR"));
    let mut calibration: Value =
        serde_json::from_str(&std::fs::read_to_string(node).unwrap()).unwrap();
    let measured = calibration["measured"].clone();
    calibration["inside"] = serde_json::json!({"measured": measured});
    calibration.as_object_mut().unwrap().remove("fitted");
    calibration["measured"].as_object_mut().unwrap().remove("memory");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calibration.json");
    std::fs::write(&file, calibration.to_string()).unwrap();
    for further in [&[][..], &["--target", "profile"]] {
        let common = ["decide", "--calibration", file.to_str().unwrap(), "--model", "refined"];
        let point = ["--collective", "bcast,allgather", "--layouts", "4x16", "--sizes", "4KiB"];
        let decided = rows(&[&common[..], &point, &["--format", "json"], further].concat());
        let method = |row: &Value| row["method"].as_str().unwrap().to_owned();
        let bcast = decided.iter().find(|row| row["collective"] == "bcast").map(method).unwrap();
        assert!(bcast.contains("intra=shared-cells"), "{decided:?}");
        assert!(decided.iter().all(|row| !method(row).starts_with("own:shared")), "{decided:?}");
    }
    // Such a method can be asked for by name.
    let predict = ["predict", "--calibration", file.to_str().unwrap(), "--model", "refined"];
    let named = ["--collective", "bcast", "--algorithm", "two-level", "--intra", "shared-cells"];
    let point = ["--layouts", "4x16", "--sizes", "4KiB", "--format", "json"];
    let predicted = rows(&[&predict[..], &named, &point].concat());
    assert!(
        predicted.iter().all(|row| row["method"].as_str().unwrap().contains("intra=shared-cells"))
    );
    assert!(predicted[0]["seconds"].as_f64().unwrap() > 0.0, "{predicted:?}");
    let tables = [&predict[..3], &["--model", "hockney"], &named[..], &point[..4]].concat();
    let (_, stderr) = run(2, &tables);
    assert!(stderr.contains("Models refined and simulated predict bcast two-level"), "{stderr}");
}
