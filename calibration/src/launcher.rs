//! A job whose launcher was killed must end: its ranks would go on, unseen, writing to a record
//! that the next run has begun to complete.

use std::{
    fs::{File, OpenOptions},
    os::fd::AsRawFd,
    path::Path,
    sync::atomic::{AtomicI32, Ordering},
};

use records::FileError;

use crate::{clock::now, sleep::sleep_until};

static LAUNCHER: AtomicI32 = AtomicI32::new(0);

fn parent() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// Remembers who launched this rank.
pub fn remember() {
    LAUNCHER.store(parent(), Ordering::Relaxed);
}

/// Ends this rank if its launcher has died. The MPI library would notice too, but only after about
/// a second.
pub fn end_if_gone() {
    let launcher = LAUNCHER.load(Ordering::Relaxed);
    if launcher != 0 && parent() != launcher {
        std::process::exit(1);
    }
}

/// A record that this process alone may append to, until it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a record, which is created empty where there is none.
    ///
    /// Ranks of a killed run may still hold it for a moment, so this waits a few seconds.
    ///
    /// # Errors
    /// Another run holds it; the file cannot be opened.
    pub fn take(path: &Path) -> Result<Self, FileError> {
        const PAUSE: i64 = 50_000_000;
        const ATTEMPTS: u32 = 100;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| FileError::io(path, "write", &error))?;
        for _ in 0..ATTEMPTS {
            // SAFETY: the descriptor is open as long as `file` is.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(Lock { _file: file });
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::WouldBlock {
                return Err(FileError::io(path, "lock", &error));
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
