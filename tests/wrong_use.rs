//! Wrong use and a hostile world are answered clearly, with the right exit code, and never by a
//! panic.

use std::{fs, path::Path, process::Command};

use crate::support::{can_make_a_testbed, colibri, run};

#[test]
fn wrong_flags_are_answered_with_what_would_be_right() {
    let predict = ["predict", "--calibration", "preset:frodo"];
    for (flags, wanted) in [
        (&["--procs", "0"][..], "'0': expected 1 to 16777216 ranks, e.g. 8"),
        (&["--procs", "16777217"], "'16777217': expected 1 to 16777216 ranks, e.g. 8"),
        (&["--procs", "2..16777217"], "'16777217': expected 1 to 16777216 ranks, e.g. 8"),
        (&["--layouts", "4096x8192"], "holds 33554432 ranks; expected 1 to 16777216 ranks"),
        (&["--sizes", "8MiB..1"], "1..8388608"),
        (&["--sizes", "8kb"], "4KiB"),
        (&["--algorithm", "pipelin"], "did you mean 'pipeline'?"),
        (&["--collective", "bcats"], "did you mean 'bcast'?"),
        (&["--collective", "broadcast"], "did you mean 'bcast'?"),
        (&["--collective", "reduce,MPI_Bcast"], "did you mean 'bcast'?"),
        (&["--collective", "ReduceScatter"], "did you mean 'reduce_scatter'?"),
        (&["--model", "logpg"], "did you mean 'log"),
        (&["--collective", "bcast", "--algorithm", "rabenseifner"], "no closed form"),
        (&["--collective", "scan", "--model", "loggp"], "no closed forms"),
        (&["--parameters", "fitted"], "--parameters measured"),
        (&["--parameters", "algorithms"], "no constants of algorithms"),
        (&["--fan-out", "0"], "give --model refined or simulated"),
        (&["--fan-out", "0", "--model", "refined"], "fan-out 0; expected at least 1"),
        (&["--segments", "x"], "auto"),
        (&["--sizes", "1TiB"], "GiB is the largest unit"),
        (&["--figure", "times.pdf"], "ends with .svg or .png"),
        (&["--collective", "all,bcast"], "'all' stands for every name; give it alone"),
        (&["--model", "plogp,all"], "'all' stands for every name; give it alone"),
        (&["--procs", "-4"], "sizes and times are 0 or more"),
    ] {
        let (_, stderr) = run(2, &[&predict[..], flags].concat());
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
    }
    for (command, wanted) in [
        (&["tune", "--methods", "all,native", "x"][..], "give it alone"),
        (&["tune", "--cells", "10%", "x"], "--cells is for --replay RUN"),
        (&["tune", "--ranks", "0", "x"], "'0': expected 1 to 16777216 ranks, e.g. 8"),
        (&["tune", "--ranks", "16777217", "x"], "'16777217': expected 1 to 16777216 ranks, e.g. 8"),
        (
            &["import", "--from", "osu", "-p", "16777217", "x", "y"],
            "'16777217': expected 1 to 16777216 ranks, e.g. 8",
        ),
        (
            &["import", "--from", "osu", "-p", "4", "--layouts", "2x4", "x", "y"],
            "--procs 4: --layouts 2x4 has 8 ranks; leave one of both out",
        ),
        (
            &[
                "import",
                "--from",
                "osu",
                "--columns",
                "collective:=bcast,procs=np,bytes=b,seconds=t:us",
                "x",
                "y",
            ],
            "--columns: files of osu have no columns to name; leave it out",
        ),
        (&["testbed", "up", "--nodes", "0"], "0 nodes; a testbed has 1 to 64"),
        (
            &["tune", "--budget", "20000h", "x"],
            "expected a duration from 1ms to 10000h, e.g. 90s, 10m or 1h30m",
        ),
        (
            &["verify", "--budget", "10", "x"],
            "expected a duration from 1ms to 10000h, e.g. 90s, 10m or 1h30m",
        ),
        (
            &["tune", "--memory-share", "0", "x"],
            "expected a share above 0% and up to 100%, as 5% or 0.05",
        ),
        (
            &["calibrate", "--precision", "100%", "x"],
            "expected a share above 0% and below 100%, as 5% or 0.05",
        ),
        (
            &["bench", "bcast", "--confidence", "1"],
            "expected a share above 0% and below 100%, as 5% or 0.05",
        ),
        (
            &["bench", "bcast", "--precision", "NaN"],
            "expected a share of 0% or more, as 5% or 0.05",
        ),
        (
            &["bench", "bcast", "--adaptive", "--max-difference", "x"],
            "expected a share above 0%, as 5% or 0.05",
        ),
        (
            &["guidelines", "--level", "1", "x"],
            "expected a share above 0% and below 100%, as 5% or 0.05",
        ),
        (
            &["guidelines", "--min-gain", "inf", "x"],
            "expected a share of 0% or more, as 5% or 0.05",
        ),
        (
            &["decide", "--calibration", "preset:frodo", "--compress", "tree", "--within", "five"],
            "expected a share of 0% or more, as 5% or 0.05",
        ),
        (
            &[
                "decide",
                "--calibration",
                "preset:frodo",
                "--compress",
                "tree",
                "--code",
                "c",
                "--format",
                "json",
            ],
            "'--code <LANGUAGE>' cannot be used with '--format <FORMAT>'",
        ),
        (&["tune", "--budget", "-5m", "x"], "sizes and times are 0 or more"),
        (&["tune", "--mpi-library", "foo", "x"], "'other' stands for any other one"),
        (
            &["explain", "--calibration", "preset:frodo", "-p", "4,8"],
            "expected one number of ranks from 2 to 1048576",
        ),
        (
            &["explain", "--calibration", "preset:frodo", "-p", "4", "-m", "8,16"],
            "expected one size",
        ),
    ] {
        let (_, stderr) = run(2, command);
        assert!(stderr.contains(wanted), "{command:?}: {stderr}");
    }
    assert!(!Path::new("x").exists());
    let (_, stderr) = run(2, &["predict"]);
    assert!(stderr.contains("--calibration"), "{stderr}");
    let (_, stderr) = run(2, &["predict", "--calibration", "preset:froddo"]);
    assert!(stderr.contains("did you mean 'frodo'?"), "{stderr}");
}

