//! Measures the links between all pairs of ranks; see [`colibri_calibration::pairs`].

use std::process::ExitCode;

use colibri_calibration::{pairs, world};

fn main() -> ExitCode {
    world::run(pairs::PROGRAM, pairs::Flags::job, pairs::run)
}
