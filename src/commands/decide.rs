//! `colibri decide`: which method each model takes at each point of a grid.

use std::{
    path::PathBuf,
    thread::{self, available_parallelism},
};

use anyhow::Result;
use clap::Args;
use libraries::openmpi;
use models::{
    Model, Predictor,
    compress::{Bounds, Compressed, Language, Map, Shape},
    decide,
};
use records::{
    Algorithm, Collective, Method, Point,
    decisions::{Decision, Decisions},
    document, quantity,
};

use crate::{
    commands::{
        options::{GridOptions, ModelOptions, Segments, figure},
        output::{self, Format},
        {draw, predict::sizes},
    },
    error::usage,
    stages::{simulating, source::Source},
};

/// Decides, at each point, for the method that is predicted to be the cheapest
#[derive(Debug, Args)]
pub struct Decide {
    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    grid: GridOptions,

    /// Decide among what this target can be told to run
    #[arg(long, value_enum, default_value_t = Target::Any)]
    target: Target,

    /// How the decisions are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Print the decision function in a shorter form instead, with what that costs
    #[arg(long, value_enum, value_name = "FORM")]
    compress: Option<Form>,

    /// Levels of a compressed tree
    #[arg(long, value_name = "N", default_value_t = 16, requires = "compress")]
    depth: u32,

    /// Penalty up to which a part of a compressed tree is not split, as 0.05 for 5 %
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.0, requires = "compress")]
    within: f64,

    /// Print the compressed function as source code
    #[arg(long, value_enum, value_name = "LANGUAGE", requires = "compress")]
    code: Option<Code>,

    /// Also draw them, as .svg or .png: one panel per model
    #[arg(long, value_name = "FILE", value_parser = figure())]
    figure: Option<PathBuf>,

    /// Also write them to this file (decisions.json)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Forms of a decision function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Per communicator size, the message sizes at which the method changes
    Table,
    /// A decision tree
    Tree,
    /// A quadtree
    Quadtree,
}

/// Languages of source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Code {
    C,
    Rust,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share >= 0.0 => Ok(share),
        _ => Err("wanted a number from 0 on, as 0.05 for 5 %".into()),
    }
}

/// What the decisions are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Every algorithm that the model knows
    Any,
    /// Open MPI's own algorithms
    Openmpi,
}

const HEADING: [&str; 9] = [
    "collective",
    "model",
    "procs",
    "bytes",
    "method",
    "predicted",
    "95 % interval",
    "extrapolated",
    "ties",
];

impl Decide {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let source = Source::load(&self.model)?;
        let _shown = simulating::show();
        let models = match &self.model.model {
            Some(models) => models.0.clone(),
            None => source.models(default_models()),
        };
        let wanted = Wanted {
            collectives: &self.grid.collective.0,
            procs: &source.procs(&self.grid),
            sizes: &self.grid.sizes.0,
            segments: &self.grid.segments,
            models: &models,
            target: self.target,
        };
        if let Some(form) = self.compress {
            let compressed = self.compressed(&source, &wanted, form)?;
            return self.print_compressed(&source, &wanted, &compressed);
        }
        let decisions = decisions(&source, &wanted)?;
        if let Some(path) = &self.figure {
            let [collective] = self.grid.collective.0[..] else {
                usage!("--figure draws one collective; name it by --collective")
            };
            draw::write(figures::decision_map(&decisions, None, collective), path)?;
        }
        if let Some(path) = &self.output {
            document::write(path, &decisions)?;
        }
        output::rows(self.format, &rows(&decisions), &HEADING, |row| {
            let [seconds, low, high] =
                [row.seconds, row.low_seconds, row.high_seconds].map(quantity::format_seconds);
            vec![
                row.collective.to_string(),
                row.model.clone(),
                row.procs.to_string(),
                row.bytes.to_string(),
                row.method.to_string(),
                seconds,
                format!("{low} .. {high}"),
                output::mark(row.extrapolated),
                row.ties.clone(),
            ]
        })
    }
}

impl Decide {
    /// The compressed functions, by collective and model.
    fn compressed(
        &self,
        source: &Source,
        wanted: &Wanted<'_>,
        form: Form,
    ) -> Result<Vec<(Model, Compressed)>> {
        let shape = match form {
            Form::Table => Shape::Table,
            Form::Tree => Shape::Tree,
            Form::Quadtree => Shape::Quadtree,
        };
        let bounds = Bounds { depth: self.depth, penalty: self.within };
        let mut compressed = Vec::new();
        for &collective in wanted.collectives {
            for &model in wanted.models {
                let predictor = source.predictor(model)?;
                let methods = candidates(&predictor, collective, wanted)?;
                let grid = (wanted.procs, sizes(collective, wanted.sizes));
                let map = Map::new(&predictor, collective, grid, &methods)?;
                compressed.push((model, map.compress(&predictor, shape, bounds)?));
            }
        }
        Ok(compressed)
    }

