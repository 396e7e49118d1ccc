//! Reduce to rank 0, then broadcast, both on two trees: not overlapping.

use records::{Algorithm, Collective};

use crate::{
    Entry, Sequence,
    algorithms::{bcast::two_trees::TwoTreesBcast, reduce::two_trees::TwoTreesReduce},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Sequence<TwoTreesReduce, TwoTreesBcast>>(
    Collective::Allreduce,
    Algorithm::TwoTrees,
    "reduce, then broadcast, on two trees each",
)
.commutative()
.segmented();
