//! From the start of a rank to its end: the right number of ranks, errors in one line, no rank
//! left behind.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    Error, Result,
    clock::{self, Nanos},
    exchange::{self, Communicator},
    flags::{JobFlags, PROGRAM},
    launcher, linked,
};

/// The running job as one rank sees it.
#[derive(Debug)]
pub struct World {
    /// All ranks, for Colibri's own messages.
    pub control: Communicator,
    started: Nanos,
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

/// Runs a task on every rank of a job and gives the exit code.
///
/// A job of another size than `--ranks` ends at once with code 1: an `mpirun` of another MPI library
/// starts every process as a job of its own. An error or a panic on any rank prints one line and ends
/// the whole job with code 1.
pub fn run(job: &JobFlags, body: impl FnOnce(&World) -> Result<()>) -> ExitCode {
    launcher::remember();
    install_panic_hook();
    let universe = exchange::initialize().unwrap_or_else(|error| fail(&error));
    let outcome = start(job).and_then(|world| match world {
        Some(world) => body(&world).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::FAILURE),
    });
    // Where it failed the job ends at once, while MPI is still up.
    let code = outcome.unwrap_or_else(|error| fail(&error));
    drop(universe);
    code
}

fn fail(error: &Error) -> ! {
    complain(&error.to_string());
    exchange::abort(1)
}

/// Finds this rank's place; nothing where the job has another size than wanted, which is then said.
fn start(job: &JobFlags) -> Result<Option<World>> {
    let world = Communicator::world()?;
    if let Some(seed) = job.false_clocks {
        clock::falsify(seed, world.rank());
    }
    let (started, wanted) = (clock::now(), job.ranks);
    RANK.store(world.rank(), Ordering::Relaxed);
    if world.size() != wanted {
        if world.rank() == 0 {
            complain(&wrong_size(world.size(), wanted)?);
        }
        return Ok(None);
    }
    Ok(Some(World { control: world.duplicate()?, started }))
}

fn wrong_size(size: u32, wanted: u32) -> Result<String> {
    let library = linked::library_version()?;
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
fn complain(problem: &str) {
    let problem = problem.replace('\n', " ");
    let line = match RANK.load(Ordering::Relaxed) {
        u32::MAX => format!("{PROGRAM}: error: {problem}"),
        rank => format!("{PROGRAM}: error on rank {rank}: {problem}"),
    };
    say(&line);
}

/// Says something that a user should know, on stderr.
pub fn warn(text: &str) {
    say(&format!("{PROGRAM}: {text}"));
}

/// Writes a line to stderr; where it can't be written there is nowhere else to say it.
pub fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        complain(&format!("a defect of this program: {panic}"));
        exchange::abort(1)
    }));
}
