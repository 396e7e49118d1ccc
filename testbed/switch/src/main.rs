//! `colibri-switch DIRECTORY`: the network of the virtual cluster that has this directory.
//!
//! Started by the making of a virtual cluster, in three steps. It makes a TAP device per port, in a
//! network namespace of its own, and says `made` on its output. The maker moves the devices into the
//! nodes' namespaces and sets them up, then writes `go` to its input. From there on it passes frames
//! on, until the devices are gone, as they are when the nodes' namespaces are, or somebody ends it.
//! Without a `go`, because the maker was killed, it ends at once. Its devices vanish with it, so there
//! is nothing that it could leave behind.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

use std::{
    env,
    io::{self, BufRead, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use colibri_switch::Wiring;
use records::document;

mod alarm;
mod awake;
mod priority;
mod serve;
mod tap;

/// In the virtual cluster's directory.
const WIRING: &str = "wiring.json";
const SOCKET: &str = "switch.socket";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere else to say it.
            let _ = writeln!(io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        bail!("usage: colibri-switch DIRECTORY");
    };
    priority::leave_the_caller()?;
    let directory = PathBuf::from(directory);
    let wiring: Wiring = document::read(&directory.join(WIRING))?;
    tap::enter_own_namespace()?;
    let taps =
        wiring.ports.iter().map(|port| tap::Tap::make(&port.place)).collect::<Result<Vec<_>>>()?;
    let server = serve::Server::new(&wiring, taps, &directory.join(SOCKET))?;
    writeln!(io::stdout(), "made").context("cannot report that the devices are ready")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot wait for the start signal")?;
    if answer.trim() != "go" {
        return Ok(());
    }
    priority::on_one_processor();
    let realtime = priority::before_all_others();
    server.run(realtime)
}
