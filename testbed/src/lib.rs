//! A virtual cluster on one Linux machine: the real MPI library over real TCP/IP, on a network whose
//! rate is known.
//!
//! Each node is a network namespace with a host name of its own; a veth pair leads from it to a
//! bridge, which stands in one more namespace, the *head*, where `mpirun` runs. A token-bucket filter
//! on both ends of the pair gives the port its rate in both directions, the same for all or one of its
//! own ([`PortRate`]). Where more than a rate is asked for ([`LinkOptions`]: latency, racks), each place has
//! a TAP device instead, and one process, the switch, passes frames between them when they are due.
//! Nothing shows in the root namespace, so several testbeds stand side by side, with the same
//! addresses even.
//!
//! ```no_run
//! use colibri_testbed as testbed;
//!
//! let spec = testbed::Spec::new("trial", 8, "100mbit".parse()?)?;
//! let trial = testbed::up(&spec)?;
//! let mpi = testbed::OpenMpi::find()?;
//! let mut run = trial.mpirun(&mpi, 8, &testbed::Shims::default(), &[])?;
//! run.arg("./program").status()?;
//! testbed::down("trial")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is made is written down first, in `/run/colibri/NAME`, so that [`down`] finds and removes
//! everything even after a run that was killed; the names of the namespaces begin with
//! `colibri-NAME-`.
//!
//! Needs root, a kernel with network namespaces, veth, bridge and tbf (TAP for a switch), and the programs of Debian's
//! packages iproute2 and util-linux.
//!
//! # How true it is
//!
//! Only as true as the cores are free: every rank and the whole network run on them. Ranks that wait
//! must not burn them (see [`Shims`]), and another busy process doubles the time of a pipeline. A full
//! bucket passes at once, so the first packet of a message pays no wire time; see
//! [`Rate::burst_bytes`].

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod error;
#[cfg(test)]
mod fuzz;
mod intel;
mod layout;
mod links;
mod make;
mod mpich;
mod openmpi;
mod port;
mod processes;
pub mod programs;
mod rate;
mod remove;
mod scripts;
mod spec;
mod state;
mod status;
mod switch_process;
mod system;
mod tcp;
mod wiring;

#[cfg(test)]
#[path = "../../tests/skipped.rs"]
mod skipped;

pub use error::TestbedError;
pub use intel::IntelMpi;
pub use layout::RanksPerNode;
pub use links::{InsideNetwork, LinkOptions, Loss, RackShape, Racks};
pub use make::up;
pub use mpich::{Mpich, TestbedMpi};
pub use openmpi::{OpenMpi, Shims};
pub use port::{Direction, PortRate};
pub use rate::Rate;
pub use remove::{Removed, down};
pub use spec::{NETWORK, Spec};
pub use state::{Phase, STATE_DIRECTORY};
pub use status::{Condition, TestbedStatus, status};
pub use switch::{Delay, Jitter, JitterDistribution, Percentiles, Service};

use std::{ffi::OsStr, path::PathBuf, process::Command};

/// A testbed that stands.
#[derive(Debug)]
pub struct Testbed {
    spec: Spec,
}

impl Testbed {
    /// One that was made before, by [`up`] in this process or in another.
    ///
    /// # Errors
    /// Not root; no testbed of that name; one that was not completed.
    pub fn open(name: &str) -> Result<Testbed, TestbedError> {
        system::require_root()?;
        let state = state::read(name)?;
        match state.phase {
            Phase::Standing
                if state.spec.links.is_some() && switch_process::service(name).is_none() =>
            {
                Err(TestbedError::NoSwitch { name: name.into() })
            }
            Phase::Standing => Ok(Testbed { spec: state.spec }),
            Phase::Making => Err(TestbedError::Incomplete { name: name.into() }),
        }
    }

    /// What it was made from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How many ranks it holds.
    pub fn capacity(&self) -> u32 {
        self.spec.ranks()
    }

    /// Where its scripts and temporary files lie; removed by [`down`].
    pub fn directory(&self) -> PathBuf {
        state::directory(&self.spec.name)
    }

    /// What its switch tells of how well it has served since it began; none if it has none.
    pub fn service(&self) -> Option<Service> {
        self.spec.links.as_ref().and_then(|_| switch_process::service(&self.spec.name))
    }

    /// A command that will run in node `node` (from 0), or in the head without one; the caller adds
    /// arguments and starts it. It sees the node's network and host name, and this machine's files.
    ///
    /// # Errors
    /// No such node.
    pub fn exec(
        &self,
        node: Option<u32>,
        program: impl AsRef<OsStr>,
    ) -> Result<Command, TestbedError> {
        let place = match node {
            None => "head".into(),
            Some(node) if node < self.spec.nodes => format!("n{node}"),
            Some(node) => {
                let (name, nodes) = (self.spec.name.clone(), self.spec.nodes);
                return Err(TestbedError::NoSuchNode { name, node, nodes });
            }
        };
        let mut command = Command::new("/bin/sh");
        command.arg(scripts::enter_path(&self.spec.name)).arg(place).arg(program);
        Ok(command)
    }

    /// Ends every process in the testbed, as [`down`] does, and leaves the testbed standing.
    ///
    /// # Errors
    /// A process that survives; being called from inside the testbed.
    pub fn end_processes(&self) -> Result<usize, TestbedError> {
        remove::end_processes(&self.spec.name)
    }
}
