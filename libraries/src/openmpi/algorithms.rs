//! Open MPI's names for its algorithms (component coll/tuned, the same in 4.0, 4.1 and 5.0).
//!
//! Forcing, rules files and the check of what ran all go by this one table.

use records::{
    Algorithm, Collective, Library, Method, Native, Point, observation::traced_function, quantity,
};

/// As methods name it.
pub const LIBRARY: Library = Library::new("openmpi").expect("small letters");

/// Fan-out of its k-chains where nothing else is said; a rules file must say it.
pub const CHAIN_FAN_OUT: u32 = 4;

/// Its number of a collective (`coll_base_functions.h`), the same from 4.0 to 6.0, where component
/// coll/tuned has algorithms for it.
pub const fn id(collective: Collective) -> Option<u32> {
    Some(match collective {
        Collective::Allgather => 0,
        Collective::Allgatherv => 1,
        Collective::Allreduce => 2,
        Collective::Alltoall => 3,
        Collective::Alltoallv => 4,
        Collective::Barrier => 6,
        Collective::Bcast => 7,
        Collective::Exscan => 8,
        Collective::Gather => 9,
        Collective::Reduce => 11,
        Collective::ReduceScatter => 12,
        Collective::ReduceScatterBlock => 13,
        Collective::Scan => 14,
        Collective::Scatter => 15,
        _ => return None,
    })
}

/// One algorithm of Open MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenMpiAlgorithm {
    /// The field's name for it.
    pub algorithm: Algorithm,
    /// Value of `coll_tuned_<collective>_algorithm`, and second column of a rules file.
    pub id: u32,
    /// The function that runs it, without the prefix `ompi_coll_base_`.
    pub function: &'static str,
    /// Whether it takes a segment size.
    pub segmented: bool,
}

const fn row(
    algorithm: Algorithm,
    id: u32,
    function: &'static str,
    segmented: bool,
) -> OpenMpiAlgorithm {
    OpenMpiAlgorithm { algorithm, id, function, segmented }
}

const BCAST: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "bcast_intra_basic_linear", false),
    row(Algorithm::KChain, 2, "bcast_intra_chain", true),
    row(Algorithm::Pipeline, 3, "bcast_intra_pipeline", true),
    row(Algorithm::SplittedBinary, 4, "bcast_intra_split_bintree", true),
    row(Algorithm::Binary, 5, "bcast_intra_bintree", true),
    row(Algorithm::Binomial, 6, "bcast_intra_binomial", true),
    row(Algorithm::KNomial, 7, "bcast_intra_knomial", true),
    row(Algorithm::ScatterAllgather, 8, "bcast_intra_scatter_allgather", false),
    row(Algorithm::ScatterAllgatherRing, 9, "bcast_intra_scatter_allgather_ring", false),
];

const REDUCE: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "reduce_intra_basic_linear", false),
    row(Algorithm::KChain, 2, "reduce_intra_chain", true),
    row(Algorithm::Pipeline, 3, "reduce_intra_pipeline", true),
    row(Algorithm::Binary, 4, "reduce_intra_binary", true),
    row(Algorithm::Binomial, 5, "reduce_intra_binomial", true),
    row(Algorithm::InOrderBinary, 6, "reduce_intra_in_order_binary", true),
    row(Algorithm::Rabenseifner, 7, "reduce_intra_redscat_gather", false),
];

const ALLGATHER: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "allgather_intra_basic_linear", false),
    row(Algorithm::Bruck, 2, "allgather_intra_bruck", false),
    row(Algorithm::RecursiveDoubling, 3, "allgather_intra_recursivedoubling", false),
    row(Algorithm::Ring, 4, "allgather_intra_ring", false),
    row(Algorithm::NeighborExchange, 5, "allgather_intra_neighborexchange", false),
    row(Algorithm::TwoProcs, 6, "allgather_intra_two_procs", false),
];

