//! The runner's table, filled with the MPI library that this program links.

use std::ffi::{CStr, c_void};

use mpi::ffi;
use runner::{Constants, Handle, Mpi, Session};

use crate::{Error, Result};

macro_rules! linked {
    ($name:ident: $($function:ident)*) => {
        match $name.to_str() {
            $(Ok(stringify!($function)) => ffi::$function as *const c_void,)*
            _ => std::ptr::null(),
        }
    };
}

/// The functions that the runner asks for.
fn linked(name: &CStr) -> *const c_void {
    linked!(name:
        MPI_Allgather MPI_Allgatherv MPI_Allreduce MPI_Alltoall MPI_Alltoallv MPI_Bcast
        MPI_Comm_create_keyval MPI_Comm_delete_attr MPI_Comm_free MPI_Comm_get_attr MPI_Comm_rank MPI_Comm_set_attr
        MPI_Comm_set_errhandler MPI_Comm_size MPI_Comm_split MPI_Comm_test_inter MPI_Exscan
        MPI_Gather MPI_Gatherv MPI_Irecv MPI_Irsend MPI_Isend MPI_Op_commutative MPI_Pack
        MPI_Recv MPI_Reduce MPI_Reduce_local MPI_Reduce_scatter MPI_Reduce_scatter_block MPI_Scatter
        MPI_Scatterv MPI_Send
        MPI_Sendrecv MPI_Type_commit MPI_Type_create_hindexed MPI_Type_create_resized MPI_Type_free
        MPI_Type_get_envelope MPI_Type_get_extent MPI_Type_get_true_extent MPI_Type_size_x
        MPI_Unpack MPI_Wait
    )
}

/// `MPI_IN_PLACE`, whose macro no binding carries over: -1 where handles are ints (MPICH and its
/// kin), 1 where they are pointers (Open MPI, the standard ABI).
pub const IN_PLACE: usize =
    if size_of::<ffi::MPI_Comm>() == size_of::<i32>() { usize::MAX } else { 1 };

/// `MPI_PACKED`, whose macro no binding carries over either.
fn packed() -> Result<Handle> {
    if size_of::<ffi::MPI_Comm>() == size_of::<i32>() {
        return Ok(0x4c00_010f); // fixed by the common ABI of MPICH and its kin
    }
    // SAFETY: looks for a symbol of the library that is linked.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ompi_mpi_packed".as_ptr()) };
    match address.is_null() {
        true => Err(Error::Unsupported("the MPI library has no ompi_mpi_packed".into())),
        false => Ok(address as Handle),
    }
}

/// A session of the runner on the linked MPI library; once per process, after MPI has been
/// initialised.
///
/// # Errors
/// The library refuses.
pub fn session() -> Result<&'static Session> {
    // SAFETY: constants of the MPI library.
    let constants = unsafe {
        Constants {
            in_place: IN_PLACE,
            status_ignore: ffi::RSMPI_STATUS_IGNORE as usize,
            byte: ffi::RSMPI_UINT8_T.0 as usize,
            bitwise_or: ffi::RSMPI_BOR.0 as usize,
            packed: packed()?,
            errors_return: ffi::RSMPI_ERRORS_RETURN.0 as usize,
        }
    };
    // SAFETY: `linked` gives the functions of these names, the constants are of the same library.
    let table = unsafe { Mpi::load(linked, constants) };
    let table = table.map_err(|missing| Error::Unsupported(missing.to_string()))?;
    Ok(Session::open(table)?)
}
