//! Binary tree for non-commutative operations, any root.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{
    Entry,
    topology::{InOrderBinary, LastInOrder},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<InOrderBinary>>(
    Collective::Reduce,
    Algorithm::InOrderBinary,
    "segments up a binary tree that keeps the order of ranks",
)
.segmented();

/// As Open MPI numbers the ranks.
pub(in super::super) const FROM_THE_LAST: Entry = Entry::new::<TreeReduce<LastInOrder>>(
    Collective::Reduce,
    Algorithm::InOrderBinary,
    "segments up a binary tree to the last rank, which hands the result to the root",
)
.segmented();
