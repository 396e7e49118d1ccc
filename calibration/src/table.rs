//! The runner's table, filled with the MPI library that this program links.

use std::{
    env,
    ffi::{CStr, c_void},
};

use mpi::ffi;
use records::quantity;
use runner::{AbiFamily, Mpi, MpiConstants, SHARED_MEMORY, Session};

use crate::{Error, Result};

macro_rules! linked {
    ($($name:ident $symbol:ident ($($argument:ty),*);)*) => {
        /// The functions of the table that this program is linked with.
        fn linked(name: &CStr) -> *const c_void {
            match name.to_str() {
                $(Ok(stringify!($symbol)) => ffi::$symbol as *const c_void,)*
                _ => std::ptr::null(),
            }
        }
    };
}
runner::with_mpi_functions!(linked);

/// A variable of the library that is linked.
fn variable(name: &CStr) -> *const c_void {
    // SAFETY: a C string; all libraries of the process are searched.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Of the library that is linked.
fn family() -> AbiFamily {
    if size_of::<ffi::MPI_Comm>() == size_of::<i32>() {
        AbiFamily::Mpich
    } else if variable(c"ompi_mpi_byte").is_null() {
        AbiFamily::Standard
    } else {
        AbiFamily::OpenMpi
    }
}

/// The table of the MPI library that is linked.
///
/// # Errors
/// It is older than MPI 3.0.
pub fn table() -> Result<Mpi> {
    let missing = |missing: runner::MissingSymbol| Error::Unsupported(missing.to_string());
    let constants = MpiConstants::new(family(), variable).map_err(missing)?;
    // SAFETY: `linked` gives the functions of these names, the constants are of the same library.
    unsafe { Mpi::load(linked, constants) }.map_err(missing)
}

/// A session of the runner on the linked MPI library; once per process, after MPI has been
/// initialised.
///
/// # Errors
/// The library refuses.
pub fn session() -> Result<&'static Session> {
    let session = Session::open(table()?)?;
    let bytes = match env::var(SHARED_MEMORY) {
        Ok(text) => quantity::parse_bytes(&text)
            .map_err(|problem| Error::Unsupported(format!("{SHARED_MEMORY}: {problem}")))?,
        Err(_) => Session::SHARED_MEMORY_BYTES,
    };
    // What a plan has is timed, even where ranks outnumber processors.
    session.set_shared_memory(bytes, true);
    Ok(session)
}
