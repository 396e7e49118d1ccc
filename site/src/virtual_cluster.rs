//! What a virtual cluster needs of this machine: that it can be made, and an MPI library.

use std::path::Path;

use anyhow::Result;
use libraries::{MpiLibrary, intel::IntelLibrary, mpich::MpichLibrary, openmpi::OpenMpiLibrary};
use testbed::{IntelMpi, Mpich, OpenMpi, Rate, Shims, Spec, TestbedMpi};

use crate::programs;

/// Of a virtual cluster's links where nothing else is asked for.
pub const USUAL_RATE: &str = "100mbit";

/// The launcher on PATH of the library that our programs were built for.
///
/// # Errors
/// There is none; a library that no virtual cluster was tried with.
pub fn mpi_at_hand() -> Result<TestbedMpi> {
    let ours = libraries::recognise(&programs::library(&programs::mpi(None)?)?)
        .map(|library| library.library());
    match ours {
        Some(ours) if ours == MpichLibrary.library() => Ok(TestbedMpi::Mpich(Mpich::find()?)),
        Some(ours) if ours == IntelLibrary.library() => Ok(TestbedMpi::Intel(IntelMpi::find()?)),
        _ => Ok(TestbedMpi::OpenMpi(OpenMpi::find()?)),
    }
}

/// The library that a launcher is of.
pub fn library_of(mpi: &TestbedMpi) -> &'static dyn MpiLibrary {
    match mpi {
        TestbedMpi::OpenMpi(_) => &OpenMpiLibrary,
        TestbedMpi::Mpich(_) => &MpichLibrary,
        TestbedMpi::Intel(_) => &IntelLibrary,
    }
}

/// What is preloaded into every rank on a virtual cluster.
///
/// # Errors
/// It is not there.
pub fn shims(mpi: &TestbedMpi) -> Result<Shims> {
    let tracer = library_of(mpi).tracer().map(programs::find).transpose()?;
    Ok(Shims { sleep_on_yield: Some(programs::find("libcolibri_yield.so")?), tracer })
}

/// Sets up the smallest virtual cluster there is and takes it down: a better answer to whether this
/// machine can hold one than any look at versions.
///
/// # Errors
/// It cannot.
pub fn check_testbed() -> Result<()> {
    clear_checks()?;
    let name = format!("{CHECK}{}", std::process::id());
    testbed::up(&Spec::new(&name, 1, USUAL_RATE.parse::<Rate>()?)?)?;
    testbed::down(&name)?;
    Ok(())
}

/// The first part of the name of a virtual cluster that only tries; the process's number is the rest.
const CHECK: &str = "check-";

/// Takes down what checks that were killed have left.
fn clear_checks() -> Result<()> {
    for left in testbed::status()? {
        let process = left.name.strip_prefix(CHECK).and_then(|number| number.parse::<u32>().ok());
        let ended = |process: u32| !Path::new("/proc").join(process.to_string()).exists();
        if process.is_some_and(ended) {
            testbed::down(&left.name)?;
        }
    }
    Ok(())
}
