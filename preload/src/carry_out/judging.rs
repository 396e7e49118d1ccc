//! What becomes of a call by what one rank sees of its buffers and types.
//!
//! What is wrong by MPI's rules is the library's to refuse, in its own words and without a message: on a
//! rank that is refused the call did not happen. Others may not see it. What they then do is what they do in
//! the library: where they need this rank they wait until it has repeated the call rightly, and what they
//! have sent is there for it.

use std::{ffi::c_void, ptr, sync::OnceLock};

use runner::{AbiFamily, Arguments, Block, Handle, Reduction};

use super::{
    call::InterceptedCall,
    sides::{SignificantBuffer, SignificantBuffers},
};
use crate::lock::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The library's, which refuses it: on all ranks, or on this one alone.
    Library,
    /// Carried out as it came.
    Sound,
    /// Carried out in place: its own block lies where it belongs. MPI forbids that, libraries let
    /// it pass, and programs do it, in an allgather on every rank.
    InPlace,
    /// Carried out with memory of ours to receive in: it shares memory with what is sent.
    Aside,
    /// A type is not committed, which the library overlooks here: carried out with one that is.
    Uncommitted,
}

/// How a side is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Described {
    Well,
    Wrongly,
    ByUncommitted,
}

impl InterceptedCall {
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn judge(&self) -> Judgement {
        // SAFETY: all that is called here relies on the application's arguments, which these are (contract of
        // this function).
        unsafe {
            if let Some(data) = self.arguments.reduction()
                && !self.combines(data)
            {
                return Judgement::Library;
            }
            if self.is_plain() {
                return Judgement::Sound;
            }
            let SignificantBuffers { send, receive } = self.sides();
            let of = |side: &Option<SignificantBuffer>| {
                side.as_ref().map_or(Described::Well, |side| self.described(&side.block))
            };
            let (sent, received) = (of(&send), of(&receive));
            match (sent, received) {
                (Described::Well, Described::Well) => {}
                (Described::Wrongly, _) | (_, Described::Wrongly) => return Judgement::Library,
                _ if self.overlooks_uncommitted() => return Judgement::Uncommitted,
                _ => return Judgement::Library,
            }
            if self.is_refused() {
                return Judgement::Library;
            }
            match (send, receive) {
                (Some(send), Some(receive)) if self.overlap(&send, &receive) => {
                    if self.is_own_block() { Judgement::InPlace } else { Judgement::Aside }
                }
                _ => Judgement::Sound,
            }
        }
    }

    /// Whether the call is sound at first sight, as most are: by types of MPI's own, at addresses
    /// that are there and far from each other.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    #[inline(always)]
    unsafe fn is_plain(&self) -> bool {
        // SAFETY: `datatype` is of the application's arguments (contract of this function); the address is not
        // followed.
        let is_there = |buffer: *const c_void, count: i64, datatype| unsafe {
            !buffer.is_null()
                && !self.is_in_place(buffer.cast_mut())
                && count >= 0
                && self.is_named(datatype)
        };
        let fits = |block: &Block| is_there(block.buffer, block.count, block.datatype);
        let apart =
            |one: &Block, other: &Block| self.are_far(one.buffer.addr(), other.buffer.addr());
        let both = |data: &Reduction, is_root: bool| {
            is_there(data.send, 0, data.datatype)
                && (!is_root
                    || is_there(data.receive, 0, data.datatype)
                        && self.are_far(data.send.addr(), data.receive.addr()))
        };
        match &self.arguments {
            Arguments::Barrier => true,
            Arguments::Bcast { data, .. } => fits(data),
            Arguments::Allgather { send, receive } | Arguments::Alltoall { send, receive } => {
                fits(send) && fits(receive) && apart(send, receive)
            }
            Arguments::Gather { send, receive, root } => {
                fits(send) && (!self.is_root(*root) || fits(receive) && apart(send, receive))
            }
            Arguments::Scatter { send, receive, root } => {
                fits(receive) && (!self.is_root(*root) || fits(send) && apart(send, receive))
            }
            Arguments::Reduce { data, root, .. } => both(data, self.is_root(*root)),
            Arguments::Allreduce { data, .. }
            | Arguments::Scan { data, .. }
            | Arguments::Exscan { data, .. }
            | Arguments::ReduceScatter { data, .. }
            | Arguments::ReduceScatterBlock { data, .. } => both(data, true),
            _ => false,
        }
    }

    pub(super) fn is_in_place(&self, buffer: *mut c_void) -> bool {
        buffer.addr() == self.job.library.mpi.constants.in_place
    }