/// What goes through memory has no model where it was not calibrated: each command says so, and which measures it.
#[test]
fn algorithms_of_shared_memory_are_refused_where_their_costs_are_not_known() {
    let frodo = ["--calibration", "preset:frodo"];
    let predict = ["predict", "--procs", "4", "--sizes", "1KiB"];
    let predict_nodes = ["predict", "--layouts", "4x4", "--sizes", "1KiB"];
    let draw = ["draw", "--schedule", "--procs", "4", "--sizes", "1KiB", "--output", "never.svg"];
    let draw_nodes = [&draw[..], &["--layouts", "2x2"]].concat();
    let draw_node = [&draw[..], &["--layouts", "1x4", "--by-node"]].concat();
    let cells = ["--collective", "bcast", "--algorithm", "shared-cells"];
    let cells_of_all = ["--collective", "all", "--algorithm", "shared-cells"];
    let slots = ["--collective", "bcast", "--algorithm", "shared-slots"];
    let of_scan = ["--collective", "scan", "--algorithm", "shared-slices"];
    let inside = ["--collective", "bcast", "--algorithm", "two-level", "--intra", "shared-cells"];
    let between = ["--collective", "bcast", "--algorithm", "two-level", "--inter", "shared-cells"];
    let measured = "bcast shared-cells goes through memory that the ranks of a node share. Models refined and \
                    simulated predict it, and `draw` draws it, where the calibration has `memory.shared`. `colibri \
                    verify --methods own` and `colibri bench bcast --method own:shared-cells` measure it";
    for (command, named, wanted) in [
        (&predict[..], &cells[..], measured),
        (&predict_nodes, &cells, measured),
        (&draw, &cells, measured),
        (&predict, &cells_of_all, measured),
        (&predict, &slots, "its algorithm of shared memory is 'shared-cells'"),
        (&draw, &slots, "its algorithm of shared memory is 'shared-cells'"),
        (&predict, &of_scan, "nor any other of shared memory"),
        (&predict_nodes, &inside, "--intra: shared-cells goes through memory"),
        (&predict_nodes, &inside, "`colibri verify --methods own` measures it"),
        (&draw_nodes, &inside, "--intra: shared-cells goes through memory"),
        (&draw_nodes, &cells, "shared-cells is for ranks of one node"),
        (&draw_node, &cells, "--by-node: shared-cells is for ranks of one node"),
        (&predict_nodes, &between, "ranks of different nodes do not share"),
    ] {
        let (_, stderr) = run(2, &[command, named, &frodo].concat());
        assert!(stderr.contains(wanted), "{command:?} {named:?}: {stderr}");
    }
}