const ALLGATHERV: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "allgatherv_intra_basic_default", false),
    row(Algorithm::Bruck, 2, "allgatherv_intra_bruck", false),
    row(Algorithm::Ring, 3, "allgatherv_intra_ring", false),
    row(Algorithm::NeighborExchange, 4, "allgatherv_intra_neighborexchange", false),
    row(Algorithm::TwoProcs, 5, "allgatherv_intra_two_procs", false),
];

const ALLREDUCE: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "allreduce_intra_basic_linear", false),
    row(Algorithm::RecursiveDoubling, 3, "allreduce_intra_recursivedoubling", false),
    row(Algorithm::Ring, 4, "allreduce_intra_ring", false),
    row(Algorithm::SegmentedRing, 5, "allreduce_intra_ring_segmented", true),
    row(Algorithm::Rabenseifner, 6, "allreduce_intra_redscat_allgather", false),
];

const ALLTOALL: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "alltoall_intra_basic_linear", false),
    row(Algorithm::Pairwise, 2, "alltoall_intra_pairwise", false),
    row(Algorithm::Bruck, 3, "alltoall_intra_bruck", false),
    row(Algorithm::TwoProcs, 5, "alltoall_intra_two_procs", false),
];

const ALLTOALLV: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "alltoallv_intra_basic_linear", false),
    row(Algorithm::Pairwise, 2, "alltoallv_intra_pairwise", false),
];

const BARRIER: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "barrier_intra_basic_linear", false),
    row(Algorithm::DoubleRing, 2, "barrier_intra_doublering", false),
    row(Algorithm::RecursiveDoubling, 3, "barrier_intra_recursivedoubling", false),
    row(Algorithm::Bruck, 4, "barrier_intra_bruck", false),
    row(Algorithm::TwoProcs, 5, "barrier_intra_two_procs", false),
];

const GATHER: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "gather_intra_basic_linear", false),
    row(Algorithm::Binomial, 2, "gather_intra_binomial", false),
];

const SCATTER: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "scatter_intra_basic_linear", false),
    row(Algorithm::Binomial, 2, "scatter_intra_binomial", false),
];

const REDUCE_SCATTER: &[OpenMpiAlgorithm] = &[
    row(Algorithm::RecursiveHalving, 2, "reduce_scatter_intra_basic_recursivehalving", false),
    row(Algorithm::Ring, 3, "reduce_scatter_intra_ring", false),
];

const REDUCE_SCATTER_BLOCK: &[OpenMpiAlgorithm] = &[
    row(Algorithm::RecursiveDoubling, 2, "reduce_scatter_block_intra_recursivedoubling", false),
    row(Algorithm::RecursiveHalving, 3, "reduce_scatter_block_intra_recursivehalving", false),
];

const SCAN: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "scan_intra_linear", false),
    row(Algorithm::RecursiveDoubling, 2, "scan_intra_recursivedoubling", false),
];

const EXSCAN: &[OpenMpiAlgorithm] = &[
    row(Algorithm::Linear, 1, "exscan_intra_linear", false),
    row(Algorithm::RecursiveDoubling, 2, "exscan_intra_recursivedoubling", false),
];

/// The algorithms that Open MPI has for a collective and that have a name in the field; none
/// where coll/tuned has no choice. (Those that only call other collectives, and variants with a
/// synchronisation of their own, have no name here.)
pub const fn algorithms(collective: Collective) -> &'static [OpenMpiAlgorithm] {
    match collective {
        Collective::Allgather => ALLGATHER,
        Collective::Allgatherv => ALLGATHERV,
        Collective::Allreduce => ALLREDUCE,
        Collective::Alltoall => ALLTOALL,
        Collective::Alltoallv => ALLTOALLV,
        Collective::Barrier => BARRIER,
        Collective::Bcast => BCAST,
        Collective::Exscan => EXSCAN,
        Collective::Gather => GATHER,
        Collective::Reduce => REDUCE,
        Collective::ReduceScatter => REDUCE_SCATTER,
        Collective::ReduceScatterBlock => REDUCE_SCATTER_BLOCK,
        Collective::Scan => SCAN,
        Collective::Scatter => SCATTER,
        _ => &[],
    }
}

