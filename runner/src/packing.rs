//! Between an application's elements and the bytes of a message.

use std::ffi::{c_int, c_void};

use crate::{
    Error, Handle, Mpi, Result,
    error::check,
    layout::BufferLayout,
    message::{Content, pieces},
    tags::TAG_SELF,
};

/// Packs and unpacks elements of one type.
///
/// The packed form is the plain bytes of the data, which the session has made sure of: messages
/// are cut where no element ends, and ranks may name the same data by different types.
pub(crate) struct Packing<'a> {
    pub mpi: &'a Mpi,
    pub comm: Handle,
    pub layout: BufferLayout,
    pub longest: c_int,
}

impl Packing<'_> {
    /// # Safety
    /// `user` must be valid for reads of `count` elements, `message` for writes of their bytes; datatype and
    /// communicator must be live.
    pub unsafe fn pack(&self, user: *const u8, message: *mut u8, count: u64) -> Result<()> {
        let Some(most) = self.elements_per_call(user) else {
            // SAFETY: `user` holds `count` elements, and `message` has room for their bytes (contract of this
            // function).
            return unsafe { self.carry(user, message, count, true) };
        };
        let BufferLayout { datatype, size, .. } = self.layout;
        for (start, length) in pieces(count, most) {
            let from = user.wrapping_offset(self.layout.offset(start)).cast();
            let into = message.wrapping_add(start as usize * size).cast();
            let (room, mut end) = (length * size as c_int, 0);
            // SAFETY: `from` holds `length` of the elements, and `into` has room for their `room` bytes
            // (contract of this function).
            let code =
                unsafe { (self.mpi.pack)(from, length, datatype, into, room, &mut end, self.comm) };
            check("MPI_Pack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }

    /// # Safety
    /// `message` must be valid for reads of the bytes of `count` elements, `user` for writes of these; datatype
    /// and communicator must be live.
    pub unsafe fn unpack(&self, message: *const u8, user: *mut u8, count: u64) -> Result<()> {
        let Some(most) = self.elements_per_call(user) else {
            // SAFETY: `message` holds the bytes of `count` elements, and `user` has room for these (contract of
            // this function).
            return unsafe { self.carry(user, message.cast_mut(), count, false) };
        };
        let BufferLayout { datatype, size, .. } = self.layout;
        for (start, length) in pieces(count, most) {
            let from = message.wrapping_add(start as usize * size).cast();
            let into = user.wrapping_offset(self.layout.offset(start)).cast();
            let (room, mut end) = (length * size as c_int, 0);
            // SAFETY: `from` holds the `room` bytes of `length` of the elements, and `into` has room for these
            // (contract of this function).
            let code = unsafe {
                (self.mpi.unpack)(from, room, &mut end, into, length, datatype, self.comm)
            };
            check("MPI_Unpack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }

    /// What one call can take, whose sizes are ints; nothing where that is no element at all, and
    /// for `MPI_BOTTOM`, which MPICH's `MPI_Pack` takes for a missing address.
    fn elements_per_call(&self, user: *const u8) -> Option<c_int> {
        let size = c_int::try_from(self.layout.size).ok()?;
        (size <= self.longest && !user.is_null()).then(|| self.longest / size)
    }

    /// Packs or unpacks by a message to itself, with `MPI_PACKED`, which matches every type, on the
    /// other side.
    ///
    /// # Safety
    /// `user` must hold or have room for `count` elements, `message` for their bytes; datatype and communicator
    /// must be live.
    unsafe fn carry(
        &self,
        user: *const u8,
        message: *mut u8,
        count: u64,
        packs: bool,
    ) -> Result<()> {
        let mut own = 0;
        // SAFETY: the communicator is ours.
        check("MPI_Comm_rank", unsafe { (self.mpi.comm_rank)(self.comm, &mut own) })?;
        let packed =
            BufferLayout { datatype: self.mpi.constants.packed, ..BufferLayout::bytes(self.mpi) };
        let bytes = count * self.layout.size as u64;
        let packed = Content::new(self.mpi, &packed, bytes, self.longest)?;
        let elements = Content::new(self.mpi, &self.layout, count, self.longest)?;
        let user: (*mut c_void, _) = (user.cast_mut().cast(), &elements);
        let message: (*mut c_void, _) = (message.cast(), &packed);
        let (from, into) = if packs { (user, message) } else { (message, user) };
        // SAFETY: `user` and `message` are valid for what their contents say (contract of this function); no
        // other message on our communicator has this tag.
        let code = unsafe {
            (self.mpi.sendrecv)(
                from.0,
                from.1.count,
                from.1.datatype,
                own,
                TAG_SELF,
                into.0,
                into.1.count,
                into.1.datatype,
                own,
                TAG_SELF,
                self.comm,
                self.mpi.constants.status_ignore as *mut _,
            )
        };
        check("MPI_Sendrecv", code)
    }
}

/// The session has tried it, so that this does not happen; better an error than wrong data.
fn all_bytes(end: c_int, room: c_int) -> Result<()> {
    if end == room { Ok(()) } else { Err(Error::Packing { bytes: room, end }) }
}
