//! `colibri export`: writes what an MPI library loads.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::Args;
use models::{Model, Predictor};
use records::{
    Collective, FileError, Method, Point,
    calibration::Calibration,
    choices::Choices,
    decisions::{Decision, Decisions},
    document,
    export::{ExportReport, Unexpressed},
    quantity,
};
use verification::{
    rules::rules,
    samples::Samples,
    selection::{self, Choice},
    statistics::geometric_mean,
};

use crate::{
    commands::{options::ModelOptions, output},
    error::usage,
    site::run_directory::RunDirectory,
    stages::{
        export::{Export as Exported, Exporter, File, Format, Possible, fit},
        measurements::Measurements,
        source::Source,
    },
};

/// Writes what was measured best in the form that an MPI library loads
#[derive(Debug, Args)]
pub struct Export {
    /// Directory of a run that has measured (`colibri verify`, `colibri tune`)
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    directory: PathBuf,

    /// For which library
    #[arg(long, value_enum)]
    format: Format,

    /// For which version of it: Open MPI 4.0, 4.1 (which 5.0 reads, too), 5.0 or 6.0; MPICH 4.0 to
    /// 5.0 (must be said); Intel MPI 2019 on; UCC 1.3
    #[arg(long, value_name = "VERSION")]
    target_version: Option<String>,

    /// MPICH's library, of which the file takes what it leaves alone [default: the one of that
    /// version on this machine]
    #[arg(long, value_name = "FILE")]
    target_library: Option<PathBuf>,

    /// The file to write, or the directory where the format is one of many files [default: stdout]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Where to write which decisions the target can't be told, and what that costs [default:
    /// OUTPUT.export.json; not written where the export goes to stdout]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// For Intel MPI: also let the library compile its own tuning files (OUTPUT's name ending in
    /// .RANKS.dat), by a command that runs any program of it, as in 'mpirun -n 2 IMB-MPI1 -help'
    #[arg(long, value_name = "COMMAND", requires = "output")]
    compile: Option<String>,

    /// Instead of what was measured write what --model decided in this file (made by `decide
    /// --output FILE`), each algorithm by its name; no measurement has confirmed it
    #[arg(long, value_name = "FILE", requires = "model", requires = "calibration")]
    decisions: Option<PathBuf>,

    #[command(flatten)]
    model: ModelOptions,
}

/// Decisions as the target can be told them.
struct Fit {
    source: Source,
    origin: Vec<String>,
    basis: &'static str,
    choices: Vec<Choice>,
    unexpressed: Vec<Unexpressed>,
}

