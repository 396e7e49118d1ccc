//! `colibri predict`: what each method costs, by each model.

mod levels;
mod row;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::Args;
use models::{Model, Predictor};
use records::{Algorithm, Collective, Method, Point, quantity};

use self::row::PredictionRow;
use crate::{
    commands::shared::{
        figure,
        levels::LevelOptions,
        options::{
            GridOptions, List, ModelOptions, SegmentOption, algorithms, figure as figure_file,
        },
        output::{self, TableFormat},
    },
    error::usage,
    stages::{
        deciding::{can_run, sizes, tell_without},
        simulating,
        source::CalibrationSource,
    },
};

/// Predicts what each algorithm costs, from closed forms or by simulation
#[derive(Debug, Args)]
pub struct Predict {
    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    grid: GridOptions,

    #[command(flatten)]
    levels: LevelOptions,

    /// Algorithms, with commas [default: all that the model covers]
    #[arg(long, value_name = "NAMES", value_parser = algorithms)]
    algorithm: Option<List<Algorithm>>,

    /// Also draw them, as .svg or .png, a panel per model: over message size if there is one
    /// communicator size, over processes if there is one message size
    #[arg(long, value_name = "FILE", value_parser = figure_file())]
    figure: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
}

const HEADING: [&str; 11] = [
    "collective",
    "algorithm",
    "segment",
    "procs",
    "bytes",
    "model",
    "predicted",
    "95 % interval",
    "T_max",
    "of limit",
    "extrapolated",
];

impl Predict {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let source = CalibrationSource::load(&self.model)?.with_inside(&self.levels.inside)?;
        let _shown = simulating::show();
        let models = self.model.model.as_ref().map(|models| models.0.clone());
        let rows = match self.levels.layout {
            None => self.flat(&source, models)?,
            Some(layout) => levels::rows(
                (&self.levels, layout),
                &source,
                &self.grid,
                (models.as_deref(), self.algorithm.as_ref()),
            )?,
        };
        self.show(&source, &rows)
    }

    /// One rank on each node: by any model.
    fn flat(
        &self,
        source: &CalibrationSource,
        models: Option<Vec<Model>>,
    ) -> Result<Vec<PredictionRow>> {
        let layouts = source.layouts(&self.grid);
        let mut rows = Vec::new();
        for &collective in &self.grid.collective.0 {
            let models = models.clone().unwrap_or_else(|| default_models(source, collective));
            for model in models {
                let predictor = source.predictor(model)?;
                let algorithms = wanted(model, collective, self.algorithm.as_ref())?;
                for (algorithm, method) in methods(&predictor, collective, &algorithms)? {
                    for &layout in &layouts {
                        if self.algorithm.is_none()
                            && !model.serves(collective, algorithm, layout.procs())
                        {
                            continue;
                        }
                        for &bytes in sizes(collective, &self.grid.sizes.0) {
                            let point = Point { collective, layout, bytes };
                            let segments = &self.grid.segments;
                            rows.extend(predict(
                                &predictor,
                                point,
                                (algorithm, &method),
                                segments,
                            )?);
                        }
                    }
                }
            }
        }
        Ok(rows)
    }

    fn show(&self, source: &CalibrationSource, rows: &[PredictionRow]) -> Result<()> {
        if let Some(path) = &self.figure {
            draw(source, rows, self.grid.segments == SegmentOption::Auto, path)?;
        }
        output::rows(self.format, rows, &HEADING, |row| {
            let segment = match row.segment_bytes {
                0 => "none".into(),
                bytes => quantity::format_bytes(bytes),
            };
            let [seconds, low, high] =
                [row.seconds, row.low_seconds, row.high_seconds].map(quantity::format_seconds);
            vec![
                row.collective.to_string(),
                name(row),
                segment,
                row.layout.to_string(),
                row.bytes.to_string(),
                row.model.into(),
                seconds,
                format!("{low} .. {high}"),
                row.greatest_seconds.map_or_else(String::new, quantity::format_seconds),
                row.limit_seconds.map_or_else(String::new, |limit| of_limit(row.seconds, limit)),
                output::mark(row.extrapolated),
            ]
        })
    }
}

