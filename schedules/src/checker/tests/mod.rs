//! Right schedules pass, and broken ones are caught.

mod broken;
mod mutants;
mod right;
