use std::ffi::c_int;

/// Why a collective was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A function of MPI failed, the first one if it was several: this rank's other messages went out
    /// nevertheless. `code` is for `MPI_Comm_call_errhandler` on the application's communicator.
    #[error("{call} failed with error code {code}")]
    Mpi {
        /// The function that failed.
        call: &'static str,
        /// What it returned.
        code: c_int,
    },
    /// The method cannot carry out the call, and so on every rank; nothing has been sent. A
    /// library that stands in for MPI hands the call on to MPI.
    #[error("{0}")]
    Refused(String),
    /// This rank's arguments are wrong by MPI's own rules; nothing has been sent. A library that
    /// stands in for MPI hands the call on to MPI, which says in its own way what is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The MPI library packs data as other than its bytes, though it had not when that was tried.
    #[error("the MPI library packs {bytes} bytes of data as {end}")]
    Packing {
        /// What was to be packed.
        bytes: c_int,
        /// What it was packed as.
        end: c_int,
    },
    /// Another process of this node, with which memory is shared, is no more.
    #[error("process {0} of this node has ended, with which this rank shares memory")]
    Peer(i32),
    /// This rank has no memory for the call; nothing has been sent, but the other ranks may wait.
    #[error("no memory for {0} bytes of scratch")]
    Memory(usize),
}

/// A result with this package's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Turns what an MPI function returned into a result; `MPI_SUCCESS` is 0 by the standard.
#[inline]
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Mpi { call, code }) }
}
