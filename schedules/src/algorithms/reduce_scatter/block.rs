//! The algorithms for equal blocks.

use records::{Algorithm, Collective};

use super::{
    Equal, bine::BineReduceScatter, circulant::CirculantReduceScatter, pairwise::Pairwise,
    recursive_halving::RecursiveHalving, recursive_multiplying::MultiplyingReduceScatter,
    ring::RingReduceScatter,
};
use crate::Entry;

const COLLECTIVE: Collective = Collective::ReduceScatterBlock;

pub(in super::super) const BINE: Entry = Entry::new::<BineReduceScatter<Equal>>(
    COLLECTIVE,
    Algorithm::Bine,
    "runs of blocks are halved, between partners nearer than in recursive halving",
)
.commutative()
.even();

pub(in super::super) const CIRCULANT: Entry = Entry::new::<CirculantReduceScatter<Equal>>(
    COLLECTIVE,
    Algorithm::Circulant,
    "the further half of the blocks goes that far ahead, then half of what is left",
)
.commutative();

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

pub(in super::super) const RECURSIVE_MULTIPLYING: Entry =
    Entry::new::<MultiplyingReduceScatter<Equal>>(
        COLLECTIVE,
        Algorithm::RecursiveMultiplying,
        "groups of ranks and their part of the vector are divided by fan-out",
    )
    .commutative()
    .fanned();

pub(in super::super) const RING: Entry = Entry::new::<RingReduceScatter<Equal>>(
    COLLECTIVE,
    Algorithm::Ring,
    "partial results go around a ring",
)
.commutative();
