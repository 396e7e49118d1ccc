//! The border to the system: starting, watching and ending the programs that we launch.

use std::{
    env, fs,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use records::document::{self, Document};
use serde::{Deserialize, Serialize};

use crate::site::slurm;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt (Ctrl-C, SIGTERM) is noted, so that what was launched can be ended.
pub fn note_interrupts() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
        .context("cannot catch interrupts")
}

/// Whether an interrupt was noted.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether we are root.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// A launched program, told apart from a later one with the same number by its start and its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    pid: u32,
    started_ticks: u64,
    /// The host that it was started on, and that host's boot; older versions wrote neither.
    #[serde(default)]
    host: String,
    #[serde(default)]
    boot: String,
    /// Slurm's job in which it was started, where there was one.
    #[serde(default)]
    slurm_job: Option<String>,
}

impl Launched {
    fn of(pid: u32, started_ticks: u64) -> Self {
        let slurm_job = env::var("SLURM_JOB_ID").ok();
        Launched { pid, started_ticks, host: host(), boot: boot(), slurm_job }
    }

    /// Whether it was started where its number means something to us. Nodes of one cluster may have one
    /// host name, and containers on one machine several.
    fn is_here(&self) -> bool {
        self.boot.is_empty() || (self.boot == boot() && self.host == host())
    }
}

fn host() -> String {
    kernel_says("/proc/sys/kernel/hostname")
}

fn boot() -> String {
    kernel_says("/proc/sys/kernel/random/boot_id")
}

fn kernel_says(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

impl Document for Launched {
    const SCHEMA: &'static str = "colibri/launched/1";
}

/// Starts a program in a process group of its own, which ends when we do.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    command.process_group(0);
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec and calls only prctl and getppid, which are
    // async-signal-safe; it touches no memory but its own copy of `parent`.
    unsafe {
        command.pre_exec(move || {
            // mpirun ends its ranks in good order on SIGTERM.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::getppid() as u32 == parent {
                true => Ok(()),
                false => Err(io::Error::other("the launching process has ended")),
            }
        });
    }
    command.spawn()
}

/// Ends a child with its whole process group, gently first.
pub fn end(child: &mut Child) -> io::Result<ExitStatus> {
    signal_group(child.id(), libc::SIGTERM);
    let patience = Instant::now() + Duration::from_secs(5);
    while Instant::now() < patience {
        if let Some(status) = child.try_wait()? {
            signal_group(child.id(), libc::SIGKILL);
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    signal_group(child.id(), libc::SIGKILL);
    child.wait()
}

/// What a program says on stdout and then on stderr, if it ends within `patience`; else it is ended.
pub fn said_within(command: &mut Command, patience: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command).ok()?;
    let since = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if since.elapsed() > patience {
            // Ended or not, it has said nothing that counts.
            let _ = end(&mut child);
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut said = String::new();
    child.stdout.take()?.read_to_string(&mut said).ok()?;
    child.stderr.take()?.read_to_string(&mut said).ok()?;
    Some(said)
}

fn signal_group(leader: u32, signal: i32) {
    let Ok(leader) = i32::try_from(leader) else { return };
    // SAFETY: kill takes two numbers. The group is one that `spawn` made, so it holds only what
    // we launched; that it may have ended already is no error.
    unsafe { libc::kill(-leader, signal) };
}

/// Writes down what was launched, so that it can be found should we be killed.
pub fn write_down(child: &Child, path: &Path) -> Result<()> {
    // A program that has ended already leaves nothing to be found.
    let Some(started_ticks) = started(child.id()) else { return Ok(()) };
    Ok(document::write(path, &Launched::of(child.id(), started_ticks))?)
}

/// Ends what a killed run had launched and written down, if it still runs. What was started on another
/// host can't be ended from here: it ended with its launcher, unless that is still there. Then it holds
/// the run's lock (`is_locked`: we hold it), or its job of Slurm's runs.
///
/// # Errors
/// It can't be ended, or may still run elsewhere.
pub fn end_written_down(path: &Path, is_locked: bool) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let launched: Launched = document::read(path)?;
    if !launched.is_here() {
        check_elsewhere(&launched, path, is_locked)?;
        forget(path);
        return Ok(());
    }
    let Launched { pid, started_ticks, .. } = launched;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let patience = Instant::now() + Duration::from_secs(3);
        while started(pid) == Some(started_ticks) && Instant::now() < patience {
            signal_group(pid, signal);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    forget(path);
    Ok(())
}

fn check_elsewhere(launched: &Launched, path: &Path, is_locked: bool) -> Result<()> {
    let Launched { pid, host, slurm_job, .. } = launched;
    let path = path.display();
    let runs = match slurm_job.as_deref() {
        // A job that was requeued keeps its number: what it had started before is gone.
        Some(job) if env::var("SLURM_JOB_ID").as_deref() == Ok(job) => Some(false),
        Some(job) => slurm::runs(job),
        None => None,
    };
    let job = slurm_job.as_deref().unwrap_or_default();
    match runs {
        Some(true) => bail!(
            "{path}: Slurm's job {job} still works in this directory, on {host}; wait for it, or end it \
             by `scancel {job}`"
        ),
        Some(false) => Ok(()),
        None if is_locked => Ok(()),
        None => bail!(
            "{path}: process {pid} on {host} may still work in this directory, whose file system has \
             no locks; when it has ended, remove this file"
        ),
    }
}

/// What was written down has ended.
pub fn forget(path: &Path) {
    // Not there is as good as removed; the next start checks the process's start anyway.
    let _ = fs::remove_file(path);
}

/// When a living process started, in clock ticks since boot.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold blanks; the state follows it and the start is the 20th
    // field from there (proc(5), field 22).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (*fields.first()? != "Z").then(|| fields.get(19)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_launched_is_found_again_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("launched.json");
        let mut child = spawn(Command::new("sleep").arg("600")).unwrap();
        write_down(&child, &path).unwrap();
        end_written_down(&path, true).unwrap();
        assert!(!path.exists());
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn another_process_with_the_same_number_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("launched.json");
        let mut child = spawn(Command::new("sleep").arg("600")).unwrap();
        document::write(&path, &Launched::of(child.id(), 1)).unwrap();
        end_written_down(&path, true).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        end(&mut child).unwrap();
    }

    #[test]
    fn what_runs_on_another_host_is_left_alone_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("launched.json");
        let mut child = spawn(Command::new("sleep").arg("600")).unwrap();
        let here = Launched::of(child.id(), started(child.id()).unwrap());
        let other = Launched { host: "n17".into(), slurm_job: None, ..here.clone() };
        document::write(&path, &other).unwrap();
        let error = end_written_down(&path, false).unwrap_err().to_string();
        assert!(error.contains("on n17 may still work") && path.exists(), "{error}");
        // Its lock would be held if it did.
        end_written_down(&path, true).unwrap();
        assert!(!path.exists() && child.try_wait().unwrap().is_none());
        // As it was written before hosts were.
        let text = format!(
            "{{\"schema\": \"colibri/launched/1\", \"pid\": {}, \"started_ticks\": {}}}",
            child.id(),
            here.started_ticks
        );
        fs::write(&path, text).unwrap();
        end_written_down(&path, false).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
