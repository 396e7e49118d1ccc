//! Flat tree (the paper's, Table 3).

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::Flat};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<Flat>>(
    Collective::Reduce,
    Algorithm::Linear,
    "every rank sends to the root",
)
.segmented();
