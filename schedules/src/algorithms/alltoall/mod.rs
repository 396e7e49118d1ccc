//! Alltoall: block d of rank s's send buffer, to block s of rank d's receive buffer.

pub(super) mod bine;
pub(super) mod bruck;
pub(super) mod linear;
pub(super) mod linear_concurrent;
pub(super) mod pairwise;

use crate::{Buffer, Call, Round};

/// Where the blocks to be sent are: what would be overwritten is copied away first.
const fn input(call: &Call<'_>) -> Buffer {
    if call.in_place { Buffer::Temporary } else { Buffer::Send }
}

/// Scratch memory for [`input`].
const fn temporary(call: &Call<'_>) -> u64 {
    if call.in_place { call.ranks as u64 * call.count } else { 0 }
}

/// The first round: the own block, and the copy of what would be overwritten.
fn begin(call: &Call<'_>, rank: u32, out: &mut Round) {
    if call.in_place {
        let all = |buffer| call.blocks(buffer, 0, call.ranks);
        out.copy(all(Buffer::Receive), all(Buffer::Temporary));
    } else {
        out.copy(call.block(Buffer::Send, rank), call.block(Buffer::Receive, rank));
    }
}
