//! Collectives behind C shared libraries, as MPIBlib takes them.
//!
//! A plug-in is a function with the signature of the collective that it implements. Its library may
//! define `int collectives_initialize(MPI_Comm comm, char *suboptions)` and
//! `int collectives_finalize(MPI_Comm comm)`; all ranks of a communicator call these before the
//! first and after the last call of a visit.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    path::Path,
};

use mpi::ffi::{self, MPI_Comm};
use records::Collective;
use runner::Mpi;

use crate::{Error, Result, exchange, linked, table};

type Initialize = unsafe extern "C" fn(MPI_Comm, *mut c_char) -> c_int;
type Finalize = unsafe extern "C" fn(MPI_Comm) -> c_int;

/// A function of a library that is loaded, to the end of the process.
#[derive(Debug)]
pub struct LoadedPlugin {
    named: records::Plugin,
    /// The MPI library's functions, with the plug-in's in place of one.
    table: Mpi,
    initialize: Option<Initialize>,
    finalize: Option<Finalize>,
    /// As C may change it.
    suboptions: CString,
}

impl fmt::Display for LoadedPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin:{}", self.named)
    }
}

impl LoadedPlugin {
    /// Loads a plug-in for a collective.
    ///
    /// # Errors
    /// There is no such library, it belongs to another MPI library, or has no such function.
    pub fn load(collective: Collective, named: &records::Plugin) -> Result<Self> {
        let fault = |problem: String| Error::Plugin(format!("plugin:{named}: {problem}"));
        let text = |text: &str| CString::new(text).map_err(|_| fault("has a zero in it".into()));
        let path = named.library();
        if path.contains('/') && !Path::new(path).exists() {
            return Err(fault(format!("there is no file {path}")));
        }
        let handle = open(&text(path)?).map_err(|problem| {
            let hint = match path.contains('/') {
                true => "",
                false => " (a name without a slash is looked for in LD_LIBRARY_PATH)",
            };
            fault(format!("cannot be loaded: {problem}{hint}"))
        })?;
        if is_of_another_mpi(handle) {
            let problem = format!(
                "was built for another MPI library than this program, which is built for {}",
                linked::library_version()?
            );
            return Err(fault(problem));
        }
        let function = symbol(handle, &text(named.symbol())?);
        if function.is_null() {
            let problem = format!(
                "the library has no function {}; 'nm -D {path}' lists those it has",
                named.symbol()
            );
            return Err(fault(problem));
        }
        let initialize = symbol(handle, c"collectives_initialize");
        let finalize = symbol(handle, c"collectives_finalize");
        // SAFETY: MPIBlib fixes what functions of these names take and give.
        let (initialize, finalize) = unsafe {
            (
                std::mem::transmute::<*mut c_void, Option<Initialize>>(initialize),
                std::mem::transmute::<*mut c_void, Option<Finalize>>(finalize),
            )
        };
        let suboptions = text(named.suboptions())?;
        if initialize.is_none() && !named.suboptions().is_empty() {
            return Err(fault(
                "there are suboptions, but the library has no collectives_initialize to take them"
                    .into(),
            ));
        }
        // SAFETY: `function` is not null; that its signature is that of MPI's is what the user says who names
        // it for this collective, as a symbol doesn't tell.
        let table = unsafe { table::table()?.with(collective, function) };
        Ok(LoadedPlugin { named: named.clone(), table, initialize, finalize, suboptions })
    }

    /// The table in which the collective's function is the plug-in's.
    pub fn table(&self) -> &Mpi {
        &self.table
    }

    /// Lets the library prepare for calls on a communicator, all ranks of which must call this.
    ///
    /// # Errors
    /// The library refuses.
    pub fn initialize(&self, comm: MPI_Comm) -> Result<()> {
        let Some(initialize) = self.initialize else { return Ok(()) };
        // It may cut the text into pieces (getsubopt).
        let mut suboptions = self.suboptions.clone().into_bytes_with_nul();
        // SAFETY: the communicator is valid, the text a C string of the callee's own for the call.
        let code = unsafe { initialize(comm, suboptions.as_mut_ptr().cast()) };
        self.check("collectives_initialize", code)
    }

    /// Lets the library free what it has prepared.
    ///
    /// # Errors
    /// The library refuses.
    pub fn finalize(&self, comm: MPI_Comm) -> Result<()> {
        let Some(finalize) = self.finalize else { return Ok(()) };
        // SAFETY: the communicator is the one that was prepared for.
        self.check("collectives_finalize", unsafe { finalize(comm) })
    }

    /// Whether the function has done what it should.
    ///
    /// # Errors
    /// What it returned is not MPI_SUCCESS.
    pub(super) fn check_call(&self, code: c_int) -> Result<()> {
        self.check(self.named.symbol(), code)
    }

    #[inline]
    fn check(&self, function: &str, code: c_int) -> Result<()> {
        if code == ffi::MPI_SUCCESS as c_int {
            return Ok(());
        }
        let reason = exchange::reason(code);
        Err(Error::Plugin(format!("{self}: {function} failed: {reason}")))
    }
}

/// The library's handle, or what the loader says.
fn open(path: &CStr) -> std::result::Result<*mut c_void, String> {
    // SAFETY: runs what the library does when it is loaded, which the user asks for.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: the text stands until the next call of the loader in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err("the loader gives no reason".into());
    }
    // SAFETY: as above; it is a C string.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A function of a library or of those that it needs; null if there is none.
fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open, the name a C string.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Whether the library brings an MPI library of its own.
fn is_of_another_mpi(handle: *mut c_void) -> bool {
    let name = c"MPI_Get_library_version";
    let (theirs, ours) = (symbol(handle, name), symbol(libc::RTLD_DEFAULT, name));
    !theirs.is_null() && !ours.is_null() && theirs != ours
}
