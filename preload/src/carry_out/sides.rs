//! Where the buffers of a call lie on one rank, and the call with others.

use std::{ffi::c_void, ptr};

use records::BufferContent;
use runner::{
    Arguments, Counts, Handle, Result, Side, SignificantSide, SignificantSides, SubstituteBuffer,
};

use super::call::InterceptedCall;

/// Whether the buffers of a call on one of so many ranks lie where buffers usually do: at addresses that are there, and
/// where both sides mean something, `are_apart` says that they share no memory.
#[inline(always)]
pub(super) fn are_usual_buffers(
    arguments: &Arguments,
    (rank, procs): (u32, u32),
    in_place: usize,
    are_apart: impl FnOnce(&Side, &Side) -> bool,
) -> bool {
    let SignificantSides { send, receive, .. } = arguments.significant(rank, procs, in_place);
    let is_there = |given: &SignificantSide| {
        !given.side.address.is_null() && given.side.address.addr() != in_place
    };
    send.as_ref().is_none_or(is_there)
        && receive.as_ref().is_none_or(is_there)
        && match (&send, &receive) {
            (Some(send), Some(receive)) => are_apart(&send.side, &receive.side),
            _ => !is_one_buffer(arguments, rank),
        }
}

/// Whether two sides that take so many bytes from their addresses on share no memory.
#[inline(always)]
pub(super) fn lie_apart(sent: &Side, received: &Side, lengths: [usize; 2]) -> bool {
    let (sent, received) = (sent.address.addr(), received.address.addr());
    match sent < received {
        true => received - sent >= lengths[0],
        false => sent - received >= lengths[1],
    }
}

/// Whether buffers of MPI's own types that begin at these addresses can't share memory: such types have fewer gaps
/// than data, so that most pairs are distinguished by this.
#[inline(always)]
pub(super) fn are_far(one: &Side, other: &Side, procs: u32, bytes: u64) -> bool {
    let most = bytes.saturating_mul(2 * u64::from(procs));
    one.address.addr().abs_diff(other.address.addr()) as u64 >= most
}

/// Whether operand and result begin at one address, where the library looks at both: away from the root it does not,
/// but on the first rank of an exscan, which receives nothing.
#[inline(always)]
pub(super) fn is_one_buffer(arguments: &Arguments, rank: u32) -> bool {
    let Arguments { collective, send, receive, .. } = arguments;
    let is_one = send.address == receive.address && !send.address.is_null();
    is_one && collective.combines() && has_both_sides(arguments, rank)
}

/// Whether both sides are significant on a rank where the call does not combine in place.
#[inline(always)]
pub(super) fn has_both_sides(arguments: &Arguments, rank: u32) -> bool {
    !arguments.collective.is_rooted() || arguments.is_root(rank)
}

impl InterceptedCall {
    /// What of the call means something here.
    #[inline(always)]
    pub(super) fn significant(&self) -> SignificantSides {
        let in_place = self.job.library.constants.in_place;
        self.arguments.significant(self.place.rank, self.place.tables.procs, in_place)
    }

    /// Whether the two share memory, or may: of types with gaps only the ends are looked at.
    ///
    /// # Safety
    /// Both must be of the application's arguments (see [`carry_out`](super)).
    pub(super) unsafe fn overlap(&self, one: &SignificantSide, other: &SignificantSide) -> bool {
        // SAFETY: both datatypes are of the application's arguments (contract of this function), as `is_named`
        // and `ends` want.
        unsafe {
            let are_named = self.is_named(one.side.datatype) && self.is_named(other.side.datatype);
            let procs = self.place.tables.procs;
            if are_named && are_far(&one.side, &other.side, procs, self.bytes) {
                return false;
            }
            match (self.ends(one), self.ends(other)) {
                (Some(one), Some(other)) => one.0 < other.1 && other.0 < one.1,
                _ => false,
            }
        }
    }

