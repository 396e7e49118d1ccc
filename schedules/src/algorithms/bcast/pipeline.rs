//! Chain (the paper's pipeline, Table 2): long messages, whose last segment follows the first closely.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::Chain};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Chain>>(
    Collective::Bcast,
    Algorithm::Pipeline,
    "segments along a chain of all ranks",
)
.segmented();
