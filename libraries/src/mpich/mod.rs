//! MPICH and what is derived from it, 4.0 to 5.0.

mod algorithms;
mod built_in;
mod tuning_file;

use records::{Algorithm, Collective, Library, Native, Point};

use crate::{
    exporter::FileFormat,
    library::{Damage, Danger, MpiLibrary, UnsafeFor},
};
use algorithms::{CallRequirement, MpichAlgorithm, Version};

/// MPICH.
pub struct MpichLibrary;

const FORMATS: &[FileFormat] = &[FileFormat {
    name: "mpich",
    about: "MPICH 4.0 to 5.0: a whole tuning file, the version's own with the tuned parts replaced",
    way: None,
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

    fn runs(&self, Point { collective, layout, .. }: Point, native: &Native) -> bool {
        algorithms::algorithms(collective).iter().any(|row| {
            row.algorithm == native.algorithm
                && row.segment.is_some() == (native.segment_bytes > 0)
                && (row.needs != CallRequirement::PowerOfTwo || layout.procs().is_power_of_two())
        })
    }

    fn forced_by(
        &self,
        (major, minor): (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>> {
        let row = algorithms::find(Version { major, minor }, collective, native)?;
        let variable =
            |name: &str| format!("MPIR_CVAR_{}_{name}", collective.name().to_uppercase());
        let mut set = vec![
            (variable("DEVICE_COLLECTIVE"), "0".to_owned()),
            (variable("INTRA_ALGORITHM"), row.name.to_owned()),
        ];
        // The rest has no variable, or is as it is by default.
        set.extend(row.parameters.iter().filter_map(
            |parameter| match parameter.split_once('=')? {
                ("tree_type", kind) => Some((variable("TREE_TYPE"), kind.to_owned())),
                ("k", k) if row.name.contains("tree") => {
                    Some((variable("TREE_KVAL"), k.to_owned()))
                }
                _ => None,
            },
        ));
        if row.segment.is_some() {
            set.push((variable("TREE_PIPELINE_CHUNK_SIZE"), native.segment_bytes.to_string()));
        }
        Some(set)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_forced_with_its_kind_and_segments() {
        let native = Native {
            library: algorithms::LIBRARY,
            algorithm: Algorithm::Pipeline,
            segment_bytes: 8192,
        };
        let told = MpichLibrary.forced_by((5, 0), Collective::Bcast, &native).unwrap();
        let told: Vec<String> =
            told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            told,
            [
                "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0",
                "MPIR_CVAR_BCAST_INTRA_ALGORITHM=pipelined_tree",
                "MPIR_CVAR_BCAST_TREE_TYPE=kary",
                "MPIR_CVAR_BCAST_TREE_KVAL=1",
                "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE=8192",
            ]
        );
        assert_eq!(MpichLibrary.forced_by((4, 0), Collective::Bcast, &native), None);
    }
}
