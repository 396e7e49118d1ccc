//! What an MPI library loads, one file per format; a new exporter is one file, one variant and one
//! line here.

mod c;
mod fit;
mod intel;
mod mpich;
mod openmpi;
mod openmpi_json;
mod profiles;
mod rust;
mod spans;
mod ucc;
mod version;

use std::path::Path;

use anyhow::Result;
use records::{Algorithm, Collective, Method, Point, summary::Way};
use verification::{rules::Rules, selection::Choice};

use crate::error::usage;

pub use fit::{Possible, fit};
pub use intel::compile;
pub use profiles::replacement;

/// Everything that an exporter may tell.
pub struct Export<'a> {
    /// What to load, one entry per collective.
    pub rules: &'a [Rules],
    /// What `rules` were made of.
    pub choices: &'a [Choice],
    /// Where it comes from, for the file's comments; one line each, without line ends.
    pub origin: &'a [String],
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name where the export is a directory; empty where it is one file.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A target that loads files, in one version.
pub trait Exporter {
    /// Who loads it, for people: `Open MPI 4.1`.
    fn target(&self) -> String;

    /// How the target spells an algorithm that a model decided for by its name.
    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method;

    /// Whether the target can be told to run a method at a point; the reason where it can't.
    /// [`Method::Default`] is not asked for: every target can be left to itself.
    ///
    /// # Errors
    /// Why not.
    fn express(&self, point: Point, method: &Method) -> Result<(), String>;

    /// The algorithms that it has for a collective.
    fn algorithms(&self, collective: Collective) -> Vec<Algorithm>;

    /// Why one method has to serve for all message sizes of a collective, where it has to.
    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str>;

    /// What a message size is to the target, where it is not what it is to Colibri.
    fn message_size(&self, collective: Collective) -> Option<&'static str>;

    /// Whether the export is a directory of files.
    fn is_directory(&self) -> bool {
        false
    }

    /// The files.
    ///
    /// # Errors
    /// What the export holds can't be written.
    fn files(&self, export: &Export<'_>) -> Result<Vec<File>>;

    /// How it is loaded, for people.
    fn how_to_load(&self, file: &str, export: &Export<'_>) -> String;
}

/// A format that something loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// coll/tuned rules of Open MPI 4.0 to 5.0 (coll_tuned_dynamic_rules_filename)
    Openmpi,
    /// coll/tuned rules of Open MPI 6 (JSON)
    OpenmpiJson,
    /// MPICH 4.0 to 5.0: a whole tuning file, the version's own with the tuned parts replaced
    Mpich,
    /// Intel MPI: a shell script that sets I_MPI_ADJUST_...
    Intel,
    /// UCC: a shell script that sets UCC_TL_UCP_TUNE
    Ucc,
    /// PGMPITuneLib: a directory of profiles (mock-ups only)
    Pgtune,
    /// Colibri's preload library: a directory of profiles
    Profile,
    /// A decision function as a C header: (collective, processes, bytes) to method
    C,
    /// A decision function as a Rust module
    Rust,
}

impl Format {
    /// The way of loading for which `tune` confirms choices, where it does so for what loads this.
    pub fn way(self) -> Option<Way> {
        match self {
            Format::Openmpi | Format::OpenmpiJson => Some(Way::Rules),
            Format::Pgtune | Format::Profile => Some(Way::Preload),
            Format::Mpich | Format::Intel | Format::Ucc | Format::C | Format::Rust => None,
        }
    }

    /// Whether it names every method, whatever loads it.
    pub fn takes_every_method(self) -> bool {
        matches!(self, Format::C | Format::Rust)
    }

    /// The exporter for a version of the target; `library` is a file of its to look into.
    ///
    /// # Errors
    /// The format isn't for that version, or it wants to know what is not given.
    pub fn exporter(
        self,
        version: Option<&str>,
        library: Option<&Path>,
    ) -> Result<Box<dyn Exporter>> {
        if library.is_some() && self != Format::Mpich {
            usage!("--target-library is for --format mpich alone");
        }
        Ok(match self {
            Format::Openmpi => Box::new(openmpi::Classic::new(version)?),
            Format::OpenmpiJson => Box::new(openmpi_json::Json::new(version)?),
            Format::Mpich => Box::new(mpich::Mpich::new(version, library)?),
            Format::Intel => Box::new(intel::Intel::new(version)?),
            Format::Ucc => Box::new(ucc::Ucc::new(version)?),
            Format::Pgtune => Box::new(profiles::Profiles::pgtune(version)?),
            Format::Profile => Box::new(profiles::Profiles::colibri(version)?),
            Format::C => Box::new(c::CHeader::new(version)?),
            Format::Rust => Box::new(rust::RustModule::new(version)?),
        })
    }
}

/// The answer where a target has no such algorithm.
fn lacks(target: &str, collective: Collective, method: &Method, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("{target} takes no algorithm for {collective}");
    }
    format!("{target} cannot be told {method} for {collective} (it has: {})", known.join(", "))
}
