//! What others took of the processors while a run was measured.

use std::{fs, path::PathBuf};

use anyhow::Result;
use records::{FileError, disturbance::Disturbance, observation::CollectiveCall, record};

use crate::site::run_directory::RunDirectory;

/// Of all records of timed methods in a run's directory; nothing where none tells of it.
///
/// # Errors
/// One cannot be read.
pub fn of_run(run: &RunDirectory) -> Result<Option<Disturbance>> {
    let (mut stretches, mut waited) = (Vec::new(), 0.0);
    for path in records_of(run)? {
        let record = record::read_begun::<CollectiveCall>(&path)?;
        waited += record.waited_seconds();
        stretches.extend(record.stretches);
    }
    Ok(Disturbance::from_stretches(&stretches, waited))
}

/// The measurements and what confirmed them.
fn records_of(run: &RunDirectory) -> Result<Vec<PathBuf>> {
    let fault = |error: &std::io::Error| FileError::io(run.path(), "read the directory", error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(run.path()).map_err(|error| fault(&error))? {
        let path = entry.map_err(|error| fault(&error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_record =
            ["measurements", "confirmation-"].iter().any(|begin| name.starts_with(begin));
        if is_record && name.ends_with(".csv") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