#[test]
fn broken_files_are_named_with_line_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calibration.json");
    let name = path.to_str().unwrap();
    for (text, wanted) in [
        ("{\"schema\": \"colibri/calibration/1\", \"source\": \"x\", \"plat", "truncated"),
        (
            "{\"schema\": \"colibri/choices/1\"}",
            ": is colibri/choices/1; expected colibri/calibration/1",
        ),
        (
            "#@schema=colibri/measurements/1\nvisit,collective\n",
            ": is a measurements record; expected colibri/calibration/1",
        ),
        ("{\"schema\": \"colibri/calibration/1\",\n \"source\": 7}", "line 2, field source"),
        (
            "{\"schema\": \"colibri/calibration/1\", 3}",
            "line 1: is not valid JSON: key must be a string",
        ),
        ("", ": is empty; expected colibri/calibration/1"),
    ] {
        fs::write(&path, text).unwrap();
        let (_, stderr) = run(1, &["predict", "--calibration", name]);
        assert!(stderr.contains(name) && stderr.contains(wanted), "{text}: {stderr}");
    }
    let (_, stderr) = run(1, &["predict", "--calibration", ""]);
    assert!(stderr.contains("'': an empty file name"), "{stderr}");
    let (_, stderr) = run(1, &["predict", "--calibration", "no-such-file.json"]);
    assert!(stderr.contains("no-such-file.json: cannot read: no such file"), "{stderr}");
}

#[test]
fn without_a_launcher_the_command_says_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    let output = colibri()
        .env("PATH", dir.path())
        .env_remove("SLURM_JOB_ID")
        .args(["calibrate"])
        .arg(dir.path().join("run"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no mpirun on PATH") && stderr.contains("openmpi-bin"), "{stderr}");
}

#[test]
fn a_launcher_that_fails_is_named_with_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let run_directory = dir.path().join("run");
    let arguments =
        ["calibrate", run_directory.to_str().unwrap(), "--ranks", "2", "--launcher", "false {np}"];
    let (_, stderr) = run(1, &arguments);
    assert!(stderr.contains(": `false 2") && stderr.contains("exit code 1"), "{stderr}");
    let (_, stderr) =
        run(2, &["calibrate", run_directory.to_str().unwrap(), "--launcher", "mpirun -np 2"]);
    assert!(stderr.contains("{np}"), "{stderr}");
}

#[test]
fn inside_a_slurm_allocation_its_launcher_and_tasks_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let srun = dir.path().join("srun");
    fs::write(&srun, "#!/bin/sh\necho started by srun $1 $2 >&2; exit 7\n").unwrap();
    fs::set_permissions(&srun, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let output = colibri()
        .env("PATH", path)
        .env("SLURM_JOB_ID", "1")
        .env("SLURM_NTASKS", "6")
        .arg("calibrate")
        .arg(dir.path().join("run"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("exit code 7") && stderr.contains("started by srun -n 6"), "{stderr}");
    assert_eq!(started_by_srun(&["-N", "{nodes}", "-n", "{np}"]), "-N 3 -n 6");
}

/// What `srun` is called with, by a template, in an allocation of three nodes with two tasks on each.
fn started_by_srun(template: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let srun = dir.path().join("srun");
    fs::write(&srun, "#!/bin/sh\necho started by srun $1 $2 $3 $4 >&2; exit 7\n").unwrap();
    fs::set_permissions(&srun, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut calibrate = colibri();
    calibrate.env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()));
    for (name, value) in [("JOB_ID", "1"), ("JOB_NUM_NODES", "3"), ("TASKS_PER_NODE", "2(x3)")] {
        calibrate.env(format!("SLURM_{name}"), value);
    }
    let launcher = format!("srun {}", template.join(" "));
    calibrate.args(["calibrate", "run", "--launcher", &launcher]).current_dir(dir.path());
    let output = calibrate.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = stderr.split("started by srun ").nth(1).unwrap_or_else(|| panic!("{stderr}"));
    told.lines().next().unwrap().to_owned()
}

