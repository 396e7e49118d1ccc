//! UCC's names for the algorithms of its component tl/ucp (version 1.3).
//!
//! Source: `src/components/tl/ucp` of that version. Names, not numbers: numbers shift between
//! releases. Its knomial trees have radices of their own, so that only those algorithms are here
//! that are one of the field's whatever the radix.

use records::{Algorithm, Collective, Library};

/// As it is called here; its algorithms are known by their names alone.
pub const LIBRARY: Library = Library::new("ucc").expect("small letters");

/// The algorithms that UCC has for a collective.
pub const fn algorithms(collective: Collective) -> &'static [(Algorithm, &'static str)] {
    match collective {
        Collective::Allgather => &[
            (Algorithm::Bruck, "bruck"),
            (Algorithm::NeighborExchange, "neighbor"),
            (Algorithm::Ring, "ring"),
        ],
        Collective::Allgatherv => &[(Algorithm::Ring, "ring")],
        Collective::Allreduce => {
            &[(Algorithm::KNomial, "knomial"), (Algorithm::Rabenseifner, "sra_knomial")]
        }
        Collective::Alltoall => &[(Algorithm::Bruck, "bruck"), (Algorithm::Pairwise, "pairwise")],
        Collective::Bcast => {
            &[(Algorithm::KNomial, "knomial"), (Algorithm::ScatterAllgather, "sag_knomial")]
        }
        Collective::Reduce => &[(Algorithm::KNomial, "knomial")],
        Collective::ReduceScatter => &[(Algorithm::Ring, "ring")],
        _ => &[],
    }
}

pub fn named(collective: Collective) -> Vec<Algorithm> {
    algorithms(collective).iter().map(|(algorithm, _)| *algorithm).collect()
}

/// The name of an algorithm, where UCC has it.
pub fn name(collective: Collective, algorithm: Algorithm) -> Option<&'static str> {
    let row = algorithms(collective).iter().find(|(known, _)| *known == algorithm);
    row.map(|(_, name)| *name)
}
