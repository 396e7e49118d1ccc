//! Flags that several subcommands share, and the values in them.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};
use models::{Forms, Model};
use records::{Algorithm, Collective, quantity};

use crate::site::{begun::Given, config::RANKS};

/// A list in a flag: `4,8,16` or a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

pub fn sizes(text: &str) -> Result<List<u64>, String> {
    quantity::parse_sizes(text).map(List)
}

pub fn procs(text: &str) -> Result<List<u32>, String> {
    quantity::parse_procs(text).map(List)
}

fn each<T: std::str::FromStr<Err = String> + PartialEq>(text: &str) -> Result<List<T>, String> {
    let mut values = Vec::new();
    for part in text.split(',') {
        let value = part.trim().parse()?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(List(values))
}

pub fn collectives(text: &str) -> Result<List<Collective>, String> {
    each(text)
}

pub fn algorithms(text: &str) -> Result<List<Algorithm>, String> {
    each(text)
}

pub fn models(text: &str) -> Result<List<Model>, String> {
    match text {
        "all" => Ok(List(Model::ALL.to_vec())),
        _ => each(text),
    }
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
            _ => Err("wanted a name that ends with .svg or .png".into()),
        }
    })
}

/// Segment sizes to consider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segments {
    /// These; 0 is unsegmented.
    These(Vec<u64>),
    /// Whichever is best.
    Auto,
}

pub fn segments(text: &str) -> Result<Segments, String> {
    match text {
        "auto" => Ok(Segments::Auto),
        _ => quantity::parse_sizes(text)
            .map(Segments::These)
            .map_err(|error| format!("{error}; or `auto`")),
    }
}

/// Which parameters and which closed forms.
#[derive(Debug, Clone, Args)]
pub struct ModelOptions {
    /// A calibration.json, or preset:frodo, preset:boba (Table 5 of the paper)
    #[arg(long, value_name = "FILE|preset:NAME")]
    pub calibration: Option<OsString>,

    /// hockney, logp, loggp, plogp, refined, simulated (several with commas), or all
    #[arg(long, value_name = "MODELS", value_parser = models)]
    pub model: Option<List<Model>>,

    /// The closed forms as the paper prints them, or corrected
    #[arg(long, value_name = "printed|corrected", default_value = "corrected")]
    pub forms: Forms,

    /// Parameters measured point to point, fitted to collectives, or Hockney's constants of each
    /// algorithm by itself (with the models hockney and refined)
    #[arg(long, value_enum, default_value_t = ParameterSet::Measured)]
    pub parameters: ParameterSet,
}

/// Which of a calibration's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ParameterSet {
    Measured,
    Fitted,
    Algorithms,
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

/// Which collectives, at which points.
#[derive(Debug, Clone, Args)]
pub struct GridOptions {
    /// Collectives, with commas
    #[arg(long, value_name = "NAMES", value_parser = collectives, default_value = "bcast,reduce")]
    pub collective: List<Collective>,

    /// Communicator sizes: 4,8,16 or 2..32 (every one), also more than the calibration's platform
    /// has [default: powers of two up to the platform's size, and that; 32 where it is not known]
    #[arg(long, short, value_name = "LIST", value_parser = procs)]
    pub procs: Option<List<u32>>,

    /// Message sizes: 1KiB,64KiB or 1..8MiB (powers of two); what a size means is per collective
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "1..1MiB")]
    pub sizes: List<u64>,

    /// Segment sizes (0: unsegmented), or auto
    #[arg(long, value_name = "LIST", value_parser = segments, default_value = "0,1KiB,8KiB")]
    pub segments: Segments,
}

/// What a virtual cluster is to be beside its number of nodes.
#[derive(Debug, Clone, Args)]
pub struct NetworkOptions {
    /// Rate of each link, both ways [default: 100mbit]
    #[arg(long, value_name = "RATE")]
    rate: Option<testbed::Rate>,

    /// A node's port with a rate of its own, or one direction of it (in: what the node receives);
    /// may be given several times
    #[arg(long = "port", value_name = "NODE[.in|.out]=RATE")]
    pub ports: Vec<testbed::PortRate>,

    /// Ranks on each node: 4, or one number for each node as 4,4,3 [default: 1]
    #[arg(long, value_name = "N[,N...]")]
    ppn: Option<testbed::RanksPerNode>,

    /// Which ranks are on a node: block (each node is filled before the next) or cyclic (one to each
    /// in turn) [default: block]
    #[arg(long, value_name = "block|cyclic")]
    placement: Option<testbed::Placement>,

    /// A network inside each node, with a port of this rate for each rank: 100mbit,100us
    #[arg(long, value_name = "RATE,LATENCY")]
    pub inside: Option<testbed::Inside>,

