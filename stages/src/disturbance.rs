//! What others took of the processors while a run was measured.

use std::fs;

use anyhow::Result;
use records::{
    disturbance::{Disturbance, Stretch},
    observation::{CollectiveCall, PointToPoint},
    record::{self, Record, Row},
};

use crate::spent;
use site::run_directory::RunDirectory;

/// Of the calibration's record and all of timed methods in a run's directory; nothing where none tells
/// of it.
///
/// # Errors
/// One cannot be read.
pub fn of_run(run: &RunDirectory) -> Result<Option<Disturbance>> {
    let mut sum = DisturbanceSum::of_calibration(run)?;
    for path in run.records(&spent::TIMED)? {
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
