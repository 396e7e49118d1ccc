//! What becomes of a call by what one rank sees of its buffers and types.
//!
//! What is wrong by MPI's rules is the library's to refuse, in its own words and without a message: on a
//! rank that is refused the call did not happen. Others may not see it. What they then do is what they do in
//! the library: where they need this rank they wait until it has repeated the call rightly, and what they
//! have sent is there for it.

use std::{ffi::c_void, ptr, sync::OnceLock};

use records::{BufferContent, Collective};
use runner::{AbiFamily, Arguments, Counts, Handle, Side, SignificantSide, SignificantSides};

use super::{
    call::InterceptedCall,
    sides::{are_far, are_usual_buffers, has_both_sides, is_one_buffer},
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
            if self.arguments.collective.combines() && !self.combines() {
                return Judgement::Library;
            }
            if self.is_plain() {
                return Judgement::Sound;
            }
            let SignificantSides { send, receive, .. } = self.significant();
            let of = |given: &Option<SignificantSide>| {
                given.as_ref().map_or(Described::Well, |given| self.described(given))
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
    pub(super) unsafe fn is_plain(&self) -> bool {
        let SignificantSides { send, receive, .. } = self.significant();
        // SAFETY: `datatype` is of the application's arguments (contract of this function).
        let fits = |given: &SignificantSide| unsafe {
            !is_negative(given.side.counts) && self.is_named(given.side.datatype)
        };
        let in_place = self.job.library.constants.in_place;
        let ranks = (self.place.rank, self.place.tables.procs);
        send.as_ref().is_none_or(fits)
            && receive.as_ref().is_none_or(fits)
            && are_usual_buffers(&self.arguments, ranks, in_place, |one, other| {
                are_far(one, other, ranks.1, self.bytes)
            })
    }

    /// A count that can be, a committed type, and an address where the type has none of its own.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn described(&self, given: &SignificantSide) -> Described {
        let library = &self.job.library;
        let Side { address, counts, datatype } = given.side;
        if is_negative(counts)
            || self.is_in_place(address)
            || datatype & library.constants.handle_bits == library.constants.no_type
        {
            return Described::Wrongly;
        }
        // SAFETY: the datatype is of the application's arguments (contract of this function), and not null; an
        // array has an entry for each rank.
        unsafe {
            match self.is_named(datatype) {
                true if !address.is_null() || given.elements() == 0 => Described::Well,
                // Open MPI does not look at addresses, and crashes.
                true if library.constants.family == AbiFamily::OpenMpi => Described::Well,
                true => Described::Wrongly,
                // Of what is combined that is known by now.
                false if self.arguments.collective.combines() => Described::Well,
                false if self.is_committed(datatype) => Described::Well,
                false => Described::ByUncommitted,
            }
        }
    }

    /// # Safety
    /// The datatype must be of the application's arguments (see [`carry_out`](super)).
    pub(super) unsafe fn is_named(&self, datatype: Handle) -> bool {
        // SAFETY: `datatype` is live or the library refuses it (contract of this function), as
        // `is_named_type` wants.
        unsafe { self.job.session.is_named_type(datatype) }
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
            let code = (library.isend)(
                nowhere,
                1,
                datatype,
                library.constants.no_rank,
                0,
                alone,
                &mut request,
            );
            let status = ptr::without_provenance_mut(library.constants.status_ignore);
            code == 0 && (library.wait)(&mut request, status) == 0
        }
    }

    /// Whether the library doesn't mind that a type of this call is not committed. Open MPI minds
    /// in some collectives only; it is asked by a call without data on this process alone.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn overlooks_uncommitted(&self) -> bool {
        let (library, collective) = (&self.job.library, self.arguments.collective);
        let has_two_sides = collective.sends() != BufferContent::Nothing;
        if library.constants.family != AbiFamily::OpenMpi || collective.combines() || !has_two_sides
        {
            return false;
        }
        let SignificantSides { send, receive, .. } = self.significant();
        let nothing = |given: Option<SignificantSide>| {
            let datatype = given.map_or(library.constants.byte, |given| given.side.datatype);
            Side::uniform(ptr::null_mut(), 0, datatype)
        };
        let arguments = Arguments::moving(collective, nothing(send), nothing(receive), 0);
        let _others_wait = lock(&self.job.tried);
        // SAFETY: without elements no address is looked at.
        unsafe { library.call(&arguments, self.job.alone) == 0 }
    }

    /// Goes on with committed duplicates of its types; nothing where MPI makes none.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn with_committed<T>(
        &self,
        go_on: impl FnOnce(&InterceptedCall) -> Option<T>,
    ) -> Option<T> {
        let (mut arguments, call) = (self.arguments, self.job.library);
        let (mut made, mut is_lacking): (Vec<Handle>, bool) = (Vec::new(), false);
        let SignificantSides { send, receive, .. } = self.significant();
        let mut commit = |side: &mut Side, given: Option<SignificantSide>| {
            let mut duplicate: Handle = 0;
            // SAFETY: a side that is significant is described by a type of the application's arguments.
            unsafe {
                if given.is_none() || self.is_named(side.datatype) {
                    return;
                }
                if (call.type_dup)(side.datatype, &mut duplicate) != 0 {
                    is_lacking = true;
                    return;
                }
                made.push(duplicate);
                is_lacking |= (call.type_commit)(&mut duplicate) != 0;
                side.datatype = duplicate;
            }
        };
        commit(&mut arguments.send, send);
        commit(&mut arguments.receive, receive);
        let outcome = match is_lacking {
            true => None,
            false => go_on(&InterceptedCall { arguments, ..*self }),
        };
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
        let is_open_mpi = self.job.library.constants.family == AbiFamily::OpenMpi;
        let Arguments { collective, send, receive, .. } = &self.arguments;
        let is_one_buffer = is_one_buffer(&self.arguments, self.place.rank);
        let is_one = match collective {
            Collective::Allreduce if is_open_mpi => {
                is_one_buffer && !matches!(send.counts, Counts::Uniform(..=1))
            }
            Collective::Reduce => is_one_buffer,
            _ if is_open_mpi || !has_both_sides(&self.arguments, self.place.rank) => false,
            _ if collective.combines() => is_one_buffer,
            _ => match self.own_and_all() {
                Some((own, all)) => self.is_block_of(all, own),
                // Of an alltoall; a broadcast has but one buffer.
                None => self.are_alike(send, receive) && send.address == receive.address,
            },
        };
        // SAFETY: MPI is initialised: the call is on a communicator that was found, as none is otherwise.
        is_one && unsafe { self.are_checked() }
    }

    fn is_block_of(&self, all: &Side, one: &Side) -> bool {
        let before = self.bytes.wrapping_mul(u64::from(self.place.rank));
        all.address.wrapping_byte_add(before as usize) == one.address && self.are_alike(all, one)
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
            let (datatype, operation) = (library.constants.byte, library.constants.bitwise_and);
            let arguments = Arguments::combining(
                Collective::Reduce,
                both,
                both,
                Counts::Uniform(1),
                datatype,
                operation,
                0,
            );
            let _others_wait = lock(&self.job.tried);
            // SAFETY: one byte on a communicator of this process alone; refused or nothing moves.
            unsafe { library.call(&arguments, self.job.alone) != 0 }
        })
    }

    /// Whether elements of this type can be combined so: what is the same on all ranks.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn combines(&self) -> bool {
        let library = &self.job.library;
        let (datatype, operation) = (self.arguments.send.datatype, self.arguments.operation);
        let bits = library.constants.handle_bits;
        if library.constants.arithmetic.is_defined(operation & bits, datatype & bits) {
            return true;
        }
        // SAFETY: both handles are of the application's arguments (contract of this function), and not null
        // where they are passed on.
        unsafe {
            operation & library.constants.handle_bits != library.constants.no_operation
                && datatype & library.constants.handle_bits != library.constants.no_type
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
        if !library.constants.is_named_operation(operation) {
            return true;
        }
        // SAFETY: `datatype` is of the application's arguments (contract of this function), as `is_named`
        // wants.
        if !unsafe { self.is_named(datatype) } {
            return false;
        }
        let bits = library.constants.handle_bits;
        let mut tried = lock(&self.job.tried);
        *tried.entry((operation & bits, datatype & bits)).or_insert_with(|| {
            // As much as the largest named type, a pair of a long double and an int, needs.
            let (from, mut into) = ([0_u128; 8], [0_u128; 8]);
            // SAFETY: room for one element; the communicator has this process alone, and the lock
            // lets one thread at a time use it so.
            let code = unsafe {
                let (from, into) = (from.as_ptr().cast(), into.as_mut_ptr().cast());
                let alone = self.job.alone;
                (library.allreduce)(from, into, 1, datatype, operation, alone)
            };
            code == 0
        })
    }
}

/// Whether a count can't be; counts of each rank are known to be none by the message size.
#[inline(always)]
fn is_negative(counts: Counts) -> bool {
    matches!(counts, Counts::Uniform(..0))
}
