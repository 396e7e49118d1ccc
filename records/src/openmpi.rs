//! Open MPI's names for its algorithms (component coll/tuned, the same in 4.0, 4.1 and 5.0).
//!
//! Forcing, rules files and the check of what ran all go by this one table.

use crate::{Algorithm, Collective, Library, Method, Native};

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

/// The algorithms that Open MPI has for a collective and that Colibri can force; none where it
/// can't.
pub const fn algorithms(collective: Collective) -> &'static [OpenMpiAlgorithm] {
    match collective {
        Collective::Bcast => BCAST,
        Collective::Reduce => REDUCE,
        _ => &[],
    }
}

/// One algorithm, where Open MPI has it.
pub fn find(collective: Collective, algorithm: Algorithm) -> Option<&'static OpenMpiAlgorithm> {
    algorithms(collective).iter().find(|row| row.algorithm == algorithm)
}

/// The size in bytes of the elements with which Colibri measures a message of `bytes`: the
/// library falls back by the number of elements. Reductions are of doubles where these fit.
pub const fn element_bytes(collective: Collective, bytes: u64) -> u64 {
    match collective {
        Collective::Reduce if bytes >= 8 && bytes.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// Whether the library would silently run another algorithm (seen on 4.1.4).
pub fn falls_back(collective: Collective, native: &Native, procs: u32, bytes: u64) -> bool {
    let element = element_bytes(collective, bytes);
    let count = bytes / element;
    match (collective, native.algorithm) {
        // Each half must hold an element and a segment.
        (Collective::Bcast, Algorithm::SplittedBinary) => {
            count < 2 || (count / 2) * element < native.segment_bytes
        }
        (Collective::Bcast, Algorithm::ScatterAllgather | Algorithm::ScatterAllgatherRing) => {
            count < u64::from(procs)
        }
        (Collective::Reduce, Algorithm::Rabenseifner) => {
            count < 1 << u64::from(procs.max(1).ilog2())
        }
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
            library: Library::OpenMpi,
            algorithm: row.algorithm,
            segment_bytes,
        });
        let kept = natives.filter(|native| !falls_back(collective, native, procs, bytes));
        methods.extend(kept.map(Method::Native));
    }
    methods
}

/// Whether what the tracer saw (`bcast_intra_pipeline(segment=8192)`) is what was asked for, and
/// not an algorithm that the library fell back to. Nothing seen is no contradiction.
pub fn ran_as_asked(collective: Collective, method: &Method, ran: &str) -> bool {
    let Method::Native(native) = method else { return true };
    let Some(row) = find(collective, native.algorithm) else { return false };
    let name = ran.split('(').next().unwrap_or_default();
    ran.is_empty() || (name == row.function && !ran.contains(['>', ';']))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_fall_back_is_told_from_what_was_asked() {
        let method: Method = "native:openmpi:splitted-binary".parse().unwrap();
        let check = |ran| ran_as_asked(Collective::Bcast, &method, ran);
        assert!(check("bcast_intra_split_bintree(segment=0)"));
        assert!(check(""));
        assert!(!check(
            "bcast_intra_split_bintree(segment=0)>bcast_intra_chain(segment=0,fanout=1)"
        ));
        assert!(!check("bcast_intra_basic_linear()"));
        assert!(ran_as_asked(
            Collective::Bcast,
            &Method::Default,
            "bcast_intra_binomial(segment=0)"
        ));
    }
}
