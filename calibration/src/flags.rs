//! What all tasks are given.

use std::path::PathBuf;

/// The program's name, in messages and in records.
pub const PROGRAM: &str = "colibri-mpi";

/// Flags that all tasks have.
#[derive(Debug, Clone, clap::Args)]
pub struct JobFlags {
    /// Ranks that the job must have
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: u32,
    /// File of the observations; an existing record is continued
    #[arg(long)]
    pub record: PathBuf,
    /// The command that launched the ranks, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    pub launcher: String,
    /// The virtual cluster that the ranks run on, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    pub testbed: String,
    /// Synchronise the ranks' clocks even where they share one
    #[arg(long)]
    pub synchronise: bool,
    /// Test the synchronisation: give every rank a false clock drawn from this seed
    #[arg(long, hide = true, value_name = "SEED")]
    pub false_clocks: Option<u64>,
}

impl JobFlags {
    /// Whether every rank's clock is taken for its own, though the kernel may be the same.
    pub fn keeps_own_clock(&self) -> bool {
        self.synchronise || self.false_clocks.is_some()
    }
}

/// A number of seconds.
pub(crate) fn parse_budget(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err(format!("'{text}' is not a number of seconds above 0, such as 60")),
    }
}
