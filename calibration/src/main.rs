//! The MPI program; see [`colibri_calibration::program`].

use std::process::ExitCode;

fn main() -> ExitCode {
    colibri_calibration::program::main()
}
