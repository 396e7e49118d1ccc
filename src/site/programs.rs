//! Where the MPI program and the preloaded libraries are.

use std::process::Command;

use anyhow::{Context, Result, bail};

pub use testbed::programs::find;

/// The program that runs on every rank.
pub const MPI: &str = "colibri-mpi";

/// What the MPI library that it was built for says of its version.
///
/// # Errors
/// The program is not there, or does not start here.
pub fn library() -> Result<String> {
    let program = find(MPI)?;
    let output = Command::new(&program)
        .arg("--mpi-library")
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "`{} --mpi-library` failed; is the MPI library that it was built for installed, and \
             its module loaded? It printed: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
