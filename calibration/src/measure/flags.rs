//! What `colibri-measure` is told.

use std::path::PathBuf;

use super::timing::Timing;
use crate::{calibrate::parse_budget, world::JobFlags};

/// The program's name, in messages and in the record.
pub const PROGRAM: &str = "colibri-measure";

/// Times methods of MPI collectives by a plan
#[derive(Debug, Clone, clap::Parser)]
#[command(name = PROGRAM, version)]
pub struct Flags {
    #[command(flatten)]
    pub(super) job: JobFlags,
    /// What to measure
    #[arg(long)]
    pub(super) plan: PathBuf,
    /// Where the observations go; a record that is there is completed
    #[arg(long)]
    pub(super) record: PathBuf,
    /// Seconds after the start of MPI from which on nothing new is begun
    #[arg(long, value_parser = parse_budget)]
    pub(super) deadline_seconds: f64,
    /// How a call is timed
    #[arg(long, value_enum, default_value_t = Timing::Barrier)]
    pub(super) timing: Timing,
}

impl Flags {
    /// The flags that both programs have.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }
}
