//! `colibri decide`: which method each model takes at each point of a grid.

mod against;
mod candidates;
mod compressed;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
};

use anyhow::Result;
use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use models::{
    Model, Predictor,
    compress::{CompressionForm, Language},
};
use records::{
    Collective, Layout, Method, Point, choices::Chosen, document, platform::Platform, quantity,
};

use self::against::AgainstOptions;
use crate::commands::shared::{
    figure,
    options::{
        GridOptions, ListedOrBestSegments, ModelOptions, RootOption, export_format,
        figure as figure_file, named, usual_models,
    },
    output::{self, TableFormat},
};
use site::usage;
use stages::{
    deciding::{DecisionRequest, decisions, default_models},
    export_formats::{ExportFormat, Exporter, LibraryMatch},
    simulating,
    source::CalibrationSource,
};

/// Over the flags of compressed functions in a help text.
const COMPRESSED: &str = "Compressed decision functions";

/// Chooses, at each point, the method that is predicted to be the fastest; compares two decision functions
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| usual_models(model, &default_models(), "")))]
pub struct Decide {
    #[command(flatten)]
    against: AgainstOptions,

    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    root: RootOption,

    #[command(flatten)]
    grid: GridOptions<ListedOrBestSegments>,

    /// Decide only among methods that this form of file can name, as `export --target` writes it
    /// [default: all methods that the model covers]
    #[arg(long, value_parser = export_format(), value_name = "FORMAT")]
    target: Option<ExportFormat>,

    /// The target's version, such as 4.1 [default: the one that was calibrated]
    #[arg(long, value_name = "VERSION", requires = "target", hide_short_help = true)]
    target_version: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,

    /// Print the decision function compressed to this form, with the penalty of compressing
    #[arg(long, value_parser = compression_form(), value_name = "FORM", help_heading = COMPRESSED)]
    compress: Option<CompressionForm>,

    /// Greatest depth of a compressed tree
    #[arg(long, value_name = "N", default_value_t = 16, requires = "compress", hide_short_help = true, help_heading = COMPRESSED)]
    depth: u32,

    /// Penalty up to which a node of a compressed tree is not split, as 5% or 0.05
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, 0.0..), default_value_t = 0.0, requires = "compress", hide_short_help = true, help_heading = COMPRESSED)]
    within: f64,

    /// Print the compressed function as source code
    #[arg(long, value_parser = language(), value_name = "LANGUAGE", requires = "compress", conflicts_with = "format", hide_short_help = true, help_heading = COMPRESSED)]
    code: Option<Language>,

    /// Also draw the decisions, as .svg or .png: one panel per model
    #[arg(long, value_name = "FILE", value_parser = figure_file())]
    figure: Option<PathBuf>,

    /// Also write them to this file of choices, which `export` and `decide --against` read
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Instead rank the best few methods of each size in DIR/candidates.json: with COLIBRI_ADAPT=DIR the preload
    /// library tries these first [model: refined]
    #[arg(
        long,
        value_name = "DIR",
        hide_short_help = true,
        conflicts_with_all = ["against", "target", "compress", "figure", "output"]
    )]
    candidates: Option<PathBuf>,
}

fn compression_form() -> impl TypedValueParser<Value = CompressionForm> {
    use CompressionForm::{Quadtree, Table, Tree};
    named(&[Table, Tree, Quadtree], |form| match form {
        Table => PossibleValue::new("table")
            .help("Per communicator size, the message sizes at which the method changes"),
        Tree => PossibleValue::new("tree").help("A decision tree"),
        Quadtree => PossibleValue::new("quadtree").help("A quadtree"),
    })
}

fn language() -> impl TypedValueParser<Value = Language> {
    named(&[Language::C, Language::Rust], |language| match language {
        Language::C => PossibleValue::new("c"),
        Language::Rust => PossibleValue::new("rust"),
    })
}

