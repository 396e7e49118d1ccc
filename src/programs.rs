//! Where the MPI programs and the preloaded libraries are.

use std::{env, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

/// Names a directory that holds them; else they are sought beside the command itself.
pub const DIRECTORY: &str = "COLIBRI_PROGRAMS";

/// The directories sought: the one named in the environment alone, or the command's own and the
/// `lib/colibri` beside it where an installation keeps them.
fn directories() -> Result<Vec<PathBuf>> {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return Ok(vec![directory.into()]);
    }
    let own = env::current_exe().context("cannot tell where this command is")?;
    let own = own.parent().map(PathBuf::from).unwrap_or_default();
    // A test's own program lies in `deps`, beside which cargo puts what it built.
    Ok(vec![own.clone(), own.join("../lib/colibri"), own.join("..")])
}

/// The path of a program or library of ours.
///
/// # Errors
/// It is not there; the message says how to build it.
pub fn find(name: &str) -> Result<PathBuf> {
    let directories = directories()?;
    let found =
        directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(path.canonicalize().unwrap_or(path)),
        None => {
            let sought: Vec<_> =
                directories.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "{name} is not in {}; build it with `cargo build --release --workspace`, or name \
                 its directory in {DIRECTORY}",
                sought.join(", ")
            )
        }
    }
}

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
