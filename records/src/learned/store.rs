//! The directory that `COLIBRI_ADAPT` names: what applications have learned, a file for each MPI library and kind of
//! processor. Jobs add to it at once, and may be killed at any time.
//!
//! Whoever writes holds a lock on `learned/lock`, which the system lifts when the process ends, however it ends. A file
//! is written beside the old one and renamed: a reader needs no lock.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::Learned;
use crate::{
    FileError,
    document::{self, Document},
    reading::{self, has_no_locks},
};

/// Inside the directory, so that other files of Colibri's may lie beside it.
const FOLDER: &str = "learned";

/// A writer holds the lock for milliseconds. Whoever waits longer waits for a file system that hangs, and holds up the
/// end of a job.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Store {
    /// What can be used, with its file, in the order of the files' names.
    pub learned: Vec<(PathBuf, Learned)>,
    /// Why other files can't be.
    pub unusable: Vec<(PathBuf, FileError)>,
}

/// Where a directory keeps what was learned.
pub fn folder(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// All that was learned there; nothing where the directory is not there, or is new.
///
/// # Errors
/// The system refuses.
pub fn read_all(directory: &Path) -> Result<Store, FileError> {
    let folder = folder(directory);
    let mut store = Store::default();
    if !folder.try_exists().map_err(|error| FileError::io(&folder, "read", &error))? {
        return Ok(store);
    }
    for path in reading::entries(&folder)? {
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        match document::read(&path) {
            Ok(learned) => store.learned.push((path, learned)),
            Err(error) => store.unusable.push((path, error)),
        }
    }
    Ok(store)
}

/// What was learned of a library on a kind of processor; nothing where nothing was.
///
/// # Errors
/// The system refuses, or all that may be of it is broken.
pub fn read(
    directory: &Path,
    library: &str,
    processor: &str,
) -> Result<Option<Learned>, FileError> {
    let mut store = read_all(directory)?;
    let found = store.take(library, processor);
    if !found.is_empty() {
        return Ok(Some(merged(library, processor, found.iter().map(|(_, learned)| learned))));
    }
    let stem = file_stem(library, processor);
    let may_be_its = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem))
    };
    match store.unusable.into_iter().find(|(path, _)| may_be_its(path)) {
        Some((_, error)) => Err(error),
        None => Ok(None),
    }
}

/// Where something was added, and what was in the way.
#[derive(Debug)]
pub struct Added {
    pub path: PathBuf,
    /// Files that cannot be read, which were left as they are: what was added is in another one.
    pub unusable: Vec<FileError>,
}

/// Adds what a job has learned. The directory is made where it is not there. Where the file system has no locks, jobs
/// that end in the same moment may lose one's part; no file is ever half written.
///
/// # Errors
/// The system refuses, or others held the lock for seconds: nothing is changed then.
pub fn add(directory: &Path, newer: &Learned) -> Result<Added, FileError> {
    let folder = folder(directory);
    fs::create_dir_all(&folder)
        .map_err(|error| FileError::io(&folder, "make this directory", &error))?;
    let lock = lock(&folder.join("lock"))?;
    if lock.is_some() {
        remove_leftovers(&folder);
    }
    let mut store = read_all(directory)?;
    let (library, processor) = (&newer.library, &newer.processor);
    let found = store.take(library, processor);
    let path = match found.first() {
        Some((path, _)) => path.clone(),
        None => free_path(&folder, &file_stem(library, processor)),
    };
    let before = found.iter().map(|(_, learned)| learned);
    let learned = merged(library, processor, before.chain([newer]));
    // What could not be read back would be lost to all later jobs.
    let checked = learned.validate();
    checked.map_err(|(field, problem)| FileError::new(&path, problem).in_field(field))?;
    document::write(&path, &learned)?;
    // Copies that somebody made: they are in the one that was written.
    for (copy, _) in found.iter().skip(1) {
        // Best effort: what stays is read with the other.
        let _ = fs::remove_file(copy);
    }
    drop(lock);
    Ok(Added { path, unusable: store.unusable.into_iter().map(|(_, error)| error).collect() })
}

impl Store {
    /// Takes out what is of a library on a kind of processor: the names inside the files say so.
    fn take(&mut self, library: &str, processor: &str) -> Vec<(PathBuf, Learned)> {
        let is_its =
            |learned: &Learned| learned.library == library && learned.processor == processor;
        self.learned.extract_if(.., |(_, learned)| is_its(learned)).collect()
    }
}

/// The older ones first.
fn merged<'a>(library: &str, processor: &str, parts: impl Iterator<Item = &'a Learned>) -> Learned {
    let mut all = Learned::new(library.into(), processor.into());
    parts.for_each(|part| all.merge(part));
    all
}

/// The name that a file of a library and a processor has, without its end, such as
/// `open-mpi-4.1.4-intel-xeon-gold-6140`. Different ones may have the same.
fn file_stem(library: &str, processor: &str) -> String {
    /// File systems take 255 bytes.
    const LONGEST: usize = 120;
    let all = format!("{library} {processor}").to_lowercase();
    let words = all.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut stem = words.join("-");
    stem.truncate(LONGEST);
    match stem.trim_matches(['.', '-']) {
        "" => "unnamed".into(),
        stem => stem.into(),
    }
}

fn free_path(folder: &Path, stem: &str) -> PathBuf {
    let ends = (2..).map(|number| format!("-{number}"));
    let mut paths =
        [String::new()].into_iter().chain(ends).map(|end| folder.join(format!("{stem}{end}.json")));
    // What cannot be looked at cannot be written either, which then tells why.
    paths.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_default()
}

/// Nothing where the file system has no locks.
fn lock(path: &Path) -> Result<Option<File>, FileError> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| FileError::io(path, "write", &error))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(FileError::io(path, "lock", &error)),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= LONGEST_WAIT => {
                let seconds = LONGEST_WAIT.as_secs();
                let problem = format!(
                    "another job has held this lock for {seconds} seconds; nothing was added"
                );
                return Err(FileError::new(path, problem));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

/// What writers left that were killed. With the lock held nobody is writing.
fn remove_leftovers(folder: &Path) {
    for path in reading::entries(folder).into_iter().flatten() {
        if path.extension().is_some_and(|end| end == "part") {
            // Best effort: it is in nobody's way.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
