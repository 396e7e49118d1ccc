//! Programs in C and Fortran, compiled by an MPI library's compiler and run by its launcher, with
//! `libcolibri.so` preloaded.

pub mod aside;
pub mod compared;
pub mod libraries;
#[path = "../../../tests/exports/pypi.rs"]
mod pypi;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::{
    collections::BTreeMap,
    env, fs,
    num::NonZero,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread::available_parallelism,
};

use records::{Algorithm, Collective, OwnMethod};

use libraries::LibraryTools;
pub use libraries::TestLibrary;
pub use skipped::skipped;

/// Jobs run beside each other, since they wait more than they work, but for those of [`TestFolder::alone`].
static TURNS: RwLock<()> = RwLock::new(());

/// The guards are held, not read.
enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// A place for programs and files of one test.
pub struct TestFolder {
    pub family: TestLibrary,
    pub folder: tempfile::TempDir,
    tools: LibraryTools,
    /// A library to preload, so that more ranks than processors get round.
    passing: PathBuf,
    /// Compiled; tells which case a program is in.
    cases: PathBuf,
    /// A library to preload before `libcolibri.so`, and one in every run behind it.
    pub before: Option<PathBuf>,
    pub behind: Option<PathBuf>,
    /// A job without `libcolibri.so` that takes longer hangs.
    pub longest_natively_seconds: u32,
    /// Whether jobs are started as users start them where each rank has a processor of its own: for those that are timed.
    pub has_processors_for_all: bool,
    _turn: Option<Turn>,
}

/// Every method of shared memory, as `COLIBRI_FORCE` has it.
pub const FORCE_SHARED: &str = "bcast=own:shared-cells;barrier=own:shared-flags;reduce=own:shared-slices;\
                     allreduce=own:shared-slices;reduce_scatter_block=own:shared-slices;\
                     allgather=own:shared-slots;alltoall=own:shared-slots;gather=own:shared-slots;\
                     scatter=own:shared-slots";

/// A job that takes longer hangs.
pub const LONGEST_SECONDS: u32 = 600;

impl TestFolder {
    /// Nothing, with a printed reason, where the library isn't to be had.
    pub fn new(family: TestLibrary) -> Option<Self> {
        let guard = TURNS.read().unwrap_or_else(PoisonError::into_inner);
        TestFolder::set_up(family, Some(Turn::Shared { _guard: guard })).filter(TestFolder::works)
    }

    /// While no other job runs: for those whose times decide what they do, or that take much memory.
    pub fn alone(family: TestLibrary) -> Option<Self> {
        let guard = TURNS.write().unwrap_or_else(PoisonError::into_inner);
        TestFolder::set_up(family, Some(Turn::Alone { _guard: guard })).filter(TestFolder::works)
    }

