//! Writes long records at once, where nothing is under way that a kill could lose.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{Row, opening};
use crate::FileError;

/// Appends to a record what was measured before: kept back and written in large pieces.
pub struct BulkWriter<T> {
    writer: csv::Writer<BufWriter<File>>,
    path: PathBuf,
    row: std::marker::PhantomData<T>,
}

impl<T: Row> BulkWriter<T> {
    /// Begins a record with its header.
    ///
    /// # Errors
    /// It is there already, or the system refuses.
    pub fn create(path: &Path, header: &BTreeMap<String, String>) -> Result<Self, FileError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = file.map_err(|error| FileError::io(path, "write", &error))?;
        let begun = file.write_all(&opening::<T>(&[], header));
        begun.map_err(|error| FileError::io(path, "write", &error))?;
        Ok(Self::over(file, path))
    }

    /// Goes on with one that was begun here and [closed](Self::finish).
    ///
    /// # Errors
    /// The system refuses.
    pub fn again(path: &Path) -> Result<Self, FileError> {
        let file = OpenOptions::new().append(true).open(path);
        Ok(Self::over(file.map_err(|error| FileError::io(path, "write", &error))?, path))
    }

    fn over(file: File, path: &Path) -> Self {
        let writer = csv::WriterBuilder::new()
            .has_headers(false)
            .buffer_capacity(1 << 12)
            .from_writer(BufWriter::with_capacity(1 << 16, file));
        BulkWriter { writer, path: path.into(), row: std::marker::PhantomData }
    }

    /// Appends one observation.
    ///
    /// # Errors
    /// The system refuses (a full disk, say).
    pub fn append(&mut self, row: &T) -> Result<(), FileError> {
        let written = self.writer.serialize(row);
        written.map_err(|error| FileError::new(&self.path, format!("cannot write: {error}")))
    }

    /// Writes what was kept back.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn finish(mut self) -> Result<(), FileError> {
        self.writer.flush().map_err(|error| FileError::io(&self.path, "write", &error))
    }
}