    fn print_compressed(
        &self,
        source: &Source,
        wanted: &Wanted<'_>,
        all: &[(Model, Compressed)],
    ) -> Result<()> {
        let excess = |function: &Compressed| {
            let collective = function.collective;
            let procs = wanted.procs.iter().copied().max()?;
            let bytes = sizes(collective, wanted.sizes).iter().copied().max()?;
            source.reach().excess(Point { collective, procs, bytes })
        };
        let rows: Vec<CompressedRow> = all
            .iter()
            .map(|(model, function)| CompressedRow {
                model: model.name(),
                extrapolated: excess(function).is_some(),
                function,
            })
            .collect();
        if let Some(code) = self.code {
            let language = match code {
                Code::C => Language::C,
                Code::Rust => Language::Rust,
            };
            let [(model, function)] = all else {
                usage!("--code prints one function: name one --collective and one --model")
            };
            let mut origin = vec![
                format!("Decided by the model {model} with {}, not measured.", source.name),
                format!(
                    "Predicted penalty of this form: {:.2} % on average, {:.2} % at most.",
                    100.0 * function.mean_penalty,
                    100.0 * function.greatest_penalty
                ),
            ];
            if let Some(excess) = excess(function) {
                origin.push(format!("Extrapolated in part: up to {excess}."));
            }
            return output::print(&function.code(language, &origin));
        }
        if self.format == Format::Json {
            return output::print(&(serde_json::to_string_pretty(&rows)? + "\n"));
        }
        let short: Vec<Size> = rows.iter().map(CompressedRow::size).collect();
        let heading = [
            "collective",
            "model",
            "entries",
            "nodes",
            "mean penalty",
            "greatest penalty",
            "extrapolated",
        ];
        output::rows(self.format, &short, &heading, |row| {
            vec![
                row.collective.to_string(),
                row.model.into(),
                row.entries.to_string(),
                row.nodes.to_string(),
                format!("{:.2} %", 100.0 * row.mean_penalty),
                format!("{:.2} %", 100.0 * row.greatest_penalty),
                output::mark(row.extrapolated),
            ]
        })
    }
}

/// The methods that a compressed function may take anywhere on the grid.
fn candidates(
    predictor: &Predictor,
    collective: Collective,
    wanted: &Wanted<'_>,
) -> Result<Vec<Method>> {
    let Segments::These(segments) = wanted.segments else {
        usage!("--compress wants the segment sizes listed, as in --segments 0,1KiB,8KiB")
    };
    let mut methods = match wanted.target {
        Target::Any => {
            let known = predictor.model().algorithms(collective);
            decide::methods(predictor, collective, &known, segments)?
        }
        Target::Openmpi => {
            let most = |bytes: &[u64]| bytes.iter().copied().max().unwrap_or(0);
            let procs = wanted.procs.iter().copied().max().unwrap_or(1);
            openmpi::methods(collective, segments, procs, most(sizes(collective, wanted.sizes)))
        }
    };
    methods.retain(|method| predictor.knows(collective, method));
    if methods.is_empty() {
        usage!("{collective} has no candidates in model {}", predictor.model());
    }
    Ok(methods)
}

#[derive(serde::Serialize)]
struct CompressedRow<'a> {
    model: &'static str,
    /// A part of the grid lies beyond what was calibrated.
    extrapolated: bool,
    #[serde(flatten)]
    function: &'a Compressed,
}

/// How large a compressed function is, and what that costs.
#[derive(serde::Serialize)]
struct Size {
    collective: Collective,
    model: &'static str,
    entries: usize,
    nodes: usize,
    mean_penalty: f64,
    greatest_penalty: f64,
    extrapolated: bool,
}

impl CompressedRow<'_> {
    fn size(&self) -> Size {
        let Compressed { collective, entries, mean_penalty, greatest_penalty, .. } = *self.function;
        Size {
            collective,
            model: self.model,
            entries,
            nodes: self.function.nodes.len(),
            mean_penalty,
            greatest_penalty,
            extrapolated: self.extrapolated,
        }
    }
}

/// A decision as a flat row.
#[derive(serde::Serialize)]
struct Row {
    collective: Collective,
    model: String,
    procs: u32,
    bytes: u64,
    method: Method,
    seconds: f64,
    low_seconds: f64,
    high_seconds: f64,
    ties: String,
    extrapolated: bool,
}

fn rows(decisions: &Decisions) -> Vec<Row> {
    let row = |decision: &Decision| Row {
        collective: decision.collective,
        model: decision.model.clone(),
        procs: decision.procs,
        bytes: decision.bytes,
        method: decision.method.clone(),
        seconds: decision.seconds,
        low_seconds: decision.low_seconds,
        high_seconds: decision.high_seconds,
        ties: decision.ties.iter().map(Method::to_string).collect::<Vec<_>>().join(" "),
        extrapolated: decision.extrapolated,
    };
    decisions.decisions.iter().map(row).collect()
}

