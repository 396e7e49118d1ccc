//! What loads what a run has chosen, by the MPI library that it was measured on.

use std::path::PathBuf;

use anyhow::Result;
use libraries::{FileFormat, MpiLibrary, openmpi::OpenMpiLibrary};
use records::{platform::Platform, summary::LoadWay};

use super::{ExportFormat, Exporter, profiles::PROFILE};
use crate::stages::natives;

/// The form of file for one way of loading, and the version that loads it.
#[derive(Debug, Clone)]
pub struct LoadTarget {
    format: ExportFormat,
    version: Option<String>,
    /// What the library says of its version.
    said: String,
}

impl LoadTarget {
    /// For a run that was measured there. Where the library is not known, rules are Open MPI's.
    pub fn new(way: LoadWay, platform: &Platform) -> Self {
        let profiles = LoadTarget {
            format: ExportFormat(&PROFILE),
            version: None,
            said: platform.mpi_library.clone(),
        };
        if way == LoadWay::Preload {
            return profiles;
        }
        let known = libraries::recognise(&platform.mpi_library);
        let library = known.unwrap_or(&OpenMpiLibrary as &dyn MpiLibrary);
        let version = library.version(&platform.mpi_library);
        // Open MPI 4.0 and 4.1 load the same.
        let is_usual = library.library() == OpenMpiLibrary.library() && version < Some((5, 0));
        let version = version.filter(|_| !is_usual);
        let version = version.map(|(major, minor)| format!("{major}.{minor}"));
        let mut formats = library.formats().iter().filter(|format| format.way == Some(way));
        let (first, takes) = (formats.clone().next(), |format: &&FileFormat| {
            format.takes_library || (format.exporter)(version.as_deref(), None).is_ok()
        });
        match formats.find(takes).or(first) {
            Some(format) => LoadTarget { format: ExportFormat(format), version, ..profiles },
            None => profiles,
        }
    }

    /// The form.
    pub fn format(&self) -> ExportFormat {
        self.format
    }

    /// What a run calls the file or directory.
    pub fn file(&self) -> &'static str {
        self.format.0.file
    }

    /// Writes for it, leaving out what would be dangerous there unless `commutative` says that all
    /// operations of programs are.
    ///
    /// # Errors
    /// A version that is not known; a file of the library is needed that is not there.
    pub fn exporter(&self, commutative: bool) -> Result<Box<dyn Exporter>> {
        let takes_library = self.format.0.takes_library;
        let library: Option<PathBuf> =
            takes_library.then(|| natives::library_file(&self.said)).flatten();
        self.format.careful_exporter(self.version.as_deref(), library.as_deref(), commutative)
    }
}