    /// How many bytes from its address on each side takes that means something here, where both are of MPI's own types and lie
    /// apart.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn lengths(&self) -> Option<[usize; 2]> {
        let length = |given: &SignificantSide| {
            // SAFETY: the datatype is of the application's arguments (contract of this function).
            let (is_named, ends) =
                unsafe { (self.is_named(given.side.datatype), self.ends(given)) };
            let address = given.side.address.addr() as i128;
            match ends {
                _ if !is_named => None,
                Some((first, end)) if first == address => usize::try_from(end - first).ok(),
                _ => None,
            }
        };
        let SignificantSides { send, receive, .. } = self.significant();
        let sent = send.as_ref().map_or(Some(0), length)?;
        let received = receive.as_ref().map_or(Some(0), length)?;
        let (lengths, in_place) = ([sent, received], self.job.library.constants.in_place);
        let ranks = (self.place.rank, self.place.tables.procs);
        let are_apart = |one: &Side, other: &Side| lie_apart(one, other, lengths);
        are_usual_buffers(&self.arguments, ranks, in_place, are_apart).then_some(lengths)
    }

    /// The addresses between which the data of a side lies, whose blocks follow each other; nothing where there is
    /// none.
    ///
    /// # Safety
    /// As [`Self::overlap`].
    unsafe fn ends(&self, given: &SignificantSide) -> Option<(i128, i128)> {
        let Side { address, datatype, .. } = given.side;
        let (mut lower, mut extent, mut true_lower, mut true_extent) = (0, 0, 0, 0);
        let library = self.job.library;
        // SAFETY: `datatype` is live or the library refuses it, and an array has an entry for each rank (contract
        // of this function); outputs are locals.
        let (count, code) = unsafe {
            let code = (library.type_get_extent)(datatype, &mut lower, &mut extent)
                | (library.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent);
            (given.elements(), code)
        };
        if code != 0 || count == 0 || true_extent == 0 {
            return None;
        }
        let first = address.addr() as i128 + true_lower as i128;
        let last = first + i128::from(count - 1) * extent as i128;
        Some((first.min(last), first.max(last) + true_extent as i128))
    }

    /// The own block and the first of all blocks, where data is moved from the one to the other or back.
    pub(super) fn own_and_all(&self) -> Option<(&Side, &Side)> {
        use BufferContent::{All, AllAtRoot, Own};
        let Arguments { collective, send, receive, .. } = &self.arguments;
        match (collective.sends(), collective.receives()) {
            _ if collective.combines() => None,
            (Own, All | AllAtRoot) => Some((send, receive)),
            (All | AllAtRoot, Own) => Some((receive, send)),
            _ => None,
        }
    }

    /// Whether the one side of this rank is its block of the other, by the same type, so that it
    /// is as well in place.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)), with both sides significant on this
    /// rank.
    pub(super) unsafe fn is_own_block(&self) -> bool {
        let Some((one, all)) = self.own_and_all() else { return false };
        let Counts::Uniform(count) = one.counts else { return false };
        if !self.are_alike(one, all) {
            return false;
        }
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: `all` is significant here (contract of this function), so that its datatype is live; outputs
        // are locals.
        let code =
            unsafe { (self.job.library.type_get_extent)(all.datatype, &mut lower, &mut extent) };
        let before = extent.wrapping_mul(count as isize).wrapping_mul(self.place.rank as isize);
        code == 0 && all.address.wrapping_byte_offset(before) == one.address
    }

    /// Whether the blocks of both are described alike.
    pub(super) fn are_alike(&self, one: &Side, other: &Side) -> bool {
        let is_same_type = self.is_same_handle(one.datatype, other.datatype);
        match (one.counts, other.counts) {
            (Counts::Uniform(one), Counts::Uniform(other)) => one == other && is_same_type,
            _ => false,
        }
    }

    fn is_same_handle(&self, one: Handle, other: Handle) -> bool {
        (one ^ other) & self.job.library.constants.handle_bits == 0
    }

    /// This call with `MPI_IN_PLACE` for the own block.
    pub(super) fn in_place(&self) -> InterceptedCall {
        let mut arguments = self.arguments;
        let own = match arguments.collective.sends() {
            BufferContent::AllAtRoot => &mut arguments.receive,
            _ => &mut arguments.send,
        };
        own.address = ptr::without_provenance_mut(self.job.library.constants.in_place);
        InterceptedCall { arguments, ..*self }
    }

    pub(super) fn is_in_place(&self, address: *const c_void) -> bool {
        address.addr() == self.job.library.constants.in_place
    }

    /// Memory of ours for what this rank receives, and the arguments with it.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)), of datatypes that MPI knows where
    /// data is combined.
    ///
    /// # Errors
    /// There is no such memory.
    pub(super) unsafe fn with_substitute(&self) -> Result<(SubstituteBuffer, Arguments)> {
        let mut arguments = self.arguments;
        let Some(received) = self.significant().receive else {
            return Ok((SubstituteBuffer::of_bytes(0)?, arguments));
        };
        let mut made = match arguments.collective.combines() {
            // SAFETY: what is combined is of a datatype that MPI knows, and an array has an entry for each rank
            // (contract of this function).
            true => unsafe {
                let count = received.elements().unsigned_abs();
                SubstituteBuffer::of_elements(self.job.session, received.side.datatype, count)?
            },
            false => {
                let blocks = u64::from(received.blocks);
                arguments.receive.datatype = self.job.library.constants.byte;
                let count = i64::try_from(self.bytes).unwrap_or(i64::MAX);
                arguments.receive.counts = Counts::Uniform(count);
                SubstituteBuffer::of_bytes(self.bytes.saturating_mul(blocks))?
            }
        };
        arguments.receive.address = made.address();
        Ok((made, arguments))
    }
}
