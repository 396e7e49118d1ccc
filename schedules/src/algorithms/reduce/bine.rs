//! A binomial tree of nearer partners.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::Bine};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<Bine>>(
    Collective::Reduce,
    Algorithm::Bine,
    "segments up a binomial tree whose ranks are nearer to each other",
)
.commutative()
.segmented();
