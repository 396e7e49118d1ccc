//! The directory of a run: what lies where, and that only one command works in it at a time.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use records::FileError;

/// A run's directory, locked until dropped. The lock goes with the process, however it ends.
pub struct RunDirectory {
    path: PathBuf,
    _lock: File,
}

macro_rules! files {
    ($($(#[$doc:meta])* $function:ident $name:literal,)*) => {
        impl RunDirectory {
            $($(#[$doc])* pub fn $function(&self) -> PathBuf { self.path.join($name) })*
        }
    };
}

files! {
    /// The options of a tuning run.
    options "tune.json",
    /// Point-to-point observations.
    observations "observations.csv",
    /// Observations of the links between all pairs of ranks.
    pair_observations "pairs.csv",
    /// What they say.
    pairs "pairs.json",
    /// How far the ranks' clocks were apart.
    clock_errors "clock-errors.csv",
    /// Observations of more than two ranks, and of combining.
    groups "groups.csv",
    /// Which collectives are timed for the constants of algorithms.
    algorithm_plan "algorithms-plan.json",
    /// Their times.
    algorithm_times "algorithms.csv",
    /// The parameters fitted to the observations.
    calibration "calibration.json",
    /// What each model takes.
    decisions "decisions.json",
    /// What was chosen at each point.
    choices "choices.json",
    /// What is to be measured.
    plan "plan.json",
    /// Timed collectives.
    measurements "measurements.csv",
    /// All links of a virtual cluster at once.
    links "links.csv",
    /// Penalties of the decision functions.
    penalty "penalty.json",
    /// Where two decision functions differ.
    agreement "agreement.json",
    /// Where the library breaks the guidelines.
    violations "violations.json",
    /// What a traced application uses.
    usage "usage.json",
    /// What a tuning run gained.
    summary "summary.json",
    /// The program that runs now.
    launched "launched.json",
}

impl RunDirectory {
    /// Opens a run's directory, making it where it is not there.
    ///
    /// # Errors
    /// It cannot be made or written to, or another command works in it.
    pub fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).map_err(|e| FileError::io(path, "make this directory", &e))?;
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(|e| FileError::io(&lock_path, "write", &e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!(
                    "{}: another colibri works in this directory; wait for it, or name another",
                    path.display()
                )
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{}: cannot be locked", path.display()));
            }
        }
        let path = path.canonicalize().map_err(|e| FileError::io(path, "open", &e))?;
        Ok(RunDirectory { path, _lock: lock })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file of the run by name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes sure that nothing recorded is mixed with something new by accident.
    ///
    /// # Errors
    /// `record` is there although the run is to begin.
    pub fn begin(&self, record: &Path, resume: bool) -> Result<()> {
        if record.exists() && !resume {
            bail!(
                "{}: is there already; go on with it by --resume, or name another directory",
                record.display()
            );
        }
        Ok(())
    }

    /// The directory for figures, made where it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn figures(&self) -> Result<PathBuf> {
        let path = self.path.join("figures");
        fs::create_dir_all(&path).map_err(|e| FileError::io(&path, "make this directory", &e))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_at_a_time_works_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunDirectory::open(dir.path()).unwrap();
        let error = RunDirectory::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains("another colibri"), "{error}");
        drop(first);
        RunDirectory::open(dir.path()).unwrap();
    }

    #[test]
    fn a_record_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDirectory::open(dir.path()).unwrap();
        fs::write(run.observations(), "x").unwrap();
        assert!(run.begin(&run.observations(), false).is_err());
        assert!(run.begin(&run.observations(), true).is_ok());
        assert!(run.begin(&run.measurements(), false).is_ok());
    }
}
