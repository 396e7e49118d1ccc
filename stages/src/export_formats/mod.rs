//! What an MPI library, or one that stands before it, loads. Each form of a library's is in its
//! folder in `libraries`; another exporter is one file and one entry of `OURS`.

mod c;
mod careful;
mod expressed;
mod profiles;
mod rust;
mod source_code;
mod target;

use std::{path::Path, sync::LazyLock};

use libraries::{Compile, FileFormat, MpiLibrary};
use records::{Library, summary::LoadWay};

use site::usage;

pub use careful::CarefulExporter;
pub use expressed::{Possible, conflicts, exported_choices, express_choices, representative};
pub use libraries::{Export, Exporter, File, HowToLoad};
pub use profiles::{PROFILES_VARIABLE, method_in_profile, preload_variables};
pub use target::{LibraryMatch, LoadTarget};

/// A format that something loads: an MPI library's, or one of `OURS`.
#[derive(Clone, Copy)]
pub struct ExportFormat(&'static FileFormat);

/// The formats of what is no MPI library.
static OURS: [&FileFormat; 4] = [&profiles::PGTUNE, &profiles::PROFILE, &c::FORMAT, &rust::FORMAT];

static ALL: LazyLock<Vec<ExportFormat>> =
    LazyLock::new(|| libraries::formats().chain(OURS).map(ExportFormat).collect());

impl std::fmt::Debug for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl ExportFormat {
    /// All that there are.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// What Colibri's preload library loads.
    pub fn preloaded() -> Self {
        ExportFormat(&profiles::PROFILE)
    }

    /// As it is named on the command line.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// What loads it, and what it is, in a line.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|format| format.0.name == name)
    }

    /// The way of loading for which `tune` confirms choices, where it does so for what loads this.
    pub fn way(self) -> Option<LoadWay> {
        self.0.way
    }

    /// The MPI library that loads it, where one does.
    pub fn library(self) -> Option<Library> {
        let is_its = |library: &&&dyn MpiLibrary| {
            library.formats().iter().any(|format| format.name == self.0.name)
        };
        libraries::ALL.iter().find(is_its).map(|library| library.library())
    }

    /// Whether Colibri's preload library loads it.
    pub fn is_preloaded(self) -> bool {
        self.0.name == profiles::PROFILE.name
    }

    /// Whether it names every method, whatever loads it.
    pub fn takes_every_method(self) -> bool {
        self.way().is_none() && self.library().is_none()
    }

    /// How the library makes files of its own out of what was exported.
    ///
    /// # Errors
    /// It does not.
    pub fn compile(self) -> anyhow::Result<Compile> {
        let compiles = |format: &&FileFormat| format.compile.is_some();
        match self.0.compile {
            Some(compile) => Ok(compile),
            None => usage!("--compile is for --target {} alone", names(compiles)),
        }
    }

    /// The exporter, leaving out what would be dangerous in its files. `commutative` says that all operations
    /// of the programs that load them are.
    ///
    /// # Errors
    /// As [`exporter`](Self::exporter).
    pub fn careful_exporter(
        self,
        version: Option<&str>,
        library: Option<&Path>,
        commutative: bool,
    ) -> anyhow::Result<CarefulExporter> {
        let exporter = self.exporter(version, library)?;
        let library = self.library().and_then(|library| libraries::find(library).ok());
        Ok(CarefulExporter::new(exporter, library, commutative))
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
        if library.is_some() && !self.0.takes_library {
            usage!(
                "--target-library is for --target {} alone",
                names(|format| format.takes_library)
            );
        }
        Ok((self.0.exporter)(version, library)?)
    }
}

fn names(of: impl Fn(&&'static FileFormat) -> bool) -> String {
    libraries::formats().filter(of).map(|format| format.name).collect::<Vec<_>>().join(" or ")
}
