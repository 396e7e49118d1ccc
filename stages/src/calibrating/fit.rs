//! Parameters from a run's observations.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use models::fit::{FitError, GroupSamples};
use records::{
    Collective,
    calibration::{Calibration, InsideNode, LineFit, Parameters},
    group_observation::GroupObservation,
    observation::PointToPoint,
    record,
};

use crate::{algorithms, disturbance, headers};
use site::run_directory::RunDirectory;

/// Fits the parameters to the run's observations and writes them, with constants of algorithms: of the collectives
/// asked for, or of those timed for that; `from_record` also to what other commands have timed.
pub fn fit(
    run: &RunDirectory,
    asked: Option<&[Collective]>,
    from_record: bool,
) -> Result<Calibration> {
    let path = run.observations();
    let platform = headers::platform(&record::read::<PointToPoint>(&path)?.header, &path)?;
    let groups = groups(&run.groups())?;
    let level = LevelFit::fit(&path, groups.as_ref(), None)?;
    let mut warnings: Vec<String> = platform.busy().into_iter().chain(level.warnings).collect();
    let inside = inside(run, groups.as_ref(), &level.measured, &mut warnings)?;
    let (algorithms, problems) = algorithms::fit(run, asked, from_record, &level.measured)?;
    warnings.extend(problems);
    if let Some(taken) =
        disturbance::of_calibration(run)?.and_then(|disturbance| disturbance.warning())
    {
        warnings.insert(0, taken);
    }
    let calibration = Calibration {
        source: record::name(&path),
        platform,
        measured: level.measured,
        fitted: level.fitted,
        fits: level.fits,
        inside,
        algorithms,
        warnings,
    };
    run.write(&run.calibration(), &calibration)?;
    Ok(calibration)
}

/// What holds inside a node, if it was measured; the port's gaps are among the groups between nodes.
fn inside(
    run: &RunDirectory,
    between: Option<&GroupSamples>,
    platform: &Parameters,
    warnings: &mut Vec<String>,
) -> Result<Option<InsideNode>> {
    let path = run.inside_observations();
    if !is_begun(&path) {
        return Ok(None);
    }
    let groups = groups(&run.inside_groups())?;
    let level = match LevelFit::fit(&path, groups.as_ref(), Some(platform)) {
        Ok(level) => level,
        Err(problem) if problem.is::<FitError>() => {
            warnings.push(format!("nothing is known inside a node: {}", problem.root_cause()));
            return Ok(None);
        }
        Err(problem) => return Err(problem),
    };
    warnings.extend(level.warnings.iter().map(|warning| format!("inside a node: {warning}")));
    let port = between.map(GroupSamples::port).unwrap_or_default();
    Ok(Some(InsideNode { measured: level.measured, fitted: level.fitted, fits: level.fits, port }))
}

/// The parameters of one level.
struct LevelFit {
    measured: Parameters,
    fitted: Option<Parameters>,
    fits: Vec<LineFit>,
    warnings: Vec<String>,
}

impl LevelFit {
    /// From the record of its pair and what its groups did; combining as in `platform`, if given.
    fn fit(
        path: &Path,
        groups: Option<&GroupSamples>,
        platform: Option<&Parameters>,
    ) -> Result<Self> {
        let record = record::read::<PointToPoint>(path)?;
        let of_pair = models::fit::fit(&record.rows).with_context(|| {
            format!(
                "{}: no parameters can be fitted to it; if the budget was too short, continue with \
                 --resume and a longer --budget",
                path.display()
            )
        })?;
        let (mut measured, mut warnings) = (of_pair.parameters, of_pair.warnings);
        if let Some(platform) = platform {
            measured.gamma_seconds_per_byte = platform.gamma_seconds_per_byte;
            measured.gamma = platform.gamma.clone();
        }
        let Some(groups) = groups else {
            return Ok(LevelFit { measured, fitted: None, fits: Vec::new(), warnings });
        };
        groups.complete(&mut measured);
        let Some(fit) = groups.fit(&measured) else {
            return Ok(LevelFit { measured, fitted: None, fits: Vec::new(), warnings });
        };
        warnings.extend(fit.warnings);
        let mut fitted = fit.parameters;
        let times = groups.shared_memory_times();
        measured.memory =
            times.and_then(|times| times.with_messages(&fitted.plogp, &measured.plogp));
        fitted.memory = measured.memory.clone();
        Ok(LevelFit { measured, fitted: Some(fitted), fits: fit.fits, warnings })
    }
}

/// A run of which nothing came yet leaves its record empty.
fn is_begun(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|record| record.len() > 0)
}

/// Observations of more than two ranks and of combining, if there are any.
fn groups(path: &Path) -> Result<Option<GroupSamples>> {
    if !is_begun(path) {
        return Ok(None);
    }
    let record = record::read::<GroupObservation>(path)?;
    GroupSamples::new(&record.rows).map(Some).with_context(|| path.display().to_string())
}
