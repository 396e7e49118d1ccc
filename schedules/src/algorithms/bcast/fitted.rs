//! The tree that suits the network: made from how long messages take and how soon they follow each
//! other, not taken from a list.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::FittedTree};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<FittedTree>>(
    Collective::Bcast,
    Algorithm::Fitted,
    "segments down the tree that is made for the network's latency and gap",
)
.segmented()
.fanned();
