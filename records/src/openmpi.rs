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

/// Every native method with the given segment sizes (0: unsegmented).
///
/// Segment sizes that an algorithm doesn't take are left out, and so are those that hold the
/// whole message of `bytes`: they are the unsegmented method.
pub fn methods(collective: Collective, segments: &[u64], bytes: u64) -> Vec<Method> {
    let mut methods = Vec::new();
    for row in algorithms(collective) {
        let wanted = segments.iter().copied().filter(|&segment| segment < bytes.max(1));
        let taken: Vec<u64> = if row.segmented { wanted.collect() } else { vec![0] };
        methods.extend(taken.into_iter().map(|segment_bytes| {
            Method::Native(Native {
                library: Library::OpenMpi,
                algorithm: row.algorithm,
                segment_bytes,
            })
        }));
    }
    methods.dedup();
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
            methods(Collective::Bcast, &[0, 1024, 8192], bytes)
                .iter()
                .map(Method::to_string)
                .collect()
        };
        assert_eq!(texts(1024).len(), 9);
        assert_eq!(texts(2048).len(), 9 + 6);
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
