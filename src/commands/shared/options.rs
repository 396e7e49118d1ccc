//! Flags that several subcommands share, and the values in them.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use anyhow::{Result, bail};
use clap::{
    Arg, Args,
    builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser},
};
use models::{Forms, Model, decide::Segments};
use records::{Algorithm, Collective, Layout, Root, document, quantity};
use timing::scheme::TimingScheme;
use tuning::plan::Grid;

pub use site::options::{RunOptions, SiteOptions};
use site::{ranks::Site, run_directory::RunDirectory, usage};
pub use stages::source::ParameterSet;
use stages::{
    compared::ComparedKinds,
    export_formats::ExportFormat,
    kinds::MethodKind,
    layouts::WantedLayouts,
    measuring,
    roots::{self, WantedRoot},
    source::CalibrationSource,
};

/// A list in a flag: `4,8,16` or a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

pub fn sizes(text: &str) -> Result<List<u64>, String> {
    quantity::parse_sizes(text).map(List)
}

pub fn procs(text: &str) -> Result<List<u32>, String> {
    quantity::parse_procs(text).map(List)
}

pub fn layouts(text: &str) -> Result<List<Layout>, String> {
    let List(mut layouts) = each(text)?;
    layouts.sort_unstable();
    Ok(List(layouts))
}

