//! The process of a testbed's switch: started, asked, ended.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use records::{FileError, document};
use switch::{Service, Wiring};

use crate::{TestbedError, processes, programs, scripts::MARKER, state};

/// In the environment of a testbed's switch: the testbed's name. It does not have the marker of the
/// testbed's other processes, which end while the testbed stands.
const SWITCH_MARKER: &str = "COLIBRI_SWITCH";

const PROGRAM: &str = "colibri-switch";
/// By which TAP devices are made.
pub(crate) const TUN: &str = "/dev/net/tun";

/// How long it may take over telling of itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why no switch can be had here; nothing if one can.
pub(crate) fn hindrance(tun: &Path) -> Option<String> {
    let opened = fs::File::options().read(true).write(true).open(tun);
    opened.err().map(|error| format!("no TAP devices ({}: {error})", tun.display()))
}

/// A switch that has made its devices and waits for them to be set up; it ends if this is dropped.
pub(crate) struct StartingSwitch {
    child: Child,
}

/// Starts it, and waits until it has made its devices.
pub(crate) fn start(name: &str, wiring: &Wiring) -> Result<StartingSwitch, TestbedError> {
    let directory = state::directory(name);
    document::write(&directory.join("wiring.json"), wiring)?;
    let program = programs::find(PROGRAM)?;
    let failed = |problem: String| TestbedError::Step {
        doing: "start the switch".into(),
        problem,
        hint: String::new(),
    };
    let log_path = directory.join("switch.log");
    let log = fs::File::create(&log_path)
        .map_err(|error| FileError::io(&log_path, "make the file", &error))?;
    let mut child = Command::new(&program)
        .arg(&directory)
        .env_remove(MARKER)
        .env(SWITCH_MARKER, name)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| failed(format!("{}: {error}", program.display())))?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        // What cannot be read was not said.
        let _ = BufReader::new(output).read_line(&mut said);
    }
    if said.trim() == "made" {
        return Ok(StartingSwitch { child });
    }
    let problem = fs::read_to_string(&log_path).unwrap_or_default();
    let status = child.wait().map(|status| status.to_string()).unwrap_or_default();
    Err(failed(match problem.trim() {
        "" => format!("it ended with {status}"),
        problem => problem.replace('\n', "; "),
    }))
}

impl StartingSwitch {
    /// The namespace in which its devices are.
    pub fn namespace(&self) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join("ns/net")
    }

    /// Lets it pass frames on; from now on it stays.
    pub fn go(mut self, name: &str) -> Result<(), TestbedError> {
        let written = self.child.stdin.take().map(|mut input| input.write_all(b"go\n"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(TestbedError::NoSwitch { name: name.into() }),
        }
    }
}

/// What the running switch tells of itself; none if there is none, or it does not answer.
pub(crate) fn service(name: &str) -> Option<Service> {
    let socket = state::directory(name).join("switch.socket");
    let mut stream = UnixStream::connect(&socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    document::parse(&text, &socket).ok()
}

/// Ends it; tells how many there were.
pub(crate) fn end(name: &str) -> Result<usize, TestbedError> {
    let marker = format!("{SWITCH_MARKER}={name}");
    processes::end(name, || processes::marked(&marker))
}
