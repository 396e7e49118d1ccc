//! What a run's measurements say: of the models' decisions, of those in other files, of the
//! library's default.

mod decisions;
mod functions;
mod predicted;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use choosing::{halves, samples::Samples};
use models::Model;
use records::{
    Collective, Method, Point,
    agreement::Agreement,
    calibration::Calibration,
    choices::{Choices, Chosen},
    penalty::Penalties,
};
use timing::factors::FACTORS;
use verification::{
    agreement,
    functions::DecisionFunction,
    own_against_native::{OwnAgainstNative, own_against_native},
    penalty,
    prediction::{self, PredictedTime},
};

use crate::{
    drawing,
    headers::platform,
    links,
    measurements::Measurements,
    progress::{self, WorkDone},
    roots::{self, RootPenalties},
    source::CalibrationSource,
};
use site::{run_directory::RunDirectory, usage};

use decisions::{ALGORITHMS, has_parameters};
pub use decisions::{CandidateMethods, decisions};
pub use functions::{ForeignDecisions, other};

/// What was made of a run's measurements.
pub struct JudgedRun {
    pub penalties: Penalties,
    /// Penalties against the network's limit, where it is known.
    pub above_limit: Option<Penalties>,
    pub choices: Vec<Chosen>,
    /// The figures written.
    pub figures: Vec<String>,
    /// What was measured.
    pub samples: Samples,
    /// The samples job by job.
    jobs: Vec<Samples>,
    functions: Vec<DecisionFunction>,
}

/// The models whose decisions are judged.
pub struct JudgedModels<'a> {
    /// The parameters; none where no model can decide.
    pub source: Option<&'a CalibrationSource>,
    pub models: &'a [Model],
    /// What they decide among.
    pub candidates: CandidateMethods,
}

/// Judges a run's measurements: decisions, penalties and figures are written. Without `choices`
/// what is to be exported is chosen by the measurements of each point alone. Without a `source` of
/// parameters no model is judged.
pub fn judge(
    run: &RunDirectory,
    judged: &JudgedModels<'_>,
    measurements: Measurements,
    others: &[ForeignDecisions],
    choices: Option<Vec<Chosen>>,
) -> Result<JudgedRun> {
    let _shown = progress::show("judging", "", || WorkDone::Unknown);
    let Measurements { header, cells, unreached, samples, jobs } = measurements;
    let &JudgedModels { source, models, candidates } = judged;
    let decisions = source.map(|source| decisions(source, &cells, models, candidates));
    let mut decisions = decisions.transpose()?.flatten();
    if let (Some(source), None, CandidateMethods::Loadable) = (source, &decisions, candidates) {
        if !has_parameters(source, models) {
            bail!(
                "no parameters to decide by; give --calibration FILE, or fit them by `colibri fit DIR`"
            );
        }
        say!("note: no model is judged, since none can predict a measured method");
    }
    let timing = header.get("timing").cloned().unwrap_or_default();
    let platform = platform(&header, &run.measurements())?;
    if let Some(decisions) = &mut decisions {
        decisions.platform = platform.clone();
        run.write(&run.decisions(), &*decisions)?;
    }
    let choices = choices.unwrap_or_else(|| match is_summarised(&header) {
        true => halves::choose_least(&samples),
        false => halves::choose(&samples),
    });
    let predicted = decisions.as_ref().map_or(&[][..], |decisions| &decisions.choices);
    let mut functions = DecisionFunction::of_models(predicted, &samples);
    functions.push(DecisionFunction::default(&samples));
    functions.push(DecisionFunction::measured(&choices));
    for other in others {
        functions.extend(other.read(&samples)?);
    }
    let busy_links = links::judge(run)?;
    let mut penalties = penalty::penalties(&samples, &functions, busy_links, platform, &timing);
    penalties.warnings.extend(penalties.platform.busy());
    penalties.warnings.extend(unreached);
    penalties.warnings.extend(uneven(&header));
    penalties.warnings.extend(source.and_then(|source| judged_by_itself(run, source)));
    penalties.warnings.extend(is_summarised(&header).then(|| SUMMARISED.to_owned()));
    let predicted = source.map(|source| predicted::predicted_times(source, &samples, models));
    let predicted = predicted.transpose()?.unwrap_or_default();
    penalties.prediction_errors = prediction::prediction_errors(&predicted);
    run.write(&run.penalty(), &penalties)?;
    let above_limit = source.map(|source| above_limit(source, &penalties)).transpose()?.flatten();
    if let Some(above) = &above_limit {
        run.write(&run.above_limit(), above)?;
    }
    let calibration = source.map(|source| &source.calibration);
    let mut figures = draw(run, calibration, decisions.as_ref(), &penalties, above_limit.as_ref())?;
    figures.extend(draw_predicted(run, &predicted, &samples, &penalties)?);
    Ok(JudgedRun { penalties, above_limit, choices, figures, samples, jobs, functions })
}

/// Decisions' times against what no algorithm gets below, by the network as it was calibrated.
fn above_limit(source: &CalibrationSource, penalties: &Penalties) -> Result<Option<Penalties>> {
    let predictor = source.predictor(Model::Refined)?;
    let limit = |point| predictor.limit(point).map(|limit| limit.seconds);
    Ok(penalty::above_limit(penalties, limit))
}

