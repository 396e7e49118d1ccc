//! From the start of a rank to its end: the right number of ranks, errors in one line, no rank
//! left behind.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use clap::Parser;

use crate::{
    Result,
    clock::{self, Nanos},
    exchange::{self, Communicator},
    launcher,
};

/// The running job as one rank sees it.
#[derive(Debug)]
pub struct World {
    /// All ranks, for Colibri's own messages.
    pub control: Communicator,
    started: Nanos,
}

/// Flags that both programs have.
#[derive(Debug, Clone, clap::Args)]
pub struct JobFlags {
    /// Ranks that the job must have
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: u32,
    /// The command that launched the ranks, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    pub launcher: String,
    /// The virtual cluster that the ranks run on, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    pub testbed: String,
    /// Synchronise the ranks' clocks even where they share one
    #[arg(long)]
    pub synchronise: bool,
    /// Give every rank a false clock, drawn from this seed: a trial of the synchronisation
    #[arg(long, hide = true, value_name = "SEED")]
    pub false_clocks: Option<u64>,
}

impl JobFlags {
    /// Whether every rank's clock is taken for its own, though the kernel may be the same.
    pub fn keeps_own_clock(&self) -> bool {
        self.synchronise || self.false_clocks.is_some()
    }
}

impl World {
    /// This process's rank in the job.
    pub fn rank(&self) -> u32 {
        self.control.rank()
    }

    /// Seconds since the rank came out of MPI_Init.
    pub fn elapsed_seconds(&self) -> f64 {
        clock::seconds(clock::now() - self.started)
    }
}

/// The rank for error messages that come from where no communicator is at hand.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

/// As the only argument: says which MPI library the program was built for, and starts none.
const LIBRARY_FLAG: &str = "--mpi-library";

fn tell_library() -> ExitCode {
    match exchange::library_version() {
        Ok(version) => {
            println!("{version}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a program on every rank of a job and gives its exit code.
///
/// With `--mpi-library` alone it only says which MPI library it was built for.
/// Flags are read before MPI starts. A job of another size than `--ranks` ends at once with code
/// 1: an `mpirun` of another MPI library starts every process as a job of its own. An error or a
/// panic on any rank prints one line and ends the whole job with code 1.
pub fn run<F: Parser>(
    program: &'static str,
    job: impl Fn(&F) -> &JobFlags,
    body: impl FnOnce(&F, &World) -> Result<()>,
) -> ExitCode {
    if std::env::args_os().skip(1).eq([LIBRARY_FLAG]) {
        return tell_library();
    }
    let flags = match F::try_parse() {
        Ok(flags) => flags,
        Err(error) => return refuse_flags(&error),
    };
    launcher::remember();
    install_panic_hook(program);
    let outcome = start(program, job(&flags)).and_then(|world| match world {
        Some(world) => body(&flags, &world).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::FAILURE),
    });
    let outcome = outcome.and_then(|code| exchange::finalize().map(|()| code));
    match outcome {
        Ok(code) => code,
        Err(error) => {
            complain(program, &error.to_string());
            exchange::abort(1)
        }
    }
}

/// Every rank reads the same flags; one of them says what is wrong with these.
fn refuse_flags(error: &clap::Error) -> ExitCode {
    let rank = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    if rank.is_none_or(|rank| rank == "0") {
        // A closed stderr is no reason to hide the exit code.
        let _ = error.print();
    } else {
        // A launcher ends the others when the first fails: not before it was said why.
        thread::sleep(Duration::from_secs(1));
    }
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Starts MPI; nothing where the job has another size than wanted, which is then said.
fn start(program: &'static str, job: &JobFlags) -> Result<Option<World>> {
    exchange::initialize()?;
    let world = Communicator::world()?;
    if let Some(seed) = job.false_clocks {
        clock::falsify(seed, world.rank());
    }
    let (started, wanted) = (clock::now(), job.ranks);
    RANK.store(world.rank(), Ordering::Relaxed);
    if world.size() != wanted {
        if world.rank() == 0 {
            complain(program, &wrong_size(world.size(), wanted)?);
        }
        return Ok(None);
    }
    Ok(Some(World { control: world.duplicate()?, started }))
}

fn wrong_size(size: u32, wanted: u32) -> Result<String> {
    let library = exchange::library_version()?;
    let hint = match size {
        1 => {
            "an mpirun of another MPI library than the one this program was built for starts \
              each process as a job of its own"
        }
        _ => "start as many as --ranks says",
    };
    Ok(format!("the job has {size} ranks, --ranks says {wanted}; {hint} (built for {library})"))
}

/// One line on stderr, written in one piece so that ranks don't tear each other's.
fn complain(program: &str, problem: &str) {
    let problem = problem.replace('\n', " ");
    let line = match RANK.load(Ordering::Relaxed) {
        u32::MAX => format!("{program}: error: {problem}\n"),
        rank => format!("{program}: error on rank {rank}: {problem}\n"),
    };
    // There is nowhere else to say it.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Says something that a user should know, on stderr.
pub fn warn(program: &str, text: &str) {
    eprintln!("{program}: {text}");
}

fn install_panic_hook(program: &'static str) {
    std::panic::set_hook(Box::new(move |panic| {
        complain(program, &format!("a defect of this program: {panic}"));
        exchange::abort(1)
    }));
}
