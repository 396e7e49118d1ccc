//! `colibri testbed`: a virtual cluster on this machine.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use testbed::{Condition, RackShape, Spec, Testbed};

use crate::{
    commands::shared::{options::NetworkOptions, output},
    site::{describe, ranks::check_testbed},
};

/// A virtual cluster on this machine: up, down, status, exec
#[derive(Debug, Args)]
pub struct TestbedCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set one up
    Up {
        #[command(flatten)]
        name: Name,

        /// Number of nodes [default: 8, or those of the racks]
        #[arg(long, value_name = "N")]
        nodes: Option<u32>,

        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Take it down: its processes end, nothing of it stays
    Down {
        #[command(flatten)]
        name: Name,
    },
    /// Show what is up
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
    /// Say whether this machine can hold one
    Check,
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
            Action::Up { name, nodes, network } => {
                let of_racks = network.racks.map(RackShape::total);
                up(&network.spec(&name.name, nodes.or(of_racks).unwrap_or(8))?)
            }
            Action::Down { name } => down(&name.name),
            Action::Status => status(),
            Action::Exec { name, node, command } => exec(&name.name, node, &command),
            Action::Check => check_testbed(),
        }
    }
}

fn up(spec: &Spec) -> Result<()> {
    let testbed = testbed::up(spec)?;
    describe::tell_what_is_missing(spec, testbed.spec());
    let name = &spec.name;
    let made = describe::describe(testbed.spec());
    eprintln!("{name}: {made} is up; run on it by --testbed {name}");
    eprintln!("take it down by `colibri testbed down --name {name}`");
    Ok(())
}

fn down(name: &str) -> Result<()> {
    let removed = testbed::down(name)?;
    if removed.is_nothing() {
        bail!("there is no virtual cluster '{name}'; `colibri testbed status` shows what is up");
    }
    eprintln!("{name}: taken down");
    Ok(())
}

fn status() -> Result<()> {
    let rows = testbed::status()?.into_iter().map(|status| {
        let condition = match status.condition {
            Condition::Standing => "up",
            Condition::Partial => "left behind in part; take it down",
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
    output::print(&output::aligned(&heading, rows))
}

fn exec(name: &str, node: Option<u32>, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut command = Testbed::open(name)?.exec(node, program)?;
    // Takes our place, so that signals and the exit code are the command's own.
    Err(command.args(arguments).exec()).with_context(|| format!("cannot run {program}"))
}