pub fn named(collective: Collective) -> Vec<Algorithm> {
    algorithms(collective).iter().map(|row| row.algorithm).collect()
}

/// One algorithm, where Open MPI has it.
pub fn find(collective: Collective, algorithm: Algorithm) -> Option<&'static OpenMpiAlgorithm> {
    algorithms(collective).iter().find(|row| row.algorithm == algorithm)
}

/// Whether the library would silently run another algorithm, or end the program (`two-procs` on
/// more than two processes); seen on 4.1.4.
pub fn falls_back(collective: Collective, native: &Native, procs: u32, bytes: u64) -> bool {
    let element = collective.element_bytes(bytes);
    let count = bytes / element;
    match (collective, native.algorithm) {
        // Each half must hold an element and a segment.
        (Collective::Bcast, Algorithm::SplittedBinary) => {
            count < 2 || (count / 2) * element < native.segment_bytes
        }
        (Collective::Bcast, Algorithm::ScatterAllgather | Algorithm::ScatterAllgatherRing) => {
            count < u64::from(procs)
        }
        (Collective::Reduce | Collective::Allreduce, Algorithm::Rabenseifner) => {
            count < 1 << u64::from(procs.max(1).ilog2())
        }
        (Collective::Allreduce, Algorithm::Ring) => count < u64::from(procs),
        // Each process has more than a segment; without a segment size it is the plain ring.
        (Collective::Allreduce, Algorithm::SegmentedRing) => {
            let in_segment = native.segment_bytes / element;
            in_segment == 0 || count < u64::from(procs).saturating_mul(in_segment)
        }
        (Collective::Allgather, Algorithm::RecursiveDoubling) => !procs.is_power_of_two(),
        (Collective::Allgather | Collective::Allgatherv, Algorithm::NeighborExchange) => {
            !procs.is_multiple_of(2)
        }
        (_, Algorithm::TwoProcs) => procs != 2,
        _ => false,
    }
}

/// Every native method with the given segment sizes (0: unsegmented) for `procs` processes and
/// messages of `bytes`.
///
/// Left out are segment sizes that an algorithm doesn't take, those that hold the whole message
/// (they are the unsegmented method), and what would fall back to another algorithm.
pub fn methods(collective: Collective, segments: &[u64], procs: u32, bytes: u64) -> Vec<Method> {
    let mut methods = Vec::new();
    for row in algorithms(collective) {
        let wanted = segments.iter().copied().filter(|&segment| segment < bytes.max(1));
        let taken: Vec<u64> = if row.segmented { wanted.collect() } else { vec![0] };
        let natives = taken.into_iter().map(|segment_bytes| Native {
            library: LIBRARY,
            algorithm: row.algorithm,
            segment_bytes,
        });
        let kept = natives.filter(|native| !falls_back(collective, native, procs, bytes));
        methods.extend(kept.map(Method::Native));
    }
    methods
}

/// Whether what the tracer saw (`bcast_intra_pipeline,segment=8KiB`) is what was asked for, and
/// not an algorithm that the library fell back to. Nothing seen is no contradiction.
pub fn ran_as_asked(collective: Collective, native: &Native, ran: &str) -> bool {
    let Some(row) = find(collective, native.algorithm) else { return false };
    let of = |name: &str| name.split("_intra").next().unwrap_or_default().to_owned();
    let mut calls = ran.split('>').map(traced_function);
    // An algorithm may be made of other collectives; another one of its own is a fall-back.
    ran.is_empty()
        || (!ran.contains(';')
            && calls.next() == Some(row.function)
            && calls.all(|inner| of(inner) != of(row.function)))
}

