//! Intel MPI, 2019 on.

mod algorithms;
mod settings;

use records::{Algorithm, Collective, Library, Native, Point, summary::LoadWay};

use crate::{
    exporter::FileFormat,
    library::{Forced, ForcedPart, MpiLibrary},
};

pub struct IntelLibrary;

const FORMATS: &[FileFormat] = &[FileFormat {
    name: "intel",
    about: "Intel MPI: a shell script that sets I_MPI_ADJUST_...",
    way: Some(LoadWay::Rules),
    file: "intel.sh",
    takes_library: false,
    exporter: |version, _| Ok(Box::new(settings::AdjustScript::new(version)?)),
    read: None,
    compile: Some(settings::compile),
}];

impl MpiLibrary for IntelLibrary {
    fn library(&self) -> Library {
        algorithms::LIBRARY
    }

    fn title(&self) -> &'static str {
        "Intel MPI"
    }

    fn says(&self, version: &str) -> bool {
        version.contains("Intel(R) MPI")
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn runs(&self, point: Point, native: &Native) -> bool {
        native.segment_bytes == 0
            && algorithms::preset(point.collective, native.algorithm).is_some()
    }

    fn forced_by(
        &self,
        _: (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>> {
        let preset = algorithms::preset(collective, native.algorithm)?;
        let value = (native.segment_bytes == 0).then(|| preset.to_string())?;
        Some(vec![(algorithms::variable(collective), value)])
    }

    /// 0 leaves the choice to the library.
    fn forces(&self, name: &str, value: &str) -> Option<Forced> {
        let of = name.strip_prefix(algorithms::ADJUST)?.to_ascii_lowercase().parse().ok()?;
        (!["", "0"].contains(&value)).then_some(Forced::Of(of, ForcedPart::Algorithm))
    }

    fn formats(&self) -> &'static [FileFormat] {
        FORMATS
    }
}
