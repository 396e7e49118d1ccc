//! A communicator by the runner's table: in programs that link MPI, and in those whose MPI library is
//! found at run time.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use runner::{Handle, Mpi};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    peers::{Peers, Tag},
};

/// The ranks of an application's communicator, on one of our own that is freed with this.
#[derive(Debug)]
pub struct TableCommunicator {
    mpi: Mpi,
    comm: Handle,
    rank: u32,
    size: u32,
}

fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(runner::Error::Mpi { call, code }.into()) }
}

fn count(bytes: usize) -> Result<c_int> {
    let most = c_int::MAX;
    c_int::try_from(bytes).map_err(|_| {
        Error::Refused(format!("a message of {bytes} bytes; one message has at most {most}"))
    })
}

impl TableCommunicator {
    /// Of the same ranks as `of`, all of which must call this.
    ///
    /// # Safety
    /// `of` must be a communicator of the table's library, which must be initialised.
    ///
    /// # Errors
    /// The library refuses.
    pub unsafe fn new(mpi: &Mpi, of: Handle) -> Result<Self> {
        // SAFETY: `of` is a communicator of the initialised library (contract of this function), which is what
        // `split` relies on.
        unsafe { Self::split(mpi, of, 0) }
    }

    /// Of the ranks that give the same number; all ranks of `of` must call this.
    ///
    /// # Safety
    /// As [`TableCommunicator::new`].
    ///
    /// # Errors
    /// The library refuses; it is an inter-communicator.
    pub unsafe fn split(mpi: &Mpi, of: Handle, colour: u32) -> Result<Self> {
        let (mut comm, mut is_inter): (Handle, c_int) = (0, 0);
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: `of` is a communicator of the initialised library, and all its ranks are here (contract of
        // this function); outputs are locals.
        unsafe {
            check("MPI_Comm_test_inter", (mpi.comm_test_inter)(of, &mut is_inter))?;
            if is_inter != 0 {
                let problem = "the communicator is an inter-communicator";
                return Err(Error::Refused(problem.into()));
            }
            check("MPI_Comm_rank", (mpi.comm_rank)(of, &mut rank))?;
            check("MPI_Comm_split", (mpi.comm_split)(of, colour as c_int, rank, &mut comm))?;
            let code = (mpi.comm_set_errhandler)(comm, mpi.constants.errors_return);
            check("MPI_Comm_set_errhandler", code)?;
            check("MPI_Comm_rank", (mpi.comm_rank)(comm, &mut rank))?;
            check("MPI_Comm_size", (mpi.comm_size)(comm, &mut size))?;
        }
        Ok(TableCommunicator { mpi: *mpi, comm, rank: rank as u32, size: size as u32 })
    }

    /// MPI's handle.
    pub fn handle(&self) -> Handle {
        self.comm
    }

    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// Rank 0's value on every rank, all of which must call this.
    ///
    /// # Errors
    /// The library refuses.
    pub fn agree<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T> {
        if self.rank > 0 {
            return self.receive_value(0, Tag::Command);
        }
        (1..self.size).try_for_each(|rank| self.send_value(&value, rank, Tag::Command))?;
        Ok(value)
    }

    /// Every rank's value, at rank 0; elsewhere nothing. All ranks must call this.
    ///
    /// # Errors
    /// The library refuses.
    pub fn collect<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<Vec<T>> {
        if self.rank > 0 {
            self.send_value(&value, 0, Tag::Report)?;
            return Ok(Vec::new());
        }
        let others = (1..self.size).map(|rank| self.receive_value(rank, Tag::Report));
        std::iter::once(Ok(value)).chain(others).collect()
    }

    /// The first rank's failure on every rank, all of which must call this; so that none goes on alone.
    ///
    /// # Errors
    /// Something is wrong on some rank; the library refuses.
    pub fn all_well(&self, own: Result<()>) -> Result<()> {
        let failures = self.collect(own.err().map(|error| error.to_string()))?;
        match self.agree(failures.into_iter().flatten().next())? {
            Some(problem) => Err(Error::WrongResult(problem)),
            None => Ok(()),
        }
    }
}

impl Drop for TableCommunicator {
    fn drop(&mut self) {
        // SAFETY: nothing of ours is under way on it. A library that refuses has reported it before.
        unsafe { (self.mpi.comm_free)(&mut self.comm) };
    }
}

impl Peers for TableCommunicator {
    type Error = Error;

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn send(&self, bytes: &[u8], to: u32, tag: Tag) -> Result<()> {
        let (length, byte) = (count(bytes.len())?, self.mpi.constants.byte);
        let buffer = bytes.as_ptr().cast();
        // SAFETY: the buffer holds `length` bytes and is not changed during the call.
        let code =
            unsafe { (self.mpi.send)(buffer, length, byte, to as c_int, tag as c_int, self.comm) };
        check("MPI_Send", code)
    }

    #[inline]
    fn receive(&self, buffer: &mut [u8], from: u32, tag: Tag) -> Result<()> {
        let (length, constants) = (count(buffer.len())?, &self.mpi.constants);
        let (into, ignore) = (buffer.as_mut_ptr().cast(), constants.status_ignore as *mut c_void);
        let (from, tag) = (from as c_int, tag as c_int);
        // SAFETY: the buffer has room for `length` bytes and is borrowed for the call.
        let code =
            unsafe { (self.mpi.recv)(into, length, constants.byte, from, tag, self.comm, ignore) };
        check("MPI_Recv", code)
    }

    #[inline]
    fn exchange_signals(&self, to: u32, from: u32) -> Result<()> {
        let (constants, tag) = (&self.mpi.constants, Tag::Signal as c_int);
        let (byte, ignore) = (constants.byte, constants.status_ignore as *mut c_void);
        let (to, from, call) = (to as c_int, from as c_int, self.mpi.sendrecv);
        // SAFETY: empty messages touch no buffer.
        let code = unsafe {
            let (none, into) = (ptr::null(), ptr::null_mut());
            call(none, 0, byte, to, tag, into, 0, byte, from, tag, self.comm, ignore)
        };
        check("MPI_Sendrecv", code)
    }

    fn send_value<T: Serialize>(&self, value: &T, to: u32, tag: Tag) -> Result<()> {
        let text = serde_json::to_vec(value)?;
        self.send(&(text.len() as u64).to_le_bytes(), to, tag)?;
        self.send(&text, to, tag)
    }

    fn receive_value<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T> {
        let mut length = [0; 8];
        self.receive(&mut length, from, tag)?;
        let mut text = vec![0; u64::from_le_bytes(length) as usize];
        self.receive(&mut text, from, tag)?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn wait_for<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T> {
        self.receive_value(from, tag)
    }
}
