//! Where the MPI programs and the preloaded libraries are.

use std::process::Command;

use anyhow::{Context, Result, bail};

pub use testbed::programs::find;

/// What the MPI library that our programs were built for says of its version.
///
/// # Errors
/// The programs are not there, or do not start here.
pub fn library() -> Result<String> {
    let program = find("colibri-measure")?;
    let output = Command::new(&program)
        .arg("--mpi-library")
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "`{} --mpi-library` failed; is the MPI library that it was built for at hand, or its \
             module to be loaded? It said: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
