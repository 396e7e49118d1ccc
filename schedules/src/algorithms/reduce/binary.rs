//! Binary tree (the paper's, Table 3). It mixes the order of ranks.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::Binary};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<Binary>>(
    Collective::Reduce,
    Algorithm::Binary,
    "segments up a binary tree",
)
.segmented()
.commutative();