/// How many times the limit a time is: `1.12 x`; nothing where there is no limit.
fn of_limit(seconds: f64, limit: f64) -> String {
    if limit > 0.0 { format!("{:.2} x", seconds / limit) } else { String::new() }
}

/// Draws the rows: a panel per model, in it a curve per method, over the message size or over the
/// processes. With `auto` a method's segments are another at each point.
fn draw(source: &CalibrationSource, rows: &[PredictionRow], auto: bool, path: &Path) -> Result<()> {
    let distinct = |of: fn(&PredictionRow) -> u64| {
        let values: BTreeSet<u64> = rows.iter().map(of).collect();
        values.into_iter().collect::<Vec<_>>()
    };
    let (procs, bytes) = (distinct(|row| row.layout.procs().into()), distinct(|row| row.bytes));
    let Some(collective) = rows.first().map(|row| row.collective) else {
        usage!("nothing was predicted that could be drawn")
    };
    if rows.iter().any(|row| row.collective != collective) {
        usage!("--figure draws one collective; name it by --collective");
    }
    let (over_procs, fixed) = match (&procs[..], &bytes[..]) {
        (_, [0]) => (true, "no message".into()),
        ([procs], _) => (false, format!("{procs} processes")),
        (_, [bytes]) => (true, quantity::format_bytes(*bytes)),
        _ => usage!("--figure draws over --procs or over -m; give one value of the other"),
    };
    let panels = panels(rows, auto, over_procs);
    let axis = |label: &str, quantity| figures::Axis { label: label.into(), quantity };
    let x = match over_procs {
        true => axis("processes", figures::Quantity::Processes),
        false => {
            axis(&format!("message size ({})", collective.message_size()), figures::Quantity::Bytes)
        }
    };
    let y = axis("predicted time", figures::Quantity::Seconds);
    let mut lines = vec![format!("parameters: {}; closed forms: {}", source.name, source.forms())];
    let beyond = rows.iter().find(|row| row.extrapolated).map(|row| {
        let PredictionRow { collective, layout, bytes, .. } = *row;
        source.reach().excess(Point { collective, layout, bytes })
    });
    if let Some(Some(excess)) = beyond {
        lines.push(format!("extrapolated from there on: {excess}"));
    }
    let title = format!("Predicted: {collective}, {fixed}");
    figure::write(figures::panels(&title, &lines, (x, y), &panels), path)
}

/// A panel per model, in it a curve per method, over the message size or over the processes.
fn panels(
    rows: &[PredictionRow],
    auto: bool,
    over_procs: bool,
) -> Vec<(String, Vec<figures::Curve>)> {
    // In the order of the rows: the model's own.
    let mut panels: Vec<(String, Vec<figures::Curve>)> = Vec::new();
    for row in rows {
        let x = if over_procs { f64::from(row.layout.procs()) } else { row.bytes as f64 };
        let point =
            figures::PlotPoint { x, y: row.seconds, low: row.low_seconds, high: row.high_seconds };
        let panel =
            named(&mut panels, |panel| panel.0 == row.model, || (row.model.to_owned(), Vec::new()));
        let name = match row.tells_origin {
            _ if auto => name(row),
            true => row.method.to_string(),
            false => row.method.short(),
        };
        let series = named(
            &mut panel.1,
            |series| series.name == name,
            || figures::Curve {
                name: name.clone(),
                trace: figures::Trace::Line,
                points: Vec::new(),
            },
        );
        series.points.push(point);
    }
    for (model, curves) in &mut panels {
        curves.extend(limit(rows, model, over_procs));
    }
    panels
}

/// What no algorithm gets below by a model, as a curve.
fn limit(rows: &[PredictionRow], model: &str, over_procs: bool) -> Option<figures::Curve> {
    let of_model = rows.iter().filter(|row| row.model == model);
    let at = |row: &PredictionRow| {
        let x = if over_procs { u64::from(row.layout.procs()) } else { row.bytes };
        Some((x, row.limit_seconds.filter(|seconds| *seconds > 0.0)?))
    };
    let places: BTreeMap<u64, f64> = of_model.filter_map(at).collect();
    let point = |(x, y): (u64, f64)| figures::PlotPoint { x: x as f64, y, low: y, high: y };
    let points: Vec<figures::PlotPoint> = places.into_iter().map(point).collect();
    let curve = figures::Curve { name: "limit".into(), trace: figures::Trace::Line, points };
    (!curve.points.is_empty()).then_some(curve)
}

