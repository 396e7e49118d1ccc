//! Several chains on one root: a pipeline that fills faster and flows slower.

use records::{Algorithm, Collective};

use super::tree::TreeBcast;
use crate::{Entry, topology::KChain};

pub(in super::super) const ENTRY: Entry = Entry::new::<TreeBcast<KChain>>(
    Collective::Bcast,
    Algorithm::KChain,
    "segments along fan-out many chains",
)
.segmented()
.fanned();