pub fn each<T: std::str::FromStr<Err = String> + PartialEq>(text: &str) -> Result<List<T>, String> {
    let mut values = Vec::new();
    for part in text.split(',') {
        let value = part.trim().parse()?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(List(values))
}

/// Names with commas, or `all` by itself.
fn all_or_each<T>(text: &str, all: &[T]) -> Result<List<T>, String>
where
    T: std::str::FromStr<Err = String> + PartialEq + Clone,
{
    match text {
        "all" => Ok(List(all.to_vec())),
        _ if text.split(',').any(|part| part.trim() == "all") => {
            Err("'all' stands for every name; give it alone".into())
        }
        _ => each(text),
    }
}

/// Roots with commas.
pub fn roots(text: &str) -> Result<List<WantedRoot>, String> {
    each(text)
}

/// Names with commas, or `all`: then those without methods are left out.
pub fn collectives(text: &str) -> Result<List<Collective>, String> {
    all_or_each(text, &Collective::ALL)
}

/// Names with commas, or `all`.
pub fn kinds(text: &str) -> Result<List<MethodKind>, String> {
    all_or_each(text, &MethodKind::ALL)
}

/// Whether all collectives were asked for.
pub fn is_all(collectives: &[Collective]) -> bool {
    collectives == Collective::ALL
}

/// Names with commas, or `all`: then those that know nothing of a collective are left out.
pub fn models(text: &str) -> Result<List<Model>, String> {
    all_or_each(text, &Model::ALL)
}

pub fn segments(text: &str) -> Result<Segments, String> {
    match text {
        "auto" => Ok(Segments::Auto),
        _ => quantity::parse_sizes(text)
            .map(Segments::List)
            .map_err(|error| format!("{error}; or `auto`")),
    }
}

/// The name of a timing scheme.
pub fn timing_scheme() -> impl TypedValueParser<Value = TimingScheme> {
    let names = PossibleValuesParser::new(TimingScheme::ALL.map(TimingScheme::name));
    names.try_map(|name| name.parse::<TimingScheme>())
}

/// Over the flags of models in a help text.
const MODELS: &str = "Models";

/// Over the flags of grids in a help text.
pub const GRID: &str = "Grid";

/// Which parameters and which closed forms.
#[derive(Debug, Clone, Args)]
pub struct ModelOptions {
    /// A run or its calibration.json, or preset:frodo, preset:boba (Pjesivac-Grbovic et al., Table 5)
    #[arg(long, value_name = "RUN|FILE|preset:NAME", help_heading = MODELS)]
    pub calibration: Option<OsString>,

    /// Models, with commas: hockney, logp, loggp, plogp, refined, simulated; or all
    #[arg(long, value_name = "MODELS", value_parser = models, help_heading = MODELS)]
    pub model: Option<List<Model>>,

    /// Closed forms as that paper prints them, or corrected
    #[arg(long, value_name = "printed|corrected", default_value = "corrected", hide_short_help = true, help_heading = MODELS)]
    pub forms: Forms,

    /// Parameters measured point to point, fitted to collectives, or Hockney's constants fitted to
    /// each algorithm (with the models hockney and refined)
    #[arg(long, value_parser = parameter_sets(&ParameterSet::ALL), default_value = "measured", hide_short_help = true, help_heading = MODELS)]
    pub parameters: ParameterSet,
}

impl ModelOptions {
    /// Whether all models were asked for.
    pub fn asks_for_all(&self) -> bool {
        self.model.as_ref().is_some_and(|models| models.0 == Model::ALL)
    }

    /// Loads what the flags name.
    ///
    /// # Errors
    /// As [`CalibrationSource::load`].
    pub fn load(&self) -> Result<CalibrationSource> {
        CalibrationSource::load(self.calibration.as_deref(), self.forms, self.parameters)
    }

    /// Loads what the flags name, or else the run's own calibration.
    ///
    /// # Errors
    /// As [`CalibrationSource::load`].
    pub fn load_for(&self, run: &RunDirectory) -> Result<CalibrationSource> {
        match self.calibration {
            Some(_) => self.load(),
            None => {
                if !run.calibration().exists() {
                    let run = run.path().display();
                    bail!(
                        "{run} has no calibration.json: run `colibri calibrate {run}` first, or give --calibration \
                         FILE"
                    );
                }
                let calibration = document::read(&run.calibration())?;
                CalibrationSource::of_run(calibration, self.forms, self.parameters)
            }
        }
    }

    /// The models named, without those of `all` for which a calibration has no parameters.
    pub fn named_models(&self, source: &CalibrationSource) -> Option<Vec<Model>> {
        let mut models = self.model.as_ref()?.0.clone();
        models.retain(|model| !self.asks_for_all() || source.holds(*model));
        Some(models)
    }
}

/// What `--model` is to a subcommand that takes these models where none is named; what else holds is told by `more`.
pub fn usual_models(model: Arg, usual: &[Model], more: &str) -> Arg {
    let help = model.get_help().map(ToString::to_string).unwrap_or_default();
    let names: Vec<&str> = usual.iter().map(|model| model.name()).collect();
    model.help(format!("{help} [default: {}{more}]", names.join(", ")))
}

/// The root of what is predicted.
#[derive(Debug, Clone, Copy, Args)]
pub struct RootOption {
    /// Root of the collectives that have one: the number of a rank, or last. Only simulated times depend on it
    #[arg(long, value_name = "RANK|last", default_value = "0", hide_short_help = true, help_heading = MODELS)]
    pub root: Root,
}

impl RootOption {
    /// The root; in communicators of fewer ranks than its number what is left when that is divided by theirs.
    ///
    /// # Errors
    /// It means nothing for these collectives, or is a rank of none of the communicators.
    pub fn checked(self, collectives: &[Collective], layouts: &[Layout]) -> Result<Root> {
        if self.root != Root::default() {
            if !collectives.iter().any(|of| of.is_rooted()) {
                usage!("--root: none of the collectives has a root; leave it out");
            }
            let most = layouts.iter().map(|layout| layout.procs()).max().unwrap_or(0);
            roots::check(self.root, most)?;
        }
        Ok(self.root)
    }
}

/// The sets that give the cost of a message; constants of algorithms give that of a whole collective.
pub fn message_parameters() -> impl TypedValueParser<Value = ParameterSet> {
    parameter_sets(&[ParameterSet::Measured, ParameterSet::Fitted])
}

fn parameter_sets(sets: &'static [ParameterSet]) -> impl TypedValueParser<Value = ParameterSet> {
    named(sets, |set| PossibleValue::new(set.name()))
}

/// One of these, by its name.
pub fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    value: fn(T) -> PossibleValue,
) -> impl TypedValueParser<Value = T> {
    let values = PossibleValuesParser::new(all.iter().map(|&one| value(one)));
    values.try_map(move |name| {
        let is_it = |one: &&T| value(**one).get_name() == name;
        all.iter().find(is_it).copied().ok_or_else(|| format!("no {name}"))
    })
}

/// A format that something loads.
pub fn export_format() -> impl TypedValueParser<Value = ExportFormat> {
    named(ExportFormat::all(), |format| PossibleValue::new(format.name()).help(format.about()))
}

/// What the default is compared with.
#[derive(Debug, Clone, Args)]
pub struct MethodOptions {
    /// Kinds of methods to compare with the default: native, own, mockup, plugin (with commas), or all
    /// [default: native; own too where the library has few algorithms, or unknown ones]
    #[arg(long, value_name = "KINDS", value_parser = kinds)]
    methods: Option<List<MethodKind>>,
}

impl MethodOptions {
    /// The kinds, where any is asked for.
    pub fn kinds(&self) -> Option<&[MethodKind]> {
        self.methods.as_ref().map(|kinds| kinds.0.as_slice())
    }
}

/// Which collectives, at which points; `S` are the segment sizes that a subcommand takes.
#[derive(Debug, Clone, Args)]
pub struct GridOptions<S: Args> {
    /// Collectives, with commas; `all`: every one that has methods
    #[arg(long, value_name = "NAMES", value_parser = collectives, default_value = "bcast,reduce", help_heading = GRID)]
    pub collective: List<Collective>,

