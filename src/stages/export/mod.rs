//! What an MPI library, or one that stands before it, loads. Each form of a library's is in its
//! folder in `libraries`; another exporter is one file, one variant and one line here.

mod c;
mod careful;
mod fit;
mod profiles;
mod rust;
mod source_code;
mod target;

use std::{path::Path, sync::LazyLock};

use clap::{ValueEnum, builder::PossibleValue};
use libraries::{Compile, FileFormat, MpiLibrary};
use records::{Library, summary::LoadWay};

use crate::error::usage;
use careful::CarefulExporter;
use source_code::SourceCode;

pub use fit::{Possible, conflicts, fit, told_choices};
pub use libraries::{Export, Exporter, File};
pub use profiles::replacement;
pub use target::LoadTarget;

/// A format that something loads.
#[derive(Clone, Copy)]
pub enum ExportFormat {
    /// An MPI library's.
    Of(&'static FileFormat),
    /// PGMPITuneLib: a directory of profiles (mock-ups only)
    Pgtune,
    /// Colibri's preload library: a directory of profiles
    Profile,
    /// A decision function as a C header
    C,
    /// A decision function as a Rust module
    Rust,
}

static ALL: LazyLock<Vec<ExportFormat>> = LazyLock::new(|| {
    let theirs = libraries::formats().map(ExportFormat::Of);
    theirs
        .chain([ExportFormat::Pgtune, ExportFormat::Profile, ExportFormat::C, ExportFormat::Rust])
        .collect()
});

impl ValueEnum for ExportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, about) = match self {
            ExportFormat::Of(theirs) => (theirs.name, theirs.about),
            ExportFormat::Pgtune => {
                ("pgtune", "PGMPITuneLib: a directory of profiles (mock-ups only)")
            }
            ExportFormat::Profile => {
                ("profile", "Colibri's preload library: a directory of profiles")
            }
            ExportFormat::C => {
                ("c", "A decision function as a C header: (collective, processes, bytes) to method")
            }
            ExportFormat::Rust => ("rust", "A decision function as a Rust module"),
        };
        Some(PossibleValue::new(name).help(about))
    }
}

impl std::fmt::Debug for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

impl ExportFormat {
    /// The way of loading for which `tune` confirms choices, where it does so for what loads this.
    pub fn way(self) -> Option<LoadWay> {
        match self {
            ExportFormat::Of(theirs) => theirs.way,
            ExportFormat::Pgtune | ExportFormat::Profile => Some(LoadWay::Preload),
            ExportFormat::C | ExportFormat::Rust => None,
        }
    }

    /// The MPI library that loads it, where one does.
    pub fn library(self) -> Option<Library> {
        let is_its = |library: &&&dyn MpiLibrary| match self {
            ExportFormat::Of(theirs) => library.formats().iter().any(|of| std::ptr::eq(of, theirs)),
            _ => false,
        };
        libraries::ALL.iter().find(is_its).map(|library| library.library())
    }

    /// Whether it names every method, whatever loads it.
    pub fn takes_every_method(self) -> bool {
        matches!(self, ExportFormat::C | ExportFormat::Rust)
    }

    /// How the library makes files of its own out of what was exported.
    ///
    /// # Errors
    /// It does not.
    pub fn compile(self) -> anyhow::Result<Compile> {
        let compiles = |format: &&FileFormat| format.compile.is_some();
        match self {
            ExportFormat::Of(FileFormat { compile: Some(compile), .. }) => Ok(*compile),
            _ => usage!("--compile is for --format {} alone", names(compiles)),
        }
    }

    /// The same, leaving out what would be dangerous in its files. `commutative` says that all operations
    /// of the programs that load them are.
    ///
    /// # Errors
    /// As [`exporter`](Self::exporter).
    pub fn careful_exporter(
        self,
        version: Option<&str>,
        library: Option<&Path>,
        commutative: bool,
    ) -> anyhow::Result<Box<dyn Exporter>> {
        let exporter = self.exporter(version, library)?;
        Ok(match self.library().and_then(|library| libraries::find(library).ok()) {
            Some(library) => Box::new(CarefulExporter::new(exporter, library, commutative)),
            None => exporter,
        })
    }

    /// The exporter for a version of the target; `library` is a file of its to look into.
    ///
    /// # Errors
    /// The format isn't for that version, or it wants to know what is not given.
    pub fn exporter(
        self,
        version: Option<&str>,
        library: Option<&Path>,
    ) -> anyhow::Result<Box<dyn Exporter>> {
        let takes_library = matches!(self, ExportFormat::Of(theirs) if theirs.takes_library);
        if library.is_some() && !takes_library {
            usage!(
                "--target-library is for --format {} alone",
                names(|format| format.takes_library)
            );
        }
        Ok(match self {
            ExportFormat::Of(theirs) => (theirs.exporter)(version, library)?,
            ExportFormat::Pgtune => Box::new(profiles::Profiles::pgtune(version)?),
            ExportFormat::Profile => Box::new(profiles::Profiles::colibri(version)?),
            ExportFormat::C => Box::new(SourceCode::<c::CHeader>::new(version)?),
            ExportFormat::Rust => Box::new(SourceCode::<rust::RustModule>::new(version)?),
        })
    }
}

fn names(of: impl Fn(&&'static FileFormat) -> bool) -> String {
    libraries::formats().filter(of).map(|format| format.name).collect::<Vec<_>>().join(" or ")
}
