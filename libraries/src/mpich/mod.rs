//! MPICH and what is derived from it, 4.0 to 5.0.

mod algorithms;
mod built_in;
mod forcing;
mod tree;
mod tuning_file;

use records::{Algorithm, Collective, Library, Native, Point, summary::LoadWay};

use crate::{
    danger::{Damage, Danger, UnsafeFor},
    exporter::FileFormat,
    library::{Forced, MpiLibrary, WithinJob},
};
use algorithms::{CallRequirement, MpichAlgorithm, Version};

pub struct MpichLibrary;

const FORMATS: &[FileFormat] = &[FileFormat {
    name: "mpich",
    about: "MPICH 4.0 to 5.0: a whole tuning file, the version's own with the tuned parts replaced",
    way: Some(LoadWay::Rules),
    file: "mpich.json",
    takes_library: true,
    exporter: |version, library| Ok(Box::new(tuning_file::TuningFile::new(version, library)?)),
    read: None,
    compile: None,
}];

impl MpiLibrary for MpichLibrary {
    fn library(&self) -> Library {
        algorithms::LIBRARY
    }

    fn title(&self) -> &'static str {
        "MPICH"
    }

    /// Its launcher's name is Hydra.
    fn says(&self, version: &str) -> bool {
        ["MPICH", "MVAPICH", "HYDRA"].iter().any(|name| version.contains(name))
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        let rows = algorithms::algorithms(collective).iter();
        let mut named: Vec<Algorithm> = rows.map(|row| row.algorithm).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn runs(&self, point: Point, native: &Native) -> bool {
        algorithms::algorithms(point.collective).iter().any(|row| {
            row.algorithm == native.algorithm
                && row.segment.is_some() == (native.segment_bytes > 0)
                && algorithms::runs(row, point)
        })
    }

    fn forced_by(
        &self,
        (major, minor): (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>> {
        forcing::environment(Version { major, minor }, collective, native)
    }

    fn forces(&self, name: &str, value: &str) -> Option<Forced> {
        forcing::forces(name, value)
    }

    fn within_job(&self) -> Option<&'static WithinJob> {
        Some(&forcing::WITHIN_JOB)
    }

    fn ran_as_asked(&self, collective: Collective, native: &Native, ran: &str) -> bool {
        let of = algorithms::algorithms(collective).iter();
        let mut of = of.filter(|row| row.algorithm == native.algorithm);
        ran.is_empty() || of.any(|row| algorithms::function(collective, row) == ran)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        tuning_file::message_size(collective)
    }

    fn dangers(&self) -> Vec<Danger> {
        let of = |collective: Collective| {
            algorithms::algorithms(collective).iter().filter_map(move |row| danger(collective, row))
        };
        Collective::ALL.into_iter().flat_map(of).collect()
    }

    fn formats(&self) -> &'static [FileFormat] {
        FORMATS
    }
}

/// What an algorithm needs it does not see to by itself where a tuning file names it.
fn danger(collective: Collective, row: &MpichAlgorithm) -> Option<Danger> {
    let unsafe_for = match row.needs {
        CallRequirement::Nothing => return None,
        CallRequirement::PowerOfTwo => UnsafeFor::NotPowerOfTwo,
        CallRequirement::BuiltInAndManyElements => UnsafeFor::UserOperationOrFewElements,
        CallRequirement::Commutative => UnsafeFor::NotCommutative,
        CallRequirement::NotInPlace => UnsafeFor::InPlace,
    };
    let source = "src/mpi/coll/coll_algorithms.txt of 5.0.1";
    Some(Danger {
        collective,
        algorithm: row.algorithm,
        unsafe_for,
        damage: Damage::Failure,
        source,
    })
}
