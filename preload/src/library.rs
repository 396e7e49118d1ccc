//! The MPI library of the process, found at run time.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering},
    },
};

use runner::{AbiFamily, Arguments, Handle, Mpi, MpiConstants, process};

/// A function that stands behind one of ours, looked up once.
pub struct LibraryFunction {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl LibraryFunction {
    pub const fn new(name: &'static CStr) -> Self {
        LibraryFunction { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Where it has been looked up and is there.
    #[inline(always)]
    pub fn known(&self) -> Option<*mut c_void> {
        Some(self.address.load(Ordering::Relaxed)).filter(|address| !address.is_null())
    }

    /// Null where the library has no such function.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look_up() } else { known }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let found = process::behind(self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// The functions of the library; its constants are not known yet.
///
/// # Errors
/// One is missing; says which.
fn functions() -> Result<Mpi, String> {
    let find = |name: &CStr| {
        let Ok(name) = CString::new([b"P", name.to_bytes()].concat()) else {
            return ptr::null();
        };
        process::behind(&name).cast_const()
    };
    let constants = MpiConstants::new(AbiFamily::Standard, |_| ptr::null());
    // SAFETY: these are the functions of these names; who takes the table for more than calls, which
    // look at no constant, sets the constants.
    constants
        .and_then(|constants| unsafe { Mpi::load(find, constants) })
        .map_err(|missing| missing.to_string())
}

/// The library's function with small counts for what has none with large ones; nothing if it lacks
/// that, too.
///
/// # Safety
/// The arguments must be the application's, which fulfil the call's contract (see [`Arguments`]) or are refused
/// by the library; counts of 64 bits must be as [`Mpi::call`] demands.
pub unsafe fn call_classic(arguments: &Arguments, comm: Handle) -> Option<c_int> {
    static FUNCTIONS: OnceLock<Option<Mpi>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| functions().ok()).as_ref()?;
    // SAFETY: the arguments are the application's (contract of this function), of which `call` asks no more; it
    // looks at no constant.
    Some(unsafe { functions.call(arguments, comm) })
}

/// The table of the library that the process has loaded.
///
/// # Errors
/// None, or one whose header isn't known; says which.
pub fn find() -> Result<Mpi, String> {
    let functions = functions()?;
    // SAFETY: the function of this name, or null.
    let family = unsafe { process::family(process::behind(c"PMPI_Get_library_version"))? };
    let constants = MpiConstants::new(family, |name| process::first(name).cast_const())
        .map_err(|missing| missing.to_string())?;
    Ok(Mpi { constants, ..functions })
}

/// The library and its version, such as `Open MPI 4.1.4`.
pub fn version() -> String {
    // SAFETY: the function of this name, or null.
    let text = unsafe { process::version_text(process::behind(c"PMPI_Get_library_version")) };
    process::short_version(&text.unwrap_or_default())
}

/// Whether a call that returned this code was refused for its arguments, before anything was sent.
///
/// # Safety
/// MPI must be initialised.
pub unsafe fn is_refusal(mpi: &Mpi, code: c_int) -> bool {
    let mut class = 0;
    // SAFETY: MPI is initialised (contract of this function); the class is written to a local.
    code != 0
        && unsafe { (mpi.error_class)(code, &mut class) } == 0
        // The classes of wrong arguments are below it.
        && class < mpi.constants.error_truncate
}
