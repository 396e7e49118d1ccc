//! Binomial tree (the paper's, Table 3): short messages.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::Binomial};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<Binomial>>(
    Collective::Reduce,
    Algorithm::Binomial,
    "segments up a binomial tree",
)
.segmented();
