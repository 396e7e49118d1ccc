//! Chain (the paper's pipeline, Table 3): long messages; independent of the number of ranks in the end.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::Chain};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<Chain>>(
    Collective::Reduce,
    Algorithm::Pipeline,
    "segments along a chain of all ranks",
)
.segmented();
