//! Where ranks are to run and where a run lies, as subcommands take it from their flags.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use libraries::MpiLibrary;
use records::{Library, RankPlacement, quantity};
use runner::mockups::Limits;

use crate::{begun::GivenOptions, config::RANKS, error::WrongUse};

/// Over the flags of a virtual cluster in a help text.
const VIRTUAL_CLUSTER: &str = "Virtual cluster";
/// Over those that say where the ranks run.
const RANKS_RUN: &str = "Where the ranks run";
/// Over those that limit what a program takes.
const LIMITS: &str = "Limits of memory and time";

/// What a virtual cluster is to be beside its number of nodes.
#[derive(Debug, Clone, Args)]
pub struct TestbedOptions {
    /// Rate of each link, both ways [default: 100mbit]
    #[arg(long, value_name = "RATE", help_heading = VIRTUAL_CLUSTER)]
    rate: Option<testbed::Rate>,

    /// Rate of one node's port, or of one direction of it (in: what the node receives); repeatable
    #[arg(long = "port", value_name = "NODE[.in|.out]=RATE", help_heading = VIRTUAL_CLUSTER)]
    pub ports: Vec<testbed::PortRate>,

    /// Ranks on each node: 4, or one number for each node as 4,4,3 [default: 1]
    #[arg(long, value_name = "N[,N...]", help_heading = VIRTUAL_CLUSTER)]
    ppn: Option<testbed::RanksPerNode>,

    /// Which ranks are on a node: block (each node is filled before the next) or cyclic (one to each
    /// in turn) [default: block]
    #[arg(long, value_name = "block|cyclic", help_heading = VIRTUAL_CLUSTER)]
    placement: Option<RankPlacement>,

    /// A network inside each node, with a port of this rate for each rank: 100mbit,100us
    #[arg(long, value_name = "RATE,LATENCY", help_heading = VIRTUAL_CLUSTER)]
    pub inside: Option<testbed::InsideNetwork>,

    /// Latency from node to node, added to the transmission time: 10us, 1ms
    #[arg(long, value_name = "TIME", help_heading = VIRTUAL_CLUSTER)]
    pub latency: Option<testbed::Delay>,

    /// Random delay added to each frame: 100us (uniform from 0), exponential:100us (mean)
    #[arg(long, value_name = "TIME", help_heading = VIRTUAL_CLUSTER)]
    pub jitter: Option<testbed::Jitter>,

    /// Share of frames that are lost: 0.001, 0.1%
    #[arg(long, value_name = "SHARE", help_heading = VIRTUAL_CLUSTER)]
    pub loss: Option<testbed::Loss>,

    /// Seed of jitter and loss [default: 0]
    #[arg(long, value_name = "N", help_heading = VIRTUAL_CLUSTER)]
    pub network_seed: Option<u64>,

    /// Number of racks and of nodes in each: 4x4
    #[arg(long, value_name = "RACKSxNODES", requires = "uplink", help_heading = VIRTUAL_CLUSTER)]
    pub racks: Option<testbed::RackShape>,

    /// Rate of each rack's link to the others, both ways
    #[arg(long, value_name = "RATE", requires = "racks", help_heading = VIRTUAL_CLUSTER)]
    pub uplink: Option<testbed::Rate>,

    /// Slow the network down by this factor (lower rates, higher latencies), so that the processors
    /// matter less [default: 1]
    #[arg(long, value_name = "FACTOR", help_heading = VIRTUAL_CLUSTER)]
    slow: Option<u32>,
}

impl TestbedOptions {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        let TestbedOptions { rate, ports, ppn, placement, slow, .. } = self;
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
    pub fn links(&self) -> Option<testbed::LinkOptions> {
        let racks = self.racks.zip(self.uplink).map(|(shape, uplink)| testbed::Racks {
            racks: shape.racks,
            nodes: shape.nodes,
            uplink,
        });
        let TestbedOptions { latency, jitter, loss, network_seed: seed, inside, .. } = *self;
        let needed = latency.is_some()
            || jitter.is_some()
            || loss.is_some()
            || seed.is_some()
            || inside.is_some()
            || racks.is_some();
        needed.then(|| testbed::LinkOptions {
            latency: latency.unwrap_or_default(),
            jitter,
            loss: loss.unwrap_or_default(),
            seed: seed.unwrap_or_default(),
            racks,
            inside,
        })
    }
}

