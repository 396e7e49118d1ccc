//! What others took of the processors while a run was measured.

use std::{fs, path::PathBuf};

use anyhow::Result;
use records::{
    FileError,
    disturbance::{Disturbance, Stretch},
    observation::{CollectiveCall, PointToPoint},
    record::{self, Record, Row},
};

use site::run_directory::RunDirectory;

/// Of the calibration's record and all of timed methods in a run's directory; nothing where none tells
/// of it.
///
/// # Errors
/// One cannot be read.
pub fn of_run(run: &RunDirectory) -> Result<Option<Disturbance>> {
    let mut sum = DisturbanceSum::of_calibration(run)?;
    for path in records_of(run)? {
        sum.take_in(record::read_begun::<CollectiveCall>(&path)?);
    }
    Ok(sum.disturbance())
}

/// Of the calibration's record alone.
///
/// # Errors
/// It cannot be read.
pub fn of_calibration(run: &RunDirectory) -> Result<Option<Disturbance>> {
    Ok(DisturbanceSum::of_calibration(run)?.disturbance())
}

/// What records tell together.
#[derive(Default)]
struct DisturbanceSum {
    stretches: Vec<Stretch>,
    waited: f64,
}

impl DisturbanceSum {
    fn of_calibration(run: &RunDirectory) -> Result<Self> {
        let mut sum = DisturbanceSum::default();
        // The record of more than two ranks tells of the same stretches.
        let path = run.observations();
        if fs::metadata(&path).is_ok_and(|record| record.len() > 0) {
            sum.take_in(record::read_begun::<PointToPoint>(&path)?);
        }
        Ok(sum)
    }

    fn disturbance(&self) -> Option<Disturbance> {
        Disturbance::from_stretches(&self.stretches, self.waited)
    }

    fn take_in<T: Row>(&mut self, record: Record<T>) {
        self.waited += record.waited_seconds();
        self.stretches.extend(record.stretches);
    }
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
