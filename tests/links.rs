//! Links between nodes, clocks, and what changed between calibrations.

use serde_json::Value;

use crate::support::{StandingTestbed, can_make_a_testbed, have_mpirun, run};

/// A port that receives at half the rate is told from one that sends so.
#[test]
fn a_slow_port_is_named_with_its_direction() {
    let Some(_turn) = can_make_a_testbed("a_slow_port_is_named_with_its_direction") else { return };
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let directory = directory.to_str().unwrap();
    let standing = StandingTestbed::up("port", &["--nodes", "4", "--port", "2.in=25mbit"]);
    let port = ["--testbed", &standing.name];
    let little = ["--sizes", "0,1KiB,64KiB", "--pair-only", "--budget", "30s"];
    let (stdout, _) = run(0, &[&["calibrate", directory][..], &port, &little].concat());
    assert!(stdout.contains("node 2 receives at"), "{stdout}");
    assert!(!stdout.contains("node 2 sends at"), "{stdout}");
    let path = dir.path().join("run/pairs.json");
    let map: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(map["links"].as_array().unwrap().len(), 12);
    assert!(map["platform"]["testbed"].as_str().unwrap().contains("port 2.in=25mbit"));
    assert!(dir.path().join("run/figures/pairs.svg").exists());

    let file = dir.path().join("run/calibration.json");
    let file = file.to_str().unwrap();
    let (stdout, _) = run(0, &["calibrate", "--compare", file, file]);
    assert!(stdout.starts_with("0 of "), "{stdout}");
    let (stdout, _) = run(0, &["calibrate", "--compare", file, file, "--format", "json"]);
    let changes: Value = serde_json::from_str(&stdout).unwrap();
    let gap = |change: &&Value| change["parameter"] == "measured.loggp.gap_seconds_per_byte";
    assert_eq!(changes.as_array().unwrap().iter().filter(gap).count(), 1);
}

/// Ranks leave a barrier up to a latency apart: where that is a millisecond, calls start at instants of the
/// clock that the virtual nodes share.
#[test]
#[ignore = "takes minutes: make test-long"]
fn calls_start_at_agreed_instants_where_a_barrier_leaves_ranks_apart() {
    let test = "calls_start_at_agreed_instants_where_a_barrier_leaves_ranks_apart";
    let Some(_turn) = can_make_a_testbed(test) else { return };
    let slow = ["--nodes", "4", "--rate", "10mbit", "--latency", "1ms"];
    let standing = StandingTestbed::up("slow", &slow);
    let (told, _) = run(0, &["platform", "--testbed", &standing.name]);
    let timing = told.lines().find(|line| line.starts_with("timing: "));
    assert!(timing.is_some_and(|line| line.ends_with("calls are timed by global")), "{told}");
    // Its own directory is gone, with what the cluster recorded there at its end.
    let here = std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> =
        here.filter(|name| name.to_string_lossy().starts_with(".colibri-platform")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Levels are told by where the ranks are: 0 and 1 share node 0, 0 and 2 are the first of two. Their
/// parameters are each level's in a simulation, where nothing else is said.
#[test]
#[ignore = "takes minutes: make test-long"]
fn the_inside_of_a_node_is_another_level() {
    let Some(_turn) = can_make_a_testbed("the_inside_of_a_node_is_another_level") else { return };
    let dir = tempfile::tempdir().unwrap();
    let levels = ["--nodes", "2", "--ppn", "2", "--rate", "10mbit", "--inside", "100mbit,100us"];
    let standing = StandingTestbed::up("levels", &levels);
    let place = ["--testbed", &standing.name];
    let little =
        ["--sizes", "0,1,1KiB,8KiB", "--budget", "15s", "--precision", "0.9", "--no-pairs"];
    let directory = dir.path().join("run");
    let arguments = ["calibrate", directory.to_str().unwrap()];
    let (stdout, _) = run(0, &[&arguments[..], &place, &little].concat());
    assert!(stdout.contains("4 ranks on 2 hosts"), "{stdout}");
    assert!(stdout.contains("between nodes") && stdout.contains("inside a node"), "{stdout}");
    assert!(stdout.contains("by how many of its ranks send at once"), "{stdout}");
    for (file, ranks) in [("observations.csv", "0,2"), ("inside.csv", "0,1")] {
        let record = std::fs::read_to_string(directory.join(file)).unwrap();
        assert!(record.contains(&format!("#@pair={ranks}\n")), "{file}");
    }
    let file = directory.join("calibration.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let calibration: Value = serde_json::from_str(&text).unwrap();
    let number = |path: &str| calibration.pointer(path).and_then(Value::as_f64).unwrap();
    let per_byte = "measured/hockney/beta_seconds_per_byte/value";
    let (between, inside) =
        (number(&format!("/{per_byte}")), number(&format!("/inside/{per_byte}")));
    assert!(between > 3.0 * inside, "{between} and {inside}: ten times as fast inside");
    let port = calibration["inside"]["port"].as_array().unwrap();
    // How far the time reaches is the machine's; one size is looked at in any case.
    let one_way = port.iter().filter(|gap| gap["both_ways"] == false);
    let ranks: Vec<u64> = one_way.map(|gap| gap["ranks"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2], "{text}");

    let seconds = |layout: &str| {
        let call = [
            "predict",
            "--model",
            "simulated",
            "--collective",
            "bcast",
            "--algorithm",
            "linear",
            "-m",
            "8KiB",
        ];
        let with = ["--layouts", layout, "--calibration", file.to_str().unwrap()];
        let (stdout, _) = run(0, &[&call[..], &with, &["--format", "json"]].concat());
        let rows: Value = serde_json::from_str(&stdout).unwrap();
        rows[0]["seconds"].as_f64().unwrap()
    };
    assert!(seconds("2x1") > 3.0 * seconds("1x2"));
}

#[test]
fn clocks_are_synchronised_on_request_and_compared() {
    let Some(_turn) = have_mpirun("clocks_are_synchronised_on_request_and_compared") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let directory = directory.to_str().unwrap();
    let (stdout, _) = run(
        0,
        &["platform", "--clocks", directory, "--ranks", "2", "--for", "1s", "--false-clocks", "1"],
    );
    assert!(stdout.contains("drift") && stdout.contains("exact"), "{stdout}");
    let (_, stderr) = run(1, &["platform", "--clocks", directory, "--ranks", "2"]);
    assert!(stderr.contains("already exists; name another directory"), "{stderr}");
}
