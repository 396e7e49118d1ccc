//! The numbers of Intel MPI's algorithms, `I_MPI_ADJUST_<COLLECTIVE>`.
//!
//! Source: the Developer Reference up to 2021.12. From 2021.13 on the numbers are *presets*, of
//! which there are more than algorithms; these first ones keep their places there. Algorithms that
//! know the topology, and those through shared memory alone, have no name in the field.

use records::{Algorithm, Collective, Library};

/// As methods name it.
pub const LIBRARY: Library = Library::new("intel").expect("small letters");

const BCAST: &[(Algorithm, u32)] = &[
    (Algorithm::Binomial, 1),
    (Algorithm::ScatterAllgather, 2),
    (Algorithm::ScatterAllgatherRing, 3),
    (Algorithm::KNomial, 8),
];
const REDUCE: &[(Algorithm, u32)] =
    &[(Algorithm::Binomial, 2), (Algorithm::Rabenseifner, 5), (Algorithm::KNomial, 7)];
const ALLREDUCE: &[(Algorithm, u32)] = &[
    (Algorithm::RecursiveDoubling, 1),
    (Algorithm::Rabenseifner, 2),
    (Algorithm::Ring, 8),
    (Algorithm::KNomial, 9),
];
const ALLGATHER: &[(Algorithm, u32)] =
    &[(Algorithm::RecursiveDoubling, 1), (Algorithm::Bruck, 2), (Algorithm::Ring, 3)];
const ALLTOALL: &[(Algorithm, u32)] =
    &[(Algorithm::Bruck, 1), (Algorithm::Linear, 2), (Algorithm::Pairwise, 3)];
const BARRIER: &[(Algorithm, u32)] =
    &[(Algorithm::Bruck, 1), (Algorithm::RecursiveDoubling, 2), (Algorithm::Binomial, 5)];
const GATHER_OR_SCATTER: &[(Algorithm, u32)] = &[(Algorithm::Binomial, 1)];

/// The algorithms that have a documented number.
pub const fn algorithms(collective: Collective) -> &'static [(Algorithm, u32)] {
    match collective {
        Collective::Allgather => ALLGATHER,
        Collective::Allreduce => ALLREDUCE,
        Collective::Alltoall => ALLTOALL,
        Collective::Barrier => BARRIER,
        Collective::Bcast => BCAST,
        Collective::Gather | Collective::Scatter => GATHER_OR_SCATTER,
        Collective::Reduce => REDUCE,
        _ => &[],
    }
}

pub fn named(collective: Collective) -> Vec<Algorithm> {
    algorithms(collective).iter().map(|(algorithm, _)| *algorithm).collect()
}

/// What the names of the environment variables begin with.
pub const ADJUST: &str = "I_MPI_ADJUST_";

/// The environment variable of a collective.
pub fn variable(collective: Collective) -> String {
    format!("{ADJUST}{}", collective.name().to_uppercase())
}

/// The number of an algorithm, where it has one.
pub fn preset(collective: Collective, algorithm: Algorithm) -> Option<u32> {
    let row = algorithms(collective).iter().find(|(known, _)| *known == algorithm);
    row.map(|(_, preset)| *preset)
}
