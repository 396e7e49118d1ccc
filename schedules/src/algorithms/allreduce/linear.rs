//! Reduce to rank 0, then broadcast, both on a flat tree.

use records::{Algorithm, Collective};

use crate::{
    Entry, Sequence,
    algorithms::{bcast::tree::TreeBcast, reduce::tree::TreeReduce},
    topology::Flat,
};

pub(in super::super) const ENTRY: Entry =
    Entry::new::<Sequence<TreeReduce<Flat>, TreeBcast<Flat>>>(
        Collective::Allreduce,
        Algorithm::Linear,
        "reduce, then broadcast, on flat trees",
    )
    .segmented();
