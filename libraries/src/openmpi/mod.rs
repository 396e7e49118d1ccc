//! Open MPI: component coll/tuned, the same in 4.0, 4.1 and 5.0, 5.0's coll/han, and coll/sm.

mod algorithms;
mod classic;
mod forcing;
mod functions;
mod han;
mod han_file;
mod json;
pub mod rules;
mod sm;
mod tuned;

use records::{Algorithm, Collective, Library, Native, Point, summary::LoadWay};

use crate::{
    danger::{Damage, Danger, UnsafeFor},
    exporter::FileFormat,
    library::{Forced, JobStart, MpiLibrary, WithinJob},
};

use algorithms::{LIBRARY, is_run_of, named, ran_as_asked};

pub use algorithms::{OpenMpiAlgorithm, algorithms, falls_back, find, methods};

pub struct OpenMpiLibrary;

const FORMATS: &[FileFormat] = &[
    FileFormat {
        name: "openmpi",
        about: "coll/tuned rules of Open MPI 4.0 to 5.0 (coll_tuned_dynamic_rules_filename)",
        way: Some(LoadWay::Rules),
        file: "openmpi.rules",
        takes_library: false,
        exporter: |version, _| Ok(Box::new(classic::Classic::new(version)?)),
        read: Some(|text, path| {
            let rules = rules::parse(text, path)?;
            Ok(Box::new(move |point| rules.method(point)))
        }),
        compile: None,
    },
    FileFormat {
        name: "openmpi-json",
        about: "coll/tuned rules of Open MPI 6 (JSON)",
        way: Some(LoadWay::Rules),
        file: "openmpi.json",
        takes_library: false,
        exporter: |version, _| Ok(Box::new(json::Json::new(version)?)),
        read: None,
        compile: None,
    },
];

/// Launchers of Open MPI 4 (`OMPI_`) and 5 (`PRTE_`) place more ranks than processors only when
/// known; such ranks must yield while they wait.
const OVERSUBSCRIBED: [(&str, &str); 4] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

impl MpiLibrary for OpenMpiLibrary {
    fn library(&self) -> Library {
        LIBRARY
    }

    fn title(&self) -> &'static str {
        "Open MPI"
    }

    fn says(&self, version: &str) -> bool {
        version.contains("Open MPI") || version.contains("OpenRTE")
    }

    fn environment(&self, start: JobStart) -> Vec<(&'static str, &'static str)> {
        // Without it forced algorithms and rules files are silently ignored.
        let mut settings = vec![(forcing::SWITCH_VARIABLE, "1")];
        if start.as_root {
            settings.extend(AS_ROOT);
        }
        if start.oversubscribed {
            settings.extend(OVERSUBSCRIBED);
        }
        settings
    }

    fn process_management(&self) -> (&'static str, bool) {
        ("pmix", true)
    }

    /// Of the explanation the first line alone may come through before Slurm ends the ranks.
    fn started_apart(&self) -> &'static [&'static str] {
        &[
            "The application appears to have been direct launched using \"srun\"",
            "OPAL ERROR: Unreachable in file",
        ]
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        let mut all = named(collective);
        let of_han = [Algorithm::Han, Algorithm::HanSimple].into_iter();
        all.extend(of_han.filter(|algorithm| han::find(collective, *algorithm).is_some()));
        all.extend(sm::method(collective).map(|native| native.algorithm));
        all
    }

    fn runs(&self, point: Point, native: &Native) -> bool {
        let Point { collective, layout, bytes } = point;
        if han::find(collective, native.algorithm).is_some() {
            return native.segment_bytes == 0 && han::takes(han::COMES_FIRST, layout);
        }
        if sm::is(collective, native) {
            return native.segment_bytes == 0 && layout.procs() > 1;
        }
        let row = find(collective, native.algorithm);
        row.is_some_and(|row| row.segmented || native.segment_bytes == 0)
            && !falls_back(collective, native, layout.procs(), bytes)
    }

    fn unlike_its_name(
        &self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Option<(Algorithm, &'static str)> {
        (collective == Collective::Alltoall && algorithm == Algorithm::Linear).then_some((
            Algorithm::LinearConcurrent,
            "it posts all messages at once, the paper's linear one after the other",
        ))
    }

    /// Seen by its component pml/monitoring.
    fn variant(&self, collective: Collective, algorithm: Algorithm) -> Option<&'static str> {
        match (collective, algorithm) {
            (Collective::Bcast, Algorithm::Binomial) => Some("binomial-doubling"),
            (Collective::Reduce, Algorithm::InOrderBinary) => Some("in-order-binary-from-the-last"),
            _ => None,
        }
    }

    fn forced_by(
        &self,
        version: (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>> {
        forcing::environment(version, collective, native)
    }

    fn forces(&self, name: &str, value: &str) -> Option<Forced> {
        forcing::forces(name, value)
    }

    fn forced_method(
        &self,
        collective: Collective,
        algorithm: &str,
        segment_bytes: Option<&str>,
    ) -> Result<Native, String> {
        forcing::forced_method(collective, algorithm, segment_bytes)
    }

    fn of_one_node(&self, collective: Collective) -> Option<Native> {
        sm::method(collective)
    }

    fn within_job(&self) -> Option<&'static WithinJob> {
        Some(&forcing::WITHIN_JOB)
    }

    fn has_all_of_ours(&self) -> bool {
        true
    }

    fn tracer(&self) -> Option<&'static str> {
        Some("libcolibri_tracer.so")
    }

    fn ran_as_asked(&self, collective: Collective, native: &Native, ran: &str) -> bool {
        if sm::is(collective, native) {
            return sm::ran_as_asked(collective, ran);
        }
        match han::find(collective, native.algorithm) {
            Some(of_han) => han::ran_as_asked(collective, of_han, ran),
            None => ran_as_asked(collective, native, ran),
        }
    }

    fn is_run_of(&self, point: Point, native: &Native, ran: &str) -> bool {
        is_run_of(point, native, ran)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        tuned::message_size(collective)
    }

    fn dangers(&self) -> Vec<Danger> {
        use Algorithm as A;
        use Collective as C;
        let not_commutative = [
            (C::Allreduce, A::Ring),
            (C::Allreduce, A::SegmentedRing),
            (C::Reduce, A::KChain),
            (C::Reduce, A::Pipeline),
            (C::Reduce, A::Binary),
            (C::Reduce, A::Binomial),
            (C::ReduceScatter, A::RecursiveHalving),
            (C::ReduceScatter, A::Ring),
        ];
        let wrong = not_commutative.map(|(collective, algorithm)| Danger {
            collective,
            algorithm,
            unsafe_for: UnsafeFor::NotCommutative,
            damage: Damage::WrongResults,
            source: "products of 2x2 matrices on four ranks of 4.1.4 and 5.0.11",
        });
        let two = [C::Allgather, C::Allgatherv, C::Alltoall, C::Barrier];
        let ends = two.map(|collective| Danger {
            collective,
            algorithm: A::TwoProcs,
            unsafe_for: UnsafeFor::NotTwoRanks,
            damage: Damage::Failure,
            source: "4.1.4 ends the program",
        });
        wrong.into_iter().chain(ends).collect()
    }

    fn formats(&self) -> &'static [FileFormat] {
        FORMATS
    }
}