/// The first rank to fail ends the others, so that Open MPI's explanation may not come through.
#[test]
fn ranks_that_srun_started_apart_are_told_of_by_open_mpis_first_line_alone() {
    let dir = tempfile::tempdir().unwrap();
    let srun = dir.path().join("srun");
    let script = "#!/bin/sh\n\
                  [ $1 = --mpi=list ] && echo pmix && exit\n\
                  echo '[vm:01] OPAL ERROR: Unreachable in file ext3x_client.c at line 112' >&2\n\
                  echo 'srun: error: v3: task 3: Exited with exit code 1' >&2\n\
                  exit 143\n";
    fs::write(&srun, script).unwrap();
    fs::set_permissions(&srun, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let said_by = |launcher: &str| {
        let mut calibrate = colibri();
        calibrate.env("PATH", &path).args(["calibrate", "run", "--ranks", "4", "--launcher"]);
        let output = calibrate.arg(launcher).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = said_by("srun -n {np}");
    assert!(said.contains("--launcher 'srun --mpi=pmix -n {np}'"), "{said}");
    let apart = "started each rank as an MPI job of its own";
    assert!(said.contains(apart) && !said.contains("once more"), "{said}");
    // With process management asked for, the same line is no sign of its absence.
    let said = said_by("srun --mpi=pmix -n {np}");
    assert!(!said.contains(apart) && said.contains("once more"), "{said}");
}

#[test]
fn a_launcher_that_hangs_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let run_directory = dir.path().join("run");
    let hangs = dir.path().join("hangs");
    fs::write(&hangs, "#!/bin/sh\nexec sleep 600\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&hangs, mode).unwrap();
    let launcher = format!("{} {{np}}", hangs.display());
    let arguments = [
        "calibrate",
        run_directory.to_str().unwrap(),
        "--ranks",
        "2",
        "--launcher",
        &launcher,
        "--patience",
        "300ms",
    ];
    // The launcher is asked for its version first; it hangs there, too.
    let (_, stderr) = run(1, &arguments);
    assert!(stderr.contains("no progress for"), "{stderr}");
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let (_, stderr) = run(1, &["calibrate", "/proc/colibri-run", "--launcher", "true {np}"]);
    assert!(stderr.contains("/proc/colibri-run: cannot make this directory"), "{stderr}");
    let decide = ["decide", "--calibration", "preset:frodo", "--procs", "4", "-m", "1KiB"];
    let (_, stderr) = run(1, &[&decide[..], &["--output", "/dev/full"]].concat());
    assert!(stderr.contains("/dev/full: cannot write: no space left on the disk"), "{stderr}");
    let (_, stderr) = run(1, &[&decide[..], &["--output", "/no/such/place.json"]].concat());
    assert!(stderr.contains("no such file or directory"), "{stderr}");
}

/// A disk that fills up while observations are written: the rank that writes says so, the command
/// passes it on, and what was recorded before is still there.
#[test]
fn a_disk_that_fills_up_during_a_measurement_is_named() {
    let name = "a_disk_that_fills_up_during_a_measurement_is_named";
    let Some(_turn) = can_make_a_testbed(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let colibri = env!("CARGO_BIN_EXE_colibri");
    // The disk is seen in this mount namespace alone and goes with it.
    let script = format!(
        "mount -t tmpfs -o size=64k none {place} && \
         {colibri} calibrate {place}/run --ranks 2 --sizes 0..1KiB --budget 60s --pair-only; \
         echo \"exit $?\"; grep -c ',ok$' {place}/run/observations.csv"
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(stderr.contains("observations.csv: cannot write: no space left"), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "exit 1");
    assert!(lines[1].parse::<u32>().unwrap() > 100, "{stdout}");
}

#[test]
fn nothing_recorded_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("observations.csv"), "x").unwrap();
    let (_, stderr) =
        run(1, &["calibrate", dir.path().to_str().unwrap(), "--launcher", "true {np}"]);
    assert!(stderr.contains("--resume"), "{stderr}");
}

#[test]
fn a_broken_configuration_names_the_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("colibri.toml"), "ranks = 2\nlauncer = \"srun\"\n").unwrap();
    let output = colibri().current_dir(dir.path()).arg("calibrate").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("colibri.toml, line 2") && stderr.contains("launcer"), "{stderr}");
}

