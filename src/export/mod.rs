//! What an MPI library loads, one file per format; a new exporter is one file and one line here.

mod openmpi;

use anyhow::Result;
use verification::rules::Rules;

/// Everything that an exporter may tell.
pub struct Export<'a> {
    /// What to load, one entry per collective.
    pub rules: &'a [Rules],
    /// Where it comes from, for the file's comments; one line each, without line ends.
    pub origin: &'a [String],
}

/// A format that an MPI library loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// coll/tuned rules of Open MPI 4.0 to 5.0 (coll_tuned_dynamic_rules_filename)
    Openmpi,
}

impl Format {
    /// The file's text.
    ///
    /// # Errors
    /// A method that the target can't express.
    pub fn text(self, export: &Export<'_>) -> Result<String> {
        match self {
            Format::Openmpi => openmpi::text(export),
        }
    }

    /// The file's usual name.
    pub fn file_name(self) -> &'static str {
        match self {
            Format::Openmpi => "openmpi.rules",
        }
    }

    /// How the file is loaded, for people.
    pub fn how_to_load(self, file: &str) -> String {
        match self {
            Format::Openmpi => openmpi::how_to_load(file),
        }
    }
}
