//! The algorithms for equal blocks.

use records::{Algorithm, Collective};

use super::{
    Equal, pairwise::Pairwise, recursive_halving::RecursiveHalving, ring::RingReduceScatter,
};
use crate::Entry;

const COLLECTIVE: Collective = Collective::ReduceScatterBlock;

pub(in super::super) const PAIRWISE: Entry = Entry::new::<Pairwise<Equal>>(
    COLLECTIVE,
    Algorithm::Pairwise,
    "in step i, send i ranks ahead what is theirs",
)
.commutative();

pub(in super::super) const RECURSIVE_HALVING: Entry = Entry::new::<RecursiveHalving<Equal>>(
    COLLECTIVE,
    Algorithm::RecursiveHalving,
    "groups of ranks and their part of the vector are halved",
)
.commutative();

pub(in super::super) const RING: Entry = Entry::new::<RingReduceScatter<Equal>>(
    COLLECTIVE,
    Algorithm::Ring,
    "partial results go around a ring",
)
.commutative();
