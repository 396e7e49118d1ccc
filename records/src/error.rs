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
