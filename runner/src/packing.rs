//! Packing, where a message is bytes and the application's elements are not.

use std::ffi::c_int;

use crate::{Error, Handle, Mpi, Result, error::check, layout::Layout, message::pieces};

/// Between the application's elements and the bytes of a message.
pub(crate) struct Packing<'a> {
    pub mpi: &'a Mpi,
    pub comm: Handle,
    pub layout: Layout,
    /// Elements of a message, at most; its bytes, too, are given to one call as an int.
    pub longest: c_int,
}

impl Packing<'_> {
    /// First element and number of elements of what one call of `MPI_Pack` can take.
    fn pieces(&self, count: u64) -> Result<impl Iterator<Item = (u64, c_int)> + use<>> {
        match c_int::try_from(self.layout.size) {
            Ok(size) => Ok(pieces(count, (self.longest / size).max(1))),
            Err(_) => {
                let size = self.layout.size;
                Err(Error::Refused(format!("a datatype of {size} bytes cannot be packed")))
            }
        }
    }

    /// # Safety
    /// `user` must hold `count` elements, `message` have room for their bytes.
    pub unsafe fn pack(&self, user: *const u8, message: *mut u8, count: u64) -> Result<()> {
        for (start, length) in self.pieces(count)? {
            let from = user.wrapping_offset(self.layout.offset(start));
            let into = message.wrapping_add(start as usize * self.layout.size);
            let room = length * self.layout.size as c_int;
            let mut end = 0;
            // SAFETY: the caller vouches for both buffers.
            let code = unsafe {
                let datatype = self.layout.datatype;
                let into = into.cast();
                (self.mpi.pack)(from.cast(), length, datatype, into, room, &mut end, self.comm)
            };
            check("MPI_Pack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`Packing::pack`].
    pub unsafe fn unpack(&self, message: *const u8, user: *mut u8, count: u64) -> Result<()> {
        for (start, length) in self.pieces(count)? {
            let from = message.wrapping_add(start as usize * self.layout.size);
            let into = user.wrapping_offset(self.layout.offset(start));
            let room = length * self.layout.size as c_int;
            let mut end = 0;
            // SAFETY: the caller vouches for both buffers.
            let code = unsafe {
                let datatype = self.layout.datatype;
                let into = into.cast();
                (self.mpi.unpack)(from.cast(), room, &mut end, into, length, datatype, self.comm)
            };
            check("MPI_Unpack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }
}

/// A library that packs anything but the plain bytes can't be served: they are sent as bytes.
fn all_bytes(end: c_int, room: c_int) -> Result<()> {
    if end == room {
        return Ok(());
    }
    Err(Error::Refused(format!("the MPI library packs {room} bytes of data as {end}")))
}
