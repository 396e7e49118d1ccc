//! `--resume`: begins, goes on by what it was begun with, and by nothing else.

use std::fs;

use crate::support::{have_mpirun, lines, run};

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

    // More time than before may be spent.
    run(0, &[&resume[..], &["--budget", "3s"]].concat());
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
    let (_, stderr) = run(1, &["tune", path, "--resume", "--launcher", "true {np}"]);
    assert!(stderr.contains("something other than tuning"), "{stderr}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_whose_options_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let options = dir.path().join("tune.json");
    fs::write(&options, "{\"schema\": \"colibri/options/1\", \"command\"").unwrap();
    let (_, stderr) = run(1, &["tune", dir.path().to_str().unwrap(), "--resume"]);
    assert!(stderr.contains("tune.json") && stderr.contains("truncated"), "{stderr}");
}
