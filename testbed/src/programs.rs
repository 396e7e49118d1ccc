//! Where the programs and the preloaded libraries are.

use std::{env, path::PathBuf};

use crate::TestbedError;

/// Names a directory that holds them; else they are searched beside the command itself.
pub const DIRECTORY: &str = "COLIBRI_PROGRAMS";

/// The directories searched: the one named in the environment alone, or the command's own and the
/// `lib/colibri` beside it where an installation keeps them. An empty name is as none.
pub fn directories() -> Vec<PathBuf> {
    if let Some(directory) = env::var_os(DIRECTORY).filter(|name| !name.is_empty()) {
        return vec![directory.into()];
    }
    let own = env::current_exe().unwrap_or_default();
    let own = own.parent().map(PathBuf::from).unwrap_or_default();
    // A test's own program lies in `deps`, beside which cargo puts what it built.
    vec![own.clone(), own.join("../lib/colibri"), own.join("..")]
}

/// The path of a program or library of ours.
///
/// # Errors
/// It is not there; the message says how to build it.
pub fn find(name: &str) -> Result<PathBuf, TestbedError> {
    let directories = directories();
    let found =
        directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(path.canonicalize().unwrap_or(path)),
        None => {
            let searched: Vec<_> =
                directories.iter().map(|path| path.display().to_string()).collect();
            Err(TestbedError::NotBuilt { name: name.into(), searched: searched.join(", ") })
        }
    }
}
