//! The forms of flat scatters and gathers.

use crate::{Call, Round, arrangement::Sorting};

/// Messages under way at once at the root.
pub(super) const WINDOW: u64 = 32;

/// A form of the flat tree.
pub(super) trait FlatAlgorithm {
    /// Whether blocks have counts of their own.
    const VECTOR: bool = false;
    /// Messages under way at once at the root; one: it waits for each before the next.
    const WINDOW: u64 = WINDOW;
    /// The order in which ranks are served; none: as they come after the root.
    const SORTING: Option<Sorting> = None;
    /// Whether a receiver says that its receive is posted, and the sender sends in ready mode.
    const READY: bool = false;
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident { $($constants:tt)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub(super) struct $name;

            impl FlatAlgorithm for $name {
                $($constants)*
            }
        )*
    };
}

forms! {
    /// Equal blocks.
    Plain {}
    /// Equal blocks, one message after the other.
    Blocking {
        const WINDOW: u64 = 1;
    }
    /// Equal blocks, in ready mode.
    Ready {
        const READY: bool = true;
    }
    /// Unequal blocks. Every rank knows its own, so that nobody needs to be told.
    Vector {
        const VECTOR: bool = true;
    }
    /// Unequal blocks, one message after the other.
    VectorBlocking {
        const VECTOR: bool = true;
        const WINDOW: u64 = 1;
    }
    /// Unequal blocks, in ready mode.
    VectorReady {
        const VECTOR: bool = true;
        const READY: bool = true;
    }
    /// Unequal blocks, the smallest first.
    Ascending {
        const VECTOR: bool = true;
        const SORTING: Option<Sorting> = Some(Sorting::Ascending);
    }
    /// Unequal blocks, the largest first.
    Descending {
        const VECTOR: bool = true;
        const SORTING: Option<Sorting> = Some(Sorting::Descending);
    }
}

/// Appends steps that need to know which rank the root serves as number 0, 1, ... up to
/// `call.ranks - 1`, itself left out; none where so many have nothing.
pub(super) fn served<F: FlatAlgorithm>(
    call: &Call<'_>,
    out: &mut Round,
    append: impl FnOnce(&dyn Fn(u64) -> Option<u32>, &mut Round),
) {
    match F::SORTING {
        None => append(&|number| Some(call.after(call.root, number as u32 + 1)), out),
        Some(sorting) => out.with_arrangement(|arrangement, out| {
            arrangement.sort(call.counts, call.root, sorting);
            append(&|number| arrangement.others().get(number as usize).copied(), out);
        }),
    }
}
