//! From choices to the files that an MPI library loads. What is loaded was confirmed before, or is asked for though it
//! was not: where a target cannot express a choice, what came next is read from the choices.

mod evidence;
mod files;
mod predicted;
mod rules;

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use libraries::{Comment, rules::Rules};
use models::{Model, Predictor};
use records::{
    Layout, Method, Point,
    calibration::Calibration,
    choices::{self, Choices, Chosen, ConfirmedWay, Evidence, TimedMethod},
    confirmed::{Advice, LoadVerdict, LoadedCounts},
    export::ExportReport,
};

use crate::{
    chosen::DISTURBED,
    export_formats::{
        CarefulExporter, Export, ExportFormat, Exporter, HowToLoad, LoadTarget, Possible,
        exported_choices, express_choices,
    },
    source::CalibrationSource,
};
use files::write_anew;
use predicted::Predicted;
use site::usage;

pub use files::write_files;
pub use rules::rules;

/// Choices as a target can express them.
pub struct ExpressedChoices {
    rules: Vec<Rules>,
    choices: Vec<Chosen>,
    /// The verdict, where they come from, and what each rests on: what stands in the file.
    comments: Vec<Comment>,
    report: ExportReport,
}

/// Where choices come from.
struct Origin {
    lines: Vec<String>,
    basis: &'static str,
    /// On what of them was confirmed, where anything was tried.
    verdict: Option<LoadVerdict>,
}

/// What a document of choices holds for a format, as it can express them. `model` names whose predictions
/// are wanted, `source` the parameters by which a threshold between two sizes is set; without, it is
/// their geometric mean. `used` are the layouts that jobs use, for a target that knows the number of
/// processes alone. `unconfirmed` asks for what was not confirmed, too.
///
/// # Errors
/// There is nothing that the target can express, nothing was confirmed and nothing else is asked for, or several
/// models have chosen and none is named.
pub fn expressed(
    document: &Choices,
    format: ExportFormat,
    exporter: &CarefulExporter,
    model: Option<Model>,
    source: Option<&CalibrationSource>,
    used: &[Layout],
    unconfirmed: bool,
) -> Result<ExpressedChoices> {
    if document.prediction.is_some() {
        check_asked(unconfirmed, "holds predictions of models alone")?;
        return express_predicted(document, exporter, model, source, used);
    }
    let confirmed = confirmed_for(document, format);
    let lines = |about: &str| vec![platform_of(source, document), about.into()];
    let Some(chosen) = confirmed else {
        let what = match document.confirmed.is_empty() {
            true => "holds measurements with methods forced, and nothing that was confirmed",
            false => "was confirmed as another library or file loads it, not for this format",
        };
        check_asked(unconfirmed, what)?;
        let chosen = loaded(&document.choices, unconfirmed);
        check_expressible(&chosen, exporter)?;
        let possible = ListedAlternatives::new(&chosen, exporter);
        let origin = Origin { lines: lines(MEASURED), basis: "measured", verdict: None };
        return ExpressedChoices::new(exporter, &chosen, &possible, source, used, origin);
    };
    let verdict = match format.way() {
        Some(way) => document.confirmed_way(way).map(|confirmed| &confirmed.verdict),
        None => document.verdict_in_any_way(),
    };
    let chosen: Vec<Chosen> = chosen.into_iter().cloned().collect();
    let chosen = loaded(&chosen, unconfirmed);
    let possible = ListedAlternatives::new(&chosen, exporter);
    let origin = Origin { lines: lines(CONFIRMED), basis: "confirmed", verdict: verdict.cloned() };
    ExpressedChoices::new(exporter, &chosen, &possible, source, used, origin)
}

/// What is not confirmed is exported only where it is asked for.
fn check_asked(unconfirmed: bool, what: &str) -> Result<()> {
    if !unconfirmed {
        usage!(
            "nothing to load: this {what}; 'colibri tune' confirms with what is loaded. --unconfirmed \
             exports it all the same, and marks it so"
        );
    }
    Ok(())
}