/// LogP knows no message size: it decides only when asked to.
pub fn default_models() -> Vec<Model> {
    vec![Model::Hockney, Model::LogGp, Model::PLogP]
}

/// What is to be decided.
pub struct Wanted<'a> {
    pub collectives: &'a [Collective],
    pub procs: &'a [u32],
    pub sizes: &'a [u64],
    pub segments: &'a Segments,
    pub models: &'a [Model],
    pub target: Target,
}

/// Every decision wanted, ascending by collective, model, procs and bytes.
pub fn decisions(source: &Source, wanted: &Wanted<'_>) -> Result<Decisions> {
    let mut decisions = Vec::new();
    let mut collectives = wanted.collectives.to_vec();
    collectives.sort_unstable();
    for &collective in &collectives {
        for &model in wanted.models {
            if model.algorithms(collective).is_empty() {
                usage!(
                    "{collective} has no closed forms in model {model}, so that it can't decide; \
                     take --model refined or simulated"
                );
            }
            let predictor = source.predictor(model)?;
            let known = model.algorithms(collective);
            tell_without(&predictor, collective, &known);
            if known.iter().all(|&one| predictor.methods(collective, one).is_empty()) {
                usage!("no constants of {model} were fitted for {collective}");
            }
            let sizes = sizes(collective, wanted.sizes);
            let of_procs = |&procs: &u32| {
                let point = move |&bytes: &u64| Point { collective, procs, bytes };
                sizes.iter().map(point)
            };
            let points: Vec<Point> = wanted.procs.iter().flat_map(of_procs).collect();
            decisions.extend(decided(&predictor, &points, wanted)?);
        }
    }
    Ok(Decisions {
        calibration: source.name.clone(),
        forms: source.forms().to_string(),
        parameters: source.parameters.name().into(),
        message_size: verification::penalty::message_sizes(collectives),
        decisions,
    })
}

/// The decision at each point, in their order; all processors work on them.
fn decided(predictor: &Predictor, points: &[Point], wanted: &Wanted<'_>) -> Result<Vec<Decision>> {
    /// Fewer are decided before another processor has begun.
    const LEAST: usize = 64;
    let processors = available_parallelism().map_or(1, usize::from);
    // Points on many processes take longer: each processor gets several parts.
    let each = points.len().div_ceil(8 * processors).max(LEAST);
    let decide = &|points: &[Point]| -> Result<Vec<Decision>> {
        points.iter().map(|point| decision(predictor, *point, wanted)).collect()
    };
    thread::scope(|scope| {
        let parts: Vec<_> =
            points.chunks(each).map(|part| scope.spawn(move || decide(part))).collect();
        let mut decisions = Vec::with_capacity(points.len());
        for part in parts {
            match part.join() {
                Ok(decided) => decisions.extend(decided?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(decisions)
    })
}

/// Whether the MPI library can be told to run a method there: not every algorithm takes segments, and
/// some fall back to others.
pub fn can_run(point: Point, method: &Method) -> bool {
    libraries::runs(point, method)
}

/// Says which algorithms are left out because they have no constants, where each has its own.
pub fn tell_without(predictor: &Predictor, collective: Collective, known: &[Algorithm]) {
    let without = |algorithm: &&Algorithm| predictor.methods(collective, **algorithm).is_empty();
    let names: Vec<&str> = known.iter().filter(without).map(|one| one.name()).collect();
    if !names.is_empty() && names.len() < known.len() {
        let (model, names) = (predictor.model(), names.join(", "));
        eprintln!(
            "note: left out, since no constants of {model} were fitted: {collective} by {names}"
        );
    }
}

fn decision(predictor: &Predictor, point: Point, wanted: &Wanted<'_>) -> Result<Decision> {
    let Point { collective, procs, bytes } = point;
    match (wanted.target, wanted.segments) {
        (Target::Any, Segments::These(segments)) if predictor.is_by_method() => {
            let model = predictor.model();
            let known = model.algorithms(collective);
            let mut methods = decide::methods(predictor, collective, &known, segments)?;
            let serves = |algorithm| model.serves(collective, algorithm, procs);
            methods
                .retain(|method| method.algorithm().is_none_or(serves) && can_run(point, method));
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Any, segments) => {
            let segments = match segments {
                Segments::Auto => decide::Segments::Auto,
                Segments::These(these) => decide::Segments::List(these.clone()),
            };
            let algorithms = predictor.model().algorithms(collective);
            Ok(decide::decide(predictor, point, &algorithms, &segments)?)
        }
        (Target::Openmpi, Segments::These(segments)) => {
            let mut methods = openmpi::methods(collective, segments, procs, bytes);
            methods.retain(|method| predictor.knows(collective, method));
            if methods.is_empty() {
                usage!(
                    "of Open MPI's algorithms for {collective} none is known to model {}",
                    predictor.model()
                );
            }
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Openmpi, Segments::Auto) => {
            usage!(
                "for Open MPI say which segment sizes are candidates, as in --segments 0,1KiB,8KiB"
            )
        }
    }
}
