//! Binomial tree (the paper's, Table 2): short messages.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::Binomial};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Binomial>>(
    Collective::Bcast,
    Algorithm::Binomial,
    "segments down a binomial tree",
)
.segmented();
