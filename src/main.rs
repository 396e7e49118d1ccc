//! The `colibri` command: calibrates a cluster, predicts, decides, verifies, and writes what the
//! MPI library loads.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

// For its macros.
#[macro_use]
extern crate site;

mod commands;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod fuzz;

use std::{ffi::OsString, process::ExitCode};

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use records::shortened;

use crate::commands::shared::output;
use site::{
    begun::{self, Completed},
    error::{ExitWith, WrongUse},
    options::RunOptions,
    process,
};
use testbed::TestbedError;

/// Calibrates a cluster, predicts what every MPI collective costs, decides which algorithm to use,
/// checks that by measuring, and writes what the MPI library loads
#[derive(Debug, Parser)]
#[command(name = "colibri", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tune(commands::tune::Tune),
    Check(commands::check::CheckCommand),
    Platform(commands::platform::PlatformCommand),
    Calibrate(commands::calibrate::Calibrate),
    Bench(commands::bench::BenchCommand),
    Predict(commands::predict::Predict),
    Decide(commands::decide::Decide),
    Explain(commands::explain::Explain),
    Verify(commands::verify::Verify),
    Guidelines(commands::guidelines::Guidelines),
    Report(commands::report::ReportCommand),
    Import(commands::import::ImportCommand),
    Fit(commands::fit::FitCommand),
    Draw(commands::draw::Draw),
    Export(commands::export::ExportCommand),
    Testbed(commands::testbed::TestbedCommand),
    #[command(hide = true)]
    Pages(commands::pages::PagesCommand),
}

/// The same error, without what was given being quoted at any length. A number below 0 is not taken for a flag.
fn with_short_values(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && flag
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    {
        let problem =
            format!("'{flag}...' is no value here: numbers, sizes and times are 0 or more");
        return Cli::command().error(ErrorKind::InvalidValue, problem);
    }
    let long = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(value) => Some((kind, shortened(value))),
        _ => None,
    };
    let values: Vec<_> = error.context().filter_map(long).collect();
    for (kind, value) in values {
        error.insert(kind, ContextValue::String(value));
    }
    error
}

impl Cli {
    /// The command line, completed by the options of the run that is to go on.
    ///
    /// # Errors
    /// What clap answers (help, too, is an error to it); a run cannot go on with these options.
    fn read() -> anyhow::Result<Self> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let command = Cli::command();
        let matches =
            command.clone().try_get_matches_from(&arguments).map_err(with_short_values)?;
        let Some(completed) = begun::complete(&command, &arguments, &matches, Self::meaning)?
        else {
            return Ok(Cli::from_arg_matches(&matches)?);
        };
        let Completed { arguments, given, resumes } = completed;
        let mut cli = Cli::try_parse_from(arguments)?;
        if let Some(run) = cli.run_options() {
            run.resume = resumes;
            run.given = given;
        }
        Ok(cli)
    }

    fn meaning(arguments: Vec<OsString>) -> Option<String> {
        Some(format!("{:?}", Cli::try_parse_from(arguments).ok()?))
    }

    fn run_options(&mut self) -> Option<&mut RunOptions> {
        match &mut self.command {
            Command::Tune(command) => Some(&mut command.run),
            Command::Calibrate(command) => Some(&mut command.run),
            Command::Verify(command) => Some(&mut command.run),
            Command::Guidelines(command) => Some(&mut command.run),
            Command::Bench(command) => command.nrep.run.as_mut(),
            _ => None,
        }
    }
}

/// The exit code of an answer of clap's, which is printed.
fn answered(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let answer = error.downcast::<clap::Error>()?;
    output::answer(&answer)?;
    Ok(if answer.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn main() -> ExitCode {
    match Cli::read().and_then(run).map_or_else(answered, |()| Ok(ExitCode::SUCCESS)) {
        Ok(code) => code,
        Err(error) => {
            if let Some(ExitWith(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            say!("colibri: {error:#}");
            ExitCode::from(if is_wrong_use(&error) { 2 } else { 1 })
        }
    }
}

/// Whether what the user asked for can never be.
fn is_wrong_use(error: &anyhow::Error) -> bool {
    error.is::<WrongUse>()
        || matches!(error.downcast_ref(), Some(libraries::Error::Usage(_)))
        || matches!(error.downcast_ref(), Some(TestbedError::Spec(_)))
}

fn run(cli: Cli) -> anyhow::Result<()> {
    // What launches nothing has nothing to tear down: an interrupt ends it at once.
    let launches = matches!(
        cli.command,
        Command::Tune(_)
            | Command::Check(_)
            | Command::Platform(_)
            | Command::Calibrate(_)
            | Command::Bench(_)
            | Command::Verify(_)
            | Command::Guidelines(_)
            | Command::Testbed(_)
    );
    let noted = if launches { process::note_interrupts() } else { Ok(()) };
    noted.and_then(|()| match cli.command {
        Command::Tune(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Platform(command) => command.run(),
        Command::Calibrate(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Predict(command) => command.run(),
        Command::Decide(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Guidelines(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Fit(command) => command.run(),
        Command::Draw(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Testbed(command) => command.run(),
        Command::Pages(command) => command.run(Cli::command()),
    })
}
