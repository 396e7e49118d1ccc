//! MPICH's names for its algorithms (versions 4.0 to 5.0), as its tuning files and its
//! `MPIR_CVAR_<COLLECTIVE>_INTRA_ALGORITHM` spell them.
//!
//! Source: `src/mpi/coll/coll_algorithms.txt` of each version. Algorithms made for nodes (`smp`)
//! and those without a name in the field are left out.

use records::{Algorithm, Collective, Library, Native, Point};

/// As methods name it.
pub const LIBRARY: Library = Library::new("mpich").expect("small letters");

/// A version of MPICH, as far as its algorithms go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// As in 4.0.
    pub major: u32,
    /// As in 4.0.
    pub minor: u32,
}

const V4_0: Version = Version { major: 4, minor: 0 };
const V4_1: Version = Version { major: 4, minor: 1 };
const V4_3: Version = Version { major: 4, minor: 3 };

/// What a call must be like for an algorithm; elsewhere MPICH ends the program or gives wrong
/// results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRequirement {
    Nothing,
    /// A communicator of a power of two.
    PowerOfTwo,
    /// A built-in operation, and an element for each process of the greatest power of two.
    BuiltInAndManyElements,
    /// A commutative operation.
    Commutative,
    /// No MPI_IN_PLACE.
    NotInPlace,
}

/// One algorithm of MPICH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpichAlgorithm {
    /// The field's name for it.
    pub algorithm: Algorithm,
    /// MPICH's, without `MPIR_<Collective>_intra_`.
    pub name: &'static str,
    /// All of its parameters: a tuning file leaves what it omits unset.
    pub parameters: &'static [&'static str],
    /// The parameter that is the segment size, which follows the others.
    pub segment: Option<Segment>,
    /// The first version that has it by this name and with these parameters.
    pub since: Version,
    /// The first version that no longer has it so.
    pub until: Option<Version>,
    /// Where it may run.
    pub needs: CallRequirement,
}

/// The segment size among an algorithm's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub name: &'static str,
    /// The parameters after it.
    pub followed_by: &'static [&'static str],
}

const fn row(algorithm: Algorithm, name: &'static str, needs: CallRequirement) -> MpichAlgorithm {
    MpichAlgorithm {
        algorithm,
        name,
        parameters: &[],
        segment: None,
        since: V4_0,
        until: None,
        needs,
    }
}

const fn since_4_3(
    algorithm: Algorithm,
    name: &'static str,
    parameters: &'static [&'static str],
) -> MpichAlgorithm {
    MpichAlgorithm { parameters, since: V4_3, ..row(algorithm, name, CallRequirement::Nothing) }
}

/// A tree that sends the message in pieces.
const fn pipelined(algorithm: Algorithm, parameters: &'static [&'static str]) -> MpichAlgorithm {
    let segment = Segment { name: "chunk_size", followed_by: &["recv_pre_posted=0"] };
    MpichAlgorithm { segment: Some(segment), ..since_4_3(algorithm, "pipelined_tree", parameters) }
}

const BCAST: &[MpichAlgorithm] = &[
    row(Algorithm::Binomial, "binomial", CallRequirement::Nothing),
    row(
        Algorithm::ScatterAllgather,
        "scatter_recursive_doubling_allgather",
        CallRequirement::Nothing,
    ),
    row(Algorithm::ScatterAllgatherRing, "scatter_ring_allgather", CallRequirement::Nothing),
    since_4_3(Algorithm::Pipeline, "tree", &["tree_type=kary", "k=1", "is_non_blocking=0"]),
    since_4_3(Algorithm::Binary, "tree", &["tree_type=kary", "k=2", "is_non_blocking=0"]),
    since_4_3(Algorithm::KNomial, "tree", &["tree_type=knomial_1", "k=4", "is_non_blocking=0"]),
    pipelined(Algorithm::Pipeline, &["tree_type=kary", "k=1", "is_non_blocking=0"]),
    pipelined(Algorithm::Binary, &["tree_type=kary", "k=2", "is_non_blocking=0"]),
    pipelined(Algorithm::Binomial, &["tree_type=knomial_1", "k=2", "is_non_blocking=0"]),
    pipelined(Algorithm::KNomial, &["tree_type=knomial_1", "k=4", "is_non_blocking=0"]),
];

const REDUCE: &[MpichAlgorithm] = &[
    row(Algorithm::Binomial, "binomial", CallRequirement::Nothing),
    row(Algorithm::Rabenseifner, "reduce_scatter_gather", CallRequirement::BuiltInAndManyElements),
];

const ALLREDUCE: &[MpichAlgorithm] = &[
    row(Algorithm::RecursiveDoubling, "recursive_doubling", CallRequirement::Nothing),
    row(
        Algorithm::Rabenseifner,
        "reduce_scatter_allgather",
        CallRequirement::BuiltInAndManyElements,
    ),
    MpichAlgorithm { since: V4_3, ..row(Algorithm::Ring, "ring", CallRequirement::Commutative) },
];