/// At how many points what is written of a way replaces the default, and whether to load it.
pub fn counts_and_verdict(
    confirmed: &ConfirmedWay,
    unconfirmed: bool,
) -> (LoadedCounts, LoadVerdict) {
    let loaded = loaded(&confirmed.choices, unconfirmed);
    let counts = choices::counts(&loaded);
    let verdict = match counts.unconfirmed {
        0 => confirmed.verdict.clone(),
        _ => LoadVerdict::with_unconfirmed(counts, Some(&confirmed.verdict)),
    };
    (counts, verdict)
}

/// What is loaded of some choices. What was timed only while others disturbed it never is.
fn loaded(choices: &[Chosen], unconfirmed: bool) -> Vec<Chosen> {
    let mut disturbed = 0;
    let of_one = |chosen: &Chosen| {
        let is_confirmed = chosen.confirmed.is_some();
        let left = |because: &str| Chosen {
            method: Method::Default,
            seconds: chosen.without_seconds(),
            default_because: Some(because.into()),
            ..chosen.clone()
        };
        match (&chosen.method, &chosen.unconfirmed) {
            (Method::Default, Some(other)) if unconfirmed => {
                let TimedMethod { method, seconds, rests_on, .. } = other.clone();
                let rests_on = rests_on.unwrap_or(chosen.rests_on);
                let default_because = None;
                Chosen { method, seconds, rests_on, default_because, ..chosen.clone() }
            }
            (Method::Default, _) => chosen.clone(),
            _ if is_confirmed => chosen.clone(),
            _ if chosen.disturbed => {
                disturbed += 1;
                left(DISTURBED)
            }
            _ if unconfirmed => {
                let rests_on = chosen.rests_on.min(Evidence::Measured);
                Chosen { rests_on, ..chosen.clone() }
            }
            _ => left("not confirmed"),
        }
    };
    let loaded = choices.iter().map(of_one).collect();
    if disturbed > 0 {
        say!("note: {} left to the default: {DISTURBED}", records::counted(disturbed, "point"));
    }
    loaded
}

/// What a tuning confirmed for the way in which a format is loaded; nothing where it confirmed none.
pub fn confirmed_for(document: &Choices, format: ExportFormat) -> Option<Vec<&Chosen>> {
    match format.way() {
        Some(way) => document
            .confirmed_way(way)
            .filter(|of_way| of_way.choices.iter().all(|chosen| is_of(format, chosen)))
            .map(|of_way| of_way.choices.iter().collect()),
        None if format.takes_every_method() => document.confirmed_in_any_way(),
        None => None,
    }
}

/// Whether a method is one that a library's files could name: what was confirmed with another library
/// says nothing of this one.
fn is_of(format: ExportFormat, chosen: &Chosen) -> bool {
    let others = chosen.unconfirmed.iter().map(|other| &other.method);
    std::iter::once(&chosen.method).chain(others).all(|method| match (method, format.library()) {
        (Method::Native(native), Some(library)) => native.library == library,
        _ => true,
    })
}

/// What was measured holds something that the target can express.
fn check_expressible(chosen: &[Chosen], exporter: &CarefulExporter) -> Result<()> {
    let is_expressible = |point, method: &Method| {
        *method != Method::Default && exporter.allows(point, method).is_ok()
    };
    let is_any = chosen.iter().any(|chosen| {
        let mut others = chosen.alternatives.iter();
        is_expressible(chosen.point, &chosen.method)
            || others.any(|other| is_expressible(chosen.point, &other.method))
    });
    let is_alone =
        |chosen: &Chosen| chosen.method == Method::Default && chosen.alternatives.is_empty();
    if !is_any && !chosen.iter().all(is_alone) {
        usage!(
            "{} can run none of the measured methods; to export what a model decides, name the \
             file that `colibri decide --output` writes in place of the run",
            exporter.target()
        );
    }
    Ok(())
}

/// What a model decided, each algorithm by its name in the target.
fn express_predicted(
    document: &Choices,
    exporter: &CarefulExporter,
    model: Option<Model>,
    source: Option<&CalibrationSource>,
    used: &[Layout],
) -> Result<ExpressedChoices> {
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
    let mut lines =
        vec![platform_of(source, document), format!("decided by the model {name}, not measured")];
    let beyond = chosen.iter().filter(|chosen| chosen.extrapolated).count();
    if beyond > 0 {
        let note = format!(
            "{beyond} of {} decisions are extrapolated beyond the calibrated range",
            chosen.len()
        );
        say!("{note}");
        lines.push(note);
    }
    let predictor = match (source, name.parse::<Model>()) {
        (Some(source), Ok(model)) => Some(source.predictor(model)?),
        _ => None,
    };
    let of = Origin { lines, basis: "predicted", verdict: None };
    match &predictor {
        Some(predictor) => {
            let possible = Predicted { predictor, exporter, wanted: &chosen };
            ExpressedChoices::new(exporter, &chosen, &possible, source, used, of)
        }
        None => {
            let possible = ListedAlternatives::new(&chosen, exporter);
            ExpressedChoices::new(exporter, &chosen, &possible, source, used, of)
        }
    }
}

