//! From choices to the files that an MPI library loads. What is loaded was chosen before: where a
//! target cannot be told a choice, what came next is read from the choices.

mod evidence;
mod files;
mod predicted;

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use models::Model;
use records::{
    Layout, Method, Point,
    calibration::Calibration,
    choices::{Choices, Chosen, Confirmed},
    export::{ExportReport, InexpressibleDecision},
};
use verification::{
    rules::{Rules, rules},
    selection::TimedChoice,
};

use crate::{
    error::usage,
    stages::{
        export_formats::{Export, ExportFormat, Exporter, LoadTarget, Possible, fit, told_choices},
        source::CalibrationSource,
    },
};
use files::write_anew;
use predicted::{Predicted, crossing};

pub use files::write_files;

/// Choices as a target can be told them.
pub struct FittedChoices {
    rules: Vec<Rules>,
    choices: Vec<TimedChoice>,
    /// Where they come from; one line each.
    origin: Vec<String>,
    /// The same and what each rests on: what stands in the file.
    comments: Vec<String>,
    basis: &'static str,
    unexpressed: Vec<InexpressibleDecision>,
}

/// What a document of choices holds for a format, as it can be told. `model` names whose predictions
/// are wanted, `source` the parameters by which a threshold between two sizes is set; without, it is
/// their geometric mean. `told` are the layouts that jobs use, for a target that knows the number of
/// processes alone.
///
/// # Errors
/// There is nothing that the target can be told, or several models have chosen and none is named.
pub fn fitted(
    document: &Choices,
    format: ExportFormat,
    exporter: &dyn Exporter,
    model: Option<Model>,
    (source, told): (Option<&CalibrationSource>, &[Layout]),
) -> Result<FittedChoices> {
    if document.prediction.is_some() {
        return decided(document, exporter, model, (source, told));
    }
    let confirmed = confirmed(document, format);
    let basis = if confirmed.is_some() { "confirmed" } else { "measured" };
    let chosen: Vec<&Chosen> = confirmed.unwrap_or_else(|| document.choices.iter().collect());
    if basis == "measured" {
        check_told(&chosen, exporter)?;
    }
    let origin = measured_origin(source, document);
    let possible = ListedAlternatives::new(&chosen, exporter);
    FittedChoices::new(exporter, &chosen, &possible, (source, told), (origin, basis))
}

/// What a tuning confirmed for the way in which a format is loaded; nothing where it confirmed none.
pub fn confirmed(document: &Choices, format: ExportFormat) -> Option<Vec<&Chosen>> {
    match format.way() {
        Some(way) => document
            .confirmed(way)
            .filter(|all| all.iter().all(|chosen| is_of(format, &chosen.method)))
            .map(|all| all.iter().collect()),
        None if format.takes_every_method() => document.confirmed_in_any_way(),
        None => None,
    }
}

/// Whether a method is one that a library's files could name: what was confirmed with another library
/// says nothing of this one.
fn is_of(format: ExportFormat, method: &Method) -> bool {
    match (method, format.library()) {
        (Method::Native(native), Some(library)) => native.library == library,
        _ => true,
    }
}

/// What was measured holds something that the target can be told.
fn check_told(chosen: &[&Chosen], exporter: &dyn Exporter) -> Result<()> {
    let is_told = |point, method: &Method| {
        *method != Method::Default && exporter.express(point, method).is_ok()
    };
    let told = chosen.iter().any(|chosen| {
        let mut others = chosen.alternatives.iter();
        is_told(chosen.point(), &chosen.method)
            || others.any(|other| is_told(chosen.point(), &other.method))
    });
    let is_old = chosen.iter().all(|chosen| chosen.alternatives.is_empty());
    let is_replaced = chosen.iter().any(|chosen| chosen.method != Method::Default);
    match told {
        true => Ok(()),
        false if is_old && !is_replaced => Ok(()),
        false => usage!(
            "{} can run none of the measured methods{}; to export what a model decides, name the \
             file that `colibri decide --output` writes in place of the run",
            exporter.target(),
            if is_old { OLD } else { "" }
        ),
    }
}

/// Choices without alternatives, of which there would be some.
const OLD: &str = " (choices that an older Colibri wrote do not list the next best methods: 'colibri \
                   verify DIR --from-record' writes them anew)";

