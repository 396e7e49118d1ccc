//! What the tests share.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

use records::{
    calibration::{Estimate, GapKnot, InsideNode, PortGap},
    document,
};

use crate::skipped::skipped;

/// Jobs run one after the other: they share the cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Held by the test whose jobs run.
pub type Turn = MutexGuard<'static, ()>;

/// What programs read in the place of /proc/stat: what else runs is not to make them measure again.
const CALM: (&str, &str) = ("COLIBRI_PROC_STAT", "/dev/null");

/// The command under test: what was built with the tests, or what `COLIBRI_TEST_PROGRAM` names, as the
/// optimised one.
pub fn colibri() -> assert_cmd::Command {
    let program = std::env::var_os("COLIBRI_TEST_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_colibri").into());
    let mut command = assert_cmd::Command::new(program);
    command.env(CALM.0, CALM.1);
    command
}

/// The command under test, for what `assert_cmd` does not do.
pub fn colibri_process(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_colibri"));
    command.args(arguments).env(CALM.0, CALM.1);
    command
}

/// Runs it, wants `code`, and gives (stdout, stderr).
#[track_caller]
pub fn run(code: i32, arguments: &[&str]) -> (String, String) {
    let (answered, stdout, stderr) = run_output(arguments);
    assert_eq!(answered, code, "colibri {arguments:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Runs it, and gives its exit code, stdout and stderr.
#[track_caller]
pub fn run_output(arguments: &[&str]) -> (i32, String, String) {
    let output = colibri().args(arguments).output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(!stderr.contains("panicked"), "{stderr}");
    let code = output.status.code();
    (code.unwrap_or_else(|| panic!("colibri {arguments:?} was killed\n{stderr}")), stdout, stderr)
}

/// Nothing, and it is said that the test is skipped, where no virtual cluster can be made.
pub fn can_make_a_testbed(test: &str) -> Option<Turn> {
    let output = colibri().args(["testbed", "check"]).output().unwrap();
    if !output.status.success() {
        skipped(test, String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    have_mpirun(test)
}

/// A virtual cluster that stands until it is dropped, however the test ends.
pub struct StandingTestbed {
    pub name: String,
}

impl StandingTestbed {
    /// `name` tells those of one test program apart.
    pub fn up(name: &str, options: &[&str]) -> Self {
        let standing = StandingTestbed { name: format!("t{}-{name}", std::process::id()) };
        run(0, &[&["testbed", "up", "--name", &standing.name], options].concat());
        standing
    }
}

impl Drop for StandingTestbed {
    fn drop(&mut self) {
        let _ = colibri().args(["testbed", "down", "--name", &self.name]).output();
    }
}

/// Nothing, and it is said that the test is skipped, where there is no MPI launcher.
pub fn have_mpirun(test: &str) -> Option<Turn> {
    if Command::new("mpirun").arg("--version").output().is_err() {
        skipped(test, "no mpirun on PATH");
        return None;
    }
    Some(turn())
}

/// Waits until no other test's jobs run.
pub fn turn() -> Turn {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A C program built in `folder` by Open MPI's compiler; nothing where there is none.
pub fn compiled_by_open_mpi(folder: &Path, source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    let compilers = ["mpicc.openmpi", "mpicc"].into_iter();
    let built = compilers.map(|name| Command::new(name).arg("-o").args([&program, &file]).output());
    let output = built.flatten().next()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// The lines of a file.
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(Into::into).collect()
}

/// Writes the parameters of two presets as those between nodes and inside one of four ranks.
pub fn levelled_calibration(path: &Path) {
    let mut calibration = models::presets::preset("frodo").unwrap();
    let gap = |ranks: u32, bytes: u64| GapKnot {
        bytes,
        gap_seconds: Estimate::exact(f64::from(ranks) * (24e-6 + 0.084e-6 * bytes as f64)),
    };
    let port = |ranks| PortGap {
        ranks,
        both_ways: false,
        knots: vec![gap(ranks, 1), gap(ranks, 1 << 20)],
    };
    calibration.inside = Some(InsideNode {
        measured: models::presets::preset("boba").unwrap().measured,
        fitted: None,
        fits: Vec::new(),
        port: [1, 2, 4].map(port).to_vec(),
    });
    document::write(path, &calibration).unwrap();
}
