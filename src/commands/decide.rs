//! `colibri decide`: which method each model takes at each point of a grid.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use models::{Model, Predictor, decide};
use records::{
    Collective, Method, Point,
    decisions::{Decision, Decisions},
    document, openmpi, quantity,
};

use crate::{
    commands::predict::sizes,
    error::usage,
    options::{GridOptions, ModelOptions, Segments},
    output::{self, Format},
    source::Source,
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

    /// Also write them to this file (decisions.json)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the decisions are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Every algorithm that the model knows
    Any,
    /// Open MPI's own algorithms
    Openmpi,
}

const HEADING: [&str; 8] =
    ["collective", "model", "procs", "bytes", "method", "predicted", "95 % interval", "ties"];

impl Decide {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let source = Source::load(&self.model)?;
        let models =
            self.model.model.as_ref().map_or_else(default_models, |models| models.0.clone());
        let wanted = Wanted {
            collectives: &self.grid.collective.0,
            procs: &source.procs(&self.grid),
            sizes: &self.grid.sizes.0,
            segments: &self.grid.segments,
            models: &models,
            target: self.target,
        };
        let decisions = decisions(&source, &wanted)?;
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
                row.ties.clone(),
            ]
        })
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
            for &procs in wanted.procs {
                for &bytes in sizes(collective, wanted.sizes) {
                    let point = Point { collective, procs, bytes };
                    decisions.push(decision(&predictor, point, wanted)?);
                }
            }
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

fn decision(predictor: &Predictor, point: Point, wanted: &Wanted<'_>) -> Result<Decision> {
    let Point { collective, procs, bytes } = point;
    match (wanted.target, wanted.segments) {
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
