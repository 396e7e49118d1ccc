//! `colibri draw`: a topology as a tree, a schedule as a space-time diagram.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::{
    ArgGroup, Args,
    builder::{PossibleValue, TypedValueParser},
};
use figures::Figure;
use models::{
    Model,
    simulated::{LevelledNetwork, SimulatedCall},
};
use records::{Collective, OwnMethod, document, quantity, unknown};
use schedules::{
    Entry,
    topology::{self, ChildOrder, TOPOLOGIES, Topology, TreeShape},
    why_not_modelled,
};

use crate::commands::shared::{
    figure::{answer, write},
    levels::{LevelOptions, PlacedAlgorithm},
    network::{CostModel, RendezvousCost, SimulationOptions, blamed, check_options, in_words},
    options::{message_parameters, named},
    output,
};
use site::{error::WrongUse, usage};
use stages::source::{CalibrationSource, ParameterSet};

/// Draws a topology (Graphviz, SVG, PNG) or a schedule in time (SVG, PNG)
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("subject").required(true).args(["topology", "schedule", "counts"])))]
pub struct Draw {
    /// Draw this tree: flat, chain, k-chain, binary, in-order-binary, binomial, bine, k-nomial
    #[arg(long, value_name = "NAME", value_parser = topology)]
    topology: Option<&'static Topology>,

    /// Draw a schedule's space-time diagram, as simulated
    #[arg(long)]
    schedule: bool,

    /// Draw how scatterv or gatherv moves blocks of these sizes, one of each rank (Graphviz): who hands
    /// on what, and in which order
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = quantity::parse_bytes)]
    counts: Option<Vec<u64>>,

    /// Number of ranks
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    procs: u32,

    /// The root [default: 0]
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,

    /// Number of chains of k-chain, radix of k-nomial [default: 4]
    #[arg(long, value_name = "K")]
    fan_out: Option<u32>,

    /// Order of a topology's children from left to right
    #[arg(long, value_parser = child_order(), default_value = "ascending", conflicts_with = "schedule", hide_short_help = true)]
    order: ChildOrder,

    /// The schedule's or the blocks' collective
    #[arg(
        long,
        value_name = "NAME",
        required_if_eq("schedule", "true"),
        conflicts_with = "topology"
    )]
    collective: Option<Collective>,

    /// Its algorithm
    #[arg(
        long,
        value_name = "NAME",
        required_if_eq("schedule", "true"),
        conflicts_with = "topology"
    )]
    algorithm: Option<String>,

    /// Message size, as each collective defines it
    #[arg(long, short = 'm', value_name = "SIZE", value_parser = quantity::parse_bytes, conflicts_with = "topology")]
    sizes: Option<u64>,

    /// Segment size [default: 0, unsegmented]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, conflicts_with = "topology")]
    segments: Option<u64>,

    /// A run or its calibration.json, or preset:frodo, preset:boba (Pjesivac-Grbovic et al., Table 5)
    #[arg(long, value_name = "RUN|FILE|preset:NAME")]
    calibration: Option<OsString>,

    /// Parameters measured point to point, or fitted to collectives
    #[arg(long, value_parser = message_parameters(), default_value = "measured", hide_short_help = true)]
    parameters: ParameterSet,

    #[command(flatten)]
    simulation: SimulationOptions,

    #[command(flatten)]
    levels: LevelOptions,

    /// File to draw into; its ending gives the form: .dot (a topology), .svg or .png [default: a
    /// topology as Graphviz text on stdout]
    #[arg(long, short, value_name = "FILE", required_if_eq("schedule", "true"))]
    output: Option<PathBuf>,
}

fn child_order() -> impl TypedValueParser<Value = ChildOrder> {
    named(&[ChildOrder::Ascending, ChildOrder::Descending], |order| match order {
        ChildOrder::Ascending => {
            PossibleValue::new("ascending").help("Nearest after the root first")
        }
        ChildOrder::Descending => PossibleValue::new("descending")
            .help("Farthest first, as a binomial broadcast serves them"),
    })
}

/// What a file holds, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrawingForm {
    Graphviz,
    Picture,
}

fn topology(name: &str) -> Result<&'static Topology, String> {
    topology::find(name).ok_or_else(|| {
        let names: Vec<_> = TOPOLOGIES.iter().map(|topology| topology.name).collect();
        unknown("topology", name, &names)
    })
}

