//! The directory of a run: what lies where, and that only one command works in it at a time.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use records::{
    FileError,
    document::{self, Document},
    reading::{self, has_no_locks},
};
use rustix::fs::{Access, access};

use crate::{begun::holds_anything, options::RunOptions};

/// A run's directory.
///
/// A command that measures names it, makes sure that it can begin, and only then [makes](Self::make)
/// and locks it; one that [reads](Self::read) it makes nothing, and one that
/// [judges](Self::judge) what it holds writes results only where it may.
pub struct RunDirectory {
    path: PathBuf,
    /// Held until the command ends, however it ends.
    lock: Option<File>,
    /// What was made for this run, the last first; removed again if the run does not begin.
    made: Vec<PathBuf>,
    is_written_to: bool,
}

/// A file that a flag names: itself, or by the directory of a run that holds it under this name.
pub fn file_or_in_run(path: &Path, name: &str) -> PathBuf {
    if path.is_dir() { path.join(name) } else { path.into() }
}

macro_rules! files {
    ($($(#[$doc:meta])* $function:ident $name:literal,)*) => {
        impl RunDirectory {
            $($(#[$doc])* pub fn $function(&self) -> PathBuf { self.path.join($name) })*
        }
    };
}

files! {
    /// The options that a tuning run was given.
    options "tune.json",
    /// Point-to-point observations.
    observations "observations.csv",
    /// Observations of the links between all pairs of ranks.
    pair_observations "pairs.csv",
    /// What they say.
    pairs "pairs.json",
    /// The calls or messages that `colibri bench` timed.
    benchmark "bench.csv",
    /// How far the ranks' clocks were apart.
    clock_errors "clock-errors.csv",
    /// Observations of more than two ranks, and of combining.
    groups "groups.csv",
    /// Point-to-point observations inside a node.
    inside_observations "inside.csv",
    /// Observations of more than two ranks of a node.
    inside_groups "inside-groups.csv",
    /// Which collectives are timed for the constants of algorithms.
    algorithm_plan "algorithms-plan.json",
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
    /// Messages between pairs of ranks, imported.
    pair_streams "pair-streams.csv",
    /// Further statistics of what was imported.
    statistics "statistics.csv",
    /// All links of a virtual cluster at once.
    links "links.csv",
    /// Penalties of the decision functions.
    penalty "penalty.json",
    /// Penalties of the decision functions against what the network allows.
    above_limit "above-limit.json",
    /// Where two decision functions differ.
    agreement "agreement.json",
    /// Where the library breaks the guidelines.
    violations "violations.json",
    /// What a traced application uses.
    usage "usage.json",
    /// What a tuning run gained.
    summary "summary.json",
    /// What the first job reported of where the ranks run.
    first_job "first-job.json",
    /// The program that runs now.
    launched "launched.json",
}

impl RunDirectory {
    /// Names a run's directory, which need not be there; nothing is made.
    ///
    /// # Errors
    /// It is a file, or its place cannot be known.
    pub fn at(path: &Path) -> Result<Self> {
        if path.exists() && !path.is_dir() {
            bail!("{}: is a file; name the run's directory", path.display());
        }
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(_) => std::path::absolute(path).map_err(|e| FileError::io(path, "find", &e))?,
        };
        Ok(RunDirectory { path, lock: None, made: Vec::new(), is_written_to: false })
    }

    /// The directory of a run that is only read: nothing is written to it, it is not locked, and
    /// works on a read-only file system.
    ///
    /// # Errors
    /// There is none, or the directory is empty.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            bail!("{}: there is no such run", path.display());
        }
        let run = Self::at(path)?;
        if !run.holds_anything()? {
            bail!("{}: is an empty directory; name the directory of a run", path.display());
        }
        Ok(run)
    }

    /// Whether there is any file in it but what locks it.
    fn holds_anything(&self) -> Result<bool> {
        let lock = self.lock_path();
        Ok(reading::entries(&self.path)?.iter().any(|path| *path != lock))
    }

    /// The records of observations whose names begin so, by name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn records(&self, beginnings: &[&str]) -> Result<Vec<PathBuf>> {
        let mut paths = reading::entries(&self.path)?;
        paths.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".csv") && beginnings.iter().any(|begin| name.starts_with(begin))
        });
        Ok(paths)
    }

    /// The directory of a run whose records are judged: results are written to it where that can
    /// be done, else it is said that they are not.
    ///
    /// # Errors
    /// There is none, or another command works in it.
    pub fn judge(path: &Path) -> Result<Self> {
        let mut run = Self::read(path)?;
        run.is_written_to = access(&run.path, Access::WRITE_OK).is_ok();
        if !run.is_written_to {
            say!("{}: cannot be written to; results are only printed", run.path.display());
            return Ok(run);
        }
        // A command that works in it has made the file; where files can't be locked nobody can
        // be told to wait.
        if let Ok(lock) = OpenOptions::new().write(true).open(run.lock_path()) {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(run.in_use()),
                Ok(()) | Err(TryLockError::Error(_)) => run.lock = Some(lock),
            }
        }
        Ok(run)
    }

    /// Makes the directory where it is not there, and locks it. All of that is undone when this is
    /// dropped before the run [stays](Self::stay).
    ///
    /// # Errors
    /// It cannot be made or written to, or another command works in it.
    pub fn make(&mut self) -> Result<()> {
        let missing: Vec<PathBuf> =
            self.path.ancestors().take_while(|path| !path.exists()).map(Into::into).collect();
        fs::create_dir_all(&self.path)
            .map_err(|e| FileError::io(&self.path, "make this directory", &e))?;
        self.made = missing;
        self.path = self.path.canonicalize().map_err(|e| FileError::io(&self.path, "open", &e))?;
        self.lock = self.locked()?;
        // The first job reports before it is known whether the run can begin.
        let report = self.first_job();
        if !report.exists() {
            self.made.insert(0, report);
        }
        self.is_written_to = true;
        Ok(())
    }

    fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn in_use(&self) -> anyhow::Error {
        anyhow::anyhow!(
            "{}: another colibri works in this directory; wait for it, or name another",
            self.path.display()
        )
    }

    /// Nothing where the file system has no locks: then nobody can be told to wait.
    fn locked(&mut self) -> Result<Option<File>> {
        let path = self.lock_path();
        loop {
            let is_new = !path.exists();
            let lock = File::create(&path).map_err(|e| FileError::io(&path, "write", &e))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(self.in_use()),
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    let (lock_path, path) = (path.clone(), self.path.display());
                    say!("{path}: this file system has no locks; one command at a time");
                    if is_new {
                        self.made.insert(0, lock_path);
                    }
                    return Ok(None);
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error)
                        .with_context(|| format!("{}: cannot be locked", self.path.display()));
                }
            }
            // One that did not begin may have removed it between the two steps.
            let held = lock.metadata().map_err(|e| FileError::io(&path, "read", &e))?.ino();
            if fs::metadata(&path).is_ok_and(|there| there.ino() == held) {
                if is_new {
                    self.made.insert(0, path);
                }
                return Ok(Some(lock));
            }
        }
    }

    /// Whether no other command can work in it: not where the file system has no locks.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether results are written to it.
    pub fn is_written_to(&self) -> bool {
        self.is_written_to
    }

    /// Writes a result, where the directory is written to.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write<T: Document>(&self, path: &Path, body: &T) -> Result<(), FileError> {
        if self.is_written_to { document::write(path, body) } else { Ok(()) }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its measurements were made by another tool.
    pub fn is_imported(&self) -> bool {
        let first = reading::open(&self.measurements()).map(std::io::BufReader::new);
        first.is_ok_and(|first| {
            let lines = std::io::BufRead::lines(first).map_while(Result::ok);
            lines
                .take_while(|line| line.starts_with('#'))
                .any(|line| line.starts_with("#@imported="))
        })
    }

    /// A file of the run by name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes sure that nothing recorded is mixed with something new by accident.
    ///
    /// # Errors
    /// `record` holds observations although the run is to begin.
    pub fn begin(&self, record: &Path, resume: bool) -> Result<()> {
        if !resume && holds_anything(record) {
            bail!(
                "{}: already exists; continue it by --resume, or name another directory",
                record.display()
            );
        }
        Ok(())
    }

    /// Makes sure that a record to which nothing can be added is not there yet.
    ///
    /// # Errors
    /// It is.
    pub fn refuse_existing(&self, record: &Path) -> Result<()> {
        if record.exists() {
            bail!("{}: already exists; name another directory", record.display());
        }
        Ok(())
    }

    /// The run begins: what was made for it stays.
    pub fn stay(&mut self) {
        self.made.clear();
    }

    /// The run begins, or goes on, with these options: what was made for it stays. Where it begins,
    /// the `leftovers` of one that came to no observation are removed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep(&mut self, options: &RunOptions, leftovers: &[PathBuf]) -> Result<()> {
        self.stay();
        for path in leftovers.iter().filter(|path| !options.resume && path.exists()) {
            fs::remove_file(path).map_err(|e| FileError::io(path, "remove", &e))?;
        }
        Ok(document::write(&self.file(&options.given.file()), &options.given)?)
    }

    /// The directory for figures, made where it is not there; nothing where nothing is written.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn figures(&self) -> Result<Option<PathBuf>> {
        if !self.is_written_to {
            return Ok(None);
        }
        let path = self.path.join("figures");
        fs::create_dir_all(&path).map_err(|e| FileError::io(&path, "make this directory", &e))?;
        Ok(Some(path))
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        for path in &self.made {
            // A directory that holds anything else by now stays.
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::begun::GivenOptions;

    fn open(path: &Path) -> Result<RunDirectory> {
        let mut run = RunDirectory::at(path)?;
        run.make()?;
        Ok(run)
    }

    fn keep(run: &mut RunDirectory) {
        let directory = run.path().to_owned();
        let options = RunOptions { directory, resume: false, given: GivenOptions::default() };
        run.keep(&options, &[]).unwrap();
    }

    #[test]
    fn one_command_at_a_time_works_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = open(dir.path()).unwrap();
        keep(&mut first);
        for second in [open(dir.path()), RunDirectory::judge(dir.path())] {
            let error = second.err().unwrap().to_string();
            assert!(error.contains("another colibri"), "{error}");
        }
        RunDirectory::read(dir.path()).unwrap();
        drop(first);
        open(dir.path()).unwrap();
        RunDirectory::judge(dir.path()).unwrap();
    }

    #[test]
    fn a_run_that_does_not_begin_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(dir.path()).unwrap().count();
        drop(open(&dir.path().join("a/b")).unwrap());
        assert_eq!(count(), 0);
        let refused = open(dir.path()).unwrap();
        fs::write(refused.first_job(), "{}").unwrap();
        drop(refused);
        assert_eq!(count(), 0);
        keep(&mut open(&dir.path().join("a/b")).unwrap());
        assert!(dir.path().join("a/b/lock").exists());
        drop(open(&dir.path().join("a/b")).unwrap());
        assert!(dir.path().join("a/b/lock").exists(), "it was there before");
    }

    #[test]
    fn a_reader_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for reader in [RunDirectory::read, RunDirectory::judge] {
            let error = reader(&dir.path().join("none")).err().unwrap().to_string();
            assert!(error.ends_with("none: there is no such run"), "{error}");
            let error = reader(dir.path()).err().unwrap().to_string();
            assert!(
                error.ends_with("is an empty directory; name the directory of a run"),
                "{error}"
            );
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_called_that() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("calibration.json");
        fs::write(&file, "{}").unwrap();
        for open in [RunDirectory::at, RunDirectory::read, RunDirectory::judge] {
            let told = open(&file).err().unwrap().to_string();
            assert_eq!(told, format!("{}: is a file; name the run's directory", file.display()));
        }
    }

    #[test]
    fn a_record_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let run = open(dir.path()).unwrap();
        fs::write(run.observations(), "x").unwrap();
        assert!(run.begin(&run.observations(), false).is_err());
        assert!(run.begin(&run.observations(), true).is_ok());
        assert!(run.begin(&run.measurements(), false).is_ok());
    }
}
