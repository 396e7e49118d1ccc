//! What MPI has said of its own datatypes, to all threads of the process.
//!
//! MPI is asked four times for one type, which takes longer than the rest of what we do beside a short message. A
//! named type keeps its handle and its meaning for good. A derived one may be freed after the call, and its handle be
//! another's in the next, so that MPI is asked for it in every call.

use std::{ffi::c_int, sync::OnceLock};

use crate::{Handle, Mpi, Result, Session, error::check, layout::BufferLayout};

/// A datatype that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Type {
    pub layout: BufferLayout,
    /// Whether memory holds the very bytes of a message. A derived type without gaps may still name them in another
    /// order, so that of these none passes.
    pub is_plain: bool,
}

/// The named types that were asked for, each written once.
#[derive(Debug)]
pub(crate) struct NamedTypes {
    /// By what MPI says that a type is one of its own.
    combiner: c_int,
    known: [OnceLock<Type>; BUCKETS],
}

/// MPI has about a hundred types of its own. Of those that share a bucket MPI is asked for all but
/// one.
const BUCKETS: usize = 512;

/// A number by which handles are spread over a table: Open MPI's are addresses, MPICH's small
/// numbers, and both differ in the bits that this takes.
#[inline(always)]
pub fn spread(handle: Handle) -> usize {
    (handle >> 4 ^ handle).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50
}

impl NamedTypes {
    /// # Errors
    /// MPI refuses to tell.
    pub fn new(mpi: &Mpi) -> Result<Self> {
        let combiner = combiner(mpi, mpi.constants.byte)?;
        Ok(NamedTypes { combiner, known: [const { OnceLock::new() }; BUCKETS] })
    }

    #[inline(always)]
    fn bucket(&self, handle: Handle) -> &OnceLock<Type> {
        &self.known[spread(handle) % BUCKETS]
    }

    #[inline(always)]
    fn find(&self, handle: Handle) -> Option<&Type> {
        self.bucket(handle).get().filter(|known| known.layout.datatype == handle)
    }
}

impl Session {
    /// What MPI says of a datatype, which must be a live handle of the session's library.
    pub(crate) fn type_of(&self, datatype: Handle) -> Result<Type> {
        let handle = datatype & self.mpi.constants.handle_bits;
        if let Some(known) = self.types.find(handle) {
            return Ok(*known);
        }
        let layout = BufferLayout::from_datatype(&self.mpi, handle)?;
        let is_named = combiner(&self.mpi, handle)? == self.types.combiner;
        let made = Type { layout, is_plain: is_named && layout.is_dense() };
        if is_named {
            // Another may have its bucket.
            let _ = self.types.bucket(handle).set(made);
        }
        Ok(made)
    }

    /// The bytes of data in one element of a datatype, without a question to MPI; nothing for what has not been
    /// asked for, or can't be kept.
    #[inline(always)]
    pub fn known_type_bytes(&self, datatype: Handle) -> Option<u64> {
        let known = self.types.find(datatype & self.mpi.constants.handle_bits)?;
        Some(known.layout.size as u64)
    }

    /// The bytes of data in one element; nothing for what is no type.
    ///
    /// # Safety
    /// The handle must be what an application passed as a datatype: a live one, or one that the library
    /// refuses.
    #[inline(always)]
    pub unsafe fn type_bytes(&self, datatype: Handle) -> Option<u64> {
        // SAFETY: `datatype` is live or the library refuses it (contract of this function), as `ask` wants.
        self.known_type_bytes(datatype).or_else(|| unsafe { self.ask_type_bytes(datatype) })
    }

    /// # Safety
    /// As [`Session::type_bytes`].
    #[cold]
    #[inline(never)]
    unsafe fn ask_type_bytes(&self, datatype: Handle) -> Option<u64> {
        let handle = datatype & self.mpi.constants.handle_bits;
        if handle == self.mpi.constants.no_type {
            return None;
        }
        let mut bytes = 0_i64;
        // SAFETY: `handle` is of a live datatype or the library refuses it (contract of this function); the
        // output is a local.
        if unsafe { (self.mpi.type_size_x)(handle, &mut bytes) } != 0 {
            return None;
        }
        // SAFETY: as above.
        if self.types.bucket(handle).get().is_none() && unsafe { self.is_named_type(handle) } {
            let _ = self.type_of(handle);
        }
        u64::try_from(bytes).ok()
    }

    /// Whether a datatype is one of MPI's own.
    ///
    /// # Safety
    /// As [`Session::type_bytes`].
    #[inline(always)]
    pub unsafe fn is_named_type(&self, datatype: Handle) -> bool {
        let handle = datatype & self.mpi.constants.handle_bits;
        // Asked of no type, the library would call the error handler of MPI_COMM_WORLD.
        self.types.find(handle).is_some()
            || (handle != self.mpi.constants.no_type
                && combiner(&self.mpi, handle) == Ok(self.types.combiner))
    }
}

/// By what a type was made, which must be live or refused by the library: all of MPI's named types have the same
/// combiner.
fn combiner(mpi: &Mpi, datatype: Handle) -> Result<c_int> {
    let mut combiner = 0;
    // SAFETY: `datatype` is live or refused (see above): callers have it from a call's arguments, whose contract
    // says so, or from the table. Outputs are locals.
    let (function, code) = unsafe {
        if let Some(type_get_envelope_c) = mpi.type_get_envelope_c {
            let (mut integers, mut addresses, mut counts, mut types) = (0, 0, 0, 0);
            let code = type_get_envelope_c(
                datatype,
                &mut integers,
                &mut addresses,
                &mut counts,
                &mut types,
                &mut combiner,
            );
            ("MPI_Type_get_envelope_c", code)
        } else {
            let (mut integers, mut addresses, mut types) = (0, 0, 0);
            let code = (mpi.type_get_envelope)(
                datatype,
                &mut integers,
                &mut addresses,
                &mut types,
                &mut combiner,
            );
            ("MPI_Type_get_envelope", code)
        }
    };
    check(function, code)?;
    Ok(combiner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn only_named_types_are_kept() {
        let session = Session::open(fake::table()).unwrap();
        assert_eq!(session.known_type_bytes(fake::BYTE), None);
        assert!(session.type_of(fake::BYTE).unwrap().is_plain);
        assert_eq!(session.known_type_bytes(fake::BYTE), Some(1));
        assert!(!session.type_of(fake::SPREAD).unwrap().is_plain);
        assert_eq!(session.known_type_bytes(fake::SPREAD), None);
        // SAFETY: both are the fake library's.
        let (bytes, named) = unsafe {
            let named = [fake::BYTE, fake::SPREAD].map(|datatype| session.is_named_type(datatype));
            (session.type_bytes(fake::SPREAD), named)
        };
        assert_eq!((bytes, named), (Some(2), [true, false]));
    }

    /// Asked by the function for small counts, a library refuses them, and ends the program where errors are fatal.
    #[test]
    fn a_type_made_with_large_counts_is_asked_for_as_one() {
        let mpi = fake::table();
        let [named, large] = [fake::BYTE, fake::LARGE].map(|datatype| combiner(&mpi, datatype));
        assert!(named.is_ok() && large.is_ok() && named != large);
        let older = Mpi { type_get_envelope_c: None, ..mpi };
        assert_eq!(combiner(&older, fake::BYTE), named);
        assert!(combiner(&older, fake::LARGE).is_err());
    }
}
