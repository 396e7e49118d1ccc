//! Files are read whole, and only those that have an end.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::FileError;

/// What a process holds open already: standard input, or a shell's `<(command)`. Who writes there was
/// started with the process, so that reading ends.
const OWN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a regular file, or what this process holds open already. A named pipe would be waited for
/// until somebody writes to it, and a device may have no end.
///
/// # Errors
/// The system refuses, or it is another kind of file.
pub fn open(path: &Path) -> io::Result<File> {
    let is_own = OWN.iter().any(|own| path.starts_with(own));
    if is_own {
        return File::open(path);
    }
    // With this flag the opening of a pipe doesn't wait either; for a regular file it says nothing.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_file() || kind.is_dir() => Ok(file),
        _ if kind.is_fifo() => Err(io::Error::other("is a named pipe; expected a regular file")),
        _ => Err(io::Error::other("is not a regular file")),
    }
}

/// Whether a file can't be locked because its file system has no locks, as those of clusters that were
/// mounted without.
pub fn has_no_locks(error: &io::Error) -> bool {
    let known = [libc::ENOLCK, libc::ENOSYS, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| known.contains(&code))
}

/// What lies in a directory, by name.
///
/// # Errors
/// It cannot be read.
pub fn entries(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let io = |error: io::Error| FileError::io(directory, "read the directory", &error);
    let paths = fs::read_dir(directory).map_err(io)?.map(|entry| Ok(entry.map_err(io)?.path()));
    let mut paths = paths.collect::<Result<Vec<_>, FileError>>()?;
    paths.sort();
    Ok(paths)
}

/// The whole of a file.
///
/// # Errors
/// As [`open`]; or reading fails.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The whole of a file of text, without the mark that editors of Windows put before it.
///
/// # Errors
/// As [`bytes`]; or it is not UTF-8, with the line.
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::from_utf8(bytes(path)?).map_err(|error| {
        if let Some(form) = other_form(error.as_bytes()) {
            return io::Error::other(form);
        }
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::other(format!("line {line} is no text in UTF-8"))
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// As [`text`], with an error that names the file.
///
/// # Errors
/// As [`text`].
pub fn text_file(path: &Path) -> Result<String, FileError> {
    text(path).map_err(|error| FileError::io(path, "read", &error))
}

/// What a file is that begins so and is no text in UTF-8, and what would be right.
pub fn other_form(beginning: &[u8]) -> Option<&'static str> {
    const FORMS: [(&[u8], &str); 6] = [
        (b"\x1f\x8b", "is compressed by gzip; unpack it first"),
        (b"BZh", "is compressed by bzip2; unpack it first"),
        (b"\xfd7zXZ", "is compressed by xz; unpack it first"),
        (b"\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it first"),
        (b"\xff\xfe", "is text in UTF-16; expected UTF-8"),
        (b"\xfe\xff", "is text in UTF-16; expected UTF-8"),
    ];
    FORMS.into_iter().find(|(begin, _)| beginning.starts_with(begin)).map(|(_, form)| form)
}

/// What some editors begin a file of UTF-8 with.
const BYTE_ORDER_MARK: char = '\u{feff}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_a_file_system_lacks_are_told_from_other_faults() {
        let lacks = [libc::ENOLCK, libc::ENOSYS, libc::EOPNOTSUPP, libc::EIO]
            .map(|code| has_no_locks(&io::Error::from_raw_os_error(code)));
        assert_eq!(lacks, [true, true, true, false]);
    }

    use std::{fs, process::Command};

    #[test]
    fn a_named_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = text(&path).unwrap_err().to_string();
        assert!(error.contains("named pipe"), "{error}");
        assert!(bytes(Path::new("/dev/zero")).is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x").unwrap();
        assert_eq!(text(&path).unwrap(), "x");
    }

    #[test]
    fn a_text_begins_after_its_mark_and_what_is_none_is_named_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "\u{feff}x").unwrap();
        assert_eq!(text(&path).unwrap(), "x");
        fs::write(&path, b"one\ntwo \xe4\n").unwrap();
        assert_eq!(text(&path).unwrap_err().to_string(), "line 2 is no text in UTF-8");
    }

    #[test]
    fn what_the_process_holds_open_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"told").unwrap();
        drop(writer);
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        assert_eq!(bytes(Path::new(&format!("/dev/fd/{number}"))).unwrap(), b"told");
    }
}
