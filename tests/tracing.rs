//! Tuning what an application uses, with a launcher of which it isn't known whose it is.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::support::{colibri, have_mpirun, lines};

/// Starts by Open MPI's launcher, and doesn't say so.
const LAUNCHER: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "a launcher"; exit; }
ranks=$1
shift
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$@"
"#;

fn calls(collective: &str, procs: u32, bytes: u64, seconds: f64) -> Value {
    json!({ "collective": collective, "procs": procs, "bytes": bytes, "method": "default",
            "calls": 100, "seconds": seconds })
}

fn write_trace(path: &Path, calls: &[Value]) {
    let usage = json!({ "schema": "colibri/usage/1", "procs": 4, "library": "Open MPI",
                        "seconds": 20.0, "calls": calls });
    fs::write(path, usage.to_string()).unwrap();
}

/// What the application gains is what its calls gain, each as often as it was made.
fn assert_application_gains(summary: &Value) {
    // Half of the four ranks are in the calls on two.
    let application = &summary["application"];
    let seconds = |name: &str| application[name].as_f64().unwrap();
    assert!((seconds("tunable_seconds") - 7.0).abs() < 1e-9, "{application}");
    assert!((seconds("collective_seconds") - 8.125).abs() < 1e-9, "{application}");
    let with = summary["application_seconds"].as_f64().unwrap();
    let gains = summary["gains"].as_array().unwrap();
    // Of 3000 bytes, this share counts for 4096.
    let above = (3000.0_f64 / 2048.0).log2();
    let saved = gains.iter().map(|gain| {
        let share = match gain["bytes"].as_u64().unwrap() {
            65536 => 1.0,
            2048 => 1.0 - above,
            4096 => above,
            bytes => panic!("{bytes} bytes were not used"),
        };
        let [default, tuned] =
            ["default_seconds", "tuned_seconds"].map(|name| gain[name].as_f64().unwrap());
        // A rank is in every other one of the 100 calls.
        50.0 * share * (default - tuned)
    });
    assert!((20.0 - saved.sum::<f64>() - with).abs() < 1e-9, "{summary:#}");
}

#[test]
fn what_an_application_uses_is_tuned_by_own_methods_where_nothing_can_be_forced() {
    let test = "what_an_application_uses_is_tuned_by_own_methods_where_nothing_can_be_forced";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [launcher, trace, directory] =
        ["launcher", "trace.json", "run"].map(|n| dir.path().join(n));
    fs::write(&launcher, LAUNCHER).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    // No communicator of a job on one node is on two.
    let mut on_two_nodes = calls("bcast", 3, 8192, 4.0);
    on_two_nodes["procs"] = json!("2+1");
    let used = [
        on_two_nodes,
        calls("allreduce", 2, 65536, 6.0),
        calls("bcast", 2, 3000, 2.0),
        calls("bcast", 4, 1 << 20, 1.0),
        calls("scan", 1, 64, 0.5),
    ];
    write_trace(&trace, &used);
    let tune = |more: &[&str]| {
        let mut command = colibri();
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.arg("tune").arg(&directory).arg("--trace").arg(&trace);
        command.args(["--launcher", &format!("{} {{np}}", launcher.display())]);
        command.args(["--mpi-library", "other", "--ranks", "3", "--budget", "20s"]).args(more);
        let output = command.assert().success().get_output().clone();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [stdout, stderr] = tune(&["--details"]);
    assert!(stderr.contains("cannot force this MPI library"), "{stderr}");
    assert!(stderr.contains("plan: the trace's calls on 2+1 are left out"), "{stderr}");

    let plan: Value =
        serde_json::from_str(&fs::read_to_string(directory.join("plan.json")).unwrap()).unwrap();
    let mut points: Vec<String> = Vec::new();
    for cell in plan["cells"].as_array().unwrap() {
        let method = cell["method"].as_str().unwrap();
        assert!(method == "default" || method.starts_with("own:"), "{method}");
        points.push(format!("{} {} {}", cell["collective"], cell["procs"], cell["bytes"]));
    }
    points.dedup();
    assert_eq!(points, [r#""allreduce" 2 65536"#, r#""bcast" 2 2048"#, r#""bcast" 2 4096"#]);

    let summary: Value =
        serde_json::from_str(&fs::read_to_string(directory.join("summary.json")).unwrap()).unwrap();
    assert_eq!(
        (summary["way"].as_str(), summary["file"].as_str()),
        (Some("preload"), Some("profiles"))
    );
    assert_eq!(summary["preload"], Value::Null);
    assert!(!directory.join("openmpi.rules").exists());
    assert_application_gains(&summary);
    let gains = summary["gains"].as_array().unwrap();
    assert_eq!(directory.join("profiles").is_dir(), !gains.is_empty(), "{summary:#}");
    assert_eq!(summary["calls_observed"], summary["calls_as_told"], "{summary:#}");
    assert!(stdout.contains("a rank spends 8.12 s in collectives"), "{stdout}");

    colibri().arg("report").arg(&directory).assert().success();
    let page = fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("a rank spends 8.12 s in collectives"), "{page}");

    // The run has a copy of the trace, and is done.
    fs::remove_file(&trace).unwrap();
    let [again, _] = tune(&["--resume", "--details"]);
    assert_eq!(again, stdout);
    assert!(lines(&directory.join("summary.txt")).len() > 5);
}

#[test]
fn traces_of_which_nothing_can_be_tuned_are_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    let refused = |more: &[&str], code: i32, wanted: &str| {
        let run = dir.path().join("run");
        let mut command = colibri();
        let output = command
            .args(["tune", run.to_str().unwrap(), "--trace", trace.to_str().unwrap()])
            .args(more)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(wanted), "{stderr}");
        assert!(!run.join("tune.json").exists(), "a run was begun");
    };
    refused(&[], 1, "trace.json: cannot read: no such file");
    refused(&["--sizes", "1KiB"], 2, "cannot be used with");
    write_trace(&trace, &[]);
    refused(&[], 1, "the application called no collective");
    write_trace(&trace, &[calls("bcast", 1, 64, 1.0), calls("gatherv", 4, 64, 1.0)]);
    refused(&[], 1, "no call that can be tuned");
    fs::write(&trace, r#"{"schema": "colibri/summary/1"}"#).unwrap();
    refused(&[], 1, "expected colibri/usage/1");
}
