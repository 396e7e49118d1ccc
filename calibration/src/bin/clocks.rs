//! Synchronises the ranks' clocks and says how well; see [`colibri_calibration::clocks`].

use std::process::ExitCode;

use colibri_calibration::{clocks, world};

fn main() -> ExitCode {
    world::run(clocks::PROGRAM, clocks::Flags::job, clocks::run)
}
