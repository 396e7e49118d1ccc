//! `--resume`: begins, goes on by what it was begun with, and by nothing else.

use std::{fs, path::Path};

use crate::support::{colibri, have_mpirun, lines, run};

#[test]
fn a_run_goes_on_by_the_options_that_it_was_begun_with() {
    let Some(_turn) = have_mpirun("a_run_goes_on_by_the_options_that_it_was_begun_with") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let resume = ["calibrate", path.to_str().unwrap(), "--resume"];
    // Writes down what it is to start.
    let script = dir.path().join("launch");
    let text = "echo \"$@\" >> \"$(dirname \"$0\")/commands\"\n\
                export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n\
                np=$1; shift; exec mpirun --oversubscribe -np $np \"$@\"\n";
    fs::write(&script, text).unwrap();
    let launcher = format!("sh {} {{np}}", script.display());
    let launcher = ["--launcher", &launcher, "--ranks", "2"];
    let wanted = ["--sizes", "0..1KiB", "--pair-only", "--no-pairs", "--budget", "2s"];
    run(0, &[&resume[..], &launcher, &wanted].concat());
    let record = path.join("observations.csv");
    let first = fs::read_to_string(&record).unwrap();

    let (_, stderr) = run(1, &resume[..2]);
    assert!(stderr.contains("continue it by --resume"), "{stderr}");

    // The same in other words, and a default that is said.
    run(0, &[&resume[..], &["-m", "0,1,2,4,8,16,32,64,128,256,512,1024", "--seed=1"]].concat());
    for (flags, wanted) in [
        (&["--sizes", "0..2KiB"][..], "--sizes was 0..1KiB, is now 0..2KiB;"),
        (&["--seed", "2", "--ranks", "2"], "--seed was 1 by default, is now 2;"),
        (&["--pair", "0,1"], "--pair was between-nodes by default, is now 0,1;"),
        (&["--testbed", "4"], "--testbed was not given, is now 4;"),
    ] {
        let (_, stderr) = run(2, &[&resume[..], flags].concat());
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
        assert!(!stderr.contains("--ranks"), "{flags:?}: {stderr}");
    }

    let (_, stderr) = run(2, &[&resume[..], &["--budget", "10ms"]].concat());
    assert!(stderr.contains("--budget 10ms: the run has spent"), "{stderr}");
    assert!(stderr.contains("or leave it out to go on with 2s"), "{stderr}");

    // More time than before may be spent.
    run(0, &[&resume[..], &["--budget", "8s"]].concat());
    let now = fs::read_to_string(&record).unwrap();
    assert!(now.starts_with(&first) && now.len() > first.len());
    let all = lines(&dir.path().join("commands"));
    // The first job, which tells where the ranks run, is not made again.
    assert!(all.iter().filter(|command| command.contains(" platform ")).count() == 1, "{all:#?}");
    let commands: Vec<&String> =
        all.iter().filter(|command| command.contains(" calibrate ")).collect();
    let wanted = "--sizes 0,1,2,4,8,16,32,64,128,256,512,1024 --pair between-nodes ";
    assert!(commands.len() >= 3, "{commands:#?}");
    assert!(commands.iter().all(|command| command.contains(wanted)), "{commands:#?}");
    assert!(commands.iter().all(|command| command.starts_with("2 ")), "{commands:#?}");
}

#[test]
fn what_another_command_has_recorded_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("observations.csv"), "x").unwrap();
    let path = dir.path().to_str().unwrap();
    let (_, stderr) = run(2, &["tune", path, "--resume", "--launcher", "true {np}"]);
    assert!(stderr.contains("was not begun by `colibri tune`"), "{stderr}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // Another cluster's ranks would stand in one record with those of the tuning.
    let given = r#"{"schema": "colibri/options/1", "command": "tune", "options": {}}"#;
    fs::write(dir.path().join("tune.json"), given).unwrap();
    let (_, stderr) = run(2, &["calibrate", path, "--resume", "--launcher", "true {np}"]);
    let wanted = format!("go on by `colibri tune {path} --resume`");
    assert!(stderr.contains(&wanted), "{stderr}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_directory_whose_options_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let options = dir.path().join("tune.json");
    fs::write(&options, "{\"schema\": \"colibri/options/1\", \"command\"").unwrap();
    let (_, stderr) = run(1, &["tune", dir.path().to_str().unwrap(), "--resume"]);
    assert!(stderr.contains("tune.json") && stderr.contains("truncated"), "{stderr}");
}

#[test]
fn a_budget_in_which_nothing_can_be_measured_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let tune = ["tune", path.to_str().unwrap(), "--ranks", "6", "--budget", "4s"];
    let (_, stderr) = run(2, &tune);
    assert!(stderr.contains("--budget 4s: tuning takes at least 20 s"), "{stderr}");
    assert!(!path.exists());
}

