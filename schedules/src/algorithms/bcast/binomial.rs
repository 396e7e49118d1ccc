//! Binomial tree (the paper's, Table 2): short messages.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{
    Entry,
    topology::{Binomial, Doubling},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Binomial>>(
    Collective::Bcast,
    Algorithm::Binomial,
    "segments down a binomial tree",
)
.segmented();

/// As Open MPI numbers the ranks.
pub(in super::super) const DOUBLING: Entry = Entry::new::<TreeBcast<Doubling>>(
    Collective::Bcast,
    Algorithm::Binomial,
    "segments down a binomial tree whose ranks double in rank order",
)
.segmented();
