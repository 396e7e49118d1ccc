//! What loads what a run has chosen, by the MPI library that it was measured on.

use std::path::PathBuf;

use anyhow::Result;
use libraries::{FileFormat, MpiLibrary, openmpi::OpenMpiLibrary};
use records::{platform::Platform, summary::LoadWay};

use super::{CarefulExporter, ExportFormat, profiles::PROFILE};
use crate::natives;
use site::usage;

/// How the library that files are written for stands to the one that the choices were made for.
#[derive(Debug, PartialEq, Eq)]
pub enum LibraryMatch {
    /// It is the same, or any will do.
    Own,
    /// It is not, or another version, as was asked for; the library that the choices were made for.
    Other(String),
    /// Nothing tells what they were made for.
    Unknown,
}

/// The forms of file that a version of a library loads.
fn forms(
    library: &'static dyn MpiLibrary,
    version: Option<&str>,
) -> impl Iterator<Item = &'static FileFormat> {
    library
        .formats()
        .iter()
        .filter(move |format| format.takes_library || (format.exporter)(version, None).is_ok())
}

impl ExportFormat {
    /// The file of the library that says this of its version, where the format looks into one.
    pub fn library_file(self, said: &str) -> Option<PathBuf> {
        self.0.takes_library.then(|| natives::library_file(said)).flatten()
    }

    /// The version of its library that is written for: the one `asked` for, or else the one that the choices
    /// were made for, on this platform.
    ///
    /// # Errors
    /// They were made for another library, and no version is asked for.
    pub fn version_for(
        self,
        asked: Option<&str>,
        platform: &Platform,
    ) -> Result<(Option<String>, LibraryMatch)> {
        let version = asked.map(ToOwned::to_owned);
        // Profiles serve under any MPI library, as UCC does; a program takes any method.
        let Some(library) = self.library().filter(|_| self.way().is_some()) else {
            return Ok((version, LibraryMatch::Own));
        };
        let Some(own) = libraries::recognise(&platform.mpi_library) else {
            return Ok((version, LibraryMatch::Unknown));
        };
        let is_same = own.library() == library;
        let own_version = own.version(&platform.mpi_library);
        let numbers = own_version.map(|(major, minor)| format!("{major}.{minor}"));
        let made_for = format!("{} {}", own.title(), numbers.as_deref().unwrap_or_default());
        let made_for = made_for.trim_end().to_owned();
        match (asked, is_same, own_version) {
            (None, true, Some(_)) => Ok((numbers, LibraryMatch::Own)),
            (_, true, None) => Ok((version, LibraryMatch::Unknown)),
            (Some(asked), true, _) if own.version(asked) == own_version => {
                Ok((version, LibraryMatch::Own))
            }
            (Some(_), ..) => Ok((version, LibraryMatch::Other(made_for))),
            (None, false, _) => {
                let form = forms(own, numbers.as_deref()).next().map_or("none", |form| form.name);
                usage!(
                    "the choices were made for {made_for}, which loads --target {form}; to write them for \
                     another library all the same, name its version by --target-version"
                )
            }
        }
    }
}

/// The form of file for one way of loading, and the version that loads it.
#[derive(Debug, Clone)]
pub struct LoadTarget {
    way: LoadWay,
    format: ExportFormat,
    version: Option<String>,
    /// What the library says of its version.
    said: String,
}

impl LoadTarget {
    /// For a run that was measured there. Where the library is not known, rules are Open MPI's.
    pub fn new(way: LoadWay, platform: &Platform) -> Self {
        let profiles = LoadTarget {
            way,
            format: ExportFormat(&PROFILE),
            version: None,
            said: platform.mpi_library.clone(),
        };
        if way == LoadWay::Preload {
            return profiles;
        }
        let known = libraries::recognise(&platform.mpi_library);
        let version = known.and_then(|library| library.version(&platform.mpi_library));
        let library = known.unwrap_or(&OpenMpiLibrary as &dyn MpiLibrary);
        // What is older than 4.0 is not known; its jobs confirm whether it loads the usual form.
        let is_old = library.library() == OpenMpiLibrary.library() && version < Some((4, 0));
        let version = version.filter(|_| !is_old);
        let version = version.map(|(major, minor)| format!("{major}.{minor}"));
        let form = forms(library, version.as_deref()).find(|format| format.way == Some(way));
        let any = library.formats().iter().find(|format| format.way == Some(way));
        match form.or(any) {
            Some(format) => LoadTarget { format: ExportFormat(format), version, ..profiles },
            None => profiles,
        }
    }

