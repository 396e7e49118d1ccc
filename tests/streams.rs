//! What cannot be told, since stdout or stderr is closed or on a full disk, stops no work; results that are
//! lost are an error.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::{
    lost_output::{full, unread},
    support::{colibri, colibri_process},
};

const PREDICT: &str = "predict --calibration preset:frodo --procs 4 --sizes 1KiB --format csv";

#[test]
fn results_that_are_lost_are_an_error() {
    for arguments in [PREDICT, "--help", "--version", "tune --help", "help export"] {
        let words = || arguments.split_whitespace();
        let output = colibri_process(words()).stdout(full()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {stderr}");
        assert_eq!(stderr.trim_end(), "colibri: stdout: cannot write: no space left on the disk");

        let output = colibri_process(words()).stdout(unread()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[test]
fn an_error_that_cannot_be_told_keeps_its_exit_code() {
    for (arguments, code) in [
        ("predict --calibration no-such-file.json", 1),
        ("predict --calibration preset:froddo", 2),
        ("predict --no-such-flag", 2),
        ("no-such-command", 2),
    ] {
        for stderr in [full(), unread()] {
            let mut command = colibri_process(arguments.split_whitespace());
            let status = command.stdout(Stdio::null()).stderr(stderr).status().unwrap();
            assert_eq!(status.code(), Some(code), "{arguments}");
        }
    }
}

/// As typed into a shell.
#[test]
fn an_export_of_which_only_the_beginning_is_read_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "decide --calibration preset:frodo --procs 4,8 --sizes 1KiB,1MiB --output decisions.json";
    colibri().args(script.split_whitespace()).current_dir(&dir).assert().success();
    let export = "export --unconfirmed --decisions decisions.json --calibration preset:frodo --model plogp \
                  --target openmpi --target-version 4.1";
    for (name, end) in
        [("head", "2>&1 | head -n 1"), ("full", "2>/dev/full"), ("closed", "2>&- >&-")]
    {
        let line = format!("\"$0\" {export} --output {name} --modulefiles modules-{name} {end}");
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &line, env!("CARGO_BIN_EXE_colibri")]);
        let output = shell.current_dir(&dir).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{end}: {output:?}");
        for file in
            [name.to_owned(), format!("{name}.export.json"), format!("modules-{name}/colibri")]
        {
            assert!(dir.path().join(&file).exists(), "{end}: {file} was not written");
        }
    }
    // To stdout, with a report beside it.
    let mut command = colibri_process(export.split_whitespace());
    command.args(["--report", "report.json"]).current_dir(&dir);
    let status = command.stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(dir.path().join("report.json").exists());
}

/// A launcher that fails is tried again and told of, with nobody to be told.
#[test]
fn a_job_that_fails_is_tried_again_where_that_cannot_be_told() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = dir.path().join("launcher");
    fs::write(&launcher, "#!/bin/sh\necho tried >> tried\nexit 3\n").unwrap();
    fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let launcher = format!("{} {{np}}", launcher.display());
    let arguments = ["calibrate", "run", "--ranks", "2", "--launcher", &launcher];
    let mut command = colibri_process(arguments);
    let status = command.current_dir(&dir).stderr(full()).stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let tried = fs::read_to_string(dir.path().join("tried")).unwrap();
    assert_eq!(tried.lines().count(), 3, "once to be asked for its version, twice to run a job");
}