#[test]
fn a_testbed_that_is_not_up_is_said() {
    let (_, stderr) = run(1, &["testbed", "down", "--name", "no-such-one"]);
    assert!(stderr.contains("no-such-one"), "{stderr}");
    let (_, stderr) = run(2, &["testbed", "up", "--rate", "fast"]);
    assert!(stderr.contains("100mbit"), "{stderr}");
    let (_, stderr) = run(2, &["testbed", "up", "--rate", "1bit"]);
    assert!(stderr.contains("1mbit and 1000gbit"), "{stderr}");
}

/// What would end in a failed allocation, or in silence, is refused before it begins.
#[test]
fn a_simulation_that_would_not_end_is_refused_in_words() {
    let simulate = ["predict", "--model", "simulated", "--calibration", "preset:frodo", "-p"];
    let segments = "1073741824 segments are too many to simulate; take larger --segments";
    let pipeline = ["8", "-m", "1GiB", "--segments", "1", "--algorithm", "pipeline"];
    let (_, stderr) = run(2, &[&simulate[..], &pipeline].concat());
    assert!(stderr.contains(segments), "{stderr}");
    for (procs, algorithm) in [("1048576", "linear"), ("16384", "linear-concurrent")] {
        let alltoall = [procs, "-m", "1", "--collective", "alltoall", "--algorithm", algorithm];
        let (_, stderr) = run(2, &[&simulate[..], &alltoall].concat());
        let wanted = format!("alltoall by {algorithm} on {procs} ranks is too much to simulate");
        assert!(stderr.contains(&wanted) && stderr.contains("fewer ranks"), "{stderr}");
    }
    // Many ranks by themselves are not too many.
    let bcast = ["65536", "-m", "1", "--collective", "bcast", "--algorithm", "binomial"];
    run(0, &[&simulate[..], &bcast].concat());
    run(0, &[&simulate[..], &["2048", "-m", "64", "--collective", "gatherv"]].concat());
}