    /// Whether the plainest calls work without `libcolibri.so`: of a library that fails in these
    /// nothing is to be learnt here, and that is told. Open MPI must work.
    fn works(&self) -> bool {
        static KNOWN: Mutex<Vec<(TestLibrary, bool)>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, works)) = known.iter().find(|(family, _)| *family == self.family) {
            return *works;
        }
        let program = self.compile("caught.c", &[]).unwrap();
        let seconds = self.longest_natively_seconds;
        let output = self.run_within(seconds, 2, false, &[], &[program.to_str().unwrap()]);
        let works = output.status.success();
        if !works {
            let told =
                format!("{:?} by itself: {}\n{}", self.family, output.status, stderr(&output));
            assert_ne!(self.family, TestLibrary::OpenMpi, "{told}");
            println!("SKIPPED: {told}");
        }
        known.push((self.family, works));
        works
    }

    /// Another library's, within the turn of this one.
    pub fn beside(&self, family: TestLibrary) -> Option<Self> {
        TestFolder::set_up(family, None)
    }

    fn set_up(family: TestLibrary, turn: Option<Turn>) -> Option<Self> {
        match family.tools() {
            Ok(tools) => {
                let folder = tempfile::tempdir().unwrap();
                let passing = folder.path().join("passing.so");
                compile_plain("passing.c", &["-shared", "-ldl"], &passing);
                let cases = folder.path().join("cases.o");
                compile_plain("cases.c", &["-c"], &cases);
                let (before, behind, longest_natively_seconds) = (None, None, 300);
                Some(TestFolder {
                    family,
                    folder,
                    tools,
                    passing,
                    cases,
                    before,
                    behind,
                    longest_natively_seconds,
                    has_processors_for_all: false,
                    _turn: turn,
                })
            }
            Err(why) => {
                skipped(&format!("{family:?}"), &why);
                None
            }
        }
    }

    /// Compiles `tests/<source>`; nothing, with a printed reason, where there is no compiler.
    pub fn compile(&self, source: &str, options: &[&str]) -> Option<PathBuf> {
        let compiler = match source.to_ascii_lowercase().ends_with(".f90") {
            false => &self.tools.c,
            true => match &self.tools.fortran {
                Some(compiler) => compiler,
                None => {
                    skipped(&format!("{:?} from Fortran", self.family), "no compiler");
                    return None;
                }
            },
        };
        let program = self.folder.path().join(source).with_extension("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
        let mut command = Command::new(compiler);
        command.arg("-O1").arg("-o").arg(&program).arg(source).arg(&self.cases).args(options);
        command.args(["-lpthread", "-ldl"]).envs(self.tools.variables.iter().cloned());
        // Where modules are written.
        let output = command.current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    }

    /// Runs a program on so many ranks with these variables; without the library if `preload` is
    /// false.
    pub fn run(
        &self,
        ranks: u32,
        preload: bool,
        variables: &[(&str, &str)],
        program: &[&str],
    ) -> Output {
        self.run_within(LONGEST_SECONDS, ranks, preload, variables, program)
    }

    /// The same; a job that takes longer is ended.
    pub fn run_within(
        &self,
        seconds: u32,
        ranks: u32,
        preload: bool,
        variables: &[(&str, &str)],
        program: &[&str],
    ) -> Output {
        let mut command = self.launcher(seconds);
        self.add(&mut command, ranks, ranks, preload, variables);
        command.args(program).output().unwrap()
    }

    /// Runs a program as one job of several commands, each on so many ranks and with the library or
    /// without, for at most so many seconds.
    pub fn run_several(
        &self,
        seconds: u32,
        commands: &[(u32, bool)],
        variables: &[(&str, &str)],
        program: &str,
    ) -> Output {
        let all = commands.iter().map(|(ranks, _)| ranks).sum();
        let mut command = self.launcher(seconds);
        for (index, (ranks, preload)) in commands.iter().enumerate() {
            if index > 0 {
                command.arg(":");
            }
            self.add(&mut command, *ranks, all, *preload, variables);
            command.arg(program);
        }
        command.output().unwrap()
    }

    fn launcher(&self, seconds: u32) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", &seconds.to_string()]).arg(&self.tools.launcher);
        command.envs(self.tools.variables.iter().cloned());
        if self.family.is_open_mpi() && !self.has_processors_for_all {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        command
    }

    /// What the launcher is told of one command, one of those of a job of `all` ranks.
    fn add(
        &self,
        command: &mut Command,
        ranks: u32,
        all: u32,
        preload: bool,
        variables: &[(&str, &str)],
    ) {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let is_crowded = all as usize >= processors && !self.has_processors_for_all;
        let passing = is_crowded.then(|| self.passing.clone());
        let ours = [self.before.clone(), Some(library())].into_iter().flatten();
        let ours = ours.filter(|_| preload).chain(self.behind.clone());
        let preloaded = passing.into_iter().chain(ours);
        let preloaded = env::join_paths(preloaded).unwrap().into_string().unwrap();
        let mut variables = variables.to_vec();
        if !preloaded.is_empty() && variables.iter().all(|(name, _)| *name != "LD_PRELOAD") {
            variables.push(("LD_PRELOAD", &*preloaded));
        }
        command.args(["-np", &ranks.to_string()]);
        for (name, value) in &variables {
            match (self.family.is_open_mpi(), *name == "LD_PRELOAD") {
                (true, true) => command.args(["-x", &format!("{name}={value}")]),
                // A value with a semicolon would be taken for several by `-x NAME=VALUE`.
                (true, false) => command.args(["-x", name]).env(name, value),
                (false, _) => command.args(["-env", name, value]),
            };
        }
    }
}

/// A source of the tests without MPI.
fn compile_plain(source: &str, options: &[&str], output: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut command = Command::new("cc");
    command.args(["-O1", "-fPIC", "-o"]).arg(output).arg(source).args(options);
    assert_success(&command.output().unwrap());
}

/// The library, built beside this test.
pub fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let library = test.with_file_name("libcolibri.so");
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}\n{}{}", output.status, stdout(output), stderr(output));
}

/// What was recorded in a trace.
pub fn usage(path: &Path) -> records::usage::Usage {
    let usage = records::document::read(path).unwrap();
    fs::remove_file(path).unwrap();
    usage
}

/// Every method of every collective that is caught, as it is forced.
pub fn methods() -> BTreeMap<Collective, Vec<String>> {
    let mut all: BTreeMap<Collective, Vec<String>> = BTreeMap::new();
    for mockup in runner::mockups::ALL {
        all.entry(mockup.collective).or_default().push(format!("mockup:{}", mockup.name));
    }
    for collective in Collective::ALL {
        if collective.name().ends_with('v') {
            continue;
        }
        for algorithm in Algorithm::ALL.iter().filter(|one| !one.is_node_aware()) {
            let plain = OwnMethod::plain(*algorithm);
            // Segments of a few elements, where it has any.
            let mut forms = [plain.with_segment(64), plain].into_iter();
            let own = forms.find(|own| runner::ScheduledMethod::new(collective, own).is_ok());
            all.entry(collective).or_default().extend(own.map(|own| own.to_string()));
        }
    }
    all
}
