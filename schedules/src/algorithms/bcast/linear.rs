//! Flat tree (the paper's linear, Table 2).

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::Flat};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Flat>>(
    Collective::Bcast,
    Algorithm::Linear,
    "the root sends to each rank in turn",
)
.segmented();
