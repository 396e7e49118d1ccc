//! Where ranks are to run and where a run lies, as subcommands take it from their flags.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use libraries::MpiLibrary;
use records::{Library, quantity};
use runner::mockups::Limits;

use crate::{begun::GivenOptions, error::WrongUse};

/// Over the flags that say where the ranks run in a help text.
const RANKS_RUN: &str = "Where the ranks run";
/// Over those that limit what a program takes.
const LIMITS: &str = "Limits of memory and time";

/// An MPI library by its name, or one that is none of those known.
#[derive(Debug, Clone, Copy)]
pub struct NamedLibrary(pub Option<&'static dyn MpiLibrary>);

impl NamedLibrary {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "other" => Ok(NamedLibrary(None)),
            name => {
                let wrong = || format!("'{name}' is not the name of a library");
                let library = Library::new(name).ok_or_else(wrong)?;
                let found = libraries::find(library).map(|library| NamedLibrary(Some(library)));
                found.map_err(|problem| format!("{problem}; 'other' stands for any other one"))
            }
        }
    }
}

/// Where the ranks run.
#[derive(Debug, Clone, Args)]
pub struct SiteOptions {
    /// The command that starts an MPI program, such as 'mpirun -np {np}' [default: from colibri.toml, the
    /// batch system, or mpirun]
    ///
    /// It is quoted as in a shell. {np} stands for the number of ranks; in an allocation {nodes}, {ppn}
    /// and {hosts} for nodes, ranks on each, and names.
    #[arg(long, value_name = "COMMAND", conflicts_with = "testbed", help_heading = RANKS_RUN)]
    pub launcher: Option<String>,

    /// The MPI library that colibri-mpi was built for; `other`: one whose algorithms can't be
    /// forced [default: what it says of itself]
    #[arg(long, value_name = "NAME", value_parser = NamedLibrary::parse, help_heading = RANKS_RUN, hide_short_help = true)]
    pub mpi_library: Option<NamedLibrary>,

    /// Ranks to start [default: as many as the allocation or this machine holds]
    #[arg(long, value_name = "N", value_parser = quantity::parse_rank_count, help_heading = RANKS_RUN)]
    pub ranks: Option<u32>,

    /// Run on a virtual cluster: the name of one that is up (`colibri testbed up`), or a number of nodes
    /// to set one up for this run alone
    ///
    /// Its nodes have one rank each, and links of 100 Mbit/s.
    #[arg(long, value_name = "NODES|NAME", help_heading = RANKS_RUN)]
    pub testbed: Option<String>,

    /// Share of a node's memory that measuring collectives may take; larger messages are left out
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, quantity::ABOVE_0_TO_1), default_value = "25%", help_heading = LIMITS, hide_short_help = true)]
    pub memory_share: f64,

    /// Memory for the data of mock-ups; what needs more is not measured (PGMPITuneLib's size_msg_buffer_bytes)
    /// [default: COLIBRI_MEMORY, or 64 MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = LIMITS, hide_short_help = true)]
    pub mockup_memory: Option<u64>,

    /// Memory for the mock-ups' counts and displacements (PGMPITuneLib's size_int_buffer_bytes) [default:
    /// COLIBRI_COUNTS_MEMORY, or 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = LIMITS, hide_short_help = true)]
    pub mockup_counts_memory: Option<u64>,

    /// End a program that makes no progress for this long
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "2m", help_heading = LIMITS, hide_short_help = true)]
    pub patience: Duration,
}

impl SiteOptions {
    /// These options, with what was not given as a run was begun with it.
    ///
    /// # Errors
    /// What was written down is not what an option takes.
    pub fn as_begun(mut self, given: &GivenOptions) -> anyhow::Result<Self> {
        let text = |option: &str| given.value(option).map(ToOwned::to_owned);
        if self.launcher.is_none() && self.testbed.is_none() {
            (self.launcher, self.testbed) = (text("launcher"), text("testbed"));
        }
        let wrong = |option: &str, problem: String| {
            anyhow::anyhow!("{}: options.{option}: {problem}", given.file())
        };
        if let (None, Some(ranks)) = (self.ranks, given.value("ranks")) {
            let ranks = ranks.parse();
            self.ranks = Some(ranks.map_err(|_| wrong("ranks", "expected a number".into()))?);
        }
        if let (None, Some(name)) = (self.mpi_library, given.value("mpi-library")) {
            let library = NamedLibrary::parse(name);
            self.mpi_library = Some(library.map_err(|problem| wrong("mpi-library", problem))?);
        }
        for (option, bytes) in [
            ("mockup-memory", &mut self.mockup_memory),
            ("mockup-counts-memory", &mut self.mockup_counts_memory),
        ] {
            if let (None, Some(text)) = (*bytes, given.value(option)) {
                *bytes =
                    Some(quantity::parse_bytes(text).map_err(|problem| wrong(option, problem))?);
            }
        }
        Ok(self)
    }

    /// The memory that mock-ups may use where they are measured.
    ///
    /// # Errors
    /// The environment's limits are none.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        let usual = Limits::of_environment().map_err(|error| WrongUse(error.to_string()))?;
        let bytes = |given: Option<u64>, usual: usize| {
            given.map_or(usual, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        Ok(Limits {
            message_bytes: bytes(self.mockup_memory, usual.message_bytes),
            integer_bytes: bytes(self.mockup_counts_memory, usual.integer_bytes),
        })
    }
}

/// A directory that holds one run: its records and what was made of them.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Directory of the run
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    pub directory: PathBuf,

    /// Continue the directory's run with the options it was begun with, or begin one
    #[arg(long)]
    pub resume: bool,

    /// What is written down, so that the run can go on.
    #[arg(skip)]
    pub given: GivenOptions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_given_is_as_the_run_was_begun() {
        let mut given = SiteOptions {
            launcher: None,
            mpi_library: None,
            ranks: None,
            testbed: None,
            memory_share: 0.25,
            mockup_memory: None,
            mockup_counts_memory: None,
            patience: Duration::from_secs(120),
        };
        let begun =
            GivenOptions::of("tune", [("testbed", "4"), ("ranks", "3"), ("mpi-library", "other")]);
        let all = given.clone().as_begun(&begun).unwrap();
        assert_eq!((all.testbed.as_deref(), all.ranks), (Some("4"), Some(3)));
        assert!(matches!(all.mpi_library, Some(NamedLibrary(None))));
        given.launcher = Some("srun -n {np}".into());
        given.ranks = Some(8);
        let other = given.clone().as_begun(&begun).unwrap();
        assert_eq!((other.testbed, other.ranks), (None, Some(8)));
        given.ranks = None;
        let damaged = GivenOptions::of("tune", [("ranks", "x")]);
        let error = given.as_begun(&damaged).unwrap_err().to_string();
        assert_eq!(error, "tune.json: options.ranks: expected a number");
    }
}
