//! Runs the program of this package under a real `mpirun`.

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use colibri_calibration::proc_stat::STAND_IN;
pub use skipped::skipped;

/// The program under test.
#[allow(dead_code, reason = "each test program uses its part of this module")]
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_colibri-mpi");

/// Jobs run one after the other: they share the cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A launcher of Open MPI jobs, held by one test at a time.
pub struct Mpi {
    mpirun: String,
    dynamic_rules: bool,
    _turn: MutexGuard<'static, ()>,
}

impl Mpi {
    /// Nothing, with a printed reason, where there is no Open MPI.
    pub fn find() -> Option<Self> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let names = match env::var("MPIRUN") {
            Ok(name) => vec![name],
            Err(_) => vec!["mpirun.openmpi".to_owned(), "mpirun".to_owned()],
        };
        for mpirun in names {
            let version = Command::new(&mpirun).arg("--version").output();
            if version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("Open MPI")) {
                return Some(Mpi { mpirun, dynamic_rules: true, _turn: turn });
            }
        }
        skipped("a program of MPI", "no mpirun of Open MPI here");
        None
    }

    /// Without the setting that lets algorithms be forced.
    #[allow(dead_code, reason = "each test program uses its part of this module")]
    pub fn without_dynamic_rules(mut self) -> Self {
        self.dynamic_rules = false;
        self
    }

    /// `mpirun` for so many ranks; the program and its arguments are to be added.
    pub fn command(&self, ranks: u32) -> Command {
        let mut command = Command::new(&self.mpirun);
        command
            .args(["--oversubscribe", "--bind-to", "none"])
            .args(["--mca", "mpi_yield_when_idle", "1"])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            // What else runs beside the tests is not to make them measure again.
            .env(STAND_IN, "/dev/null")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .process_group(0);
        if self.dynamic_rules {
            command.args(["--mca", "coll_tuned_use_dynamic_rules", "1"]);
        }
        command.args(["-np", &ranks.to_string()]);
        command
    }

    /// Runs a task to its end.
    pub fn run(&self, ranks: u32, task: &str, args: &[String]) -> Output {
        self.command(ranks).args([PROGRAM, task]).args(args).output().unwrap()
    }

    /// Starts a task and kills the job when `path` has so many lines; gives up after
    /// five minutes.
    #[allow(dead_code, reason = "each test program uses its part of this module")]
    pub fn kill_at(&self, ranks: u32, task: &str, args: &[String], path: &Path, lines: usize) {
        let mut child = self.command(ranks).args([PROGRAM, task]).args(args).spawn().unwrap();
        let patience = Duration::from_secs(300);
        let limit = Instant::now() + patience;
        let written = || fs::read_to_string(path).map_or(0, |text| text.lines().count());
        while written() < lines && Instant::now() < limit {
            assert!(child.try_wait().unwrap().is_none(), "the job ended before it could be killed");
            thread::sleep(Duration::from_millis(2));
        }
        // SAFETY: the group is the one that was made for this child.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        child.wait().unwrap();
        let limit = Instant::now() + patience;
        while is_running(path) {
            assert!(Instant::now() < limit, "ranks outlive their mpirun");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a process has this path, which only one job has, among its arguments.
#[allow(dead_code, reason = "each test program uses its part of this module")]
fn is_running(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id().to_string();
    processes.filter(|entry| entry.file_name() != *own).any(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&*path)
    })
}

/// Compiles a C source of the tests into a shared library; false, with a printed reason, where no
/// compiler of the launcher's MPI library is.
#[allow(dead_code, reason = "each test program uses its part of this module")]
pub fn compile(source: &str, library: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let compiled = |compiler: &str| {
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]);
        command.args([library, &source]).status()
    };
    let compilers = ["mpicc.openmpi", "mpicc"];
    let Some(status) = compilers.into_iter().find_map(|compiler| compiled(compiler).ok()) else {
        skipped(source.file_name().and_then(OsStr::to_str).unwrap_or_default(), "no mpicc here");
        return false;
    };
    assert!(status.success());
    true
}

/// What went to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The job must have ended well.
#[track_caller]
pub fn assert_success(output: &Output) {
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{out}{}", output.status, stderr(output));
    for line in out.lines() {
        let progress = records::progress::Progress::parse(line);
        assert!(progress.is_some(), "stdout holds progress alone, but also '{line}'");
    }
}

/// A stand-in for /proc/stat of 2 processors, half of whose time is stolen while `is_stolen` says so of how many
/// observations the record has and how long it has had any; it ends by calling what is returned.
#[allow(dead_code, reason = "each test program uses its part of this module")]
pub fn stand_in(
    path: PathBuf,
    record: PathBuf,
    is_stolen: impl Fn(usize, Duration) -> bool + Send + 'static,
) -> impl FnOnce() {
    const STEP: Duration = Duration::from_millis(5);
    let write = move |all: u64, under_theft: u64| {
        let stolen = under_theft / 2;
        let beside = path.with_extension("new");
        fs::write(&beside, format!("cpu 10 0 0 {} 0 0 0 {stolen}\n", all - stolen)).unwrap();
        fs::rename(&beside, &path).unwrap();
    };
    write(0, 0);
    let ended = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ended);
    let writer = thread::spawn(move || {
        // Halved only when written: of a single hundredth half would be nothing.
        let (begun, mut before, mut under_theft) = (Instant::now(), 0, 0);
        let mut first = None;
        while !until.load(Ordering::Relaxed) {
            thread::sleep(STEP);
            let lines = fs::read_to_string(&record).unwrap_or_default();
            let made = lines.lines().filter(|line| line.ends_with(",ok")).count();
            // Hundredths of a second of both processors together.
            let all = (begun.elapsed().as_secs_f64() * 200.0) as u64;
            let since = first.filter(|_| made > 0).unwrap_or_else(Instant::now);
            first = Some(since);
            if is_stolen(made, since.elapsed()) {
                under_theft += all - before;
            }
            before = all;
            write(all, under_theft);
        }
    });
    move || {
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}
