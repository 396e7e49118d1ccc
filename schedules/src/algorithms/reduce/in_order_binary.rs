//! Binary tree for non-commutative operations, any root.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::InOrderBinary};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<InOrderBinary>>(
    Collective::Reduce,
    Algorithm::InOrderBinary,
    "segments up a binary tree that keeps the order of ranks",
)
.segmented();