    /// The way of loading.
    pub fn way(&self) -> LoadWay {
        self.way
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
    /// A version that is not known; a file of the library is needed that is not there. Nobody has asked for either, so that
    /// it is no wrong use.
    pub fn exporter(&self, commutative: bool) -> Result<CarefulExporter> {
        let library = self.format.library_file(&self.said);
        let version = self.version.as_deref();
        let exporter = self.format.careful_exporter(version, library.as_deref(), commutative);
        exporter.map_err(|error| match error.downcast() {
            Ok(libraries::Error::Usage(problem)) => libraries::Error::Failed(format!(
                "no --target {} can be written for the library at hand: {problem}",
                self.format.name()
            ))
            .into(),
            Ok(failed) => failed.into(),
            Err(error) => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags that name a version are `export`'s; other commands write for what they find.
    #[test]
    fn a_version_that_nobody_asked_for_is_no_wrong_use() {
        let of = |said: &str| {
            let platform = Platform { mpi_library: said.into(), ..Platform::default() };
            LoadTarget::new(LoadWay::Rules, &platform).exporter(true).err()
        };
        assert!(of("Open MPI v4.1.4").is_none());
        let error = of("MPICH Version:\t9.9.1").unwrap();
        let failed = matches!(error.downcast_ref(), Some(libraries::Error::Failed(_)));
        assert!(failed && error.to_string().contains("MPICH 9.9 is not known"), "{error}");
    }

    fn version(format: &str, asked: Option<&str>, said: &str) -> (Option<String>, LibraryMatch) {
        let format = ExportFormat::find(format).unwrap();
        let platform = Platform { mpi_library: said.into(), ..Platform::default() };
        format.version_for(asked, &platform).unwrap()
    }

    #[test]
    fn what_is_written_is_for_the_library_that_was_measured() {
        let of = |version: &str, fit| (Some(version.to_owned()), fit);
        for (format, said, own) in [
            ("openmpi", "Open MPI v4.0.7, package: x", "4.0"),
            ("openmpi", "Open MPI v5.0.11, package: x", "5.0"),
            ("openmpi-json", "Open MPI v6.0.0, package: x", "6.0"),
            ("mpich", "MPICH Version:\t4.0.2", "4.0"),
            ("intel", "Intel(R) MPI Library 2021.19.0 for Linux* OS", "2021.19"),
        ] {
            assert_eq!(version(format, None, said), of(own, LibraryMatch::Own));
            assert_eq!(version(format, Some(own), said), of(own, LibraryMatch::Own));
            let precise = format!("{own}.9");
            assert_eq!(version(format, Some(&precise), said), of(&precise, LibraryMatch::Own));
            assert_eq!(version(format, None, ""), (None, LibraryMatch::Unknown));
        }
        let other = |made_for: &str| LibraryMatch::Other(made_for.into());
        let five = "Open MPI v5.0.11, package: x";
        assert_eq!(version("openmpi", Some("4.1"), five), of("4.1", other("Open MPI 5.0")));
        assert_eq!(version("intel", Some("2021.9"), five), of("2021.9", other("Open MPI 5.0")));
        assert_eq!(version("openmpi", None, "Open MPI"), (None, LibraryMatch::Unknown));
        for format in ["profile", "pgtune", "c", "ucc", "ucc-conf"] {
            assert_eq!(version(format, None, five), (None, LibraryMatch::Own));
        }
        let platform = Platform { mpi_library: five.into(), ..Platform::default() };
        let mpich = ExportFormat::find("mpich").unwrap();
        let error = mpich.version_for(None, &platform).unwrap_err().to_string();
        assert!(error.contains("made for Open MPI 5.0, which loads --target openmpi"), "{error}");
    }
}
