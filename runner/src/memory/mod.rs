//! Memory that the ranks of a node share: the medium of `own:shared-...` methods.
//!
//! A communicator gets an area on each node when a method first asks for one ([`create`]). Every rank of the node
//! has a part of it that it alone writes: flags with room for a short message beside each, and elements for longer
//! ones; see [`schedules::shared`] for how schedules use them. The parts are mapped until the communicator is freed.

/// The variable that sets how many bytes the ranks of a node may share, of all communicators: 64MiB if it is not set.
pub const SHARED_MEMORY: &str = "COLIBRI_SHARED_MEMORY";

mod area;
mod create;
mod flags;
#[cfg(test)]
mod orderings;
mod program;
mod waiting;

/// Asks for a line of the cache that is read soon.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing wherever it points.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

pub(crate) use area::SharedArea;
pub(crate) use create::{AreaLimits, create, progress, provide};
pub use program::MemoryProgram;