/// What a model decided, each algorithm by its name in the target.
fn decided(
    document: &Choices,
    exporter: &dyn Exporter,
    model: Option<Model>,
    (source, told): (Option<&CalibrationSource>, &[Layout]),
) -> Result<FittedChoices> {
    let models = document.models();
    let name = match (model, &models[..]) {
        (Some(model), _) if models.contains(&model.name()) => model.name(),
        (None, [only]) => only,
        (Some(model), _) => {
            usage!("no decisions of the model {model} (there are those of: {})", models.join(", "))
        }
        (None, _) => usage!(
            "name the one model whose decisions to export, as in --model plogp (there are those \
             of: {})",
            models.join(", ")
        ),
    };
    let named = |chosen: &Chosen| Chosen { method: named(chosen, exporter), ..chosen.clone() };
    let chosen: Vec<Chosen> = document.of_model(Some(name)).map(named).collect();
    let chosen: Vec<&Chosen> = chosen.iter().collect();
    let mut origin =
        vec![platform_of(source, document), format!("decided by the model {name}, not measured")];
    let beyond = chosen.iter().filter(|chosen| chosen.extrapolated).count();
    if beyond > 0 {
        let note = format!(
            "{beyond} of {} decisions are extrapolated beyond the calibrated range",
            chosen.len()
        );
        say!("{note}");
        origin.push(note);
    }
    let wanted: Vec<TimedChoice> = chosen.iter().copied().map(TimedChoice::from).collect();
    let predictor = match (source, name.parse::<Model>()) {
        (Some(source), Ok(model)) => Some(source.predictor(model)?),
        _ => None,
    };
    let of = (origin, "predicted");
    match &predictor {
        Some(predictor) => {
            let possible = Predicted { predictor, exporter, wanted: &wanted };
            FittedChoices::new(exporter, &chosen, &possible, (source, told), of)
        }
        None => {
            let possible = ListedAlternatives::new(&chosen, exporter);
            FittedChoices::new(exporter, &chosen, &possible, (source, told), of)
        }
    }
}

/// A method that a model decided for by its name, as the target spells it.
fn named(chosen: &Chosen, exporter: &dyn Exporter) -> Method {
    let method = &chosen.method;
    match method {
        _ if exporter.express(chosen.point(), method).is_ok() => method.clone(),
        Method::Native(native) => exporter.named(native.algorithm, native.segment_bytes),
        Method::Own { algorithm, segment_bytes } => exporter.named(*algorithm, *segment_bytes),
        other => other.clone(),
    }
}

/// What the calibration was measured on; a preset names no hosts.
fn platform_of(source: Option<&CalibrationSource>, document: &Choices) -> String {
    match source.map(|source| &source.calibration) {
        Some(Calibration { platform, source, .. }) if platform.hosts.is_empty() => source.clone(),
        Some(Calibration { platform, .. }) => platform.summary(),
        None => match &document.prediction {
            Some(prediction) if document.platform.hosts.is_empty() => {
                prediction.calibration.clone()
            }
            _ => document.platform.summary(),
        },
    }
}

fn measured_origin(source: Option<&CalibrationSource>, document: &Choices) -> Vec<String> {
    vec![platform_of(source, document), MEASURED.into()]
}

const MEASURED: &str = "measured best, the default where nothing beats it";

/// What came next at each point, as the choices list it.
struct ListedAlternatives<'a> {
    chosen: BTreeMap<Point, &'a Chosen>,
    exporter: &'a dyn Exporter,
}

impl<'a> ListedAlternatives<'a> {
    fn new(chosen: &[&'a Chosen], exporter: &'a dyn Exporter) -> Self {
        let chosen = chosen.iter().map(|chosen| (chosen.point(), *chosen)).collect();
        ListedAlternatives { chosen, exporter }
    }
}

impl Possible for ListedAlternatives<'_> {
    fn best(&self, point: Point) -> (Method, Option<f64>) {
        let Some(chosen) = self.chosen.get(&point) else { return (Method::Default, None) };
        let is_told = |method: &Method| self.exporter.express(point, method).is_ok();
        match chosen.alternatives.iter().find(|other| is_told(&other.method)) {
            Some(other) if other.beats_default => (other.method.clone(), Some(other.seconds)),
            _ => (Method::Default, chosen.default_seconds),
        }
    }

    fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        let chosen = self.chosen.get(&point)?;
        let other = chosen.alternatives.iter().find(|other| other.method == *method);
        match method {
            Method::Default => chosen.default_seconds,
            _ if chosen.method == *method => Some(chosen.seconds),
            _ => Some(other?.seconds),
        }
    }
}

