//! A command that is refused makes nothing; one that reads a run writes nothing.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{
    skipped::skipped,
    support::{colibri, have_mpirun, run},
};

/// Every file and directory below a place, and the files' bytes.
fn held(place: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut held = BTreeMap::new();
    let mut left = vec![place.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_directory = path.is_dir();
            held.insert(path.clone(), (!is_directory).then(|| fs::read(&path).unwrap()));
            left.extend(is_directory.then_some(path));
        }
    }
    held
}

/// With a run's directory that is not there, and in one that holds something else.
#[track_caller]
fn assert_refused(command: &[&str], variables: &[(&str, &str)], wanted: &str) {
    for is_there in [false, true] {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("runs/one");
        if is_there {
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("notes.txt"), "of something else").unwrap();
        }
        let before = held(parent.path());
        let mut refused = colibri();
        refused.current_dir(parent.path()).env_remove("SLURM_JOB_ID");
        refused.envs(variables.iter().copied());
        let words = command.iter().map(|word| if *word == "DIR" { "runs/one" } else { word });
        let output = refused.args(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command:?}: {stderr}");
        assert!(stderr.contains(wanted) || (is_there && wanted == NO_RUN), "{command:?}: {stderr}");
        assert_eq!(held(parent.path()), before, "{command:?}: {stderr}");
    }
}

const NO_RUN: &str = "there is no such run";

const TRUE: [&str; 2] = ["--launcher", "true {np}"];

#[test]
fn a_refused_measurement_makes_nothing() {
    let all: [&[&str]; 5] = [
        &["tune", "DIR"],
        &["calibrate", "DIR"],
        &["verify", "DIR", "--calibration", "preset:frodo"],
        &["guidelines", "DIR"],
        &["platform", "--clocks", "DIR"],
    ];
    for command in all {
        for (flags, wanted) in [
            (&["--launcher", "no-such-launcher {np}"][..], "not on PATH"),
            (&["--launcher", "true -np 2"], "{np}"),
            (&["--launcher", "true -N {nodes} {np}"], "{nodes}"),
            (&["--testbed", "no-such-one"], "no-such-one"),
            (&["--testbed", "100000"], "100000"),
        ] {
            assert_refused(&[command, flags].concat(), &[], wanted);
        }
        let nowhere = [("COLIBRI_PROGRAMS", "/nowhere")];
        assert_refused(&[command, &TRUE].concat(), &nowhere, "is not in /nowhere");
    }
}

#[test]
fn a_measurement_of_what_is_not_there_makes_nothing() {
    for (command, wanted) in [
        (&["tune", "DIR", "--ranks", "1"][..], "at least 2 ranks"),
        (&["tune", "DIR", "--ranks", "2", "--procs", "3"], "3 ranks"),
        (&["tune", "DIR", "--ranks", "2", "--trace", "none.json"], "none.json"),
        (&["tune", "DIR", "--trace", "none.json", "--layouts", "2x2"], "cannot be used with"),
        (&["tune", "DIR", "--trace", "none.json", "--procs", "2"], "cannot be used with"),
        (&["tune", "DIR", "--ranks", "2", "--segments", "auto"], "--segments <LIST>"),
        (&["tune", "DIR", "--ranks", "2", "--collective", "scatterv"], "scatterv"),
        (&["calibrate", "DIR", "--ranks", "2", "--pair", "0,5"], "0,5"),
        (&["calibrate", "DIR", "--ranks", "1", "--algorithms-of", "bcast"], "2 ranks"),
        (&["verify", "DIR", "--ranks", "2"], "calibration.json"),
        (
            &["verify", "DIR", "--ranks", "2", "--calibration", "preset:frodo", "--procs", "3"],
            "3 ranks",
        ),
        (&["guidelines", "DIR", "--ranks", "2", "--procs", "3"], "3 ranks"),
    ] {
        assert_refused(&[command, &TRUE].concat(), &[], wanted);
    }
}

#[test]
fn a_virtual_cluster_that_cannot_be_set_up_makes_nothing() {
    // Without its programs there is none, root or not.
    for command in [&["tune"][..], &["calibrate"], &["platform", "--clocks"]] {
        let words = [command, &["DIR", "--testbed", "2"]].concat();
        assert_refused(&words, &[("PATH", "/nowhere")], "");
    }
}

#[test]
fn reading_what_is_not_there_makes_nothing() {
    for command in [
        &["export", "DIR", "--target", "openmpi"][..],
        &["verify", "DIR", "--from-record"],
        &["calibrate", "DIR", "--from-record"],
        &["guidelines", "DIR", "--from-record"],
        &["report", "DIR"],
    ] {
        assert_refused(command, &[], NO_RUN);
    }
}

/// Starts the first job, which tells where the ranks run, and nothing after it.
const FAILS_LATER: &str = "np=$1; shift\n\
                           export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n\
                           case \"$*\" in *' platform '*) ;; *) exit 1;; esac\n\
                           exec mpirun --oversubscribe -np $np \"$@\"\n";

