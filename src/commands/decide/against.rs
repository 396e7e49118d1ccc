//! `colibri decide --against`: where two decision functions differ, and what that costs.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use anyhow::Result;
use choosing::samples::Samples;
use clap::Args;
use models::{Model, Predictor};
use records::{Collective, Layout, Method, Point, quantity};
use serde::Serialize;
use statistics::geometric_mean;

use super::Decide;
use crate::commands::shared::{
    figure,
    output::{self, TableFormat},
};
use site::{error::WrongUse, run_directory::RunDirectory, usage};
use stages::{chosen, deciding::decisions, measurements::Measurements, source::CalibrationSource};

/// Over the flags of a comparison in a help text.
const COMPARISON: &str = "Comparison";

/// A decision function that is compared with another one.
#[derive(Debug, Args)]
pub struct AgainstOptions {
    /// Show where this decision function differs, and what following it costs: a choices.json, a run's
    /// directory, or a decisions.json with :MODEL behind it where it holds several models' decisions
    ///
    /// Times are those of --calibration and --model, or of --run. A table lists only points that differ,
    /// json and csv list all.
    #[arg(long, value_name = "FILE[:MODEL]", conflicts_with_all = ["compress", "output"], help_heading = COMPARISON)]
    pub against: Option<OsString>,

    /// The first decision function, for --against [default: what --model decides]
    #[arg(value_name = "FILE[:MODEL]", requires = "against", conflicts_with_all = ["procs", "layouts", "sizes", "ListedOrBestSegments", "target", "root"])]
    first: Option<OsString>,

    /// Compare by the times measured in this run, instead of by a calibration and a model
    #[arg(long, value_name = "DIR", requires = "against", help_heading = COMPARISON)]
    run: Option<PathBuf>,
}

/// What both take at one point.
#[derive(Serialize)]
struct DifferenceRow {
    collective: Collective,
    #[serde(rename = "procs")]
    layout: Layout,
    bytes: u64,
    first: Method,
    second: Method,
    same: bool,
    /// None where the time of the method is not known.
    first_seconds: Option<f64>,
    second_seconds: Option<f64>,
    /// second / first - 1.
    relative_cost: Option<f64>,
}

/// Decisions by point.
type Function = BTreeMap<Point, Method>;

impl Decide {
    /// Compares two decision functions: where they differ, and what following the second instead of the
    /// first costs, by a model or as measured.
    pub(super) fn compare(&self, against: &OsStr) -> Result<()> {
        let judge = self.judge()?;
        let first = match &self.against.first {
            Some(given) => load(given)?,
            None => self.decided()?,
        };
        let second = load(against)?;
        let collectives = self.both_decide_for(&first, &second)?;
        let rows = rows(&judge, &collectives, &first.function, &second.function);
        if rows.is_empty() {
            let names: Vec<&str> = collectives.iter().map(|one| one.name()).collect();
            usage!(
                "{} and {} have no point of {} in common; decide both on the same grid",
                first.name,
                second.name,
                names.join(" or ")
            );
        }
        if let Some(path) = &self.figure {
            let [collective] = collectives[..] else {
                usage!("--figure draws one collective; name it by --collective")
            };
            let points: Vec<figures::ComparedPoint> =
                rows.iter().map(DifferenceRow::drawn).collect();
            let names = [first.name.as_str(), second.name.as_str()];
            figure::write(
                figures::difference_map(collective, names, &judge.name(), &points),
                path,
            )?;
        }
        match self.format {
            TableFormat::Json | TableFormat::Csv => {
                output::rows(self.format, &rows, &HEADING, cells)
            }
            TableFormat::Table => {
                let different: Vec<&DifferenceRow> = rows.iter().filter(|row| !row.same).collect();
                if !different.is_empty() {
                    output::rows(self.format, &different, &HEADING, |row| cells(row))?;
                }
                output::print(&summary(&rows, &judge))
            }
        }
    }

