//! The MPI library of the process, found at run time: for libraries that link none.

use std::{
    ffi::{CStr, c_int, c_void},
    mem, ptr,
};

use crate::AbiFamily;

/// What MPI libraries are called as files; a program that loads MPI itself (mpi4py) keeps it out
/// of the scope in which symbols are searched.
const FILES: [&CStr; 6] = [
    c"libmpi.so.40",
    c"libmpich.so.12",
    c"libmpi.so.12",
    c"libmpi_abi.so.1",
    c"libmpi_abi.so.0",
    c"libmpi_cray.so.12",
];

/// A function or variable by its name, of whatever the process finds first; null where there is none.
///
/// A program that isn't position-independent has copies of a library's variables, which are the ones that count:
/// what is searched first is the program.
pub fn first(name: &CStr) -> *mut c_void {
    searched(libc::RTLD_DEFAULT, name)
}

/// The same of what was loaded after the caller's library.
pub fn behind(name: &CStr) -> *mut c_void {
    searched(libc::RTLD_NEXT, name)
}

fn searched(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a C string, and one of the loader's scopes.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if found.is_null() { in_files(name) } else { found }
}

fn in_files(name: &CStr) -> *mut c_void {
    for file in FILES {
        // SAFETY: C strings; RTLD_NOLOAD only looks for what is loaded already.
        let found = unsafe {
            let library = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            match library.is_null() {
                true => ptr::null_mut(),
                false => libc::dlsym(library, name.as_ptr()),
            }
        };
        if !found.is_null() {
            return found;
        }
    }
    ptr::null_mut()
}

/// Of the library whose `MPI_Get_library_version` this is; null where none was found.
///
/// # Safety
/// It must be that function, or null.
///
/// # Errors
/// There is none, or it is of no known library; says which.
pub unsafe fn family(version: *mut c_void) -> Result<AbiFamily, String> {
    if version.is_null() {
        return Err("no MPI library of version 3 or later is loaded".into());
    }
    // SAFETY: all-zero is a value of this plain structure.
    let mut place: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: a valid address and a place for the answer, whose name is a C string if it is there.
    let file = unsafe {
        match libc::dladdr(version, &mut place) != 0 && !place.dli_fname.is_null() {
            true => CStr::from_ptr(place.dli_fname).to_string_lossy().into_owned(),
            false => String::new(),
        }
    };
    if file.rsplit('/').next().is_some_and(|name| name.starts_with("libmpi_abi.")) {
        return Ok(AbiFamily::Standard);
    }
    // More than any library's MPI_MAX_LIBRARY_VERSION_STRING (256 to 8192).
    let mut text = [0_u8; 1 << 15];
    let mut length: c_int = 0;
    // SAFETY: `version` is `MPI_Get_library_version` (contract of this function), which has this signature and
    // writes no more than its longest text, for which there is room.
    let text = unsafe {
        let version = mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int,
        >(version);
        version(text.as_mut_ptr(), &mut length);
        CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy()
    };
    if text.starts_with("Open MPI") {
        return Ok(AbiFamily::OpenMpi);
    }
    if ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| text.contains(name)) {
        return Ok(AbiFamily::Mpich);
    }
    let line = text.lines().next().unwrap_or_default();
    Err(format!("the MPI library is not a known one (it says '{line}')"))
}