/// A method that a model decided for by its name, as the target spells it.
fn named(chosen: &Chosen, exporter: &CarefulExporter) -> Method {
    let method = &chosen.method;
    match method {
        _ if exporter.allows(chosen.point, method).is_ok() => method.clone(),
        Method::Native(native) => exporter.named(native.algorithm, native.segment_bytes),
        Method::Own(own) if own.is_plain() => exporter.named(own.algorithm, own.segment_bytes),
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

const MEASURED: &str = "measured best with methods forced, the default where nothing beats it";
/// Of what was confirmed.
const CONFIRMED: &str =
    "chosen by measuring, then confirmed by jobs that loaded it; the default elsewhere";
/// Of what is loaded by jobs that are to confirm it.
const TRIED: &str =
    "Verdict: Do not load it: it is tried by the jobs of a tuning, and not confirmed";

/// What came next at each point, as the choices list it.
struct ListedAlternatives<'a> {
    chosen: BTreeMap<Point, &'a Chosen>,
    exporter: &'a CarefulExporter,
}

impl<'a> ListedAlternatives<'a> {
    fn new(chosen: &'a [Chosen], exporter: &'a CarefulExporter) -> Self {
        let chosen = chosen.iter().map(|chosen| (chosen.point, chosen)).collect();
        ListedAlternatives { chosen, exporter }
    }
}

impl Possible for ListedAlternatives<'_> {
    fn best(&self, point: Point) -> (Method, Option<f64>) {
        let Some(chosen) = self.chosen.get(&point) else { return (Method::Default, None) };
        let is_expressible = |method: &Method| self.exporter.allows(point, method).is_ok();
        match chosen.alternatives.iter().find(|other| is_expressible(&other.method)) {
            Some(other) if other.beats_default == Some(true) => {
                (other.method.clone(), Some(other.seconds))
            }
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

impl ExpressedChoices {
    fn new(
        exporter: &CarefulExporter,
        chosen: &[Chosen],
        possible: &dyn Possible,
        source: Option<&CalibrationSource>,
        used: &[Layout],
        Origin { lines, basis, verdict }: Origin,
    ) -> Result<Self> {
        let (choices, unexpressed) = express_choices(exporter, chosen, possible, used);
        let predictor = source.map(threshold_predictor).transpose()?;
        let rules = rules(&exported_choices(&**exporter, &choices, used), predictor.as_ref());
        let counts = choices::counts(&choices);
        let verdict = verdict_of(&**exporter, counts, verdict);
        let first = [format!("Verdict: {verdict}")];
        let texts = first.iter().chain(&lines).cloned().chain([counts.to_string()]);
        // A file that was read may hold anything, but a comment is a line.
        let line = |text: String| Comment::from(text.replace(char::is_control, " "));
        let mut comments: Vec<Comment> = texts.map(line).collect();
        comments.extend(evidence::lines(&choices));
        let collectives = || choices.iter().map(|choice| choice.point.collective);
        let in_target = collectives().filter_map(|collective| {
            Some((collective, exporter.message_size(collective)?.to_owned()))
        });
        let report = ExportReport {
            target: exporter.target(),
            files: Vec::new(),
            verdict,
            counts,
            basis: basis.into(),
            origin: lines,
            message_size: collectives()
                .map(|collective| (collective, collective.message_size().to_owned()))
                .collect(),
            message_size_in_target: in_target.collect(),
            decisions: choices.len() as u64,
            unexpressed,
        };
        Ok(ExpressedChoices { rules, choices, comments, report })
    }

    /// Whether to load it, and why.
    pub fn verdict(&self) -> &LoadVerdict {
        &self.report.verdict
    }

    /// What an exporter is handed.
    pub fn export(&self) -> Export<'_> {
        Export { rules: &self.rules, comments: &self.comments }
    }

    /// Whether it names any method, and does not leave every call to the library.
    pub fn replaces_something(&self) -> bool {
        self.choices.iter().any(|choice| choice.method != Method::Default)
    }

    /// What goes with the exported files; their names are filled in by whoever writes them.
    pub fn report(&self) -> ExportReport {
        self.report.clone()
    }
}

/// The verdict on what is written; `confirmed` is that on what was confirmed.
fn verdict_of(
    exporter: &dyn Exporter,
    counts: LoadedCounts,
    confirmed: Option<LoadVerdict>,
) -> LoadVerdict {
    match confirmed {
        confirmed if counts.unconfirmed > 0 => {
            LoadVerdict::with_unconfirmed(counts, confirmed.as_ref())
        }
        Some(verdict) if verdict.advice == Advice::Load => {
            let verdict_here = LoadVerdict::load(counts, "");
            match counts.confirmed {
                0 => {
                    let target = exporter.target();
                    let reason = format!("{target} can express nothing of what was confirmed.");
                    LoadVerdict { advice: Advice::Nothing, reason }
                }
                // It has the same number, and tells of the rest.
                _ if verdict.reason.starts_with(&verdict_here.reason) => verdict,
                _ => verdict_here,
            }
        }
        Some(verdict) => verdict,
        None => {
            let reason = "Nothing in it is faster than the default.".into();
            LoadVerdict { advice: Advice::Nothing, reason }
        }
    }
}

/// Writes choices that are to be tried, in place of what was there; no directory where nothing
/// replaces the default. Gives the environment variables by which a job of so many ranks loads them.
///
/// # Errors
/// The choices cannot be expressed; the system refuses.
pub fn write(
    exporter: &dyn Exporter,
    source: &CalibrationSource,
    choices: &[Chosen],
    path: &Path,
    ranks: u32,
) -> Result<Vec<(String, String)>> {
    let predictor = threshold_predictor(source)?;
    let rules = rules(&exported_choices(exporter, choices, &[]), Some(&predictor));
    let about = [source.calibration.platform.summary(), TRIED.into()];
    let origin = about.map(Comment::from);
    let export = Export { rules: &rules, comments: &origin };
    write_anew(exporter, &export, path)?;
    Ok(exporter.variables(&path.display().to_string(), &export, ranks)?)
}

/// Writes what was confirmed for a way of loading, in place of what was there: what
/// `colibri export` writes of it. `unconfirmed` asks for what was not confirmed, too.
///
/// # Errors
/// As [`write()`].
pub fn write_confirmed(
    exporter: &CarefulExporter,
    document: &Choices,
    confirmed: &[Chosen],
    verdict: &LoadVerdict,
    source: &CalibrationSource,
    path: &Path,
    unconfirmed: bool,
) -> Result<()> {
    let chosen = loaded(confirmed, unconfirmed);
    let possible = ListedAlternatives::new(&chosen, exporter);
    let lines = vec![platform_of(Some(source), document), CONFIRMED.into()];
    let origin = Origin { lines, basis: "confirmed", verdict: Some(verdict.clone()) };
    let expressed = ExpressedChoices::new(exporter, &chosen, &possible, Some(source), &[], origin)?;
    write_anew(&**exporter, &expressed.export(), path)
}

/// How what was written for a target is loaded.
///
/// # Errors
/// As [`LoadTarget::exporter`].
pub fn how_to_load(target: &LoadTarget, file: &str) -> Result<HowToLoad> {
    let export = Export { rules: &[], comments: &[] };
    Ok(target.exporter(true)?.how_to_load(file, &export))
}

/// The environment variables that load what was written for a target, where these are the same for every
/// job.
///
/// # Errors
/// As [`LoadTarget::exporter`].
pub fn environment(target: &LoadTarget, file: &str) -> Result<Option<Vec<(String, String)>>> {
    let export = Export { rules: &[], comments: &[] };
    Ok(target.exporter(true)?.environment(file, &export))
}

/// By what a threshold between two measured sizes is set: the model with the most to say of sizes in between.
fn threshold_predictor(source: &CalibrationSource) -> Result<Predictor> {
    source.predictor(Model::PLogP)
}