impl Export {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let compile = match &self.compile {
            Some(command) => Some((self.format.compile()?, command)),
            None => None,
        };
        let version = self.target_version.as_deref();
        let exporter = self.format.exporter(version, self.target_library.as_deref())?;
        let exporter = exporter.as_ref();
        let fit = match &self.decisions {
            Some(path) => self.decided(path, exporter)?,
            None => self.measured(exporter)?,
        };
        let rules = fit_rules(&fit.source, &fit.choices)?;
        let export = Exported { rules: &rules, origin: &fit.origin };
        let files = exporter.files(&export)?;
        let mut report = fit.report(exporter);
        tell(&report);
        match &self.output {
            Some(path) => {
                report.files = write_files(path, files, exporter)?;
                if let Some((compile, command)) = compile {
                    let compiled = compile(&export, command, path)?;
                    report.files.extend(compiled.iter().map(|path| path.display().to_string()));
                }
                // A job's ranks may run in another directory.
                let place = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                eprintln!("{}", exporter.how_to_load(&place.display().to_string(), &export));
            }
            None => match files.as_slice() {
                [only] => output::print(&only.text)?,
                [] => usage!("nothing replaces the default, so that there is no file to write"),
                _ => usage!("{} files are to be written; say where by --output", files.len()),
            },
        }
        let beside = self.output.map(|path| {
            let mut name = path.into_os_string();
            name.push(".export.json");
            PathBuf::from(name)
        });
        if let Some(path) = self.report.or(beside) {
            document::write(&path, &report)?;
        }
        Ok(())
    }

    /// What was measured best, chosen among all methods and among those of the target.
    fn measured(&self, exporter: &dyn Exporter) -> Result<Fit> {
        let run = RunDirectory::read(&self.directory)?;
        let source = Source::load_for(&run, &self.model)?;
        let chosen = choices(&run)?;
        if let Some(confirmed) = self.format.way().and_then(|way| chosen.confirmed(way)) {
            let confirmed: Vec<Choice> = confirmed.iter().map(Choice::from).collect();
            let (choices, unexpressed) = fit(exporter, &confirmed, &Nothing);
            let origin = measured_origin(&source);
            return Ok(Fit { source, origin, basis: "confirmed", choices, unexpressed });
        }
        let all = Measurements::read(&run)?.samples;
        let own = all.among(|point, method| {
            *method == Method::Default || exporter.express(point, method).is_ok()
        });
        let told = |point| own.at(point).any(|(method, _)| *method != Method::Default);
        if !own.points().any(told) {
            usage!(
                "{} holds no measured method that {} can be told to run; what a model decides, \
                 by the algorithms' names, is exported by --decisions FILE",
                self.directory.display(),
                exporter.target()
            );
        }
        let best = selection::choose(&own).into_iter().map(|choice| (choice.point, choice));
        let possible = Measured { best: best.collect(), samples: &own };
        let wanted: Vec<Choice> = chosen.choices.iter().map(Choice::from).collect();
        let (choices, unexpressed) = fit(exporter, &wanted, &possible);
        let origin = measured_origin(&source);
        Ok(Fit { source, origin, basis: "measured", choices, unexpressed })
    }

    /// What a model decided, each algorithm by its name in the target.
    fn decided(&self, path: &Path, exporter: &dyn Exporter) -> Result<Fit> {
        let source = Source::load(&self.model)?;
        let decisions: Decisions = document::read(path)?;
        let model = match self.model.model.as_ref().map(|models| models.0.as_slice()) {
            Some([model]) => *model,
            _ => usage!("say which one model's decisions to write, as in --model plogp"),
        };
        let of_model = |decision: &&Decision| decision.model == model.name();
        let decided: Vec<&Decision> = decisions.decisions.iter().filter(of_model).collect();
        let wanted: Vec<Choice> =
            decided.iter().map(|decision| choice(decision, exporter)).collect();
        if wanted.is_empty() {
            usage!("{}: holds no decisions of the model {model}", path.display());
        }
        let predictor = source.predictor(model)?;
        let possible = Predicted { predictor: &predictor, exporter, wanted: &wanted };
        let (choices, unexpressed) = fit(exporter, &wanted, &possible);
        let how = format!("decided by the model {model}, not measured");
        let mut origin = vec![platform_of(&source), how];
        let beyond = decided.iter().filter(|decision| decision.extrapolated).count();
        if beyond > 0 {
            let note = format!(
                "{beyond} of {} decisions are extrapolated beyond what was calibrated",
                decided.len()
            );
            eprintln!("{note}");
            origin.push(note);
        }
        Ok(Fit { source, origin, basis: "predicted", choices, unexpressed })
    }
}

/// What the calibration was measured on; a preset names no hosts.
fn platform_of(source: &Source) -> String {
    let Calibration { platform, source: origin, .. } = &source.calibration;
    if platform.hosts.is_empty() { origin.clone() } else { platform.summary() }
}

/// What the run has chosen.
fn choices(run: &RunDirectory) -> Result<Choices> {
    let path = run.choices();
    if path.exists() {
        return Ok(document::read(&path)?);
    }
    let directory = run.path().display();
    match run.options().exists() {
        true => usage!(
            "{directory}: the tuning has not come to its end, or an older Colibri made it; \
             'colibri tune {directory} --resume' completes it"
        ),
        false => usage!(
            "{directory}: nothing was chosen yet; 'colibri verify {directory} --from-record' \
             chooses from what was measured"
        ),
    }
}

fn measured_origin(source: &Source) -> Vec<String> {
    vec![source.calibration.platform.summary(), MEASURED.into()]
}

const MEASURED: &str = "measured best, the default where nothing beats it";