/// What a flag turns a command into takes none of the command's other flags.
#[test]
fn flags_that_change_what_a_command_does_refuse_those_that_mean_nothing_then() {
    for (arguments, wanted) in [
        (&["tune", "run", "--replay", "other"][..], "cannot be used with"),
        (&["tune", "--replay", "run", "--budget", "5m"], "cannot be used with"),
        (&["tune", "--replay", "run", "--ranks", "4"], "cannot be used with"),
        (&["tune", "--replay", "run", "-p", "4"], "cannot be used with"),
        (&["tune", "--replay", "run", "--segments", "0"], "cannot be used with"),
        (&["tune", "--replay", "run", "--methods", "all"], "cannot be used with"),
        (&["tune", "--cells", "10%"], "--replay RUN"),
        (&["export", "run", "--record", "csv", "--target", "c"], "cannot be used with"),
        (&["export", "run", "--record", "csv", "--model", "plogp"], "cannot be used with"),
        (&["export", "run"], "--target <FORMAT>"),
        (&["platform", "run", "--ranks", "4"], "--ranks: DIR's own job has reported"),
        (&["platform", "--for", "3s"], "--clocks"),
        (&["decide", "a.json"], "--against"),
        (&["decide", "--run", "run"], "--against"),
    ] {
        let (_, stderr) = run(2, arguments);
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
}

/// What would take all memory, in silence, is refused before it begins.
#[test]
fn more_points_than_can_be_held_are_refused_in_words() {
    for command in ["decide", "predict"] {
        let points = ["--calibration", "preset:frodo", "-p", "1..200000", "-m", "1..1MiB"];
        let (_, stderr) = run(2, &[&[command], &points[..]].concat());
        let wanted = " rows are too many at once (at most 2097152); take fewer --procs, --sizes";
        assert!(stderr.contains(wanted), "{command}: {stderr}");
    }
}

/// A name that is no slip of the pen is neither compared with all names nor printed whole.
#[test]
fn a_wrong_name_of_any_length_is_answered_at_once_and_in_short() {
    let long = "pipelin".repeat(15_000);
    let file = format!("{long}.json");
    let predict = ["predict", "--calibration", "preset:frodo"];
    for (code, flags) in [
        (2, &["--algorithm", &long][..]),
        (2, &["--collective", &long]),
        (2, &["--model", &long]),
        (2, &["--sizes", &long]),
        (2, &["--procs", &long]),
        (2, &["--segments", &long]),
        (2, &["--forms", &long]),
        (2, &["--parameters", &long]),
        (2, &[&format!("--{long}")]),
        (2, &[&long]),
        (2, &["--calibration", &format!("preset:{long}")]),
        (1, &["--calibration", &file]),
    ] {
        let begun = std::time::Instant::now();
        let without = if flags[0] == "--calibration" { 1 } else { 3 };
        let (_, stderr) = run(code, &[&predict[..without], flags].concat());
        let what: String = stderr.chars().take(100).collect();
        assert!(stderr.len() < 2500, "{}: {what}", stderr.len());
        // A hundred times what it takes: it was seconds.
        assert!(begun.elapsed().as_secs_f64() < 2.0, "{what}: {:?}", begun.elapsed());
    }
    let simulate =
        ["predict", "--model", "simulated", "--calibration", "preset:frodo", "--algorithm", &long];
    let (_, stderr) = run(2, &simulate);
    assert!(stderr.len() < 2500, "{}", stderr.len());
}

/// On this system a file's name is bytes.
#[test]
fn a_file_whose_name_is_not_utf_8_is_a_file_as_any_other() {
    use std::{
        ffi::{OsStr, OsString},
        os::unix::ffi::OsStrExt as _,
    };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(OsStr::from_bytes(b"gr\xfc\xdfe"));
    fs::create_dir(&place).unwrap();
    let named = |name: &str| place.join(name).into_os_string();
    let fine = |arguments: &[&OsStr]| {
        let output = colibri().args(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {stderr}");
    };
    let text = |text: &'static str| OsStr::new(text);
    let decide = ["decide", "--calibration", "preset:frodo", "--model", "hockney,loggp", "-p"]
        .map(text)
        .to_vec();
    let point = ["4,8", "-m", "1KiB..64KiB", "--collective", "bcast", "-o"].map(text);
    let (both, figure) = (named("both.json"), named("map.svg"));
    fine(&[&decide[..], &point, &[&both, text("--figure"), &figure]].concat());
    assert!(fs::metadata(&figure).unwrap().len() > 0);

    let with_model = |model: &str| {
        let mut name = both.clone();
        name.push(model);
        name
    };
    let judge = ["--calibration", "preset:frodo", "--model", "refined"].map(text);
    let difference =
        [text("decide"), &with_model(":hockney"), text("--against"), &with_model(":loggp")];
    fine(&[&difference[..], &judge].concat());

    // A calibration, of which all commands read the same.
    let calibration = named("calibration.json");
    let preset = models::presets::preset("frodo").unwrap();
    records::document::write(calibration.as_ref(), &preset).unwrap();
    let given =
        [text("--calibration"), &calibration, text("-p"), text("4"), text("-m"), text("64")];
    for command in ["predict", "decide"] {
        fine(&[&[text(command)][..], &given].concat());
    }
    let export =
        ["export", "--unconfirmed", "--target", "openmpi", "--model", "loggp", "--decisions"];
    let export = export.map(text);
    let rules = named("tuned.rules");
    fine(&[&export[..], &[&both, text("--output"), &rules], &given[..2]].concat());
    assert!(fs::read_to_string(&rules).unwrap().contains("# bcast"));

    // A file that is not there is named as far as it can be.
    let mut missing = OsString::from("--judge=x=");
    missing.push(named("no.rules"));
    let output =
        colibri().args([text("verify"), dir.path().as_os_str(), &missing]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("invalid UTF-8"), "{stderr}");
}

#[test]
fn a_network_that_cannot_be_is_refused() {
    let up = |options: &[&str], code| run(code, &[&["testbed", "up"], options].concat()).1;
    for (options, code, part) in [
        (&["--latency", "soon"][..], 2, "1.5ms"),
        (&["--racks", "4x4"], 2, "--uplink"),
        (&["--racks", "4x4", "--uplink", "10mbit", "--nodes", "8"], 2, "are not 8 nodes"),
        (&["--rate", "10mbit", "--slow", "100"], 2, "10mbit slowed down 100 times is not within"),
        (&["--jitter", "normal:1ms"], 2, "exponential:100us"),
        (&["--loss", "2"], 2, "from 0% to 50%, as 5% or 0.05"),
    ] {
        let stderr = up(options, code);
        assert!(stderr.contains(part), "{options:?}: {stderr}");
    }
    let dir = tempfile::tempdir().unwrap();
    let run_directory = dir.path().to_str().unwrap();
    let (_, stderr) = run(2, &["calibrate", run_directory, "--testbed", "4", "--rate", "10mbit"]);
    assert!(stderr.contains("unexpected argument '--rate'"), "{stderr}");
}