    /// What the model decides on the grid, as the first function.
    fn decided(&self) -> Result<NamedFunction> {
        let (source, model) = self.model()?;
        let layouts = source.layouts(&self.grid.layouts());
        let source = source.with_root(self.root.checked(&self.grid.collective.0, &layouts)?);
        let exporter = self.exporter(&source.calibration.platform)?;
        let decisions = decisions(&source, &self.request(&layouts, &[model], exporter.as_deref()))?;
        let function = decisions.choices.into_iter().map(|one| (one.point, one.method)).collect();
        Ok(NamedFunction { name: format!("{model} with {}", source.name), function })
    }

    /// The one model that decides or predicts.
    fn model(&self) -> Result<(CalibrationSource, Model)> {
        let Some(&[model]) = self.model.model.as_ref().map(|models| models.0.as_slice()) else {
            usage!("name one model to predict by, as in --model refined");
        };
        Ok((self.model.load()?, model))
    }

    fn judge(&self) -> Result<Judge> {
        let is_calibrated = self.model.calibration.is_some();
        if let Some(path) = &self.against.run {
            if is_calibrated && self.against.first.is_some() {
                usage!("--run or --calibration: give one of them to compare by");
            }
            if !path.is_dir() {
                usage!("{}: is not a run directory", path.display());
            }
            let run = RunDirectory::read(path)?;
            let samples = Measurements::read(&run)?.samples;
            return Ok(Judge::Measured { samples, run: path.clone() });
        }
        if !is_calibrated {
            usage!(
                "no times to compare by; give --run DIR (measured), or --calibration FILE and \
                 --model NAME (predicted)"
            );
        }
        let (source, model) = self.model()?;
        let source = source.with_root(self.root.root);
        let predictor = Box::new(source.predictor(model)?);
        Ok(Judge::Predicted { predictor, calibration: source.name })
    }

    /// Of the collectives asked for those that both functions decide for.
    fn both_decide_for(
        &self,
        first: &NamedFunction,
        second: &NamedFunction,
    ) -> Result<Vec<Collective>> {
        let of = |function: &Function| -> BTreeSet<Collective> {
            function.keys().map(|point| point.collective).collect()
        };
        let both = &of(&first.function) & &of(&second.function);
        let asked = &self.grid.collective.0;
        let wanted: Vec<Collective> =
            both.iter().copied().filter(|one| asked.contains(one)).collect();
        if !wanted.is_empty() {
            return Ok(wanted);
        }
        let names = |all: &mut dyn Iterator<Item = &Collective>| {
            all.map(|one| one.name()).collect::<Vec<_>>()
        };
        let both = match names(&mut both.iter()).join(",") {
            none if none.is_empty() => "any collective".to_owned(),
            both => format!(
                "{} (both do for --collective {both})",
                names(&mut asked.iter()).join(" or ")
            ),
        };
        usage!("{} and {} do not both decide for {both}", first.name, second.name)
    }
}

const HEADING: [&str; 8] = [
    "collective",
    "procs",
    "bytes",
    "first",
    "second",
    "first's time",
    "second's time",
    "difference",
];

fn cells(row: &DifferenceRow) -> Vec<String> {
    let seconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "not known".into(), quantity::format_seconds);
    vec![
        row.collective.to_string(),
        row.layout.to_string(),
        row.bytes.to_string(),
        row.first.to_string(),
        row.second.to_string(),
        seconds(row.first_seconds),
        seconds(row.second_seconds),
        row.relative_cost.map_or_else(String::new, |cost| format!("{:+.1} %", 100.0 * cost)),
    ]
}

/// Who says what a method costs.
enum Judge {
    Predicted { predictor: Box<Predictor>, calibration: String },
    Measured { samples: Samples, run: PathBuf },
}

impl Judge {
    fn name(&self) -> String {
        match self {
            Judge::Predicted { predictor, calibration } => {
                format!("predicted by {} with {calibration}", predictor.model())
            }
            Judge::Measured { run, .. } => format!("measured in {}", run.display()),
        }
    }

    fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        match self {
            // A method that the model does not know has no time; the row says so.
            Judge::Predicted { predictor, .. } => {
                predictor.predict_method_seconds(point, method).ok()
            }
            Judge::Measured { samples, .. } => samples.get(point, method)?.median(),
        }
    }
}

