//! `colibri difference`: where two decision functions differ, and what that costs.

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

use crate::commands::shared::{
    figure,
    options::{ModelOptions, figure as figure_file},
    output::{self, TableFormat},
};
use site::{error::WrongUse, run_directory::RunDirectory, usage};
use stages::{chosen, measurements::Measurements};

/// Compares two decision functions: where they differ, and what following the second instead of the
/// first costs, by a model or as measured
#[derive(Debug, Args)]
pub struct DifferenceCommand {
    /// The first: a choices.json, a run's directory, or a decisions.json with :MODEL behind it where
    /// it holds several models' decisions
    #[arg(value_name = "FILE[:MODEL]")]
    first: OsString,

    /// Second decision function
    #[arg(value_name = "FILE[:MODEL]")]
    second: OsString,

    /// The collective [default: the one that both files hold]
    #[arg(long, value_name = "NAME")]
    collective: Option<Collective>,

    /// Compare by the times measured in this run, instead of by a calibration and a model
    #[arg(long, value_name = "DIR", conflicts_with_all = ["calibration", "model"])]
    run: Option<PathBuf>,

    /// Also draw the difference, as .svg or .png
    #[arg(long, value_name = "FILE", value_parser = figure_file())]
    figure: Option<PathBuf>,

    /// Output format; a table lists only points that differ, json and csv list all
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,

    #[command(flatten)]
    model: ModelOptions,
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

impl DifferenceCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let judge = self.judge()?;
        let [first, second] = [&self.first, &self.second].map(|given| load(given));
        let (first, second) = (first?, second?);
        let collective = self.collective(&first.1, &second.1)?;
        let rows = rows(&judge, collective, &first.1, &second.1);
        if rows.is_empty() {
            usage!(
                "{} and {} have no point of {collective} in common; decide both on the same grid",
                self.first.display(),
                self.second.display()
            );
        }
        if let Some(path) = &self.figure {
            let points: Vec<figures::ComparedPoint> =
                rows.iter().map(DifferenceRow::drawn).collect();
            let names = [first.0.as_str(), second.0.as_str()];
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

    fn judge(&self) -> Result<Judge> {
        if let Some(path) = &self.run {
            if !path.is_dir() {
                usage!("{}: is not a run directory", path.display());
            }
            let run = RunDirectory::read(path)?;
            let samples = Measurements::read(&run)?.samples;
            return Ok(Judge::Measured { samples, run: path.clone() });
        }
        let Some(calibration) = &self.model.calibration else {
            usage!(
                "no times to compare by; give --run DIR (measured), or --calibration FILE and \
                 --model NAME (predicted)"
            );
        };
        let models = self.model.model.as_ref().map(|models| models.0.as_slice());
        let Some(&[model]) = models else {
            usage!("name one model to predict by, as in --model refined");
        };
        let source = self.model.load()?;
        let predictor = Box::new(source.predictor(model)?);
        let calibration = calibration.to_string_lossy().into_owned();
        Ok(Judge::Predicted { predictor, calibration })
    }

    fn collective(&self, first: &Function, second: &Function) -> Result<Collective> {
        let of = |function: &Function| -> BTreeSet<Collective> {
            function.keys().map(|point| point.collective).collect()
        };
        let both: Vec<Collective> = of(first).intersection(&of(second)).copied().collect();
        match (self.collective, &both[..]) {
            (Some(collective), _) if both.contains(&collective) => Ok(collective),
            (None, [collective]) => Ok(*collective),
            (None, [_, ..]) => {
                let names: Vec<&str> = both.iter().map(|collective| collective.name()).collect();
                usage!("name one --collective; both decide for: {}", names.join(", "))
            }
            (asked, _) => {
                let which = asked.map_or("any collective".into(), |asked| asked.to_string());
                usage!(
                    "{} and {} do not both decide for {which}",
                    self.first.display(),
                    self.second.display()
                )
            }
        }
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
    collective: Collective,
    first: &Function,
    second: &Function,
) -> Vec<DifferenceRow> {
    let common = first.iter().filter(|(point, _)| point.collective == collective);
    let common = common.filter_map(|(point, method)| Some((*point, method, second.get(point)?)));
    let row = |(point, first, second): (Point, &Method, &Method)| {
        let [a, b] = [first, second].map(|method| judge.seconds(point, method));
        DifferenceRow {
            collective,
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

/// A decision function and its name: `decisions.json, loggp`.
fn load(given: &OsStr) -> Result<(String, Function)> {
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
            Ok((name, function.collect()))
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
