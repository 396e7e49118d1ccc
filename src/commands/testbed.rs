//! `colibri testbed`: a virtual cluster on this machine.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use testbed::{Condition, Spec, Testbed, TestbedMpi};

use crate::commands::shared::{options::TestbedOptions, output};
use site::{
    describe,
    launcher::find_on_path,
    virtual_cluster::{check_testbed, mpi_at_hand, shims},
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
        network: TestbedOptions,
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
                let nodes = nodes.or(network.told_nodes()).unwrap_or(8);
                up(&network.spec(&name.name, nodes)?)
            }
            Action::Down { name } => down(&name.name),
            Action::Status => status(),
            Action::Exec { name, node, command } => exec(&name.name, node, &command),
            Action::Mpirun { name, ranks, launcher, program } => {
                mpirun(&name.name, ranks, launcher.as_deref(), &program)
            }
            Action::Check => check_testbed(),
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
/// preloaded, and what the preload library and the tracer are told. Those by which processes of a testbed are
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
