//! Parameters from what a run holds.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use models::fit::{self, JobTime, JointFit, NodeFit, OverRanks, StreamFit};
use records::{
    Method, Point,
    calibration::{Algorithms, Calibration, InsideNode},
    imported::{MEAN_OVER_RANKS, PairStreams},
    observation::{CollectiveCall, ObservationStatus},
    platform::Platform,
    record,
};
use statistics::median;

use crate::{
    headers::platform,
    measurements,
    progress::{self, WorkDone},
};
use site::run_directory::RunDirectory;

/// What was fitted.
pub struct Fitted {
    pub calibration: Calibration,
    pub joint: Option<JointFit>,
    pub streams: Option<StreamFit>,
    /// Of ranks that share the memory of one node.
    pub node: Option<NodeFit>,
}

/// Fits to everything that a run holds.
///
/// # Errors
/// It holds nothing to fit to, or a record is broken.
pub fn fit(run: &RunDirectory) -> Result<Fitted> {
    let (JobTimes { times, over }, mut of_platform) = times_and_platform(run)?;
    let _shown = progress::show("fitting", "", || WorkDone::Unknown);
    let mut left = Vec::new();
    let streams = match run.pair_streams().exists() {
        true => {
            let record = record::read::<PairStreams>(&run.pair_streams())?;
            if times.is_empty() {
                of_platform = platform(&record.header, &run.pair_streams())?;
            }
            fit::streams(&record.rows).map_err(|why| left.push(why.to_string())).ok()
        }
        false => None,
    };
    let joint = fit::joint(&times).map_err(|why| left.push(why.to_string())).ok();
    let (mut measured, mut fitted) = match (&streams, &joint) {
        (Some(streams), joint) => {
            (streams.parameters.clone(), joint.as_ref().map(JointFit::parameters))
        }
        (None, Some(joint)) => {
            let parameters = joint.parameters();
            let of_tables = fit::by_model(&times, &parameters)?;
            (parameters, Some(of_tables))
        }
        (None, None) => bail!("{}: nothing to fit to: {}", run.path().display(), left.join("; ")),
    };
    let mut warnings = left;
    warnings.extend(streams.iter().flat_map(|streams| streams.undetermined.clone()));
    warnings.extend(joint.iter().flat_map(|joint| joint.undetermined.clone()));
    let port = streams.as_ref().map(|streams| streams.port.clone()).unwrap_or_default();
    let mut inside = match joint.as_ref().and_then(JointFit::inside_node) {
        Some(inside) => Some(InsideNode { port, ..inside }),
        None if port.is_empty() => None,
        None => {
            let measured = measured.clone();
            Some(InsideNode { measured, fitted: None, fits: Vec::new(), port })
        }
    };
    let node =
        joint.as_ref().filter(|_| streams.is_none()).and_then(|joint| joint.node(&times, over));
    if let Some(NodeFit { memory, between, .. }) = &node {
        // Of the same times, with the memory inside nodes.
        measured = between.clone().unwrap_or(measured);
        let sets = match &mut inside {
            Some(inside) => vec![&mut inside.measured],
            None => [&mut measured].into_iter().chain(&mut fitted).collect(),
        };
        sets.into_iter().for_each(|set| set.memory = Some(memory.clone()));
    }
    // They go with the joint fit's gamma.
    let of_joint = joint.as_ref().filter(|_| streams.is_none());
    let constants = of_joint.map(|joint| joint.constants(&times)).unwrap_or_default();
    let algorithms = (!constants.is_empty())
        .then(|| Algorithms { records: vec![record::name(&run.measurements())], fits: constants });
    let calibration = Calibration {
        source: "colibri fit".into(),
        platform: of_platform,
        measured,
        fitted,
        fits: Vec::new(),
        inside,
        algorithms,
        warnings,
    };
    Ok(Fitted { calibration, joint, streams, node })
}

/// The times of collectives in a run, one for each cell and job.
#[derive(Debug, Default)]
pub struct JobTimes {
    pub times: Vec<JobTime>,
    /// What all of them are; of different ones nothing else is known.
    pub over: OverRanks,
}

/// What a run holds, which may be nothing.
///
/// # Errors
/// A record is broken.
pub fn times(run: &RunDirectory) -> Result<JobTimes> {
    Ok(times_and_platform(run)?.0)
}

fn times_and_platform(run: &RunDirectory) -> Result<(JobTimes, Platform)> {
    let (mut times, mut of_platform) = (Vec::new(), Platform::default());
    let mut are_means = run.measurements().exists();
    if run.measurements().exists() {
        for (batch, job) in measurements::batches(run)?.into_iter().zip(0..) {
            if job == 0 {
                of_platform = platform(&batch.record.header, &run.measurements())?;
            }
            let statistic = batch.record.header.get("statistic");
            are_means &= statistic.is_some_and(|statistic| statistic == MEAN_OVER_RANKS);
            times.extend(of_job(&batch.record.rows, job));
        }
    }
    let over = if are_means { OverRanks::Mean } else { OverRanks::Greatest };
    Ok((JobTimes { times, over }, of_platform))
}

/// The median of each cell.
fn of_job(rows: &[CollectiveCall], job: u32) -> Vec<JobTime> {
    let mut cells: BTreeMap<(Point, &Method), Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.status == ObservationStatus::Ok) {
        cells.entry((row.point, &row.method)).or_default().push(row.seconds);
    }
    let timed = |((point, method), seconds): ((Point, &Method), Vec<f64>)| {
        let seconds = median(&seconds)?;
        Some(JobTime { point, method: method.clone(), seconds, job })
    };
    cells.into_iter().filter_map(timed).collect()
}
