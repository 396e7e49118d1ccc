//! Binary tree (the paper's, Table 2).

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::Binary};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Binary>>(
    Collective::Bcast,
    Algorithm::Binary,
    "segments down a binary tree",
)
.segmented();