impl Draw {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        if let Some(counts) = &self.counts {
            return self.draw_blocks(counts);
        }
        match (self.topology, self.collective, &self.algorithm) {
            (Some(topology), ..) => self.draw_topology(topology),
            (None, Some(collective), Some(algorithm)) => self.draw_schedule(collective, algorithm),
            (None, ..) => usage!(
                "nothing to draw; give --topology NAME, --schedule with --collective NAME and --algorithm NAME, or \
                 --counts LIST with these two"
            ),
        }
    }

    fn draw_topology(&self, topology: &Topology) -> Result<()> {
        if self.calibration.is_some() || self.simulation.rendezvous.is_some() {
            usage!("--calibration and --rendezvous are for --schedule; a topology has no times");
        }
        if self.fan_out.is_some() && !figures::has_fan_out(topology) {
            usage!("--fan-out: {} has none; k-chain and k-nomial have", topology.name);
        }
        let shape = TreeShape {
            ranks: self.procs,
            root: self.root.unwrap_or(0),
            fan_out: self.fan_out.unwrap_or(4),
        };
        let text = || figures::dot(topology, shape, self.order).map_err(answer);
        match &self.output {
            None => output::print(&text()?),
            Some(path) => match form(path, true)? {
                DrawingForm::Graphviz => Ok(document::write_text(path, &text()?)?),
                DrawingForm::Picture => write(figures::tree(topology, shape, self.order), path),
            },
        }
    }

    fn draw_blocks(&self, counts: &[u64]) -> Result<()> {
        let (Some(collective), Some(algorithm)) = (self.collective, &self.algorithm) else {
            usage!("--counts needs --collective scatterv or gatherv, and --algorithm NAME");
        };
        if counts.len() != self.procs as usize {
            let (given, procs) = (counts.len(), self.procs);
            usage!("--counts: {given} given; expected {procs}, one of each rank");
        }
        let entry = self.levels.composition.named(None, collective, algorithm)?.entry;
        let text = figures::uneven_dot(entry, counts, self.root.unwrap_or(0)).map_err(answer)?;
        match &self.output {
            None => output::print(&text),
            Some(path) if path.extension().is_some_and(|end| end == "dot" || end == "gv") => {
                Ok(document::write_text(path, &text)?)
            }
            Some(path) => {
                usage!("--output {}: expected a name that ends with .dot", path.display())
            }
        }
    }

    fn draw_schedule(&self, collective: Collective, algorithm: &str) -> Result<()> {
        let Some(path) = &self.output else {
            usage!("--schedule needs a file to draw into, as in --output schedule.svg");
        };
        form(path, false)?;
        let LevelOptions { layout, composition } = &self.levels;
        let placed = self.placed(collective, algorithm)?;
        let entry = placed.entry;
        if let Some(layout) = layout.filter(|layout| layout.procs() != self.procs) {
            usage!("--procs: --layouts {layout} has {} ranks", layout.procs());
        }
        check_options(collective, &[entry], self.root, self.fan_out)?;
        if self.segments.is_some() && !entry.segmented {
            usage!("--segments: {collective} {algorithm} has no segments");
        }
        let bytes = match (collective, self.sizes) {
            (Collective::Barrier, None) => 0,
            (Collective::Barrier, Some(_)) => usage!("--sizes: a barrier has no message"),
            (_, Some(bytes)) => bytes,
            (_, None) => usage!("--schedule needs a message size, as in --sizes 64KiB"),
        };
        let run = SimulatedCall {
            entry,
            procs: self.procs,
            root: self.root.unwrap_or(0),
            bytes,
            method: placed.parametrized(self.fan_out, self.segments.unwrap_or(0)),
            layout: placed.layout,
            rendezvous: self.simulation.rendezvous(),
        };
        let source = CalibrationSource::load(
            self.calibration.as_deref(),
            models::Forms::default(),
            self.parameters,
        )?
        .with_inside(&composition.inside)?;
        let network = self.network(&source, &placed)?;
        write(Ok(self.diagram(&source, &network, &run)?), path)
    }

    /// The algorithm of a name, and where its ranks are.
    fn placed(&self, collective: Collective, algorithm: &str) -> Result<PlacedAlgorithm> {
        let LevelOptions { layout, composition } = &self.levels;
        let named = algorithm.parse().ok();
        let shared = named.and_then(|algorithm| schedules::find_shared(collective, algorithm));
        let Some(entry) = shared else { return composition.named(*layout, collective, algorithm) };
        if layout.is_some_and(|layout| layout.nodes() > 1) {
            usage!(
                "--layouts: {algorithm} is for ranks of one node. Inside several: --algorithm two-level --intra {algorithm}"
            );
        }
        if composition.inter.or(composition.intra).is_some() || composition.by_node {
            usage!("--inter, --intra, --by-node: {algorithm} is for ranks of one node");
        }
        Ok(PlacedAlgorithm { entry, method: OwnMethod::plain(entry.algorithm), layout: None })
    }

    /// What messages and memory cost; through memory only where that is known.
    fn network(
        &self,
        source: &CalibrationSource,
        placed: &PlacedAlgorithm,
    ) -> Result<LevelledNetwork> {
        if !placed.method.shares_memory() {
            return source.levelled(self.simulation.costs.model());
        }
        if self.simulation.costs != CostModel::PLogP {
            usage!("--costs: what goes through memory is simulated with the parameters of plogp");
        }
        let network = source.levelled(Model::Simulated)?;
        let Entry { collective, algorithm, .. } = *placed.entry;
        let why = placed.through_memory().or_else(|| why_not_modelled(&[collective], algorithm));
        if let Some(why) = why.filter(|_| !network.knows_shared_memory()) {
            usage!("{why}");
        }
        Ok(if placed.layout.is_none() { network.of_one_node() } else { network })
    }

    fn diagram(
        &self,
        source: &CalibrationSource,
        network: &LevelledNetwork,
        run: &SimulatedCall,
    ) -> Result<Figure> {
        check_extent(run)?;
        let mut activities = Vec::new();
        let model = self.simulation.costs.model();
        run.simulate_levels(network, |activity| activities.push(activity)).map_err(blamed)?;
        let title = format!("{} {}, {} ranks", run.entry.collective, run.entry.name, run.procs);
        let converted = source.chosen()?.derived.iter();
        let own = converted.filter(|note| note.starts_with(model.name()));
        let notes: String = own.map(|note| format!(" ({note})")).collect();
        let mut costs = format!(
            "costs by {model}, {} parameters of {}{notes}",
            self.parameters.name(),
            source.name
        );
        if let Some(bytes) = self.simulation.rendezvous {
            costs += &format!("; rendezvous from {} on", quantity::format_bytes(bytes));
            if let Some(RendezvousCost::Seconds(seconds)) = self.simulation.rendezvous_cost {
                costs += &format!(" for {}", quantity::format_seconds(seconds));
            }
        }
        figures::space_time(&title, &[in_words(run), costs], run.procs, &activities).map_err(answer)
    }
}

