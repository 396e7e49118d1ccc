//! Several chains that end in one root.

use records::{Algorithm, Collective};

use super::tree::TreeReduce;
use crate::{Entry, topology::KChain};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeReduce<KChain>>(
    Collective::Reduce,
    Algorithm::KChain,
    "segments along fan-out many chains",
)
.segmented()
.fanned();
