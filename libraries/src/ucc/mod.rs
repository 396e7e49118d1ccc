//! UCC: collectives that serve under an MPI library, by its component tl/ucp.

mod algorithms;
mod exporter;
mod sections;
mod tokens;

use records::{Algorithm, Collective, Library, Native, Point};

use crate::{
    exporter::FileFormat,
    library::{Forced, MpiLibrary},
};

use exporter::{FILE_VARIABLE, TUNE_VARIABLE, UccExporter, UccForm};

pub struct UccLibrary;

const FORMATS: &[FileFormat] = &[
    FileFormat {
        name: "ucc",
        about: "UCC: a shell script that sets UCC_TL_UCP_TUNE",
        file: "ucc.tune",
        exporter: |version, _| Ok(Box::new(UccExporter::new(UccForm::TuneString, version)?)),
        way: None,
        takes_library: false,
        read: None,
        compile: None,
    },
    FileFormat {
        name: "ucc-conf",
        about: "UCC: a configuration file with a section for each layout (UCC_CONFIG_FILE)",
        file: "ucc.conf",
        exporter: |version, _| Ok(Box::new(UccExporter::new(UccForm::Sections, version)?)),
        way: None,
        takes_library: false,
        read: None,
        compile: None,
    },
];

impl MpiLibrary for UccLibrary {
    fn library(&self) -> Library {
        algorithms::LIBRARY
    }

    fn title(&self) -> &'static str {
        "UCC"
    }

    /// It is none that a program is linked with.
    fn says(&self, _: &str) -> bool {
        false
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn runs(&self, point: Point, native: &Native) -> bool {
        native.segment_bytes == 0 && algorithms::name(point.collective, native.algorithm).is_some()
    }

    fn forced_by(
        &self,
        _: (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>> {
        let name = algorithms::name(collective, native.algorithm)?;
        let value = (native.segment_bytes == 0).then(|| format!("{collective}:@{name}"))?;
        Some(vec![(TUNE_VARIABLE.into(), value)])
    }

    fn forces(&self, name: &str, value: &str) -> Option<Forced> {
        let names_algorithms = [TUNE_VARIABLE, FILE_VARIABLE].contains(&name) && !value.is_empty();
        names_algorithms.then_some(Forced::Several)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        tokens::message_size(collective)
    }

    fn formats(&self) -> &'static [FileFormat] {
        FORMATS
    }
}