/// What is to be known of blocks that are not equal.
fn uneven(header: &BTreeMap<String, String>) -> Option<String> {
    let factors = header.get(FACTORS).filter(|factors| !factors.is_empty())?;
    Some(format!(
        "the ranks' blocks were in proportion to {factors}, and sizes are their mean: choices and models' \
         penalties hold for such blocks alone"
    ))
}

/// What is to be known of choices by summaries.
const SUMMARISED: &str = "the record holds summaries of many repetitions by few jobs: measured best is \
                          what is lowest by more than 5 %, without a test of significance";

/// Whether others measured it.
fn is_imported(header: &BTreeMap<String, String>) -> bool {
    header.contains_key("imported")
}

/// Whether the rows are summaries of many repetitions each, as imported ones may be.
fn is_summarised(header: &BTreeMap<String, String>) -> bool {
    is_imported(header) && header.get("statistic").is_some_and(|statistic| statistic != "none")
}

/// Constants that were fitted to what they are judged by.
fn judged_by_itself(run: &RunDirectory, source: &CalibrationSource) -> Option<String> {
    let records = &source.calibration.algorithms.as_ref()?.records;
    let measurements = run.measurements();
    let of_run = records.iter().any(|record| measurements.ends_with(record));
    (of_run && source.is_of_run()).then(|| {
        format!("decisions ending in {ALGORITHMS} rest on constants fitted to these measurements")
    })
}

impl JudgedRun {
    /// What it costs to decide for other roots, where they were measured, as for root 0.
    ///
    /// # Errors
    /// A record can't be read.
    pub fn at_roots(&self, run: &RunDirectory) -> Result<Vec<RootPenalties>> {
        roots::judge(run, &self.functions)
    }

    /// The methods of each point with the number and the median of their times.
    pub fn times(&self) -> BTreeMap<Point, Vec<(&Method, usize, f64)>> {
        let of = |point| {
            let methods = self
                .samples
                .at(point)
                .filter_map(|(method, times)| Some((method, times.count(), times.median()?)));
            (point, methods.collect())
        };
        self.samples.points().map(of).collect()
    }

    /// The best of Colibri's own methods against the best of the library's, wherever both were measured.
    pub fn own_against_native(&self) -> Vec<OwnAgainstNative> {
        own_against_native(&self.jobs)
    }

    /// What no algorithm gets below at each point, in seconds; nothing without a calibration.
    pub fn limits(&self) -> BTreeMap<Point, f64> {
        let above = self.above_limit.iter().flat_map(|above| &above.penalties);
        above.map(|one| (one.point, one.best_seconds)).collect()
    }

    /// Compares two of the decision functions judged, by their names; writes it down.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn agreement(&self, run: &RunDirectory, names: &[String; 2]) -> Result<Agreement> {
        let find = |name: &String| -> Result<&DecisionFunction> {
            match self.functions.iter().find(|function| function.name == *name) {
                Some(function) => Ok(function),
                None => {
                    let names: Vec<&str> =
                        self.functions.iter().map(|function| function.name.as_str()).collect();
                    usage!("no decisions of '{name}' are judged; there are: {}", names.join(", "))
                }
            }
        };
        let pair = [find(&names[0])?, find(&names[1])?];
        let platform = self.penalties.platform.clone();
        let agreement = agreement::agreement(&self.samples, &self.jobs, pair, platform);
        run.write(&run.agreement(), &agreement)?;
        Ok(agreement)
    }
}

fn draw(
    run: &RunDirectory,
    calibration: Option<&Calibration>,
    decisions: Option<&Choices>,
    penalties: &Penalties,
    above_limit: Option<&Penalties>,
) -> Result<Vec<String>> {
    let mut drawn = Vec::new();
    if let Some(calibration) = calibration {
        drawn.push(("parameters".to_owned(), figures::parameters(calibration)?));
    }
    for collective in penalties.message_size.keys().copied() {
        let map = figures::penalty_map(penalties, collective)?;
        drawn.push((format!("penalty-{collective}"), map));
        // No model may know a collective that another one of the run has decisions of.
        let of_it = |decisions: &&Choices| {
            decisions.choices.iter().any(|one| one.point.collective == collective)
        };
        if let Some(decisions) = decisions.filter(of_it) {
            let map = figures::decision_map(decisions, Some(penalties), collective)?;
            drawn.push((format!("decisions-{collective}"), map));
        }
        if let Some(above) = above_limit.filter(|above| tells(above, collective)) {
            drawn.push((format!("limit-{collective}"), figures::limit_map(above, collective)?));
        }
    }
    drawing::save(run, &drawn)
}

/// Predicted against measured times of each collective.
fn draw_predicted(
    run: &RunDirectory,
    times: &[PredictedTime],
    samples: &Samples,
    penalties: &Penalties,
) -> Result<Vec<String>> {
    let mut drawn = Vec::new();
    for collective in penalties.message_size.keys() {
        drawn.extend(predicted::draw(times, samples, *collective)?);
    }
    drawing::save(run, &drawn)
}

fn tells(above: &Penalties, collective: Collective) -> bool {
    above.penalties.iter().any(|one| one.point.collective == collective)
}