    /// Latency from node to node, beside the time of the bytes: 10us, 1ms
    #[arg(long, value_name = "TIME")]
    pub latency: Option<testbed::Delay>,

    /// What is added to each frame's latency: 100us (evenly from 0), exponential:100us (in the mean)
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<testbed::Jitter>,

    /// Share of frames that are lost: 0.001, 0.1%
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<testbed::Loss>,

    /// Seed of jitter and loss [default: 0]
    #[arg(long, value_name = "N")]
    pub network_seed: Option<u64>,

    /// Nodes in racks, and how many in each: 4x4
    #[arg(long, value_name = "RACKSxNODES", requires = "uplink")]
    pub racks: Option<testbed::RackShape>,

    /// Rate of each rack's link to the others, both ways
    #[arg(long, value_name = "RATE", requires = "racks")]
    pub uplink: Option<testbed::Rate>,

    /// Slow the network down by this factor, so that the processors matter less: rates become lower
    /// and latencies higher [default: 1]
    #[arg(long, value_name = "FACTOR")]
    slow: Option<u32>,
}

impl NetworkOptions {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        let NetworkOptions { rate, ports, ppn, placement, slow, .. } = self;
        let of_each = rate.is_some() || ppn.is_some() || placement.is_some() || slow.is_some();
        of_each || !ports.is_empty() || self.links().is_some()
    }

    /// Of each link.
    ///
    /// # Errors
    /// None: the default is a rate.
    pub fn rate(&self) -> anyhow::Result<testbed::Rate> {
        Ok(self.rate.map_or_else(|| "100mbit".parse(), Ok)?)
    }

    /// Ranks on each node.
    pub fn ranks_per_node(&self) -> testbed::RanksPerNode {
        self.ppn.clone().unwrap_or(testbed::RanksPerNode::Same(1))
    }

    /// How many nodes there are by what else is told of them.
    pub fn told_nodes(&self) -> Option<u32> {
        let of_racks = self.racks.map(testbed::RackShape::total);
        of_racks.or(self.ppn.as_ref().and_then(testbed::RanksPerNode::nodes))
    }

    /// How many times the network is slowed down.
    pub fn slowness(&self) -> u32 {
        self.slow.unwrap_or(1)
    }

    /// The virtual cluster that is asked for.
    ///
    /// # Errors
    /// Values that it can't have.
    pub fn spec(&self, name: &str, nodes: u32) -> anyhow::Result<testbed::Spec> {
        let spec = testbed::Spec {
            name: name.to_owned(),
            nodes,
            rate: self.rate()?,
            ports: self.ports.clone(),
            ranks_per_node: self.ranks_per_node(),
            placement: self.placement.unwrap_or_default(),
            slow: self.slowness(),
            links: self.links(),
        };
        spec.check()?;
        Ok(spec)
    }

    /// What needs a switch of our own, if anything does.
    pub fn links(&self) -> Option<testbed::Links> {
        let racks = self.racks.zip(self.uplink).map(|(shape, uplink)| testbed::Racks {
            racks: shape.racks,
            nodes: shape.nodes,
            uplink,
        });
        let NetworkOptions { latency, jitter, loss, network_seed: seed, inside, .. } = *self;
        let needed = latency.is_some()
            || jitter.is_some()
            || loss.is_some()
            || seed.is_some()
            || inside.is_some()
            || racks.is_some();
        needed.then(|| testbed::Links {
            latency: latency.unwrap_or_default(),
            jitter,
            loss: loss.unwrap_or_default(),
            seed: seed.unwrap_or_default(),
            racks,
            inside,
        })
    }
}

/// Where the ranks run.
#[derive(Debug, Clone, Args)]
pub struct SiteOptions {
    /// The command that starts an MPI program, {np} standing for the number of ranks and {nodes}
    /// for the number of nodes of Slurm's allocation [default: from colibri.toml, Slurm, or mpirun]
    #[arg(long, value_name = "COMMAND", conflicts_with = "testbed")]
    pub launcher: Option<String>,

    /// Ranks to start [default: all that Slurm gave or this machine can hold]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(RANKS))]
    pub ranks: Option<u32>,

    /// Run on a virtual cluster: a number of nodes (set up for this run), or the name of one that
    /// is up
    #[arg(long, value_name = "NODES|NAME")]
    pub testbed: Option<String>,

    #[command(flatten, next_help_heading = "Virtual cluster set up for this run")]
    pub network: NetworkOptions,

    /// End a program that makes no progress for this long
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "2m")]
    pub patience: Duration,
}

/// A directory that holds one run: its records and what was made of them.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Directory of the run
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    pub directory: PathBuf,

    /// Go on with the run that the directory holds, by the options that it was begun with; begin one
    /// where there is none
    #[arg(long)]
    pub resume: bool,

    /// What is written down, so that the run can go on.
    #[arg(skip)]
    pub given: Given,
}