/// The first that matches, or a new one.
fn named<T>(all: &mut Vec<T>, is: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = all.iter().position(is).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[place]
}

/// The algorithm, with whose it is where that makes a difference.
fn name(row: &PredictionRow) -> String {
    let method = row.method.clone().with_segment(0);
    if row.tells_origin { method.to_string() } else { method.short() }
}

/// The models of the paper's tables; where it has none, the refined one. Of constants of algorithms
/// both that have them.
fn default_models(source: &CalibrationSource, collective: Collective) -> Vec<Model> {
    let usual = source.models(Model::TABLES.to_vec()).into_iter();
    let known: Vec<Model> =
        usual.filter(|model| !model.algorithms(collective).is_empty()).collect();
    if known.is_empty() { vec![Model::Refined] } else { known }
}

fn wanted(
    model: Model,
    collective: Collective,
    asked: Option<&List<Algorithm>>,
) -> Result<Vec<Algorithm>> {
    let known = model.algorithms(collective);
    if known.is_empty() {
        usage!(
            "{collective} has no closed forms in model {model}; use --model refined or simulated"
        );
    }
    let Some(List(asked)) = asked else { return Ok(known) };
    if let Some(unknown) = asked.iter().find(|algorithm| !known.contains(algorithm)) {
        let names: Vec<_> = known.iter().map(|algorithm| algorithm.name()).collect();
        usage!(
            "{collective} has no closed form for '{unknown}' in model {model} (there are for: {})",
            names.join(", ")
        );
    }
    Ok(asked.clone())
}

/// The methods to predict, without segments.
fn methods(
    predictor: &Predictor,
    collective: Collective,
    algorithms: &[Algorithm],
) -> Result<Vec<(Algorithm, Method)>> {
    tell_without(predictor, collective, algorithms);
    let of = |&algorithm: &Algorithm| {
        let methods = predictor.methods(collective, algorithm).into_iter();
        methods.map(move |method| (algorithm, method))
    };
    let methods: Vec<(Algorithm, Method)> = algorithms.iter().flat_map(of).collect();
    if methods.is_empty() {
        usage!(
            "no constants of {} were fitted for {collective} by these algorithms",
            predictor.model()
        );
    }
    Ok(methods)
}

/// One row for each segment size, one alone where the algorithm has no segments; with `auto` one
/// for the best.
fn predict(
    predictor: &Predictor,
    point: Point,
    (algorithm, method): (Algorithm, &Method),
    segments: &SegmentOption,
) -> Result<Vec<PredictionRow>> {
    let segmented = predictor.segmented(point.collective, method)?;
    let segments = match segments {
        _ if !segmented => vec![0],
        SegmentOption::Auto => {
            models::decide::best_segment_of(predictor, point, method)?.into_iter().collect()
        }
        SegmentOption::These(these) => these.clone(),
    };
    let mut rows = Vec::new();
    for segment_bytes in segments {
        let method = method.clone().with_segment(segment_bytes);
        if !can_run(point, &method) {
            continue;
        }
        let prediction = predictor.predict_method(point, &method)?;
        rows.push(PredictionRow {
            collective: point.collective,
            algorithm,
            segment_bytes,
            layout: point.layout,
            bytes: point.bytes,
            model: predictor.model().name(),
            seconds: prediction.seconds,
            low_seconds: prediction.low,
            high_seconds: prediction.high,
            greatest_seconds: predictor.predict_method_greatest(point, &method)?,
            limit_seconds: predictor.limit(point).map(|limit| limit.seconds),
            method,
            tells_origin: predictor.is_by_method(),
            extrapolated: !predictor.reach().covers(point),
        });
    }
    Ok(rows)
}
