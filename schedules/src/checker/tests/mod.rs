//! Right schedules pass, and broken ones are caught.

mod broken;
mod mutants;
mod node_aware;
mod right;
mod shared;
mod shared_broken;
mod shared_mutants;
mod sources;
