//! What was launched is written down, so that it can be found, should we be killed.

use std::{
    env, fs,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use records::document::{self, Document};
use serde::{Deserialize, Serialize};

use crate::{
    process::{signal_group, started},
    slurm,
};

/// A launched program, distinguished from a later one with the same number by its start and its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    pid: u32,
    started_ticks: u64,
    /// The host that it was started on, and that host's boot.
    host: String,
    boot: String,
    /// Slurm's job in which it was started, where there was one.
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
        self.boot == boot() && self.host == host()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{end, spawn};
    use std::process::Command;

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
        end(&mut child).unwrap();
    }
}
