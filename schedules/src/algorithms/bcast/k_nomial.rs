//! A lower tree than the binomial one, with more children each.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::KNomial};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<KNomial>>(
    Collective::Bcast,
    Algorithm::KNomial,
    "segments down a k-nomial tree; the fan-out is its radix",
)
.segmented()
.fanned();