fn choice(decision: &Decision, exporter: &dyn Exporter) -> Choice {
    let Decision { collective, procs, bytes, seconds, .. } = *decision;
    let method = match &decision.method {
        Method::Native(native) => exporter.named(native.algorithm, native.segment_bytes),
        Method::Own { algorithm, segment_bytes } => exporter.named(*algorithm, *segment_bytes),
        other => other.clone(),
    };
    // What the default would take is not known; the same time claims no gain.
    let point = Point { collective, procs, bytes };
    Choice { point, method, seconds, default_seconds: seconds }
}

/// Methods that were measured and that the target can be told.
struct Measured<'a> {
    best: BTreeMap<Point, Choice>,
    samples: &'a Samples,
}

impl Possible for Measured<'_> {
    fn best(&self, point: Point) -> (Method, Option<f64>) {
        match self.best.get(&point) {
            Some(choice) => (choice.method.clone(), Some(choice.seconds)),
            None => (Method::Default, None),
        }
    }

    fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        self.samples.get(point, method)?.median()
    }
}

/// Algorithms of the target that the model knows.
struct Predicted<'a> {
    predictor: &'a Predictor,
    exporter: &'a dyn Exporter,
    wanted: &'a [Choice],
}

impl Possible for Predicted<'_> {
    fn best(&self, point: Point) -> (Method, Option<f64>) {
        let wanted = self.wanted.iter().find(|choice| choice.point == point);
        let segments = [0, wanted.map_or(0, |choice| choice.method.segment_bytes())];
        let algorithms = self.exporter.algorithms(point.collective).into_iter();
        let methods = algorithms
            .flat_map(|algorithm| segments.map(|bytes| self.exporter.named(algorithm, bytes)))
            .filter(|method| self.exporter.express(point, method).is_ok());
        let known = methods.filter_map(|method| Some((self.seconds(point, &method)?, method)));
        match known.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
            Some((seconds, method)) => (method, Some(seconds)),
            None => (Method::Default, None),
        }
    }

    fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        let prediction = self.predictor.predict_method(point, method).ok()?;
        Some(prediction.seconds)
    }
}

