//! Reduce to rank 0, then broadcast, both on a binomial tree: not overlapping.

use records::{Algorithm, Collective};

use crate::{
    Entry, Sequence,
    algorithms::{bcast::tree::TreeBcast, reduce::tree::TreeReduce},
    topology::Binomial,
};

pub(in super::super) const ENTRY: Entry =
    Entry::new::<Sequence<TreeReduce<Binomial>, TreeBcast<Binomial>>>(
        Collective::Allreduce,
        Algorithm::Binomial,
        "reduce, then broadcast, on binomial trees",
    )
    .segmented();
