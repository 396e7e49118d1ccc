//! Rank 0's hand on a record: one writer at a time, which goes on with what earlier runs left.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    iter,
    path::{Path, PathBuf},
};

use records::{
    FileError,
    platform::Platform,
    reading::has_no_locks,
    record::{self, Record, Row, Writer},
};

use crate::{Result, clock::now, flags::PROGRAM, sleep::sleep_until};

/// What stands above a record's rows.
pub type RecordHeader = BTreeMap<String, String>;

/// The header of a task's record: the task's own entries, the program, and what it ran on.
///
/// # Errors
/// The platform cannot be written as text.
pub fn header<const N: usize>(
    task: &str,
    platform: &Platform,
    own: [(&str, String); N],
) -> Result<RecordHeader> {
    let program = format!("{PROGRAM} {task} {}", env!("CARGO_PKG_VERSION"));
    let shared = [("platform", serde_json::to_string(platform)?), ("program", program)];
    Ok(own.into_iter().chain(shared).map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A record that is there already is kept beside the new one, as `NAME.failed.csv`, or `NAME.failed-2.csv` and so on: of a
/// job that failed and is tried once more, as the commands refuse a record that was there before.
///
/// # Errors
/// The system refuses.
pub fn put_aside(record: &Path) -> Result<()> {
    if record.exists() {
        let later = (2..).map(|number| record.with_extension(format!("failed-{number}.csv")));
        let mut names = iter::once(record.with_extension("failed.csv")).chain(later);
        let Some(aside) = names.find(|name| !name.exists()) else { return Ok(()) };
        fs::rename(record, &aside).map_err(|e| FileError::io(&aside, "write", &e))?;
    }
    Ok(())
}

/// A record that this process alone appends to; touches the file only when there is something to
/// append.
#[derive(Debug)]
pub struct Recording<T> {
    path: PathBuf,
    header: RecordHeader,
    writer: Option<Writer<T>>,
    _lock: Lock,
}

impl<T: Row> Recording<T> {
    /// With what earlier runs left. `identity` are the entries of the header in which a run that
    /// goes on must agree with these.
    ///
    /// # Errors
    /// Another run is writing to it; it cannot be read or written, or is another's.
    pub fn open(path: &Path, header: RecordHeader, identity: &[&str]) -> Result<(Self, Record<T>)> {
        let lock = Lock::take(path)?;
        let earlier = record::read_begun::<T>(path)?;
        for key in identity {
            let (old, new) = (earlier.header.get(*key), header.get(*key));
            if old.is_some() && old != new {
                let [old, new] = [old, new].map(|value| value.map_or("", String::as_str));
                let problem = format!("is {old}, this run's is {new}; name another --record");
                return Err(FileError::new(path, problem).in_field(*key).into());
            }
        }
        Ok((Recording { path: path.into(), header, writer: None, _lock: lock }, earlier))
    }

    /// Writes the header, though nothing may be observed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn begin(mut self) -> Result<Self> {
        self.writer()?;
        Ok(self)
    }

    /// Appends an observation, in one piece.
    ///
    /// # Errors
    /// The system refuses.
    pub fn append(&mut self, row: &T) -> Result<()> {
        Ok(self.writer()?.append(row)?)
    }

    /// Notes something beside the observations, where this run has changed the record at all.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note(&mut self, key: &str, value: &str) -> Result<()> {
        Ok(self.writer.iter_mut().try_for_each(|writer| writer.note(key, value))?)
    }

    /// Notes the seconds of the budget that are spent.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note_spent(&mut self, seconds: f64) -> Result<()> {
        self.note(SPENT, &format!("{seconds:.3}"))
    }

    fn writer(&mut self) -> Result<&mut Writer<T>> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(Writer::open(&self.path, &self.header)?)),
        }
    }
}

const SPENT: &str = "spent_seconds";

/// Seconds of the budget that earlier runs spent.
///
/// # Errors
/// The note is no number.
pub fn spent_seconds<T>(earlier: &Record<T>, path: &Path) -> Result<f64> {
    let Some(text) = earlier.header.get(SPENT) else { return Ok(0.0) };
    text.parse().map_err(|_| {
        let problem = format!("is '{text}', expected a number of seconds");
        FileError::new(path, problem).in_field(SPENT).into()
    })
}

/// The right to append to a record, until the process ends.
#[derive(Debug)]
struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a record, which is created empty where there is none.
    ///
    /// Ranks of a killed run may still hold it for a moment, so this waits a few seconds.
    fn take(path: &Path) -> std::result::Result<Self, FileError> {
        const PAUSE: i64 = 50_000_000;
        const ATTEMPTS: u32 = 100;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| FileError::io(path, "write", &error))?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                // The command that started us has said so.
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    return Ok(Lock { _file: file });
                }
                Err(TryLockError::Error(error)) => return Err(FileError::io(path, "lock", &error)),
            }
            sleep_until(now() + PAUSE);
        }
        Err(FileError::new(path, "another run is writing to it; wait for its end or stop it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.csv");
        let lock = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        assert!(error.contains("another run"), "{error}");
        drop(lock);
        Lock::take(&path).unwrap();
    }
}
