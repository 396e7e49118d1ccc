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

/// A function or variable by its name, of what was loaded after the caller's library; null where there is none.
pub fn behind(name: &CStr) -> *mut c_void {
    searched(libc::RTLD_NEXT, name)
}

fn searched(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a C string, and one of the loader's scopes.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if found.is_null() { in_files(name) } else { found }
}

/// The names of the files, without their folders, of all libraries that the process has loaded.
pub fn loaded_libraries() -> Vec<String> {
    unsafe extern "C" fn add(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives a description that is valid during this call, in which the name is a C string
        // or null; `names` is the vector below, which nobody else uses meanwhile.
        unsafe {
            if !(*info).dlpi_name.is_null() {
                let path = CStr::from_ptr((*info).dlpi_name).to_string_lossy();
                let name = path.rsplit('/').next().unwrap_or_default();
                (*names.cast::<Vec<String>>()).push(name.to_owned());
            }
        }
        0
    }
    let mut names: Vec<String> = Vec::new();
    // SAFETY: the function has the signature that is wanted, and gets a vector that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), ptr::from_mut(&mut names).cast()) };
    names
}

fn in_files(name: &CStr) -> *mut c_void {
    let loaded = loaded_libraries();
    for file in FILES {
        // The loader would look through folders for one that is not loaded. Which version one is of, its name may not say.
        let text = file.to_str().unwrap_or_default();
        let stem = text.split_inclusive(".so").next().unwrap_or(text);
        if !loaded.iter().any(|name| name.starts_with(stem)) {
            continue;
        }
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
    // SAFETY: as this function's contract says.
    let text = unsafe { version_text(version) }.unwrap_or_default();
    if text.starts_with("Open MPI") {
        return Ok(AbiFamily::OpenMpi);
    }
    if ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| text.contains(name)) {
        return Ok(AbiFamily::Mpich);
    }
    let line = text.lines().next().unwrap_or_default();
    Err(format!("the MPI library is not a known one (it says '{line}')"))
}

/// What `MPI_Get_library_version` says; nothing where there is none.
///
/// # Safety
/// It must be that function, or null.
pub unsafe fn version_text(version: *mut c_void) -> Option<String> {
    if version.is_null() {
        return None;
    }
    // More than any library's MPI_MAX_LIBRARY_VERSION_STRING (256 to 8192).
    let mut text = [0_u8; 1 << 15];
    let mut length: c_int = 0;
    // SAFETY: `version` is `MPI_Get_library_version` (contract of this function), which has this signature and
    // writes no more than its longest text, for which there is room.
    unsafe {
        let version = mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int,
        >(version);
        version(text.as_mut_ptr(), &mut length);
    }
    Some(CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy().into_owned())
}

/// A library and its version by what it says: `Open MPI 4.1.4`, `MPICH 4.0.2`, `Intel(R) MPI Library 2021.19`; the
/// beginning of the first line where it says it in no known way.
pub fn short_version(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    // A version begins with a number, behind a v in Open MPI.
    let number = |word: &str| {
        let number = word.trim_start_matches('v').trim_end_matches(',');
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.to_owned())
    };
    let Some((place, version)) =
        words.iter().enumerate().find_map(|(place, word)| Some((place, number(word)?)))
    else {
        return line.chars().take(40).collect();
    };
    let name: Vec<&str> = words[..place]
        .iter()
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| !["", "Version"].contains(word))
        .collect();
    format!("{} {version}", name.join(" ")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_say_their_versions_in_many_ways() {
        for (text, short) in [
            ("Open MPI v4.1.4, package: Debian Open MPI, ident: 4.1.4", "Open MPI 4.1.4"),
            ("MPICH Version:      4.0.2\nMPICH Release date: ...", "MPICH 4.0.2"),
            ("Intel(R) MPI Library 2021.19 for Linux* OS", "Intel(R) MPI Library 2021.19"),
            ("MVAPICH2 Version      :\t2.3.7", "MVAPICH2 2.3.7"),
            ("no number at all", "no number at all"),
            ("", ""),
        ] {
            assert_eq!(short_version(text), short);
        }
    }
}
