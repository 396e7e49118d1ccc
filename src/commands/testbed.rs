//! `colibri testbed`: a virtual cluster on this machine.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use records::RankPlacement;
use testbed::{
    Condition, Delay, InsideNetwork, Jitter, LinkOptions, Loss, PortRate, RackShape, Racks,
    RanksPerNode, Rate, Spec, Testbed, TestbedMpi,
};

use crate::commands::shared::output;
use site::{
    describe,
    launcher::find_on_path,
    virtual_cluster::{USUAL_RATE, check_testbed, mpi_at_hand, shims},
};

/// A virtual cluster on this machine: sets it up, runs commands on it, takes it down
#[derive(Debug, Args)]
pub struct TestbedCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set a virtual cluster up
    Up {
        #[command(flatten)]
        name: Name,

        /// Number of nodes [default: 8, or those of the racks or of --ppn]
        #[arg(long, value_name = "N")]
        nodes: Option<u32>,

        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Take it down: ends its processes and removes all of it
    Down {
        #[command(flatten)]
        name: Name,
    },
    /// Show the virtual clusters that are up
    Status,
    /// Run a command in a node, or on the head (where mpirun runs)
    Exec {
        #[command(flatten)]
        name: Name,

        /// The node's number, from 0 [default: the head]
        #[arg(long, value_name = "N")]
        node: Option<u32>,

        /// The command
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "COMMAND"
        )]
        command: Vec<String>,
    },
    /// Start an MPI program on its ranks, as the runs of `tune --testbed NAME` are
    Mpirun {
        #[command(flatten)]
        name: Name,

        /// Ranks to start [default: all that it holds]
        #[arg(long, value_name = "N")]
        ranks: Option<u32>,

        /// The launcher of the library that the program was built for: Open MPI's mpirun, MPICH's
        /// mpiexec [default: that of the library that Colibri was built for]
        #[arg(long = "by", value_name = "LAUNCHER")]
        launcher: Option<PathBuf>,

        /// The program and its arguments
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "PROGRAM"
        )]
        program: Vec<OsString>,
    },
    /// Say whether this machine can hold a virtual cluster
    Check,
}

/// What a virtual cluster is to be beside its number of nodes.
#[derive(Debug, Args)]
struct NetworkOptions {
    /// Rate of each link, both ways
    #[arg(long, value_name = "RATE", default_value = USUAL_RATE)]
    rate: Rate,

    /// Rate of one node's port, or of one direction of it (in: what the node receives); repeatable
    #[arg(long = "port", value_name = "NODE[.in|.out]=RATE")]
    ports: Vec<PortRate>,

    /// Ranks on each node: 4, or one number for each node as 4,4,3
    #[arg(long, value_name = "N[,N...]", default_value = "1")]
    ppn: RanksPerNode,

    /// Which ranks are on a node: block (each node is filled before the next) or cyclic (one to each
    /// in turn)
    #[arg(long, value_name = "block|cyclic", default_value = "block")]
    placement: RankPlacement,

    /// A network inside each node, with a port of this rate for each rank: 100mbit,100us
    #[arg(long, value_name = "RATE,LATENCY")]
    inside: Option<InsideNetwork>,

    /// Latency from node to node, added to the transmission time: 10us, 1ms
    #[arg(long, value_name = "TIME")]
    latency: Option<Delay>,

    /// Random delay added to each frame: 100us (uniform from 0), exponential:100us (mean)
    #[arg(long, value_name = "TIME")]
    jitter: Option<Jitter>,

    /// Share of frames that are lost: 0.001, 0.1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<Loss>,

    /// Seed of jitter and loss [default: 0]
    #[arg(long, value_name = "N")]
    network_seed: Option<u64>,

    /// Number of racks and of nodes in each: 4x4
    #[arg(long, value_name = "RACKSxNODES", requires = "uplink")]
    racks: Option<RackShape>,

    /// Rate of each rack's link to the others, both ways
    #[arg(long, value_name = "RATE", requires = "racks")]
    uplink: Option<Rate>,

    /// Slow the network down by this factor (lower rates, higher latencies), so that the processors
    /// matter less
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    slow: u32,
}

impl NetworkOptions {
    /// The virtual cluster that is asked for.
    ///
    /// # Errors
    /// Values that it can't have.
    fn spec(self, name: &str, nodes: Option<u32>) -> Result<Spec> {
        let links = self.links();
        let given = self.racks.map(RackShape::total).or(self.ppn.nodes());
        let spec = Spec {
            name: name.to_owned(),
            nodes: nodes.or(given).unwrap_or(8),
            rate: self.rate,
            ports: self.ports,
            ranks_per_node: self.ppn,
            placement: self.placement,
            slow: self.slow,
            links,
        };
        spec.check()?;
        Ok(spec)
    }

