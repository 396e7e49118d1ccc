//! What is to be loaded, as ranges of sizes.

use records::{Collective, Layout, RangeMethod, Ranges};

/// What to load for one collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub collective: Collective,
    /// One section per layout measured, ascending; for a target that knows the number of processes
    /// alone, one per number.
    pub sections: Vec<LayoutRanges>,
}

/// The ranges for communicators of one layout. It holds up to the next section's; the last one holds
/// for its own size alone.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutRanges {
    /// The communicators' ranks and nodes.
    pub layout: Layout,
    /// From the least size measured to the greatest, without gaps, neighbours differing; beyond nothing is claimed.
    pub ranges: Ranges<RangeMethod>,
}

impl LayoutRanges {
    pub fn procs(&self) -> u32 {
        self.layout.procs()
    }
}

/// Methods from sizes on, each up to the next and the last up to `last_bytes`.
#[cfg(test)]
pub(crate) fn section(layout: &str, methods: &[(u64, &str)], last_bytes: u64) -> LayoutRanges {
    let of = |&(from_bytes, method): &(u64, &str)| {
        (from_bytes, method.parse::<records::Method>().expect("a method's name").into())
    };
    let ranges = Ranges::from_starts(methods.iter().map(of).collect(), last_bytes);
    LayoutRanges { layout: layout.parse().expect("a layout"), ranges }
}
