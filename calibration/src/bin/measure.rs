//! Times methods of collectives by a plan; see [`colibri_calibration::measure`].

use std::process::ExitCode;

use colibri_calibration::{measure, world};

fn main() -> ExitCode {
    world::run(measure::PROGRAM, measure::Flags::job, measure::run)
}
