//! Allgather: everybody's block, in rank order, in everybody's receive buffer.

pub(super) mod bine;
pub(super) mod bruck;
pub(super) mod circulant;
pub(super) mod k_ring;
pub(super) mod neighbor_exchange;
pub(super) mod recursive_doubling;
pub(super) mod recursive_multiplying;
pub(super) mod ring;
pub(super) mod sparbit;

use crate::{Buffer, Call, Range, Round};

/// The own block, to its place in the result; it is there already where the call is in place.
fn place_own(call: &Call<'_>, rank: u32, out: &mut Round) {
    if !call.in_place {
        let own = Range::new(Buffer::Send, 0, call.count);
        out.copy(own, call.block(Buffer::Receive, rank));
    }
}