impl FittedChoices {
    fn new(
        exporter: &dyn Exporter,
        chosen: &[&Chosen],
        possible: &dyn Possible,
        (source, told): (Option<&CalibrationSource>, &[Layout]),
        (origin, basis): (Vec<String>, &'static str),
    ) -> Result<Self> {
        let wanted: Vec<TimedChoice> = chosen.iter().copied().map(TimedChoice::from).collect();
        let (choices, unexpressed) = fit(exporter, &wanted, possible, told);
        let rules = fit_rules(source, &told_choices(exporter, &choices, told))?;
        let comments = [origin.clone(), evidence::lines(chosen, &choices)].concat();
        Ok(FittedChoices { rules, choices, origin, comments, basis, unexpressed })
    }

    /// What an exporter is handed.
    pub fn export(&self) -> Export<'_> {
        Export { rules: &self.rules, origin: &self.comments }
    }

    /// Whether it names any method, and does not leave every call to the library.
    pub fn replaces_something(&self) -> bool {
        self.choices.iter().any(|choice| choice.method != Method::Default)
    }

    /// What goes with the exported files; their names are filled in by whoever writes them.
    pub fn report(&self, exporter: &dyn Exporter) -> ExportReport {
        let collectives = self.choices.iter().map(|choice| choice.point.collective);
        let in_target = collectives.clone().filter_map(|collective| {
            Some((collective, exporter.message_size(collective)?.to_owned()))
        });
        ExportReport {
            target: exporter.target(),
            files: Vec::new(),
            basis: self.basis.into(),
            origin: self.origin.clone(),
            message_size: collectives
                .clone()
                .map(|collective| (collective, collective.message_size().to_owned()))
                .collect(),
            message_size_in_target: in_target.collect(),
            decisions: self.choices.len() as u64,
            unexpressed: self.unexpressed.clone(),
        }
    }
}

/// Writes choices that are to be tried, in place of what was there; no directory where nothing
/// replaces the default. Gives the environment variables by which a job of so many ranks loads them.
///
/// # Errors
/// As [`ExportFormat::exporter`]; the system refuses.
pub fn write(
    exporter: &dyn Exporter,
    source: &CalibrationSource,
    choices: &[TimedChoice],
    path: &Path,
    ranks: u32,
) -> Result<Vec<(String, String)>> {
    let rules = fit_rules(Some(source), &told_choices(exporter, choices, &[]))?;
    let origin = [source.calibration.platform.summary(), MEASURED.into()];
    let export = Export { rules: &rules, origin: &origin };
    write_anew(exporter, &export, path)?;
    Ok(exporter.variables(&path.display().to_string(), &export, ranks)?)
}

/// Writes what was confirmed for a way of loading, in place of what was there: what
/// `colibri export` writes of it.
///
/// # Errors
/// As [`write()`].
pub fn write_confirmed(
    exporter: &dyn Exporter,
    document: &Choices,
    confirmed: &Confirmed,
    source: &CalibrationSource,
    path: &Path,
) -> Result<()> {
    let chosen: Vec<&Chosen> = confirmed.choices.iter().collect();
    let possible = ListedAlternatives::new(&chosen, exporter);
    let of = (measured_origin(Some(source), document), "confirmed");
    let fitted = FittedChoices::new(exporter, &chosen, &possible, (Some(source), &[]), of)?;
    write_anew(exporter, &fitted.export(), path)
}

/// How what was written for a target is loaded.
///
/// # Errors
/// As [`LoadTarget::exporter`].
pub fn how_to_load(target: &LoadTarget, file: &str) -> Result<String> {
    let export = Export { rules: &[], origin: &[] };
    Ok(target.exporter(true)?.how_to_load(file, &export))
}

/// The environment variables that load what was written for a target, where these are the same for every
/// job.
///
/// # Errors
/// As [`LoadTarget::exporter`].
pub fn environment(target: &LoadTarget, file: &str) -> Result<Option<Vec<(String, String)>>> {
    let export = Export { rules: &[], origin: &[] };
    Ok(target.exporter(true)?.environment(file, &export))
}

fn fit_rules(source: Option<&CalibrationSource>, choices: &[TimedChoice]) -> Result<Vec<Rules>> {
    // The model with the most to say of a size between two measured ones.
    let predictor = source.map(|source| source.predictor(Model::PLogP)).transpose()?;
    Ok(rules(choices, &|collective, layout, below, above, low, high| {
        crossing(predictor.as_ref()?, (collective, layout), [below, above], [low, high])
    }))
}
