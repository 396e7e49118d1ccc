//! The MPI library of the process.

use std::{
    ffi::{c_int, c_void},
    mem,
    sync::OnceLock,
};

use runner::{AbiFamily, Handle, Mpi, MpiConstants, Session, process};

use crate::failure::BenchFailure;

/// The table of its functions: what the program itself would call, so that a preloaded library has its part.
///
/// # Errors
/// There is none, it is unknown, or not initialised.
pub fn table() -> Result<&'static (AbiFamily, Mpi), BenchFailure> {
    static FOUND: OnceLock<Result<(AbiFamily, Mpi), String>> = OnceLock::new();
    let found =
        FOUND.get_or_init(find).as_ref().map_err(|why| BenchFailure::NoLibrary(why.clone()))?;
    match (is(c"MPI_Initialized"), is(c"MPI_Finalized")) {
        (true, false) => Ok(found),
        _ => Err(BenchFailure::NoLibrary(
            "MPI is not initialised; call between MPI_Init and MPI_Finalize".into(),
        )),
    }
}

fn find() -> Result<(AbiFamily, Mpi), String> {
    // SAFETY: the function of this name, or null.
    let family = unsafe { process::family(process::first(c"MPI_Get_library_version"))? };
    let missing = |missing: runner::MissingSymbol| missing.to_string();
    let find = |name: &std::ffi::CStr| process::first(name).cast_const();
    let constants = MpiConstants::new(family, find).map_err(missing)?;
    // SAFETY: these are the functions of these names; the constants are of the same library.
    let mpi = unsafe { Mpi::load(find, constants) }.map_err(missing)?;
    Ok((family, mpi))
}

/// What `MPI_Initialized` or `MPI_Finalized` says.
fn is(name: &std::ffi::CStr) -> bool {
    let address = process::first(name);
    let mut flag: c_int = 0;
    if !address.is_null() {
        // SAFETY: MPI's functions of these names have this signature.
        unsafe {
            let ask =
                mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(address);
            ask(&mut flag);
        }
    }
    flag != 0
}

/// The runner on it, begun at the first time.
///
/// # Errors
/// As [`table`]; the library refuses.
pub fn session() -> Result<&'static Session, BenchFailure> {
    static OPEN: OnceLock<&'static Session> = OnceLock::new();
    let (_, mpi) = table()?;
    if let Some(open) = OPEN.get() {
        return Ok(open);
    }
    let made = Session::open(*mpi).map_err(timing::Error::from)?;
    Ok(OPEN.get_or_init(|| made))
}

/// A communicator as C passed it: of MPICH's, which is an int, the rest of the word may hold anything.
pub fn handle(family: AbiFamily, given: Handle) -> Handle {
    match family {
        AbiFamily::Mpich => given & u32::MAX as usize,
        AbiFamily::OpenMpi | AbiFamily::Standard => given,
    }
}
