//! The algorithms for blocks with counts of their own.

use records::{Algorithm, Collective};

use super::{
    OwnCounts, bine::BineReduceScatter, circulant::CirculantReduceScatter, pairwise::Pairwise,
    recursive_halving::RecursiveHalving, recursive_multiplying::MultiplyingReduceScatter,
    ring::RingReduceScatter,
};
use crate::Entry;

const COLLECTIVE: Collective = Collective::ReduceScatter;

pub(in super::super) const BINE: Entry = Entry::new::<BineReduceScatter<OwnCounts>>(
    COLLECTIVE,
    Algorithm::Bine,
    "runs of blocks are halved, between partners nearer than in recursive halving",
)
.commutative()
.even();

pub(in super::super) const CIRCULANT: Entry = Entry::new::<CirculantReduceScatter<OwnCounts>>(
    COLLECTIVE,
    Algorithm::Circulant,
    "the further half of the blocks goes that far ahead, then half of what is left",
)
.commutative();

pub(in super::super) const PAIRWISE: Entry = Entry::new::<Pairwise<OwnCounts>>(
    COLLECTIVE,
    Algorithm::Pairwise,
    "in step i, send i ranks ahead what is theirs",
)
.commutative();

pub(in super::super) const RECURSIVE_HALVING: Entry = Entry::new::<RecursiveHalving<OwnCounts>>(
    COLLECTIVE,
    Algorithm::RecursiveHalving,
    "groups of ranks and their part of the vector are halved",
)
.commutative();

pub(in super::super) const RECURSIVE_MULTIPLYING: Entry =
    Entry::new::<MultiplyingReduceScatter<OwnCounts>>(
        COLLECTIVE,
        Algorithm::RecursiveMultiplying,
        "groups of ranks and their part of the vector are divided by fan-out",
    )
    .commutative()
    .fanned();

pub(in super::super) const RING: Entry = Entry::new::<RingReduceScatter<OwnCounts>>(
    COLLECTIVE,
    Algorithm::Ring,
    "partial results go around a ring",
)
.commutative();
