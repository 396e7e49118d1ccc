//! Parameters from a run's observations.

use std::{fs, path::Path};

use anyhow::{Context, Result, anyhow};
use models::fit::GroupSamples;
use records::{
    Collective, calibration::Calibration, group_observation::GroupObservation,
    observation::PointToPoint, record,
};

use crate::{
    site::run_directory::RunDirectory,
    stages::{algorithms, disturbance, headers},
};

/// Fits the parameters to the run's observations and writes them.
pub fn fit(run: &RunDirectory) -> Result<Calibration> {
    fit_with(run, None, false)
}

/// The same with constants of algorithms: of the collectives asked for, or of those timed for that;
/// `from_record` also to what other commands have timed.
pub fn fit_with(
    run: &RunDirectory,
    asked: Option<&[Collective]>,
    from_record: bool,
) -> Result<Calibration> {
    let path = run.observations();
    let record = record::read::<PointToPoint>(&path)?;
    let platform = headers::platform(&record.header, &path)?;
    let fitted = models::fit::fit(&record.rows).with_context(|| {
        format!(
            "{}: no parameters can be fitted to it; if the budget was too short, continue with \
             --resume and a longer --budget",
            path.display()
        )
    })?;
    let mut warnings: Vec<String> = platform.busy().into_iter().chain(fitted.warnings).collect();
    let mut measured = fitted.parameters;
    let mut of_collectives = None;
    if let Some(groups) = groups(run)? {
        groups.complete(&mut measured);
        of_collectives = groups.fit(&measured);
    }
    let (fitted, fits) = match of_collectives {
        Some(fit) => {
            warnings.extend(fit.warnings);
            (Some(fit.parameters), fit.fits)
        }
        None => (None, Vec::new()),
    };
    let (algorithms, problems) = algorithms::fit(run, asked, from_record, &measured)?;
    warnings.extend(problems);
    if let Some(taken) = disturbance::of_calibration(run)?.and_then(|told| told.warning()) {
        warnings.insert(0, taken);
    }
    let calibration = Calibration {
        source: source(&path),
        platform,
        measured,
        fitted,
        fits,
        algorithms,
        warnings,
    };
    run.write(&run.calibration(), &calibration)?;
    Ok(calibration)
}

/// The run's observations of more than two ranks and of combining, if there are any.
fn groups(run: &RunDirectory) -> Result<Option<GroupSamples>> {
    let path = run.groups();
    // A run of which nothing came yet leaves its record empty.
    if !fs::metadata(&path).is_ok_and(|record| record.len() > 0) {
        return Ok(None);
    }
    let record = record::read::<GroupObservation>(&path)?;
    let groups = GroupSamples::new(&record.rows)
        .map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
    Ok(Some(groups))
}

/// The record's name: the directory may be moved as a whole.
fn source(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