const ALLGATHER: &[MpichAlgorithm] = &[
    row(Algorithm::Bruck, "brucks", CallRequirement::Nothing),
    row(Algorithm::RecursiveDoubling, "recursive_doubling", CallRequirement::PowerOfTwo),
    row(Algorithm::Ring, "ring", CallRequirement::Nothing),
];

const ALLTOALL: &[MpichAlgorithm] = &[
    row(Algorithm::Bruck, "brucks", CallRequirement::NotInPlace),
    row(Algorithm::Pairwise, "pairwise", CallRequirement::NotInPlace),
    row(Algorithm::Linear, "scattered", CallRequirement::NotInPlace),
];

const BARRIER: &[MpichAlgorithm] = &[
    MpichAlgorithm {
        until: Some(V4_1),
        ..row(Algorithm::Bruck, "dissemination", CallRequirement::Nothing)
    },
    MpichAlgorithm { since: V4_1, ..since_4_3(Algorithm::Bruck, "k_dissemination", &["k=2"]) },
];

const REDUCE_SCATTER: &[MpichAlgorithm] = &[
    row(Algorithm::Pairwise, "pairwise", CallRequirement::Commutative),
    row(Algorithm::RecursiveDoubling, "recursive_doubling", CallRequirement::Nothing),
    row(Algorithm::RecursiveHalving, "recursive_halving", CallRequirement::Commutative),
];

const GATHER_OR_SCATTER: &[MpichAlgorithm] =
    &[row(Algorithm::Binomial, "binomial", CallRequirement::Nothing)];

const SCAN: &[MpichAlgorithm] =
    &[row(Algorithm::RecursiveDoubling, "recursive_doubling", CallRequirement::Nothing)];

/// The algorithms that MPICH has for a collective in some version.
pub const fn algorithms(collective: Collective) -> &'static [MpichAlgorithm] {
    match collective {
        Collective::Allgather => ALLGATHER,
        Collective::Allreduce => ALLREDUCE,
        Collective::Alltoall => ALLTOALL,
        Collective::Barrier => BARRIER,
        Collective::Bcast => BCAST,
        Collective::Gather | Collective::Scatter => GATHER_OR_SCATTER,
        Collective::Reduce => REDUCE,
        Collective::ReduceScatter | Collective::ReduceScatterBlock => REDUCE_SCATTER,
        Collective::Scan | Collective::Exscan => SCAN,
        _ => &[],
    }
}

/// The algorithm by which a version carries out a method, where it can.
pub fn find(
    version: Version,
    collective: Collective,
    native: &Native,
) -> Option<&'static MpichAlgorithm> {
    algorithms(collective).iter().find(|row| {
        native.library == LIBRARY
            && row.algorithm == native.algorithm
            && row.segment.is_some() == (native.segment_bytes > 0)
            && row.since <= version
            && row.until.is_none_or(|until| version < until)
    })
}

/// Whether the calls that are measured are such as an algorithm needs.
pub fn runs(row: &MpichAlgorithm, point: Point) -> bool {
    let Point { collective, bytes, .. } = point;
    match row.needs {
        CallRequirement::PowerOfTwo => point.procs().is_power_of_two(),
        CallRequirement::BuiltInAndManyElements => {
            bytes / collective.element_bytes(bytes) >= 1 << point.procs().max(1).ilog2()
        }
        CallRequirement::Nothing | CallRequirement::Commutative | CallRequirement::NotInPlace => {
            true
        }
    }
}

/// The function that carries it out: `MPIR_Bcast_intra_binomial`.
pub fn function(collective: Collective, row: &MpichAlgorithm) -> String {
    let (first, rest) = collective.name().split_at(1);
    format!("MPIR_{}{rest}_intra_{}", first.to_uppercase(), row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        version: Version,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Option<&'static str> {
        let native = Native { library: LIBRARY, algorithm, segment_bytes: 0 };
        find(version, collective, &native).map(|row| row.name)
    }

    #[test]
    fn a_version_has_what_it_has() {
        let new = Version { major: 5, minor: 0 };
        assert_eq!(found(V4_0, Collective::Barrier, Algorithm::Bruck), Some("dissemination"));
        for later in [V4_1, Version { major: 4, minor: 2 }, new] {
            assert_eq!(
                found(later, Collective::Barrier, Algorithm::Bruck),
                Some("k_dissemination")
            );
        }
        assert_eq!(found(V4_0, Collective::Bcast, Algorithm::Pipeline), None);
        assert_eq!(found(new, Collective::Bcast, Algorithm::Pipeline), Some("tree"));
        let segmented =
            Native { library: LIBRARY, algorithm: Algorithm::Binary, segment_bytes: 64 };
        let row = find(new, Collective::Bcast, &segmented).unwrap();
        assert_eq!(row.name, "pipelined_tree");
        let foreign = Native { library: Library::new("openmpi").unwrap(), ..segmented };
        assert_eq!(find(new, Collective::Bcast, &foreign), None);
    }
}