impl Fit {
    fn report(&self, exporter: &dyn Exporter) -> ExportReport {
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

/// Says on stderr what the target can't be told.
fn tell(report: &ExportReport) {
    let count = report.unexpressed.len();
    if count == 0 {
        return;
    }
    let losses: Vec<f64> =
        report.unexpressed.iter().filter_map(|one| Some(1.0 + one.loss?)).collect();
    eprintln!(
        "{count} of {} decisions cannot be told to {}; what is exported there costs, {}:",
        report.decisions, report.target, report.basis
    );
    match geometric_mean(&losses) {
        Some(mean) => {
            let unknown = count - losses.len();
            let rest =
                if unknown > 0 { format!(", at {unknown} not known") } else { String::new() };
            eprintln!("  {:.1} % more on average{rest}", (mean - 1.0) * 100.0);
        }
        None => eprintln!("  not known how much more (they are left to the library)"),
    }
    let worst = report.unexpressed.iter().filter(|one| one.loss.is_some());
    let worst = worst.max_by(|a, b| a.loss.unwrap_or(0.0).total_cmp(&b.loss.unwrap_or(0.0)));
    if let Some(one) = worst {
        eprintln!(
            "  {:.1} % at most: {} of {} on {}, {} instead of {}",
            one.loss.unwrap_or(0.0) * 100.0,
            one.collective,
            quantity::format_bytes(one.bytes),
            one.procs,
            one.exported.short(),
            one.method.short()
        );
    }
    let mut reasons: Vec<&str> = Vec::new();
    for one in &report.unexpressed {
        if !reasons.contains(&one.reason.as_str()) {
            reasons.push(&one.reason);
        }
    }
    for reason in reasons.iter().take(REASONS) {
        eprintln!("  {reason}");
    }
    if let Some(more @ 1..) = reasons.len().checked_sub(REASONS) {
        eprintln!("  and {more} more reasons; all are in the report (--report FILE)");
    }
}

/// How many reasons are told on a terminal.
const REASONS: usize = 4;

fn write_files(path: &Path, files: Vec<File>, exporter: &dyn Exporter) -> Result<Vec<String>> {
    if exporter.is_directory() {
        fs::create_dir_all(path).map_err(|e| FileError::io(path, "make this directory", &e))?;
        if files.is_empty() {
            eprintln!("nothing replaces the default, so that there is no file to write");
        }
    }
    let mut written = Vec::new();
    for File { name, text } in files {
        let path = if name.is_empty() { path.to_owned() } else { path.join(name) };
        document::write_text(&path, &text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// Writes what a run has chosen, in place of what was there; no directory where nothing replaces
/// the default.
///
/// # Errors
/// As [`Format::exporter`]; the system refuses.
pub fn write(format: Format, source: &Source, choices: &[Choice], path: &Path) -> Result<()> {
    let exporter = format.exporter(None, None)?;
    let (choices, _) = fit(exporter.as_ref(), choices, &Nothing);
    let rules = fit_rules(source, &choices)?;
    let origin = measured_origin(source);
    let export = Exported { rules: &rules, origin: &origin };
    let files = exporter.files(&export)?;
    if exporter.is_directory() && path.exists() {
        fs::remove_dir_all(path).map_err(|e| FileError::io(path, "empty", &e))?;
    }
    if !files.is_empty() {
        write_files(path, files, exporter.as_ref())?;
    }
    Ok(())
}

/// How what was written in a form is loaded.
///
/// # Errors
/// As [`Format::exporter`].
pub fn how_to_load(format: Format, file: &str) -> Result<String> {
    let export = Exported { rules: &[], origin: &[] };
    Ok(format.exporter(None, None)?.how_to_load(file, &export))
}

/// Nothing is known beside what was chosen.
struct Nothing;

impl Possible for Nothing {
    fn best(&self, _: Point) -> (Method, Option<f64>) {
        (Method::Default, None)
    }

    fn seconds(&self, _: Point, _: &Method) -> Option<f64> {
        None
    }
}

fn fit_rules(source: &Source, choices: &[Choice]) -> Result<Vec<verification::rules::Rules>> {
    // The model with the most to say of a size between two measured ones.
    let predictor = source.predictor(Model::PLogP)?;
    Ok(rules(choices, &|collective, procs, below, above, low, high| {
        crossing(&predictor, (collective, procs), [below, above], [low, high])
    }))
}

/// The first size in (`low`, `high`] at which the second method is predicted to be faster, if the
/// first one is at `low` and the second at `high`.
fn crossing(
    predictor: &Predictor,
    (collective, procs): (Collective, u32),
    [first, second]: [&Method; 2],
    [mut low, mut high]: [u64; 2],
) -> Option<u64> {
    let second_is_faster = |bytes| {
        let seconds = |method| {
            let point = Point { collective, procs, bytes };
            predictor.predict_method(point, method).ok().map(|prediction| prediction.seconds)
        };
        Some(seconds(second)? < seconds(first)?)
    };
    if second_is_faster(low)? || !second_is_faster(high)? {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if second_is_faster(middle)? { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_where_the_predictions_cross() {
        let frodo = models::presets::preset("frodo").unwrap();
        let predictor =
            Predictor::new(Model::PLogP, models::Forms::Corrected, &frodo.measured).unwrap();
        let [linear, pipeline] = ["linear", "pipeline,segment=1KiB"]
            .map(|name| format!("native:openmpi:{name}").parse::<Method>().unwrap());
        let seconds = |bytes, method| {
            let point = Point { collective: Collective::Bcast, procs: 8, bytes };
            predictor.predict_method(point, method).unwrap().seconds
        };
        let at = (Collective::Bcast, 8);
        let crossed = crossing(&predictor, at, [&linear, &pipeline], [1, 1 << 20]).unwrap();
        assert!(seconds(crossed, &pipeline) < seconds(crossed, &linear));
        assert!(seconds(crossed - 1, &pipeline) >= seconds(crossed - 1, &linear));
        assert_eq!(crossing(&predictor, at, [&pipeline, &linear], [1, 1 << 20]), None);
        assert_eq!(crossing(&predictor, at, [&Method::Default, &linear], [1, 1 << 20]), None);
    }
}