    /// Communicator sizes: 4,8,16 or 2..32 (every one), also more ranks than were calibrated
    ///
    /// [default: powers of two up to the calibrated number, and that number; up to 32 if unknown]
    #[arg(long, short, value_name = "LIST", value_parser = procs, help_heading = GRID)]
    pub procs: Option<List<u32>>,

    /// Instead of --procs, which ranks are on which node: 4x4,8x4 (nodes x ranks
    /// per node), 8x4:cyclic, 4+4+3
    #[arg(
        long,
        value_name = "LIST",
        value_parser = layouts,
        conflicts_with = "procs",
        group = "nodes",
        help_heading = GRID
    )]
    pub layouts: Option<List<Layout>>,

    /// Message sizes: 1KiB,64KiB or 1..8MiB (powers of two), as each collective defines them
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "1..1MiB", help_heading = GRID)]
    pub sizes: List<u64>,

    #[command(flatten)]
    pub segments: S,
}

impl GridOptions<ListedSegments> {
    /// The points to measure at a site.
    ///
    /// # Errors
    /// As [`measuring::grid`].
    pub fn measured(&self, site: &Site, kinds: &ComparedKinds) -> Result<Grid> {
        let (sizes, segments) = (self.sizes.0.clone(), self.segments.sizes().to_vec());
        measuring::grid(site, kinds, &self.collective.0, &self.layouts(), sizes, segments)
    }
}

/// Segment sizes of a subcommand that measures or simulates each of them.
#[derive(Debug, Clone, Args)]
pub struct ListedSegments {
    /// Segment sizes, with commas; 0: unsegmented
    #[arg(long, value_name = "LIST", value_parser = listed_segments, default_value = "0,1KiB,8KiB", help_heading = GRID)]
    segments: List<u64>,
}

impl ListedSegments {
    /// In bytes; 0 is unsegmented.
    pub fn sizes(&self) -> &[u64] {
        &self.segments.0
    }
}

fn listed_segments(text: &str) -> Result<List<u64>, String> {
    sizes(text).map_err(|error| format!("{error}; list the sizes, as in 0,1KiB,8KiB"))
}

/// Segment sizes of a subcommand that can find the best of all by a formula.
#[derive(Debug, Clone, Args)]
pub struct ListedOrBestSegments {
    /// Segment sizes, with commas; 0: unsegmented; auto: the best size at each point
    #[arg(long, value_name = "LIST|auto", value_parser = segments, default_value = "0,1KiB,8KiB", help_heading = GRID)]
    pub segments: Segments,
}

/// What `--procs` is to a subcommand that measures.
pub fn measured_procs(procs: Arg) -> Arg {
    const SHORT: &str = "Communicator sizes: 4,8,16 or 2..32 (every one), at most the job's ranks";
    procs.help(SHORT).long_help(format!(
        "{SHORT}\n\n[default: powers of two up to the job's ranks, and all ranks; where nodes hold several \
         ranks: powers of two of nodes, and all nodes, with one rank and with all ranks on each]"
    ))
}

/// Each row takes some hundred bytes until the last one is printed.
const MAX_ROWS: usize = 1 << 21;

impl<S: Args> GridOptions<S> {
    /// Whether so many rows at each point and layout are as many as one command can hold.
    ///
    /// # Errors
    /// They are more.
    pub fn check_rows(&self, layouts: usize, per_point: usize) -> Result<()> {
        let rows = layouts.saturating_mul(self.sizes.0.len()).saturating_mul(per_point);
        if rows > MAX_ROWS {
            usage!(
                "{rows} rows are too many at once (at most {MAX_ROWS}); take fewer --procs, --sizes \
                 or --collective"
            );
        }
        Ok(())
    }

    /// Whether all collectives were asked for.
    pub fn asks_for_all(&self) -> bool {
        is_all(&self.collective.0)
    }

    /// The communicators asked for.
    pub fn layouts(&self) -> WantedLayouts {
        match (&self.layouts, &self.procs) {
            (Some(layouts), _) => WantedLayouts::Layouts(layouts.0.clone()),
            (None, Some(procs)) => WantedLayouts::Procs(procs.0.clone()),
            (None, None) => WantedLayouts::Usual,
        }
    }
}

pub fn algorithms(text: &str) -> Result<List<Algorithm>, String> {
    each(text)
}

/// Takes a value in which a file is named: that need not be UTF-8.
pub fn with_a_path<T: Clone + Send + Sync + 'static>(
    parse: fn(OsString) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(parse)
}

/// A file to draw into. Endings that would not be written are refused before any work.
pub fn figure() -> impl TypedValueParser<Value = PathBuf> {
    with_a_path(|name| {
        let path = PathBuf::from(name);
        match path.extension().and_then(OsStr::to_str) {
            Some("svg" | "png") => Ok(path),
            _ => Err("expected a name that ends with .svg or .png".into()),
        }
    })
}
