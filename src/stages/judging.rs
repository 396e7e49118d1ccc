//! What a run's measurements say: of the models' decisions, of those in other files, of the
//! library's default.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
};

use anyhow::{Context, Result};
use models::Model;
use records::{
    Collective, FileError, Method, Point,
    agreement::Agreement,
    calibration::Calibration,
    decisions::Decisions,
    document::{self, Document as _},
    penalty::{Distribution, Penalties},
    plan::Cell,
    quantity, reading,
};
use verification::{
    agreement,
    functions::DecisionFunction,
    penalty,
    samples::Samples,
    selection::{self, Choice},
};

use crate::{
    commands::{
        options::{ParameterSet, Segments},
        output::{self, percent},
        {
            decide::{self, Target, default_models},
            links, platform,
        },
    },
    error::usage,
    site::run_directory::RunDirectory,
    stages::{measurements::Measurements, regions, source::Source},
};

/// What was made of a run's measurements.
pub struct Judged {
    pub penalties: Penalties,
    pub choices: Vec<Choice>,
    /// The figures written.
    pub figures: Vec<String>,
    /// What was measured.
    pub samples: Samples,
    /// The same job by job.
    jobs: Vec<Samples>,
    functions: Vec<DecisionFunction>,
}

/// A decision function of another's, with the name that it is given here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    name: String,
    /// A rules file, a decisions.json, or the directory of a tuning run.
    path: PathBuf,
}

/// Reads `NAME=FILE`.
///
/// # Errors
/// Says what would be right.
pub fn other(text: OsString) -> Result<Other, String> {
    let bytes = text.as_bytes();
    let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
        return Err("wanted a name and a file, as in loaded=openmpi.rules".into());
    };
    let path = PathBuf::from(OsStr::from_bytes(&bytes[equals + 1..]));
    let name = String::from_utf8_lossy(&bytes[..equals]);
    let taken = ["default", "measured"].into_iter().chain(Model::ALL.map(Model::name));
    match name.trim() {
        "" => Err("wanted a name before the '=', as in loaded=openmpi.rules".into()),
        name if name.contains(',') => Err(format!("the name '{name}' has a comma in it")),
        name if taken.into_iter().any(|taken| plain(name) == taken) => {
            Err(format!("'{name}' is the name of what is judged anyway; take another"))
        }
        name => Ok(Other { name: name.into(), path }),
    }
}

/// The models whose decisions are judged: the paper's, and the one that knows every collective.
pub fn judged_models() -> Vec<Model> {
    [default_models(), vec![Model::Refined]].concat()
}

/// What is added to a model's name where its parameters were fitted to collectives.
const FITTED: &str = "-fitted";
/// The same where each algorithm has constants of its own.
const ALGORITHMS: &str = "-algorithms";

fn plain(name: &str) -> &str {
    name.strip_suffix(FITTED).or_else(|| name.strip_suffix(ALGORITHMS)).unwrap_or(name)
}

/// Judges a run's measurements: decisions, penalties and figures are written. Without `choices`
/// what is to be exported is chosen by the measurements of each point alone.
pub fn judge(
    run: &RunDirectory,
    source: &Source,
    measurements: Measurements,
    models: &[Model],
    others: &[Other],
    choices: Option<Vec<Choice>>,
) -> Result<Judged> {
    let Measurements { header, cells, unreached, samples, jobs } = measurements;
    let decisions = decisions(source, &cells, models)?;
    run.write(&run.decisions(), &decisions)?;
    let timing = header.get("timing").cloned().unwrap_or_default();
    let platform = platform(&header, &run.measurements())?;
    let choices = choices.unwrap_or_else(|| selection::choose(&samples));
    let mut functions = DecisionFunction::of_decisions(&decisions.decisions, &samples);
    functions.push(DecisionFunction::default(&samples));
    functions.push(DecisionFunction::measured(&choices));
    for other in others {
        functions.extend(other.read(&samples)?);
    }
    let busy_links = links::judge(run)?;
    let mut penalties = penalty::penalties(&samples, &functions, busy_links, platform, &timing);
    penalties.warnings.extend(penalties.platform.busy());
    penalties.warnings.extend(unreached);
    penalties.warnings.extend(judged_by_itself(run, source));
    run.write(&run.penalty(), &penalties)?;
    let figures = draw(run, &source.calibration, &decisions, &penalties)?;
    Ok(Judged { penalties, choices, figures, samples, jobs, functions })
}

/// Constants that were fitted to what they are judged by.
fn judged_by_itself(run: &RunDirectory, source: &Source) -> Option<String> {
    let records = &source.calibration.algorithms.as_ref()?.records;
    let measurements = run.measurements();
    let of_run = records.iter().any(|record| measurements.ends_with(record));
    (of_run && source.is_of_run()).then(|| {
        format!("decisions ending in {ALGORITHMS} rest on constants fitted to these measurements")
    })
}