/// Whether what the tracer saw at a point is this very algorithm, with these segments and with the fan-out or
/// radix that it has where it is forced. Segments that hold the whole message are none.
pub fn is_run_of(point: Point, native: &Native, ran: &str) -> bool {
    let Some(row) = find(point.collective, native.algorithm) else { return false };
    let (function, parameters) = ran.split_once(',').unwrap_or((ran, ""));
    let mut segment = 0;
    let is_usual = |parameter: &str| match parameter.split_once('=') {
        Some(("segment", size)) => quantity::parse_bytes(size).map(|bytes| segment = bytes).is_ok(),
        Some(("fan-out", fan_out)) => fan_out.parse() == Ok(CHAIN_FAN_OUT),
        Some(("requests", most)) => most == "0",
        _ => false,
    };
    let mut parameters = parameters.split(',').filter(|parameter| !parameter.is_empty());
    function == row.function
        && parameters.all(is_usual)
        && native.segment_bytes == if segment >= point.bytes { 0 } else { segment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_default_runs_is_told_from_what_only_has_its_name() {
        let is_run = |method: &str, ran: &str| {
            let Method::Native(native) = method.parse().unwrap() else { panic!("{method}") };
            is_run_of(Point::flat(Collective::Bcast, 8, 4096), &native, ran)
        };
        let tree = "native:openmpi:binary";
        assert!(is_run(tree, "bcast_intra_bintree"));
        assert!(is_run(tree, "bcast_intra_bintree,segment=128KiB"), "one segment holds all");
        assert!(!is_run(tree, "bcast_intra_bintree,segment=1KiB"));
        let cut = "native:openmpi:binary,segment=1KiB";
        assert!(is_run(cut, "bcast_intra_bintree,segment=1KiB"));
        assert!(!is_run(cut, "bcast_intra_bintree"));
        assert!(is_run("native:openmpi:linear", "bcast_intra_basic_linear"));
        assert!(!is_run("native:openmpi:linear", "bcast_intra_binomial"));
        let chain = "native:openmpi:k-chain";
        assert!(is_run(chain, "bcast_intra_chain,fan-out=4"));
        assert!(!is_run(chain, "bcast_intra_chain,fan-out=1"));
        assert!(!is_run(chain, "bcast_intra_chain,fan-out=0"));
        for fell_back in ["", ",segment=1KiB"] {
            let ran = format!("bcast_intra_scatter_allgather{fell_back}>bcast_intra_basic_linear");
            assert!(!is_run("native:openmpi:scatter-allgather", &ran));
        }
        assert!(!is_run(tree, ""));
    }

    #[test]
    fn segments_that_hold_the_whole_message_are_the_unsegmented_method() {
        let texts = |bytes| -> Vec<String> {
            let methods = methods(Collective::Bcast, &[0, 1024, 8192], 8, bytes);
            methods.iter().map(Method::to_string).collect()
        };
        assert_eq!(texts(1024).len(), 9);
        assert_eq!(texts(1026).len(), 9 + 5, "halves of splitted-binary would hold no segment");
        assert_eq!(texts(2048).len(), 9 + 6);
        assert_eq!(texts(4).len(), 7, "scatter needs an element for each process");
        assert_eq!(texts(1).len(), 6, "nothing to split");
        assert_eq!(texts(1 << 20).len(), 9 + 12);
        assert!(texts(1 << 20).contains(&"native:openmpi:pipeline,segment=8KiB".into()));
        assert!(!texts(1 << 20).contains(&"native:openmpi:linear,segment=8KiB".into()));
    }

    #[test]
    fn segments_of_any_size_are_counted() {
        let huge = Native {
            library: LIBRARY,
            algorithm: Algorithm::SegmentedRing,
            segment_bytes: 1 << 63,
        };
        assert!(falls_back(Collective::Allreduce, &huge, 16, 1 << 62));
    }

    #[test]
    fn a_fall_back_is_told_from_what_was_asked() {
        let native =
            Native { library: LIBRARY, algorithm: Algorithm::SplittedBinary, segment_bytes: 0 };
        let check = |ran| ran_as_asked(Collective::Bcast, &native, ran);
        assert!(check("bcast_intra_split_bintree"));
        assert!(check(""));
        assert!(!check("bcast_intra_split_bintree>bcast_intra_chain,fan-out=1"));
        assert!(!check("bcast_intra_basic_linear"));
    }
}
