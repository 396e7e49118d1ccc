//! What is to be loaded, as ranges of sizes.

use records::{Collective, Layout, Method};

/// What to load for one collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub collective: Collective,
    /// One section per layout measured, ascending; for a target that knows the number of processes
    /// alone, one per number.
    pub sections: Vec<ProcsRange>,
}

/// The ranges for communicators of one layout. It holds up to the next section's; the last one holds
/// for its own size alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcsRange {
    /// The communicators' ranks and nodes.
    pub layout: Layout,
    /// Ranges of message sizes, ascending; neighbours differ. Each holds up to the next.
    pub bands: Vec<BytesRange>,
    /// Largest message size measured; beyond it nothing is claimed.
    pub last_bytes: u64,
}

impl ProcsRange {
    pub fn procs(&self) -> u32 {
        self.layout.procs()
    }
}

/// A range of message sizes with one method.
#[derive(Debug, Clone, PartialEq)]
pub struct BytesRange {
    /// Smallest message size.
    pub from_bytes: u64,
    /// What to take; [`Method::Default`] leaves it to the library.
    pub method: Method,
    /// How many times as fast as the default it is, where that is known: the geometric mean over
    /// the sizes in the range.
    pub gain: Option<f64>,
}

impl BytesRange {
    /// Of which no gain is known.
    pub fn new(from_bytes: u64, method: Method) -> Self {
        BytesRange { from_bytes, method, gain: None }
    }
}
