//! Prefixes with the own contribution included.

use records::{Algorithm, Collective};

use super::{linear::Linear, recursive_doubling::RecursiveDoubling, two_trees::TwoTreesScan};
use crate::Entry;

pub(in super::super) const LINEAR: Entry = Entry::new::<Linear<false>>(
    Collective::Scan,
    Algorithm::Linear,
    "each rank adds its own and hands the prefix to the next, segment by segment",
)
.segmented();

pub(in super::super) const RECURSIVE_DOUBLING: Entry = Entry::new::<RecursiveDoubling<false>>(
    Collective::Scan,
    Algorithm::RecursiveDoubling,
    "partial results exchanged at doubling distances",
);

pub(in super::super) const TWO_TREES: Entry = Entry::new::<TwoTreesScan>(
    Collective::Scan,
    Algorithm::TwoTrees,
    "each half of the message up and down a tree of its own; who is inside one is a leaf of the other",
)
.segmented();