/// A launcher that fails at the first job has told nothing of the run, which leaves nothing; one that fails
/// later has begun it, but recorded nothing.
#[test]
fn a_run_that_recorded_nothing_is_begun_anew_by_other_options() {
    let test = "a_run_that_recorded_nothing_is_begun_anew_by_other_options";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let run_directory = dir.path().join("run");
    let tune = ["tune", run_directory.to_str().unwrap(), "--ranks", "2"];
    let (_, stderr) = run(1, &[&tune[..], &["--launcher", "false {np}"]].concat());
    assert!(stderr.contains("platform: ") && stderr.contains("exit code 1"), "{stderr}");
    assert!(!run_directory.exists());

    let script = dir.path().join("fails-later");
    fs::write(&script, FAILS_LATER).unwrap();
    let script = script.display();
    let launchers = ["sh", "env sh", "env A=1 sh"].map(|shell| format!("{shell} {script} {{np}}"));
    for (launcher, flags) in launchers.iter().zip([&[][..], &[], &["--resume", "--seed", "2"]]) {
        let (_, stderr) = run(1, &[&tune[..], &["--launcher", launcher], flags].concat());
        assert!(stderr.contains("calibrate: ") && stderr.contains("exit code 1"), "{stderr}");
    }
    let options = fs::read_to_string(run_directory.join("tune.json")).unwrap();
    assert!(options.contains("env A=1 sh"), "{options}");
}

#[test]
fn a_launcher_that_fails_at_the_first_job_leaves_nothing() {
    for command in [
        &["calibrate", "DIR"][..],
        &["verify", "DIR", "--calibration", "preset:frodo", "--collective", "bcast"],
        &["guidelines", "DIR", "--collective", "bcast"],
        &["bench", "--nrep", "DIR", "--collective", "bcast"],
    ] {
        let command = [command, &["--ranks", "2", "--launcher", "false {np}"]].concat();
        assert_refused(&command, &[], "platform: ");
    }
}

#[test]
fn a_launcher_that_starts_nothing_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let run_directory = dir.path().join("run");
    for command in [&["tune"][..], &["calibrate"], &["platform", "--clocks"]] {
        let words = [run_directory.to_str().unwrap(), "--ranks", "2"];
        let (_, stderr) = run(1, &[command, &words, &TRUE].concat());
        for wanted in ["the launcher ended without an error, but ", " was not written"] {
            assert!(stderr.contains(wanted), "{command:?}: {stderr}");
        }
        assert!(!stderr.contains("cannot read"), "{command:?}: {stderr}");
    }
}

/// A run in which there is something of everything.
fn measured(directory: &str) {
    let launcher = ["--launcher", "mpirun --oversubscribe -np {np}", "--ranks", "2"];
    let grid = ["--collective", "bcast", "--sizes", "64"];
    let calibrate = [
        "calibrate",
        directory,
        "--sizes",
        "0..1KiB",
        "--budget",
        "2s",
        "--pair-only",
        "--no-pairs",
    ];
    run(0, &[&calibrate[..], &launcher].concat());
    let verify = ["verify", directory, "--segments", "0", "--rounds", "1"];
    run(0, &[&verify[..], &launcher, &grid].concat());
    let guidelines = ["guidelines", directory, "--jobs", "2", "--budget", "12s"];
    run(0, &[&guidelines[..], &launcher, &grid].concat());
}

fn readers(directory: &str, output: &Path) -> Vec<Vec<String>> {
    let rules = output.join("decided.rules").display().to_string();
    let page = output.join("report.html").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        words(&["export", "--unconfirmed", directory, "--target", "openmpi", "--output", &rules]),
        words(&["verify", directory, "--from-record", "--compare", "default,measured"]),
        words(&["calibrate", directory, "--from-record"]),
        words(&["guidelines", directory, "--from-record"]),
        words(&["report", directory, "--output", &page]),
    ]
}

fn assert_succeeds(output: &Output, command: &[String]) {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
}

#[test]
fn what_reads_a_run_works_on_a_read_only_file_system_and_where_files_cannot_be_locked() {
    let test = "what_reads_a_run_works_on_a_read_only_file_system";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [directory, output] = ["run", "output"].map(|name| dir.path().join(name));
    fs::create_dir(&output).unwrap();
    measured(directory.to_str().unwrap());

    let unlocked = without_locks(dir.path());
    for command in readers(directory.to_str().unwrap(), &output) {
        let told = colibri().args(&command).env("LD_PRELOAD", &unlocked).output().unwrap();
        assert_succeeds(&told, &command);
    }

    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|it| it.success()) {
        return skipped(test, "no mount namespace can be made here; needs root");
    }
    // The results are made anew, and so is the file that a command that works there holds.
    for made in ["penalty.json", "violations.json", "lock", "calibration.json"] {
        let copy = output.join(made);
        fs::copy(directory.join(made), copy).unwrap();
    }
    fs::remove_file(directory.join("lock")).unwrap();
    let before = held(&directory);
    for command in readers(directory.to_str().unwrap(), &output) {
        let mut words = Command::new("unshare");
        let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
        words.args(["-m", "sh", "-c", script]).arg(&directory).arg(env!("CARGO_BIN_EXE_colibri"));
        let told = words.args(&command).output().unwrap();
        assert_succeeds(&told, &command);
        assert_eq!(held(&directory), before, "{command:?}");
    }
    assert!(output.join("report.html").exists() && output.join("decided.rules").exists());
}

/// A library to preload, with which no file can be locked, as on some parallel file systems.
fn without_locks(place: &Path) -> PathBuf {
    let (source, library) = (place.join("unlocked.c"), place.join("libunlocked.so"));
    let text = "#include <errno.h>\n\
                int flock(int file, int how) { (void)file; (void)how; errno = ENOLCK; return -1; }\n";
    fs::write(&source, text).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compile.status().unwrap().success());
    library
}

/// A place that one may look at but not write to is read by everybody, not by root alone.
#[test]
fn a_directory_without_the_right_to_write_is_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o555)).unwrap();
    let (_, stderr) = run(1, &["report", dir.path().to_str().unwrap()]);
    assert!(stderr.contains("holds no results"), "{stderr}");
}
