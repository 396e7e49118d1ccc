//! What `colibri-mpi measure` is given.

use std::path::PathBuf;

use records::Root;
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
    /// The root of collectives that have one: the number of a rank, or last
    #[arg(long, default_value_t)]
    pub(super) root: Root,
    /// How large each rank's block is beside the others', with commas
    #[arg(long, value_delimiter = ',')]
    pub(super) factors: Option<Vec<f64>>,
}