/// An MPI library by its name, or one that is none of those known.
#[derive(Debug, Clone, Copy)]
pub struct NamedLibrary(pub Option<&'static dyn MpiLibrary>);

impl NamedLibrary {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "other" => Ok(NamedLibrary(None)),
            name => {
                let wrong = || format!("'{name}' is not the name of a library");
                let library = Library::new(name).ok_or_else(wrong)?;
                libraries::find(library).map(|library| NamedLibrary(Some(library)))
            }
        }
    }
}

/// A share in a flag: `25%` or `0.25`, above 0 and at most 1.
///
/// # Errors
/// It is none.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>().map(|number| number * scale) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(format!("'{text}' is not a share of a node's memory; write 25% or 0.25")),
    }
}

/// Where the ranks run.
#[derive(Debug, Clone, Args)]
pub struct SiteOptions {
    /// The command that starts an MPI program, quoted as in a shell. {np} stands for the number
    /// of ranks; in an allocation {nodes}, {ppn} and {hosts} for nodes, ranks on each, and names
    /// [default: from colibri.toml, the batch system, or mpirun]
    #[arg(long, value_name = "COMMAND", conflicts_with = "testbed", help_heading = RANKS_RUN)]
    pub launcher: Option<String>,

    /// The MPI library that colibri-mpi was built for; `other`: one whose algorithms can't be
    /// forced [default: what it says of itself]
    #[arg(long, value_name = "NAME", value_parser = NamedLibrary::parse, help_heading = RANKS_RUN)]
    pub mpi_library: Option<NamedLibrary>,

    /// Ranks to start [default: as many as the allocation or this machine holds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(RANKS), help_heading = RANKS_RUN)]
    pub ranks: Option<u32>,

    /// Run on a virtual cluster: the name of one that is up, or a number of nodes to set one up
    /// for this run alone
    #[arg(long, value_name = "NODES|NAME", help_heading = RANKS_RUN)]
    pub testbed: Option<String>,

    #[command(flatten)]
    pub network: TestbedOptions,

    /// Share of a node's memory that measuring collectives may take; larger messages are left out
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "25%", help_heading = LIMITS)]
    pub memory_share: f64,

    /// Memory for the data of mock-ups; what needs more is not measured (PGMPITuneLib's size_msg_buffer_bytes)
    /// [default: COLIBRI_MEMORY, or 64 MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = LIMITS)]
    pub mockup_memory: Option<u64>,

    /// Memory for the mock-ups' counts and displacements (PGMPITuneLib's size_int_buffer_bytes) [default:
    /// COLIBRI_COUNTS_MEMORY, or 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = LIMITS)]
    pub mockup_counts_memory: Option<u64>,

    /// End a program that makes no progress for this long
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "2m", help_heading = LIMITS)]
    pub patience: Duration,
}

impl SiteOptions {
    /// The memory that mock-ups may use where they are measured.
    ///
    /// # Errors
    /// The environment's limits are none.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        let usual = Limits::of_environment().map_err(|error| WrongUse(error.to_string()))?;
        let bytes = |given: Option<u64>, usual: usize| {
            given.map_or(usual, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        Ok(Limits {
            message_bytes: bytes(self.mockup_memory, usual.message_bytes),
            integer_bytes: bytes(self.mockup_counts_memory, usual.integer_bytes),
        })
    }
}

/// A directory that holds one run: its records and what was made of them.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Directory of the run
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    pub directory: PathBuf,

    /// Continue the directory's run with the options it was begun with, or begin one
    #[arg(long)]
    pub resume: bool,

    /// What is written down, so that the run can go on.
    #[arg(skip)]
    pub given: GivenOptions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        assert_eq!(parse_share("25%"), Ok(0.25));
        assert_eq!(parse_share("1"), Ok(1.0));
        for wrong in ["0", "101%", "-1", "nan", "", "1GiB"] {
            assert!(parse_share(wrong).unwrap_err().contains("write 25% or 0.25"), "{wrong}");
        }
    }
}
