use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::shortened;

/// A file that could not be read or written: which, where in it, what is wrong, what would be right.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    line: Option<u64>,
    field: Option<String>,
    problem: String,
}

impl FileError {
    /// Something is wrong with the file as a whole.
    pub fn new(path: &Path, problem: impl Into<String>) -> Self {
        let problem = shortened(&problem.into());
        FileError { path: path.into(), line: None, field: None, problem }
    }

    /// The system refused.
    pub fn io(path: &Path, doing: &str, error: &io::Error) -> Self {
        if path.as_os_str().is_empty() {
            return Self::new(path, "an empty file name");
        }
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "no such file or directory".into(),
            io::ErrorKind::PermissionDenied => "permission denied".into(),
            io::ErrorKind::IsADirectory => "is a directory; expected a file".into(),
            io::ErrorKind::NotADirectory => "a part of this path is a file, not a directory".into(),
            io::ErrorKind::ReadOnlyFilesystem => "the file system can only be read".into(),
            io::ErrorKind::StorageFull => "no space left on the disk".into(),
            _ => error.to_string(),
        };
        Self::new(path, format!("cannot {doing}: {reason}"))
    }

    /// Says at which line (from 1).
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = (line > 0).then_some(line);
        self
    }

    /// Says in which field.
    #[must_use]
    pub fn in_field(mut self, field: impl Into<String>) -> Self {
        let field = shortened(&field.into());
        // Where the fields' reader lost the place it says `.` or `?`.
        self.field = (!["", ".", "?"].contains(&field.as_str())).then_some(field);
        self
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(&self.path.to_string_lossy()))?;
        // A name of nothing would leave nothing to see.
        if self.path.as_os_str().is_empty() {
            write!(f, "''")?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field {field}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document, reading};

    #[test]
    fn a_directory_in_place_of_a_file_and_the_other_way_round_are_told_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let read = |path: &Path| FileError::io(path, "read", &reading::text(path).unwrap_err());
        let told = read(folder.path()).to_string();
        assert!(told.ends_with(": cannot read: is a directory; expected a file"), "{told}");
        let told = read(&file.join("x")).to_string();
        assert!(
            told.ends_with(": cannot read: a part of this path is a file, not a directory"),
            "{told}"
        );
        let told = document::write_text(&file.join("x"), "x").unwrap_err().to_string();
        assert!(
            told.ends_with(": cannot write: a part of this path is a file, not a directory"),
            "{told}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    }
}