const HEADING: [&str; 10] = [
    "collective",
    "model",
    "found by",
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
        if let Some(against) = &self.against.against {
            return self.compare(against);
        }
        let source = self.model.load()?;
        let _shown = simulating::show();
        if let Some(directory) = &self.candidates {
            return self.write_candidates(source, directory);
        }
        let models = self.model.named_models(&source);
        let models = models.unwrap_or_else(|| source.models(default_models()));
        let layouts = self.kept_layouts(source.layouts(&self.grid.layouts()))?;
        self.grid.check_rows(layouts.len(), self.grid.collective.0.len() * models.len())?;
        let source = source.with_root(self.root.checked(&self.grid.collective.0, &layouts)?);
        let exporter = self.exporter(&source.calibration.platform)?;
        let wanted = self.request(&layouts, &models, exporter.as_deref());
        if let Some(form) = self.compress {
            let compressed = self.compressed(&source, &wanted, form)?;
            return self.print_compressed(&source, &wanted, &compressed);
        }
        let decisions = decisions(&source, &wanted)?;
        if let Some(path) = &self.figure {
            let [collective] = self.grid.collective.0[..] else {
                usage!("--figure draws one collective; name it by --collective")
            };
            figure::write(figures::decision_map(&decisions, None, collective), path)?;
        }
        if let Some(path) = &self.output {
            document::write(path, &decisions)?;
        }
        output::rows(self.format, &rows(&source, decisions.choices)?, &HEADING, |row| {
            let [seconds, low, high] =
                [row.seconds, row.low_seconds, row.high_seconds].map(quantity::format_seconds);
            vec![
                row.collective.to_string(),
                row.model.clone(),
                row.found_by.into(),
                row.layout.to_string(),
                row.bytes.to_string(),
                row.method.to_string(),
                seconds,
                // Of parameters without errors, as a preset's, there is none.
                if row.low_seconds < row.high_seconds {
                    format!("{low} .. {high}")
                } else {
                    String::new()
                },
                output::mark(row.extrapolated),
                row.ties.clone(),
            ]
        })
    }

    fn request<'a>(
        &'a self,
        layouts: &'a [Layout],
        models: &'a [Model],
        target: Option<&'a dyn Exporter>,
    ) -> DecisionRequest<'a> {
        DecisionRequest {
            collectives: &self.grid.collective.0,
            layouts,
            sizes: &self.grid.sizes.0,
            segments: &self.grid.segments.segments,
            models,
            target,
            of_all: self.grid.asks_for_all() || self.model.asks_for_all(),
        }
    }

    /// Of the target, for the version that was calibrated if no other is named.
    fn exporter(&self, platform: &Platform) -> Result<Option<Box<dyn Exporter>>> {
        let Some(format) = self.target else { return Ok(None) };
        let (version, fit) = format.version_for(self.target_version.as_deref(), platform)?;
        let library = match fit {
            LibraryMatch::Own => format.library_file(&platform.mpi_library),
            LibraryMatch::Other(_) | LibraryMatch::Unknown => None,
        };
        format.exporter(version.as_deref(), library.as_deref()).map(Some)
    }
}

/// A decision as a row of CSV, which has no lists, with what finds it.
#[derive(serde::Serialize)]
struct DecisionRow {
    collective: Collective,
    model: String,
    /// See [`Predictor::found_by`].
    found_by: &'static str,
    #[serde(rename = "procs")]
    layout: Layout,
    bytes: u64,
    method: Method,
    seconds: f64,
    low_seconds: f64,
    high_seconds: f64,
    ties: String,
    extrapolated: bool,
}

fn rows(source: &CalibrationSource, decisions: Vec<Chosen>) -> Result<Vec<DecisionRow>> {
    let mut predictors: BTreeMap<String, Predictor> = BTreeMap::new();
    let row = |decision: Chosen| {
        let Point { collective, layout, bytes } = decision.point;
        let [low_seconds, high_seconds] = decision.interval();
        let model = decision.model.unwrap_or_default();
        let predictor = match predictors.entry(model.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                place.insert(source.predictor(model.parse().map_err(anyhow::Error::msg)?)?)
            }
        };
        Ok(DecisionRow {
            collective,
            model,
            found_by: predictor.found_by(decision.point, &decision.method)?,
            layout,
            bytes,
            method: decision.method,
            seconds: decision.seconds,
            low_seconds,
            high_seconds,
            ties: decision.ties.iter().map(Method::to_string).collect::<Vec<_>>().join(" "),
            extrapolated: decision.extrapolated,
        })
    };
    decisions.into_iter().map(row).collect()
}
