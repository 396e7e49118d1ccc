//! What models and grids are wanted, as subcommands take it from their flags.

use std::{collections::BTreeSet, ffi::OsString};

use anyhow::Result;
use clap::{
    Arg, Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use models::{Forms, Model, decide::Segments};
use records::{Collective, Layout, Root, quantity};
use timing::scheme::TimingScheme;

use crate::{
    kinds::MethodKind,
    roots::{self, WantedRoot},
};
use site::usage;

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

/// Roots with commas.
pub fn roots(text: &str) -> Result<List<WantedRoot>, String> {
    each(text)
}

/// Names with commas, or `all`: then those without methods are left out.
pub fn collectives(text: &str) -> Result<List<Collective>, String> {
    match text {
        "all" => Ok(List(Collective::ALL.to_vec())),
        _ => each(text),
    }
}

/// Names with commas, or `all`.
pub fn kinds(text: &str) -> Result<List<MethodKind>, String> {
    match text {
        "all" => Ok(List(MethodKind::ALL.to_vec())),
        _ => each(text),
    }
}

/// Whether all collectives were asked for.
pub fn is_all(collectives: &[Collective]) -> bool {
    collectives == Collective::ALL
}

/// Names with commas, or `all`: then those that know nothing of a collective are left out.
pub fn models(text: &str) -> Result<List<Model>, String> {
    match text {
        "all" => Ok(List(Model::ALL.to_vec())),
        _ => each(text),
    }
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
    #[arg(long, value_enum, default_value_t = ParameterSet::Measured, hide_short_help = true, help_heading = MODELS)]
    pub parameters: ParameterSet,
}

impl ModelOptions {
    /// Whether all models were asked for.
    pub fn asks_for_all(&self) -> bool {
        self.model.as_ref().is_some_and(|models| models.0 == Model::ALL)
    }
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

/// Which of a calibration's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ParameterSet {
    Measured,
    Fitted,
    Algorithms,
}

/// The sets that give the cost of a message; constants of algorithms give that of a whole collective.
pub fn message_parameters() -> impl TypedValueParser<Value = ParameterSet> {
    let sets = [ParameterSet::Measured, ParameterSet::Fitted];
    PossibleValuesParser::new(sets.map(ParameterSet::name))
        .try_map(|name| ParameterSet::from_str(&name, false))
}

impl ParameterSet {
    pub fn name(self) -> &'static str {
        match self {
            ParameterSet::Measured => "measured",
            ParameterSet::Fitted => "fitted",
            ParameterSet::Algorithms => "algorithms",
        }
    }
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

    /// Communicator sizes: 4,8,16 or 2..32 (every one), also more processes than were calibrated
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

/// Over the flags of grids in a help text.
pub const GRID: &str = "Grid";

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

    /// The communicators asked for in a job of which several nodes hold several ranks: a number of
    /// processes are the job's first ranks. Where nothing is asked for, 2, 4, 8, ... and all nodes, with
    /// one rank and with all ranks of each.
    pub fn layouts_in(&self, job: Layout) -> Vec<Layout> {
        if let (None, Some(procs)) = (&self.layouts, &self.procs) {
            // More than there are is refused as such.
            let first = |&procs: &u32| job.of_first(procs).unwrap_or(Layout::flat(procs));
            return procs.0.iter().map(first).collect();
        }
        if self.layouts.is_some() {
            return self.layouts_or(Vec::new);
        }
        let (most, placement) = (job.max_per_node(), job.placement().unwrap_or_default());
        let whole = |nodes: u32| match job.per_node() {
            Some(_) => Layout::even(nodes, most, placement).unwrap_or(job),
            None => job,
        };
        let nodes = powers_of_two_and(job.nodes());
        let layouts = nodes.into_iter().flat_map(|nodes| [Layout::flat(nodes), whole(nodes)]);
        layouts.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The communicators asked for, in ascending order; where none are, one rank per node
    /// of each of the `usual` sizes.
    pub fn layouts_or(&self, usual: impl FnOnce() -> Vec<u32>) -> Vec<Layout> {
        match (&self.layouts, &self.procs) {
            (Some(layouts), _) => layouts.0.clone(),
            (None, Some(procs)) => procs.0.iter().copied().map(Layout::flat).collect(),
            (None, None) => usual().into_iter().map(Layout::flat).collect(),
        }
    }
}

/// 2, 4, 8, ... below `most`, and `most`.
pub fn powers_of_two_and(most: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(2_u32), |power| power.checked_mul(2));
    powers.take_while(|&power| power < most).chain([most]).collect()
}
