//! The tree that suits the network; see the broadcast's.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::FittedTree};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<FittedTree>>(
    Collective::Reduce,
    Algorithm::Fitted,
    "segments up the tree that is made for the network's latency and gap",
)
.commutative()
.segmented()
.fanned();