/// A launcher that takes three seconds to start a job leaves no time of a budget that would do elsewhere.
#[test]
#[ignore = "takes minutes: make test-long"]
fn where_calibrating_took_the_time_it_is_said_how_much_would_do() {
    let test = "where_calibrating_took_the_time_it_is_said_how_much_would_do";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("launch");
    fs::write(&script, "sleep 4\nexec mpirun --oversubscribe -np \"$@\"\n").unwrap();
    let output = colibri()
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .args(["tune", "run", "--ranks", "2", "--sizes", "64", "--budget", "14s", "--launcher"])
        .arg(format!("sh {} {{np}}", script.display()))
        .current_dir(&dir)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("with a budget of 14s there is no time to measure"), "{stderr}");
    assert!(stderr.contains("continue it by --resume --budget "), "{stderr}");
    assert!(stderr.contains("too little time to measure anything"), "{stderr}");
    assert!(dir.path().join("run/observations.csv").exists(), "what was calibrated is kept");
}

/// The bytes of the records in a run's directory.
fn records(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| path.extension().is_some_and(|end| end == "csv"));
    records.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn assert_kept(before: Vec<(std::path::PathBuf, Vec<u8>)>) {
    assert!(!before.is_empty());
    for (path, bytes) in before {
        let now = fs::read(&path).unwrap();
        assert!(now.starts_with(&bytes), "{} was changed", path.display());
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn verify_measures_more_with_a_greater_budget() {
    let Some(_turn) = have_mpirun("verify_measures_more_with_a_greater_budget") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let resume = ["verify", path.to_str().unwrap(), "--resume"];
    let points = ["--ranks", "2", "--collective", "bcast", "--sizes", "64,64KiB", "--budget", "1s"];
    run(0, &[&resume[..2], &["--calibration", "preset:frodo"], &points].concat());
    let before = records(&path);
    let (_, stderr) = run(0, &[&resume[..], &["--budget", "3s"]].concat());
    assert_kept(before);
    let further = lines(&path.join("measurements-2.csv"));
    assert!(further.iter().filter(|line| !line.starts_with('#')).count() > 10, "{stderr}");
    // The same budget once more adds nothing.
    let before = records(&path);
    run(0, &resume);
    assert_kept(before);
    assert!(!path.join("measurements-3.csv").exists());
    let (_, stderr) = run(2, &[&resume[..], &["--budget", "1ms"]].concat());
    assert!(stderr.contains("the run has spent"), "{stderr}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn tune_measures_and_confirms_more_with_a_greater_budget() {
    let test = "tune_measures_and_confirms_more_with_a_greater_budget";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let resume = ["tune", path.to_str().unwrap(), "--resume"];
    let points = ["--ranks", "2", "--collective", "bcast", "--sizes", "64,64KiB,1MiB"];
    run(0, &[&resume[..2], &points, &["--budget", "20s"]].concat());
    let before = records(&path);
    let (_, stderr) = run(2, &[&resume[..], &["--budget", "2s"]].concat());
    assert!(stderr.contains("the run has spent"), "{stderr}");
    run(0, &[&resume[..], &["--budget", "60s"]].concat());
    assert!(records(&path).len() > before.len());
    assert_kept(before);
    assert!(path.join("confirmation-settled-1.json").exists());
    // What is complete stays so.
    let before = records(&path);
    run(0, &resume);
    assert_eq!(records(&path).len(), before.len());
    assert_kept(before);
}