/// Refuses what can't be drawn before it is simulated: it may be of any size.
fn check_extent(run: &SimulatedCall) -> Result<()> {
    if run.procs > figures::MAX_RANKS {
        let (count, limit) = (run.procs, figures::MAX_RANKS);
        usage!("{count} ranks are too many to draw; at most {limit} fit into one figure");
    }
    let tables = run.tables();
    let call = run.call(&tables);
    run.entry.check_everywhere(&call).map_err(|error| WrongUse(error.to_string()))?;
    let rounds: u64 = (0..run.procs).map(|rank| run.entry.needs(&call, rank).rounds).sum();
    // No rank has more than a few rounds without a message.
    if rounds > 16 * figures::MAX_MESSAGES as u64 {
        let limit = figures::MAX_MESSAGES;
        usage!(
            "too many messages to draw; at most {limit} fit into one figure: take larger segments"
        );
    }
    Ok(())
}

/// What a file is to hold. Endings that would not be written are refused before any work.
fn form(path: &Path, with_graphviz: bool) -> Result<DrawingForm> {
    match path.extension().and_then(OsStr::to_str) {
        Some("svg" | "png") => Ok(DrawingForm::Picture),
        Some("dot" | "gv") if with_graphviz => Ok(DrawingForm::Graphviz),
        _ => {
            let endings = if with_graphviz { ".dot, .svg or .png" } else { ".svg or .png" };
            usage!("--output {}: expected a name that ends with {endings}", path.display())
        }
    }
}