    /// A count that can be, a committed type, and an address where the type has none of its own.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn described(&self, block: &Block) -> Described {
        let library = &self.job.library;
        if block.count < 0
            || self.is_in_place(block.buffer)
            || block.datatype & library.handle_bits == library.no_type
        {
            return Described::Wrongly;
        }
        // SAFETY: the datatype is of the application's arguments (contract of this function), and not null.
        unsafe {
            match self.is_named(block.datatype) {
                true if !block.buffer.is_null() || block.count == 0 => Described::Well,
                // Open MPI does not look at addresses, and crashes.
                true if library.family == AbiFamily::OpenMpi => Described::Well,
                true => Described::Wrongly,
                // Of what is combined that is known by now.
                false if self.arguments.reduction().is_some() => Described::Well,
                false if self.is_committed(block.datatype) => Described::Well,
                false => Described::ByUncommitted,
            }
        }
    }

    /// # Safety
    /// The datatype must be of the application's arguments (see [`carry_out`](super)).
    pub(super) unsafe fn is_named(&self, datatype: Handle) -> bool {
        // SAFETY: `datatype` is live or the library refuses it (contract of this function), as `DatatypeFacts`
        // wants.
        unsafe { self.job.types.is_named(&self.job.library, datatype) }
    }

    /// Asks the library by a message to nobody.
    ///
    /// # Safety
    /// The datatype must be of the application's arguments (see [`carry_out`](super)).
    unsafe fn is_committed(&self, datatype: Handle) -> bool {
        let library = &self.job.library;
        let mut request: Handle = 0;
        // SAFETY: what goes nowhere is not read; the address must not be null.
        unsafe {
            let (nowhere, alone) = (ptr::without_provenance(1 << 12), self.job.alone);
            // Without an element MPICH does not look at the type.
            let code =
                (library.mpi.isend)(nowhere, 1, datatype, library.no_rank, 0, alone, &mut request);
            let status = ptr::without_provenance_mut(library.mpi.constants.status_ignore);
            code == 0 && (library.mpi.wait)(&mut request, status) == 0
        }
    }

    /// Whether the library doesn't mind that a type of this call is not committed. Open MPI minds
    /// in some collectives only; it is asked by a call without data on this process alone.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn overlooks_uncommitted(&self) -> bool {
        let library = &self.job.library;
        if library.family != AbiFamily::OpenMpi || self.arguments.reduction().is_some() {
            return false;
        }
        // SAFETY: `sides` relies on the application's arguments, which these are (contract of this function).
        let SignificantBuffers { send, receive } = unsafe { self.sides() };
        let nothing = |side: Option<SignificantBuffer>| {
            let datatype = side.map_or(library.mpi.constants.byte, |side| side.block.datatype);
            Block { buffer: ptr::null_mut(), count: 0, datatype }
        };
        let (send, receive) = (nothing(send), nothing(receive));
        let arguments = match &self.arguments {
            Arguments::Allgather { .. } => Arguments::Allgather { send, receive },
            Arguments::Alltoall { .. } => Arguments::Alltoall { send, receive },
            Arguments::Gather { .. } => Arguments::Gather { send, receive, root: 0 },
            Arguments::Scatter { .. } => Arguments::Scatter { send, receive, root: 0 },
            _ => return false,
        };
        // SAFETY: without elements no address is looked at.
        unsafe { self.job.library.mpi.call(&arguments, self.job.alone) == 0 }
    }

    /// Goes on with committed duplicates of its types.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn with_committed<T>(
        &self,
        go_on: impl FnOnce(&InterceptedCall) -> Option<T>,
    ) -> Option<T> {
        let (mut arguments, call) = (self.arguments, &self.job.library.mpi);
        let mut made: Vec<Handle> = Vec::new();
        // SAFETY: `sides` relies on the application's arguments, which these are (contract of this function).
        let SignificantBuffers { send, receive } = unsafe { self.sides() };
        let mut commit = |block: &mut Block, side: Option<SignificantBuffer>| {
            let mut duplicate: Handle = 0;
            // SAFETY: as above; a side that counts is described by a type.
            unsafe {
                if side.is_some()
                    && !self.is_named(block.datatype)
                    && (call.type_dup)(block.datatype, &mut duplicate) == 0
                {
                    made.push(duplicate);
                    if (call.type_commit)(&mut duplicate) == 0 {
                        block.datatype = duplicate;
                    }
                }
            }
        };
        match &mut arguments {
            Arguments::Allgather { send: from, receive: into }
            | Arguments::Alltoall { send: from, receive: into }
            | Arguments::Gather { send: from, receive: into, .. }
            | Arguments::Scatter { send: from, receive: into, .. } => {
                commit(from, send);
                commit(into, receive);
            }
            _ => {}
        }
        let outcome = go_on(&InterceptedCall { arguments, ..*self });
        for mut duplicate in made {
            // SAFETY: made above, and freed once.
            unsafe { (call.type_free)(&mut duplicate) };
        }
        outcome
    }

    /// Whether the library refuses the call by where its buffers begin, as libraries do before
    /// they send anything. What MPICH and those made of it compare is in their sources: the own
    /// block where both sides are described alike, counted in bytes of data; where data is
    /// combined both addresses, on every rank, whether it receives anything or not. Open MPI does
    /// so in two collectives.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn is_refused(&self) -> bool {
        let is_open_mpi = self.job.library.family == AbiFamily::OpenMpi;
        let is_one = match &self.arguments {
            Arguments::Allreduce { data, count } => {
                self.is_one_buffer(data) && (!is_open_mpi || *count > 1)
            }
            Arguments::Reduce { data, root, .. } => self.is_root(*root) && self.is_one_buffer(data),
            _ if is_open_mpi => false,
            Arguments::Scan { data, .. }
            | Arguments::Exscan { data, .. }
            | Arguments::ReduceScatter { data, .. }
            | Arguments::ReduceScatterBlock { data, .. } => self.is_one_buffer(data),
            Arguments::Alltoall { send, receive } => {
                self.are_alike(send, receive) && send.buffer == receive.buffer
            }
            Arguments::Allgather { send, receive } => self.is_block_of(receive, send),
            Arguments::Gather { send, receive, root } => {
                self.is_root(*root) && self.is_block_of(receive, send)
            }
            Arguments::Scatter { send, receive, root } => {
                self.is_root(*root) && self.is_block_of(send, receive)
            }
            _ => false,
        };
        // SAFETY: MPI is initialised: the call is on a communicator that was found, as none is otherwise.
        is_one && unsafe { self.are_checked() }
    }

    fn is_one_buffer(&self, data: &Reduction) -> bool {
        data.send == data.receive.cast_const() && !data.send.is_null()
    }

    fn are_alike(&self, one: &Block, other: &Block) -> bool {
        one.count == other.count && self.is_same_type(one.datatype, other.datatype)
    }

    fn is_block_of(&self, all: &Block, one: &Block) -> bool {
        let before = self.bytes.wrapping_mul(u64::from(self.place.rank.unsigned_abs()));
        all.buffer.wrapping_byte_add(before as usize) == one.buffer && self.are_alike(all, one)
    }

    /// Whether the library looks at arguments at all, which users may switch off.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn are_checked(&self) -> bool {
        static CHECKED: OnceLock<bool> = OnceLock::new();
        *CHECKED.get_or_init(|| {
            let library = &self.job.library;
            let mut byte = 0_u8;
            let both = ptr::from_mut(&mut byte).cast::<c_void>();
            let (datatype, operation) = (library.mpi.constants.byte, library.and);
            let data = Reduction { send: both, receive: both, datatype, operation };
            let arguments = Arguments::Reduce { data, count: 1, root: 0 };
            // SAFETY: one byte on a communicator of this process alone; refused or nothing moves.
            unsafe { library.mpi.call(&arguments, self.job.alone) != 0 }
        })
    }

    /// Whether elements of this type can be combined so: what is the same on all ranks.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn combines(&self, data: &Reduction) -> bool {
        let library = &self.job.library;
        let (datatype, operation) = (data.datatype, data.operation);
        let bits = library.handle_bits;
        if library.mpi.constants.arithmetic.is_defined(operation & bits, datatype & bits) {
            return true;
        }
        // SAFETY: both handles are of the application's arguments (contract of this function), and not null
        // where they are passed on.
        unsafe {
            operation & library.handle_bits != library.no_operation
                && datatype & library.handle_bits != library.no_type
                && self.is_defined(operation, datatype)
                && (self.is_named(datatype) || self.is_committed(datatype))
        }
    }

    /// Whether the operation is defined for the type. The library is asked once for each pair of
    /// its own: where they are combined piece by piece it would complain elsewhere than it does
    /// for the call. The application's operations are for what types it says.
    ///
    /// # Safety
    /// Both must be of the application's arguments (see [`carry_out`](super)), and not null.
    unsafe fn is_defined(&self, operation: Handle, datatype: Handle) -> bool {
        let library = &self.job.library;
        if !library.is_named_operation(operation) {
            return true;
        }
        // SAFETY: `datatype` is of the application's arguments (contract of this function), as `is_named`
        // wants.
        if !unsafe { self.is_named(datatype) } {
            return false;
        }
        let bits = library.handle_bits;
        let mut tried = lock(&self.job.tried);
        *tried.entry((operation & bits, datatype & bits)).or_insert_with(|| {
            // As much as the largest named type, a pair of a long double and an int, needs.
            let (from, mut into) = ([0_u128; 8], [0_u128; 8]);
            // SAFETY: room for one element; the communicator has this process alone, and the lock
            // lets one thread at a time use it so.
            let code = unsafe {
                let (from, into) = (from.as_ptr().cast(), into.as_mut_ptr().cast());
                let alone = self.job.alone;
                (library.mpi.allreduce)(from, into, 1, datatype, operation, alone)
            };
            code == 0
        })
    }
}
