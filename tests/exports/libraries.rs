//! The MPI libraries that the exports are loaded by: Debian's, and PyPI's.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::pypi;
use crate::{
    skipped::skipped,
    support::{Turn, turn},
};

/// How programs are compiled and started with one MPI library.
pub struct Library {
    compiler: PathBuf,
    launcher: PathBuf,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    _turn: Turn,
}

/// A line of the test program.
#[derive(Debug)]
pub struct LibraryCall {
    /// `bcast:64`
    pub call: String,
    /// The root's least time.
    pub seconds: f64,
    /// What was seen to run, where it can be seen.
    pub ran: String,
}

fn none(test: &str, why: &str) -> Option<Library> {
    skipped(test, why);
    None
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn open_mpi(compiler: PathBuf, launcher: PathBuf) -> Library {
    let arguments = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1";
    let root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    // PRRTE, which launches 5.0, has names of its own.
    let root5 = ["PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"];
    Library {
        compiler,
        launcher,
        environment: [root, root5].concat().into_iter().map(|n| (n.into(), "1".into())).collect(),
        arguments: arguments.split(' ').map(Into::into).collect(),
        _turn: turn(),
    }
}

/// The system's Open MPI 4.1.
pub fn open_mpi_4_1(test: &str) -> Option<Library> {
    let names = [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc", "mpirun")];
    let found =
        names.into_iter().find(|(_, mpirun)| version(mpirun.as_ref()).contains("Open MPI) 4.1"));
    match found {
        Some((mpicc, mpirun)) => Some(open_mpi(mpicc.into(), mpirun.into())),
        None => none(test, "no mpirun of Open MPI 4.1 here"),
    }
}

/// The system's MPICH 4.0.
pub fn mpich_4_0(test: &str) -> Option<Library> {
    if !version("mpirun.mpich".as_ref()).contains("4.0") {
        return none(test, "no mpirun.mpich of MPICH 4.0 here (Debian: mpich, libmpich-dev)");
    }
    Some(Library {
        compiler: "mpicc.mpich".into(),
        launcher: "mpirun.mpich".into(),
        environment: Vec::new(),
        arguments: Vec::new(),
        _turn: turn(),
    })
}

/// PyPI's Open MPI 5.0.
pub fn open_mpi_5_0(test: &str) -> Option<Library> {
    match pypi::open_mpi() {
        Ok(path) => Some(open_mpi(path.join("bin/mpicc"), path.join("bin/mpirun"))),
        Err(why) => none(test, &why),
    }
}

/// PyPI's MPICH 5.0.
pub fn mpich_5_0(test: &str) -> Option<Library> {
    match pypi::mpich() {
        Ok(path) => Some(of_hydra(&path, Vec::new())),
        Err(why) => none(test, &why),
    }
}

/// PyPI's Intel MPI.
pub fn intel(test: &str) -> Option<Library> {
    match pypi::intel() {
        Ok(path) => Some(of_hydra(&path, pypi::intel_variables(&path))),
        Err(why) => none(test, &why),
    }
}

fn of_hydra(path: &Path, environment: Vec<(String, String)>) -> Library {
    Library {
        compiler: path.join("bin/mpicc"),
        launcher: path.join("bin/mpirun"),
        environment,
        arguments: Vec::new(),
        _turn: turn(),
    }
}

impl Library {
    /// The test program, compiled.
    pub fn program(&self, folder: &Path, flags: &[String]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/program.c");
        let program = folder.join("program");
        let mut command = Command::new(&self.compiler);
        command.envs(self.environment.iter().cloned()).arg("-o").arg(&program).arg(source);
        let output = command.args(flags).arg("-ldl").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }

    /// Its compiler's path.
    pub fn compiler(&self) -> &Path {
        &self.compiler
    }

    /// The library's own directory of libraries.
    pub fn directory(&self) -> PathBuf {
        self.launcher.parent().unwrap().join("../lib")
    }

    /// The launcher with what this library needs.
    pub fn launcher(&self) -> Command {
        let mut command = Command::new(&self.launcher);
        command.envs(self.environment.iter().cloned()).args(&self.arguments);
        command
    }

    /// The launcher as words, after those of `before`, for a command that starts it.
    pub fn launcher_behind(&self, before: &[&str]) -> Command {
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(&self.launcher);
        command.envs(self.environment.iter().cloned()).args(&self.arguments);
        command
    }

    /// The variables that programs of this library need.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// The launcher's path.
    pub fn launcher_path(&self) -> String {
        self.launcher.display().to_string()
    }
}

/// A job that takes longer hangs.
const LONGEST_SECONDS: &str = "300";

/// Runs a launcher's command to its end. Calls in which the library fails by itself, without what the
/// command tells it, are set aside; at most one in four.
pub fn run(
    library: &Library,
    command: impl Fn() -> Command,
    ranks: u32,
    program: &Path,
    calls: &[&str],
) -> Vec<LibraryCall> {
    let first = run_once(command(), ranks, program, calls);
    let Err(problem) = first else { return first.unwrap_or_default() };
    let is_well = |call: &&str| run_once(library.launcher(), ranks, program, &[*call]).is_ok();
    let (well, aside): (Vec<&str>, Vec<&str>) = calls.iter().copied().partition(is_well);
    assert!(!aside.is_empty() && aside.len() <= calls.len().div_ceil(4), "{aside:?} {problem}");
    eprintln!("{}: fails by itself in {aside:?}: set aside", library.launcher_path());
    run_once(command(), ranks, program, &well).unwrap_or_else(|problem| panic!("{problem}"))
}

fn run_once(
    launcher: Command,
    ranks: u32,
    program: &Path,
    calls: &[&str],
) -> Result<Vec<LibraryCall>, String> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", LONGEST_SECONDS]).arg(launcher.get_program());
    let set = launcher.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.args(launcher.get_args()).envs(set);
    command.args(["-n", &ranks.to_string()]).arg(program).args(calls);
    let output: Output = command.output().unwrap();
    let [text, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() {
        return Err(format!("{calls:?} on {ranks}: {}\n{text}\n{errors}", output.status));
    }
    let told: Vec<LibraryCall> = text
        .lines()
        .filter(|line| line.contains(':'))
        .map(|line| {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let seconds = words[1].parse().unwrap_or_else(|_| panic!("{line}\n{errors}"));
            let ran = words.get(2).copied().unwrap_or_default().into();
            LibraryCall { call: words[0].into(), seconds, ran }
        })
        .collect();
    assert_eq!(told.len(), calls.len(), "{text}\n{errors}");
    Ok(told)
}
