//! Memory of ours in which a call receives in place of the application's.

use std::{ffi::c_void, ptr};

use crate::{
    Error, Handle, Mpi, Result, Session, SignificantSide, agreed::non_negative,
    layout::BufferLayout, message::copy, packing::Packing, scratch::ScratchMemory, types::Type,
};

/// Where one rank receives in one call, if it must not touch the application's memory while the
/// call is under way: because it sends from there, too, or because it is given no place. It holds zeros at
/// first.
#[derive(Debug)]
pub struct SubstituteBuffer {
    memory: ScratchMemory,
    /// Where element 0 lies, from the beginning of the memory.
    base: isize,
    /// Elements of data that is combined; nothing where it is moved, as bytes.
    elements: Option<BufferLayout>,
}

impl SubstituteBuffer {
    /// For data that is moved, of so many bytes.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn of_bytes(bytes: u64) -> Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| Error::Memory(usize::MAX))?;
        Ok(SubstituteBuffer { memory: ScratchMemory::zeros(bytes)?, base: 0, elements: None })
    }

    /// For data that is combined: `count` elements of a datatype as they lie in memory.
    ///
    /// # Safety
    /// The datatype must be a live one of the session's library.
    ///
    /// # Errors
    /// There is no such memory, or MPI refuses to tell how the elements lie.
    pub unsafe fn of_elements(session: &Session, datatype: Handle, count: u64) -> Result<Self> {
        let layout = session.type_of(datatype)?.layout;
        let (base, bytes) = layout.placement(count)?;
        Ok(SubstituteBuffer { memory: ScratchMemory::zeros(bytes)?, base, elements: Some(layout) })
    }

    /// The address of element 0.
    pub fn address(&mut self) -> *mut c_void {
        // What has been reserved is there.
        let beginning = self.memory.reserve(0).unwrap_or(ptr::null_mut());
        beginning.wrapping_offset(self.base).cast()
    }

    /// Copies what was received to where the application wants it.
    ///
    /// # Safety
    /// A call on `comm`, which must be live, must have been carried out with this as its receive buffer. `into`
    /// must be all that the application receives in it, valid for writes, of a datatype that is committed, in
    /// blocks that follow each other; an array of counts must have an entry for each rank.
    ///
    /// # Errors
    /// MPI refuses to copy.
    pub unsafe fn deliver(
        &mut self,
        session: &Session,
        into: &SignificantSide,
        comm: Handle,
    ) -> Result<()> {
        let mpi: &Mpi = &session.mpi;
        // SAFETY: there is an entry for each rank (contract of this function).
        let count = non_negative(unsafe { into.elements() })?;
        let into = &into.side;
        let (from, user) = (self.address().cast::<u8>().cast_const(), into.address.cast::<u8>());
        let longest = i32::MAX;
        // SAFETY: `comm` has its duplicate since the call that was carried out on it; our memory holds the
        // elements (bytes) of `into`, which is valid for them (contract of this function).
        unsafe {
            let ours = session.duplicate(comm, session.member(comm)?)?;
            if let Some(layout) = &self.elements {
                return copy(mpi, &ours, layout, longest, (from, user), count);
            }
            let Type { layout, is_plain } = session.type_of(into.datatype)?;
            if is_plain {
                from.copy_to_nonoverlapping(user, count as usize * layout.size);
                return Ok(());
            }
            Packing { mpi, comm: ours.comm, layout, longest }.unpack(from, user, count)
        }
    }

    /// After a failed call, whose messages may still be under way: the memory stays where it is.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}
