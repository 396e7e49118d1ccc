//! Blocks in the root's buffer, equal ones or those of a v-form.

use crate::{Buffer, Call, Range};

/// The block of `rank`, as the root knows it.
pub(super) fn block(vector: bool, call: &Call<'_>, buffer: Buffer, rank: u32) -> Range {
    match vector {
        true => Range::new(buffer, call.displacements[rank as usize], call.counts[rank as usize]),
        false => call.block(buffer, rank),
    }
}

/// The block of `rank` in its own buffer, as it knows it: away from the root, `counts` holds the
/// own count alone.
pub(super) fn own_block(vector: bool, call: &Call<'_>, buffer: Buffer, rank: u32) -> Range {
    let place = if rank == call.root { rank as usize } else { 0 };
    Range::new(buffer, 0, if vector { call.counts[place] } else { call.count })
}
