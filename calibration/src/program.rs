//! `colibri-mpi`: one program with a subcommand for each task.

use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::Parser;
use records::FileError;

use crate::{
    Result, bench, calibrate, clocks, first_job, flags::PROGRAM, linked, links, measure, pairs,
    world,
};

/// Measures under an MPI launcher: raw observations, for `colibri` to judge
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version)]
struct ProgramArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
enum Task {
    Bench(bench::BenchFlags),
    Calibrate(calibrate::CalibrateFlags),
    Clocks(clocks::ClocksFlags),
    Links(links::LinksFlags),
    Measure(measure::MeasureFlags),
    Pairs(pairs::PairsFlags),
    Platform(first_job::FirstJobFlags),
}

/// As the only argument: says which MPI library the program was built for, and starts none.
const LIBRARY_FLAG: &str = "--mpi-library";

/// As the only argument: names the library and its version, as the folder of the program is named.
const RELEASE_FLAG: &str = "--mpi-release";

/// The program on one rank; gives its exit code.
///
/// With `--mpi-library` or `--mpi-release` alone it only says which MPI library it was built for.
/// Flags are read before MPI starts.
pub fn main() -> ExitCode {
    if std::env::args_os().skip(1).eq([LIBRARY_FLAG]) {
        return tell(linked::library_version());
    }
    if std::env::args_os().skip(1).eq([RELEASE_FLAG]) {
        return tell(linked::library_release());
    }
    let task = match ProgramArguments::try_parse() {
        Ok(arguments) => arguments.task,
        Err(error) => return refuse(&error),
    };
    match &task {
        Task::Bench(flags) => world::run(flags.job(), |world| bench::run(flags, world)),
        Task::Calibrate(flags) => world::run(&flags.job, |world| calibrate::run(flags, world)),
        Task::Clocks(flags) => world::run(&flags.job, |world| clocks::run(flags, world)),
        Task::Links(flags) => world::run(&flags.job, |world| links::run(flags, world)),
        Task::Measure(flags) => world::run(&flags.job, |world| measure::run(flags, world)),
        Task::Pairs(flags) => world::run(&flags.job, |world| pairs::run(flags, world)),
        Task::Platform(flags) => world::run(&flags.job, |world| first_job::run(flags, world)),
    }
}

fn tell(said: Result<impl Display>) -> ExitCode {
    match said {
        Ok(said) => code_of(writeln!(io::stdout(), "{said}")),
        Err(error) => {
            world::say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The exit code where something was written to stdout: a reader that has gone is no error.
fn code_of(written: io::Result<()>) -> ExitCode {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let error = FileError::io(Path::new("stdout"), "write", &error);
            world::say(&format!("{PROGRAM}: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Every rank reads the same flags; one of them says what is wrong with these.
fn refuse(error: &clap::Error) -> ExitCode {
    let rank = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    if !error.use_stderr() {
        return code_of(error.print());
    }
    if rank.is_none_or(|rank| rank == "0") {
        // A closed stderr is no reason to hide the exit code.
        let _ = error.print();
    } else {
        // A launcher ends the others when the first fails: not before it was said why.
        thread::sleep(Duration::from_secs(1));
    }
    ExitCode::from(2)
}