impl Other {
    fn read(&self, samples: &Samples) -> Result<Vec<DecisionFunction>> {
        let path = match self.path.is_dir() {
            true => self.path.join("openmpi.rules"),
            false => self.path.clone(),
        };
        let text = reading::text(&path).map_err(|e| FileError::io(&path, "read", &e))?;
        if let Some(kind) = document::other_kind(&text) {
            let wanted = format!("Open MPI's rules or {}", Decisions::SCHEMA);
            return Err(FileError::new(&path, format!("{kind}; wanted {wanted}")).into());
        }
        if !text.trim_start().starts_with('{') {
            let rules = libraries::read(&text, &path)?;
            return Ok(vec![DecisionFunction::of_rules(&self.name, rules, samples)]);
        }
        let decisions: Decisions = document::parse(&text, &path)?;
        let mut functions = DecisionFunction::of_decisions(&decisions.decisions, samples);
        if functions.is_empty() {
            usage!("{}: decides at none of the points measured", path.display());
        }
        let several = functions.len() > 1;
        for function in &mut functions {
            function.name = match several {
                true => format!("{}:{}", self.name, function.name),
                false => self.name.clone(),
            };
        }
        Ok(functions)
    }
}

impl Judged {
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

/// The measured parameters and, where the calibration has them, the fitted ones and the constants of
/// algorithms, each with what is added to the models' names.
fn sets(source: &Source) -> impl Iterator<Item = (&'static str, Source)> {
    let sets = [
        ("", ParameterSet::Measured),
        (FITTED, ParameterSet::Fitted),
        (ALGORITHMS, ParameterSet::Algorithms),
    ];
    sets.into_iter().filter_map(|(suffix, set)| Some((suffix, source.with(set)?)))
}

/// Decisions at the points of these cells among the methods that can be loaded, by each model with
/// each set of parameters.
pub fn decisions(source: &Source, cells: &[Cell], models: &[Model]) -> Result<Decisions> {
    let mut all: Option<Decisions> = None;
    for (suffix, source) in sets(source) {
        let models: Vec<Model> =
            models.iter().copied().filter(|model| source.holds(*model)).collect();
        let Some(mut of_set) = decisions_of_set(&source, cells, &models)? else { continue };
        of_set.decisions.iter_mut().for_each(|decision| decision.model += suffix);
        match &mut all {
            None => all = Some(of_set),
            Some(all) => {
                all.decisions.extend(of_set.decisions);
                all.parameters += &format!("; {} where a name ends in {suffix}", of_set.parameters);
            }
        }
    }
    all.context("there are no parameters to decide by")
}

/// None where the set has parameters for none of the models and cells.
fn decisions_of_set(
    source: &Source,
    cells: &[Cell],
    models: &[Model],
) -> Result<Option<Decisions>> {
    let mut collectives: Vec<Collective> = cells.iter().map(|cell| cell.collective).collect();
    collectives.sort_unstable();
    collectives.dedup();
    let distinct = |of: fn(&Cell) -> u64| {
        let mut values: Vec<u64> = cells.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let procs: Vec<u32> =
        distinct(|cell| cell.procs.into()).into_iter().map(|procs| procs as u32).collect();
    let predictors = models.iter().map(|model| source.predictor(*model));
    let predictors = predictors.collect::<Result<Vec<_>>>()?;
    let modelled = |cell: &&Cell| {
        predictors.iter().any(|predictor| predictor.knows(cell.collective, &cell.method))
    };
    let mut segments: Vec<u64> =
        cells.iter().filter(modelled).map(|cell| cell.method.segment_bytes()).collect();
    segments.sort_unstable();
    segments.dedup();
    let is_own = |cell: &Cell| matches!(cell.method, Method::Own { .. });
    let target = if cells.iter().any(is_own) { Target::Any } else { Target::Openmpi };
    let mut all: Option<Decisions> = None;
    for (&model, predictor) in models.iter().zip(&predictors) {
        let timed = |of: Collective| {
            let mut cells = cells.iter().filter(|cell| cell.collective == of);
            cells.any(|cell| predictor.knows(of, &cell.method))
        };
        let is_known = |of: &Collective| match predictor.is_by_method() {
            true => timed(*of),
            false => !model.algorithms(*of).is_empty(),
        };
        let known: Vec<Collective> = collectives.iter().copied().filter(is_known).collect();
        let of_model = decide::decisions(
            source,
            &decide::Wanted {
                collectives: &known,
                procs: &procs,
                sizes: &distinct(|cell| cell.bytes),
                segments: &Segments::These(segments.clone()),
                models: &[model],
                target,
            },
        )?;
        match &mut all {
            None => all = Some(of_model),
            Some(all) => {
                all.decisions.extend(of_model.decisions);
                all.message_size.extend(of_model.message_size);
            }
        }
    }
    Ok(all)
}

fn draw(
    run: &RunDirectory,
    calibration: &Calibration,
    decisions: &Decisions,
    penalties: &Penalties,
) -> Result<Vec<String>> {
    let mut drawn = vec![("parameters".to_owned(), figures::parameters(calibration)?)];
    for collective in penalties.message_size.keys().copied() {
        let map = figures::penalty_map(penalties, collective)?;
        drawn.push((format!("penalty-{collective}"), map));
        let map = figures::decision_map(decisions, Some(penalties), collective)?;
        drawn.push((format!("decisions-{collective}"), map));
    }
    save(run, &drawn)
}

/// Writes figures into the run's directory and names the files.
pub fn save(run: &RunDirectory, drawn: &[(String, figures::Figure)]) -> Result<Vec<String>> {
    let Some(directory) = run.figures()? else { return Ok(Vec::new()) };
    let mut written = Vec::new();
    for (name, figure) in drawn {
        let paths = figures::save(figure, &directory.join(name))?;
        written.extend(paths.iter().map(|path| path.display().to_string()));
    }
    Ok(written)
}

/// The penalties, for people.
pub fn summary(penalties: &Penalties) -> String {
    let incomplete = penalties.summaries.iter().any(|summary| summary.not_measured > 0);
    let rows = penalties.summaries.iter().map(|summary| {
        let mut row = regions::whole(summary);
        if incomplete {
            row.push(summary.not_measured.to_string());
        }
        row
    });
    let mut heading = regions::WHOLE.to_vec();
    if incomplete {
        heading.push("not measured");
    }
    let mut text = format!("Penalty against the measured best ({})\n\n", penalties.best);
    text += &output::aligned(&heading, rows);
    for noise in &penalties.noise {
        let words = |spread: &Distribution| {
            let Distribution { mean, percentile_95, .. } = *spread;
            format!(
                "{} on average, {} at the 95th percentile",
                percent(mean),
                percent(percentile_95)
            )
        };
        text += &format!(
            "noise of {}: choosing on one half of the observations and timing on the other costs \
             {}; a method's times in the two halves differ by {}\n",
            noise.collective,
            words(&noise.choice),
            words(&noise.halves),
        );
    }
    for warning in &penalties.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

/// Where two decision functions differ, for people.
pub fn agreement_text(agreement: &Agreement) -> String {
    const SHOWN: usize = 12;
    let Agreement { first, second, points, differing, not_measured, tolerance, .. } = agreement;
    let mut text = format!(
        "\n{first} and {second} decide alike at {} of {points} points.\n",
        points - differing
    );
    if *differing == 0 {
        return text;
    }
    text += &format!(
        "At the {differing} others the measured times differ by {} at most; by more than {} at {}, \
         significantly at {} (as {})",
        percent(agreement.greatest),
        percent(*tolerance),
        agreement.beyond,
        agreement.significantly_beyond,
        match agreement.jobs {
            0 => "rank-sum tests tell".to_owned(),
            1 => "one job shows nothing of others".to_owned(),
            jobs => format!("{jobs} jobs tell"),
        }
    );
    text += &match not_measured {
        0 => ".\n".to_owned(),
        count => format!("; at {count} not both were measured.\n"),
    };
    let mut differences: Vec<_> = agreement.differences.iter().collect();
    differences.sort_by(|a, b| b.difference.total_cmp(&a.difference));
    let rows = differences.iter().take(SHOWN).map(|one| {
        vec![
            one.collective.to_string(),
            one.procs.to_string(),
            quantity::format_bytes(one.bytes),
            one.first.short(),
            quantity::format_seconds(one.first_seconds),
            one.second.short(),
            quantity::format_seconds(one.second_seconds),
            percent(one.difference),
            format!("{:.1e}", one.p_value),
        ]
    });
    let heading =
        ["collective", "procs", "size", first, "its time", second, "its time", "difference", "p"];
    text += "\n";
    text += &output::aligned(&heading, rows);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_to_judge_has_a_name_of_its_own() {
        assert_eq!(
            other("mine=a=b.rules".into()),
            Ok(Other { name: "mine".into(), path: "a=b.rules".into() })
        );
        for (text, wanted) in [
            ("openmpi.rules", "loaded=openmpi.rules"),
            ("=x", "a name before"),
            ("default=x", "judged anyway"),
            ("loggp-fitted=x", "judged anyway"),
            ("a,b=x", "comma"),
        ] {
            let problem = other(text.into()).unwrap_err();
            assert!(problem.contains(wanted), "{text}: {problem}");
        }
    }
}
