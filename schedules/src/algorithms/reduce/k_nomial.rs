//! A lower tree than the binomial one, with more children each.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::KNomial};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<KNomial>>(
    Collective::Reduce,
    Algorithm::KNomial,
    "segments up a k-nomial tree; the fan-out is its radix",
)
.segmented()
.fanned();