    /// What needs a switch of our own, if anything does.
    fn links(&self) -> Option<LinkOptions> {
        let racks = self.racks.zip(self.uplink).map(|(shape, uplink)| Racks {
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
        needed.then(|| LinkOptions {
            latency: latency.unwrap_or_default(),
            jitter,
            loss: loss.unwrap_or_default(),
            seed: seed.unwrap_or_default(),
            racks,
            inside,
        })
    }
}

#[derive(Debug, Args)]
struct Name {
    /// The virtual cluster's name
    #[arg(long = "name", value_name = "NAME", default_value = "default")]
    name: String,
}

impl TestbedCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        match self.action {
            Action::Up { name, nodes, network } => up(&network.spec(&name.name, nodes)?),
            Action::Down { name } => down(&name.name),
            Action::Status => status(),
            Action::Exec { name, node, command } => exec(&name.name, node, &command),
            Action::Mpirun { name, ranks, launcher, program } => {
                mpirun(&name.name, ranks, launcher.as_deref(), &program)
            }
            Action::Check => {
                check_testbed()?;
                say!("this machine can hold a virtual cluster: colibri testbed up");
                Ok(())
            }
        }
    }
}

fn up(spec: &Spec) -> Result<()> {
    let testbed = testbed::up(spec)?;
    describe::tell_what_is_missing(spec, testbed.spec());
    let name = &spec.name;
    let made = describe::describe(testbed.spec());
    say!("{name}: {made} is up; use it by --testbed {name}");
    say!("take it down by `colibri testbed down --name {name}`");
    Ok(())
}

fn down(name: &str) -> Result<()> {
    let removed = testbed::down(name)?;
    if removed.is_nothing() {
        bail!("there is no virtual cluster '{name}'; `colibri testbed status` shows what is up");
    }
    say!("{name}: taken down");
    Ok(())
}

fn status() -> Result<()> {
    let all = testbed::status()?;
    let is_up = |status: &&testbed::TestbedStatus| status.condition == Condition::Standing;
    let standing: Vec<String> =
        all.iter().filter(is_up).map(|status| status.name.clone()).collect();
    let rows = all.into_iter().map(|status| {
        let condition = match status.condition {
            Condition::Standing => "up",
            Condition::Partial => "incomplete; take it down",
        };
        vec![
            status.name,
            status.nodes.to_string(),
            status.spec.as_ref().map(describe::network).unwrap_or_default(),
            status.ranks_per_node.map(|ranks| ranks.to_string()).unwrap_or_default(),
            status.processes.len().to_string(),
            status.service.as_ref().map(describe::service).unwrap_or_default(),
            condition.into(),
        ]
    });
    let heading =
        ["name", "nodes", "network", "ranks per node", "processes", "switch", "condition"];
    output::print(&output::aligned(&heading, rows))?;
    for name in standing {
        output::print(&format!(
            "start a program on {name}: colibri testbed mpirun --name {name} PROGRAM\n"
        ))?;
    }
    Ok(())
}

fn mpirun(
    name: &str,
    ranks: Option<u32>,
    launcher: Option<&Path>,
    program: &[OsString],
) -> Result<()> {
    let testbed = Testbed::open(name)?;
    let mpi = match launcher {
        None => mpi_at_hand()?,
        Some(launcher) => {
            let found = launcher.to_str().and_then(find_on_path);
            TestbedMpi::at(found.as_deref().unwrap_or(launcher))?
        }
    };
    let ranks = ranks.unwrap_or(testbed.capacity());
    let passed_on = passed_on();
    let environment: Vec<(&str, &OsStr)> =
        passed_on.iter().map(|(name, value)| (name.as_str(), value.as_os_str())).collect();
    let mut command = testbed.launch(&mpi, ranks, &shims(&mpi)?, &environment)?;
    // It is for the ranks, whose list holds it.
    command.env_remove(PRELOAD);
    // Takes our place, so that signals and the exit code are the command's own.
    Err(command.args(program).exec()).context("cannot run the launcher")
}

const PRELOAD: &str = "LD_PRELOAD";

/// Variables of the caller that launchers do not hand on by themselves, or that the testbed sets, too: what is
/// preloaded, and what the preload library and the tracer are given. Those by which processes of a testbed are
/// known and its ranks wait are the testbed's own.
fn passed_on() -> Vec<(String, OsString)> {
    let is_own = |name: &str| {
        name.starts_with("COLIBRI_IDLE_") || ["COLIBRI_TESTBED", "COLIBRI_SWITCH"].contains(&name)
    };
    let all = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    all.filter(|(name, value)| {
        let is_ours = name.starts_with("COLIBRI_") && !is_own(name);
        (is_ours || name == PRELOAD) && !value.is_empty()
    })
    .collect()
}

fn exec(name: &str, node: Option<u32>, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut command = Testbed::open(name)?.exec(node, program)?;
    // Takes our place, so that signals and the exit code are the command's own.
    Err(command.args(arguments).exec()).with_context(|| format!("cannot run {program}"))
}
