//! Finding and ending the processes of a testbed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{TestbedError, scripts::MARKER, spec::namespace, system::NAMESPACES};

/// How long a process may take over its own end.
const TERM_PATIENCE: Duration = Duration::from_secs(3);
/// How long the kernel may take over it.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// What tells one namespace from another: device and inode of its file.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// All processes in those places of the testbed whose namespaces have their names still, and all that
/// carry the testbed's marker (whose namespace may have lost it).
pub(crate) fn of_testbed(name: &str, places: &[String]) -> Vec<i32> {
    let files = places.iter().map(|place| Path::new(NAMESPACES).join(namespace(name, place)));
    let namespaces: Vec<Identity> = files.filter_map(|file| identity(&file)).collect();
    let marker = format!("{MARKER}={name}");
    all_of(|process, namespace| namespaces.contains(&namespace) || is_marked(process, &marker))
}

/// All processes with this in their environment.
pub(crate) fn marked(marker: &str) -> Vec<i32> {
    all_of(|process, _| is_marked(process, marker))
}

/// A process that has ended, if its parent has not asked for it yet, has neither namespace nor
/// environment and is none.
fn all_of(is_wanted: impl Fn(&Path, Identity) -> bool) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let process = Path::new("/proc").join(pid.to_string());
        identity(&process.join("ns/net")).is_some_and(|namespace| is_wanted(&process, namespace))
    })
    .collect()
}

fn is_marked(process: &Path, marker: &str) -> bool {
    fs::read(process.join("environ"))
        .is_ok_and(|text| text.split(|byte| *byte == 0).any(|set| set == marker.as_bytes()))
}

/// Ends them: asked first, then killed. Tells how many there were.
pub(crate) fn end(name: &str, members: impl Fn() -> Vec<i32>) -> Result<usize, TestbedError> {
    let first = members();
    if first.contains(&(std::process::id() as i32)) {
        return Err(TestbedError::Inside { name: name.into() });
    }
    if signal_until_gone(&members, Signal::TERM, TERM_PATIENCE).is_empty() {
        return Ok(first.len());
    }
    let pids = signal_until_gone(&members, Signal::KILL, KILL_PATIENCE);
    match pids.is_empty() {
        true => Ok(first.len()),
        false => Err(TestbedError::Survivors { name: name.into(), pids }),
    }
}

/// Signals every member once, those that appear later too; tells who is left.
fn signal_until_gone(
    members: impl Fn() -> Vec<i32>,
    signal: Signal,
    patience: Duration,
) -> Vec<i32> {
    let begin = Instant::now();
    let mut signalled = Vec::new();
    loop {
        let members = members();
        if members.is_empty() || begin.elapsed() > patience {
            return members;
        }
        for pid in members {
            if !signalled.contains(&pid) {
                signalled.push(pid);
                // It may have ended by itself since it was listed.
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
            }
        }
        thread::sleep(POLL);
    }
}
