//! A binomial tree of nearer partners.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::Bine};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<Bine>>(
    Collective::Bcast,
    Algorithm::Bine,
    "segments down a binomial tree whose ranks are nearer to each other",
)
.segmented();
