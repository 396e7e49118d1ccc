//! Prefixes with the own contribution excluded.

use records::{Algorithm, Collective};

use super::{linear::Linear, recursive_doubling::RecursiveDoubling};
use crate::Entry;

pub(in super::super) const LINEAR: Entry = Entry::new::<Linear<true>>(
    Collective::Exscan,
    Algorithm::Linear,
    "each rank adds its own and hands the prefix to the next, segment by segment",
)
.segmented();

pub(in super::super) const RECURSIVE_DOUBLING: Entry = Entry::new::<RecursiveDoubling<true>>(
    Collective::Exscan,
    Algorithm::RecursiveDoubling,
    "partial results exchanged at doubling distances",
);