impl DifferenceRow {
    fn drawn(&self) -> figures::ComparedPoint {
        figures::ComparedPoint {
            layout: self.layout,
            bytes: self.bytes,
            methods: [self.first.clone(), self.second.clone()],
            seconds: self.first_seconds.zip(self.second_seconds).map(|(a, b)| [a, b]),
        }
    }
}

fn rows(
    judge: &Judge,
    collectives: &[Collective],
    first: &Function,
    second: &Function,
) -> Vec<DifferenceRow> {
    let common = first.iter().filter(|(point, _)| collectives.contains(&point.collective));
    let common = common.filter_map(|(point, method)| Some((*point, method, second.get(point)?)));
    let row = |(point, first, second): (Point, &Method, &Method)| {
        let [a, b] = [first, second].map(|method| judge.seconds(point, method));
        DifferenceRow {
            collective: point.collective,
            layout: point.layout,
            bytes: point.bytes,
            first: first.clone(),
            second: second.clone(),
            same: first == second,
            first_seconds: a,
            second_seconds: b,
            relative_cost: a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0),
        }
    };
    common.map(row).collect()
}

fn summary(rows: &[DifferenceRow], judge: &Judge) -> String {
    let different: Vec<&DifferenceRow> = rows.iter().filter(|row| !row.same).collect();
    let mut text = format!("They differ at {} of {} points", different.len(), rows.len());
    let costs: Vec<f64> =
        different.iter().filter_map(|row| Some(1.0 + row.relative_cost?)).collect();
    let least = costs.iter().copied().reduce(f64::min);
    let greatest = costs.iter().copied().reduce(f64::max);
    if let (Some(mean), Some(least), Some(greatest)) = (geometric_mean(&costs), least, greatest) {
        let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
        text += &format!(
            "; there the second's time differs by {} in the geometric mean ({} to {}), {}",
            percent(mean),
            percent(least),
            percent(greatest),
            judge.name()
        );
    }
    text + ".\n"
}

struct NamedFunction {
    /// `decisions.json, loggp`.
    name: String,
    function: Function,
}

fn load(given: &OsStr) -> Result<NamedFunction> {
    let (path, model) = split(given)?;
    let choices = match path.is_dir() {
        true => chosen::of_run(&RunDirectory::read(path)?)?,
        false => chosen::read(path)?,
    };
    let path = path.display();
    if choices.choices.is_empty() {
        usage!("{path}: holds no decisions");
    }
    let functions = chosen::functions(&choices);
    let names: Vec<&str> = functions.iter().filter_map(|(model, _)| *model).collect();
    let wanted = model.map(Model::name);
    let found = match (wanted, &functions[..]) {
        (None, [only]) => Some(only),
        (None, _) => usage!(
            "{path}: holds decisions of several models; say which, as in {path}:{} (it has: {})",
            names[0],
            names.join(", ")
        ),
        (wanted, all) => all.iter().find(|(model, _)| *model == wanted),
    };
    match (found, wanted) {
        (Some((model, chosen)), _) => {
            let function = chosen.iter().map(|chosen| (chosen.point, chosen.method.clone()));
            let name = model.map_or_else(|| path.to_string(), |model| format!("{path}, {model}"));
            Ok(NamedFunction { name, function: function.collect() })
        }
        (None, Some(model)) if names.is_empty() => {
            usage!("{path}: was measured; no decisions of {model} are in it")
        }
        (None, model) => usage!(
            "{path}: holds no decisions of {} (it has: {})",
            model.unwrap_or_default(),
            names.join(", ")
        ),
    }
}

/// A file's name may have a colon of its own: what is behind the last one is a model's name where
/// there is no file of the whole name.
fn split(given: &OsStr) -> Result<(&Path, Option<Model>)> {
    let bytes = given.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !Path::new(given).exists() => {
            let model = String::from_utf8_lossy(&bytes[colon + 1..]);
            let model = model.parse::<Model>().map_err(WrongUse)?;
            Ok((Path::new(OsStr::from_bytes(&bytes[..colon])), Some(model)))
        }
        _ => Ok((Path::new(given), None)),
    }
}
