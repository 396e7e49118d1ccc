//! What `colibri-mpi measure` is told.

use std::path::PathBuf;

use timing::scheme::TimingScheme;

use crate::flags::{JobFlags, parse_budget};

/// Times methods of MPI collectives by a plan
#[derive(Debug, Clone, clap::Args)]
pub struct MeasureFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    /// What to measure
    #[arg(long)]
    pub(super) plan: PathBuf,
    /// Seconds after the start of MPI from which on nothing new is begun
    #[arg(long, value_parser = parse_budget)]
    pub(super) deadline_seconds: f64,
    /// How a call is timed
    #[arg(long, default_value = TimingScheme::Barrier.name())]
    pub(super) timing: TimingScheme,
}
