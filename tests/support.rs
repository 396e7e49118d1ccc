//! What the tests share.

use std::{ffi::OsStr, path::Path, process::Command};

/// The command under test.
pub fn colibri() -> assert_cmd::Command {
    assert_cmd::Command::new(env!("CARGO_BIN_EXE_colibri"))
}

/// The command under test, for what `assert_cmd` does not do.
pub fn colibri_process(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_colibri"));
    command.args(arguments);
    command
}

/// Runs it, wants `code`, and gives (stdout, stderr).
#[track_caller]
pub fn run(code: i32, arguments: &[&str]) -> (String, String) {
    let output = colibri().args(arguments).output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "colibri {arguments:?}\n{stdout}\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    (stdout, stderr)
}

/// Whether a virtual cluster can be made here; says that the test is skipped where it can't.
pub fn can_make_a_testbed(test: &str) -> bool {
    let output = colibri().args(["testbed", "check"]).output().unwrap();
    if !output.status.success() {
        eprintln!("{test}: skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

/// Whether there is an MPI launcher; says that the test is skipped where there is none.
pub fn have_mpirun(test: &str) -> bool {
    let there = Command::new("mpirun").arg("--version").output().is_ok();
    if !there {
        eprintln!("{test}: skipped: no mpirun on PATH");
    }
    there
}

/// The lines of a file.
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(Into::into).collect()
}
