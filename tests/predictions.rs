//! `predict` and `decide` on the paper's parameters.

use serde_json::Value;

use crate::support::run;

fn rows(arguments: &[&str]) -> Vec<Value> {
    let (stdout, _) = run(0, arguments);
    serde_json::from_str(&stdout).unwrap()
}

/// bcast of 64 KiB on 8 processes of Frodo by LogGP, in microseconds, worked out by hand from
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
    let (table, _) = run(0, &with("table"));
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

/// Figures 2, 3 and 5: all methods by all models, over the message size and over the processes.
#[test]
fn predictions_are_drawn_over_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("times.svg");
    let arguments = ["predict", "--calibration", "preset:frodo", "--model", "all", "--figure"];
    for (flags, x) in [
        (["--collective", "bcast", "--procs", "8", "-m", "1KiB,8KiB"], "message size"),
        (["--collective", "reduce", "--procs", "2..9", "-m", "2KiB"], "processes"),
        (["--collective", "barrier", "--procs", "4", "-m", "1KiB"], "processes"),
    ] {
        let with_file = [&arguments[..], &[file.to_str().unwrap()], &flags].concat();
        run(0, &with_file);
        let svg = std::fs::read_to_string(&file).unwrap();
        for wanted in [x, "(a) hockney", "(f) simulated", "predicted time", "linear"] {
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
fn a_reader_that_has_seen_enough_is_no_error() {
    let command = format!(
        "{} predict --calibration preset:frodo --procs 2..64 --format json | head -n 1",
        env!("CARGO_BIN_EXE_colibri")
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// On nodes of several ranks what is predicted is what `simulate` says, of each level's parameters.
#[test]
fn nodes_of_several_ranks_are_simulated() {
    let call = ["--calibration", "preset:frodo", "--inside", "preset:boba", "--layout", "4x4"];
    let of = ["--collective", "bcast", "-m", "64KiB", "--segments", "8KiB", "--format", "json"];
    let rows = |command: &str| -> Vec<Value> {
        let (stdout, _) = run(0, &[&[command][..], &call, &of].concat());
        serde_json::from_str(&stdout).unwrap()
    };
    let (predicted, simulated) = (rows("predict"), rows("simulate"));
    assert!(predicted.len() > 10 && predicted.len() == simulated.len(), "{predicted:?}");
    for (row, same) in predicted.iter().zip(&simulated) {
        assert_eq!((&row["model"], &row["procs"]), (&"simulated".into(), &"4x4".into()), "{row}");
        assert_eq!(row["seconds"], same["seconds"], "{row} {same}");
    }
    assert!(predicted.iter().any(|row| row["method"] == "own:two-level,segment=8KiB"));
    let flat = ["--layout", "16x1"];
    let (stdout, _) = run(0, &[&["predict"][..], &call[..4], &flat, &of].concat());
    let flat: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let seconds = |rows: &[Value], method: &str| {
        let row = rows.iter().find(|row| row["method"] == method).unwrap();
        row["seconds"].as_f64().unwrap()
    };
    let chain = "own:pipeline,segment=8KiB";
    assert!(seconds(&predicted, chain) < seconds(&flat, chain), "boba's messages are the faster");
    let (_, stderr) = run(2, &[&["predict"][..], &call, &["--model", "loggp"]].concat());
    assert!(stderr.contains("it knows no nodes"), "{stderr}");
}
