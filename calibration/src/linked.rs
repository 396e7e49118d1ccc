//! The MPI library that the program is linked with, by what it says of itself.

use std::{
    ffi::{c_int, c_void},
    mem,
};

use libraries::LibraryRelease;
use mpi::environment;
use runner::{AbiFamily, process};

use crate::{Error, Result};

/// The first line of what MPI_Get_library_version says.
///
/// # Errors
/// The library refuses.
pub fn library_version() -> Result<String> {
    let text = library_text()?;
    // MPICH's lines are cells of a table; Open MPI's version ends with its C string's zero.
    let line = text.lines().next().unwrap_or_default();
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('\0').to_owned())
}

/// What the program is built for: the ABI of MPI 5, or the library in its version.
///
/// # Errors
/// It is none that is known.
pub fn library_release() -> Result<LibraryRelease> {
    if let Some((major, minor)) = standard_abi() {
        return Ok(LibraryRelease::standard_abi(major, minor));
    }
    let text = library_text()?;
    LibraryRelease::said(&text).ok_or_else(|| {
        let known: Vec<&str> = libraries::ALL.iter().map(|library| library.title()).collect();
        Error::Unsupported(format!(
            "the MPI library reports its version as '{}', which is none of a known library ({})",
            text.lines().next().unwrap_or_default().trim(),
            known.join(", ")
        ))
    })
}

/// The version of the ABI of MPI 5, where the program is linked with a library's form of it.
fn standard_abi() -> Option<(u32, u32)> {
    let linked = process::first(c"MPI_Get_library_version");
    // SAFETY: the function of that name.
    let family = unsafe { process::family(linked) };
    let version = process::first(c"MPI_Abi_get_version");
    if family != Ok(AbiFamily::Standard) || version.is_null() {
        return None;
    }
    type AbiVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the standard's function of that name (MPI 5.0, section 20.3.1), which may be called before MPI starts
    // and writes two ints.
    let code =
        unsafe { mem::transmute::<*mut c_void, AbiVersion>(version)(&mut major, &mut minor) };
    let known = code == 0 && major > 0;
    known.then(|| (major.unsigned_abs(), minor.unsigned_abs()))
}

/// All of what MPI_Get_library_version says.
///
/// # Errors
/// It is no text.
pub fn library_text() -> Result<String> {
    environment::library_version()
        .map_err(|_| Error::Unsupported("the MPI library's version is not in UTF-8".into()))
}
