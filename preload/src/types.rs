//! The sizes of datatypes. Those of MPI's own never change, so that a call with one needs no
//! question to MPI after the first.

use std::{
    ffi::c_int,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use runner::Handle;

use crate::{library::LoadedLibrary, lock::lock};

/// What is known of datatypes.
pub struct DatatypeFacts {
    /// By what MPI says that a type is one of its own.
    named: c_int,
    known: [Known; SLOTS],
    /// One writer at a time.
    writing: Mutex<()>,
}

/// A type of MPI's own, written once. The handle is written last, so that who reads it may read
/// the size.
struct Known {
    /// The handle; 0 in an empty slot.
    handle: AtomicUsize,
    bytes: AtomicU64,
}

/// MPI has about a hundred types of its own. Of those that share a slot MPI is asked for all but
/// one.
const SLOTS: usize = 512;

impl DatatypeFacts {
    /// # Errors
    /// The code of the library, which refuses to tell.
    ///
    /// # Safety
    /// MPI must be initialised.
    pub unsafe fn new(library: &LoadedLibrary) -> Result<Self, c_int> {
        // SAFETY: MPI is initialised (contract of this function), and `byte` is the library's own datatype.
        let named = unsafe { combiner(library, library.mpi.constants.byte)? };
        let empty = || Known { handle: AtomicUsize::new(0), bytes: AtomicU64::new(0) };
        let known = std::array::from_fn(|_| empty());
        Ok(DatatypeFacts { named, known, writing: Mutex::default() })
    }

    /// The bytes of data in one element; nothing for what is no type.
    ///
    /// # Safety
    /// The handle must be what an application passed as a datatype: a live one, or one that the library
    /// refuses.
    #[inline(always)]
    pub unsafe fn bytes(&self, library: &LoadedLibrary, datatype: Handle) -> Option<u64> {
        // SAFETY: `datatype` is live or the library refuses it (contract of this function), as `ask` wants.
        self.known(library, datatype)
            .or_else(|| unsafe { self.ask(library, datatype & library.handle_bits) })
    }

    /// The same without a question to MPI; nothing for what has not been asked for, or can't be kept.
    #[inline(always)]
    pub fn known(&self, library: &LoadedLibrary, datatype: Handle) -> Option<u64> {
        let handle = datatype & library.handle_bits;
        let known = &self.known[spread(handle) % SLOTS];
        let is_it = known.handle.load(Ordering::Acquire) == handle;
        is_it.then(|| known.bytes.load(Ordering::Relaxed))
    }

    /// # Safety
    /// As [`DatatypeFacts::bytes`].
    #[cold]
    #[inline(never)]
    unsafe fn ask(&self, library: &LoadedLibrary, handle: Handle) -> Option<u64> {
        if handle == library.no_type {
            return None;
        }
        let mut bytes = 0_i64;
        // SAFETY: `handle` is of a live datatype or the library refuses it (contract of this function); the
        // output is a local.
        if unsafe { (library.mpi.type_size_x)(handle, &mut bytes) } != 0 {
            return None;
        }
        let bytes = u64::try_from(bytes).ok()?;
        let known = &self.known[spread(handle) % SLOTS];
        // SAFETY: as above.
        if known.handle.load(Ordering::Relaxed) == 0 && unsafe { self.is_named(library, handle) } {
            let _writing = lock(&self.writing);
            if known.handle.load(Ordering::Relaxed) == 0 {
                known.bytes.store(bytes, Ordering::Relaxed);
                known.handle.store(handle, Ordering::Release);
            }
        }
        Some(bytes)
    }

    /// Whether the type is one of MPI's own.
    ///
    /// # Safety
    /// As [`DatatypeFacts::bytes`].
    #[inline(always)]
    pub unsafe fn is_named(&self, library: &LoadedLibrary, datatype: Handle) -> bool {
        let handle = datatype & library.handle_bits;
        // Only those are known whose size is.
        if self.known[spread(handle) % SLOTS].handle.load(Ordering::Acquire) == handle {
            return true;
        }
        // SAFETY: `datatype` is live or the library refuses it (contract of this function), as `combiner`
        // wants.
        unsafe { combiner(library, datatype) == Ok(self.named) }
    }
}

/// A number by which handles are spread over a table: Open MPI's are addresses, MPICH's small
/// numbers, and both differ in the bits that this takes.
#[inline(always)]
pub fn spread(handle: Handle) -> usize {
    (handle >> 4 ^ handle).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50
}

/// How a type was made, or the code of the library.
///
/// # Safety
/// The datatype must be a live one, or one that the library refuses.
unsafe fn combiner(library: &LoadedLibrary, datatype: Handle) -> Result<c_int, c_int> {
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    let envelope = library.mpi.type_get_envelope;
    // SAFETY: `datatype` is live or the library refuses it (contract of this function); outputs are locals.
    let code =
        unsafe { envelope(datatype, &mut integers, &mut addresses, &mut types, &mut combiner) };
    if code == 0 { Ok(combiner) } else { Err(code) }
}
