//! Measures a platform point to point; see [`colibri_calibration::calibrate`].

use std::process::ExitCode;

use colibri_calibration::{calibrate, world};

fn main() -> ExitCode {
    world::run(calibrate::PROGRAM, calibrate::Flags::job, calibrate::run)
}
