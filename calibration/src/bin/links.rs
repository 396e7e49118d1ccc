//! Measures all links at once; see [`colibri_calibration::links`].

use std::process::ExitCode;

use colibri_calibration::{links, world};

fn main() -> ExitCode {
    world::run(links::PROGRAM, links::Flags::job, links::run)
}
