//! Mock-ups against what MPI defines and against the library's own collectives, bit for bit, under
//! real launchers.
//!
//! The program starts itself under `mpirun`. It links no MPI library and loads the one of the
//! launcher, so that one program tests them all.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod broken;
mod cases;
mod checks;
mod data;
mod definition;
mod faults;
#[path = "../launched/mod.rs"]
mod launched;
mod library;
#[path = "../../../tests/skipped.rs"]
mod skipped;
#[path = "../launched/turns.rs"]
mod turns;

use std::{env, process::Command, ptr, sync::OnceLock, time::Instant};

use colibri_runner::{
    AbiFamily, Mpi, Session,
    mockups::{Limits, Mockups},
};

use self::{
    cases::{CaseSelection, Ranks},
    faults::{FAULTS, Fault},
    launched::{aside, run_to_end},
    library::{Library, check, names},
    skipped::skipped,
};

/// Set for the processes that a launcher starts: the family of its library.
const FAMILY: &str = "COLIBRI_MOCKUPS_TEST_FAMILY";
/// Set for those that shall show a fault of the library: its name.
const FAULT: &str = "COLIBRI_MOCKUPS_TEST_FAULT";

fn main() {
    let has = |flag: &str| env::args().any(|argument| argument == flag);
    let (is_long, is_all) = (has("--ignored"), has("--include-ignored"));
    if has("--list") {
        println!("mockups_agree_with_the_library: test");
    } else if let Ok(family) = env::var(FAMILY) {
        run_rank(
            [AbiFamily::OpenMpi, AbiFamily::Mpich]
                .into_iter()
                .find(|one| names(*one).0 == family)
                .unwrap(),
        );
    } else {
        if !is_long {
            test(AbiFamily::OpenMpi, &[1, 2, 3, 4, 5, 8]);
            // Its ranks spin, so that more of them than processors take long.
            test(AbiFamily::Mpich, &[1, 2, 3, 4]);
            FAULTS.iter().for_each(show);
            if launched(AbiFamily::OpenMpi, 2).is_some() {
                let command = || launched(AbiFamily::OpenMpi, 2).unwrap();
                aside::show(command, "allreduce of 3001, types 4, root 0, in place compose");
            }
        }
        if is_long || is_all {
            test(AbiFamily::Mpich, &[5, 8]);
        }
    }
}

/// This program under a family's launcher; nothing, with a printed reason, where there is none.
fn launched(family: AbiFamily, size: usize) -> Option<Command> {
    let launcher = format!("mpirun.{}", names(family).0);
    if Command::new(&launcher).arg("--version").output().is_err() {
        skipped("mock-ups", &format!("no {launcher} here"));
        return None;
    }
    let mut command = Command::new(&launcher);
    if family == AbiFamily::OpenMpi {
        command
            .args(["--oversubscribe", "--bind-to", "none"])
            .args(["--mca", "mpi_yield_when_idle", "1"])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    let program = env::current_exe().unwrap();
    command.args(["-np", &size.to_string()]).env(FAMILY, names(family).0).arg(program);
    Some(command)
}

/// Runs this program on so many ranks at a time.
fn test(family: AbiFamily, sizes: &[usize]) {
    for size in sizes {
        if launched(family, *size).is_none() {
            return;
        }
        let started = Instant::now();
        let command = || launched(family, *size).unwrap();
        if let Err(problem) = aside::run_setting_aside(command) {
            panic!("{}, {size} ranks: {problem}", names(family).0);
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("{}, {size} ranks: {seconds:.1} s", names(family).0);
    }
}

/// That the library has a fault which cases are left out for.
fn show(fault: &Fault) {
    let Fault { name, family, ranks, version, .. } = fault;
    let Some(mut command) = launched(*family, *ranks) else { return };
    let said = run_to_end(command.env(FAULT, name)).unwrap_err();
    if said.contains(faults::OTHER) {
        println!("not looked for, as this {} is not {version}: {name}", family);
        return;
    }
    assert!(!said.contains(faults::RIGHT), "{}: {name}: leave it out no longer", family);
    assert!(said.contains(faults::BEGUN), "{}: {name}: {said}", family);
    println!("{} {version} by itself: {name}", family);
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

fn run_rank(family: AbiFamily) {
    let library = LIBRARY.get_or_init(|| Library::load(family));
    // Else the job would wait for a rank that has panicked.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        let library = LIBRARY.get().unwrap();
        // SAFETY: MPI has been initialised.
        unsafe { (library.mpi.abort)(library.world, 1) };
    }));
    // SAFETY: the process's first call of MPI; `wrapped` gives MPI's functions of these names.
    let session = unsafe {
        check((library.init)(ptr::null_mut(), ptr::null_mut()));
        Session::open(Mpi::load(broken::wrapped, library.mpi.constants).unwrap()).unwrap()
    };
    let (rank, size) = library.rank_and_size(library.world);
    if family == AbiFamily::Mpich {
        turns::take_turns();
    }
    let mockups = Mockups::new(session, Limits::default());
    let mut ranks = Ranks { library, mockups, comm: library.world, rank, size };
    if let Ok(name) = env::var(FAULT) {
        faults::show(FAULTS.iter().find(|fault| fault.name == name).unwrap(), &mut ranks);
    }
    checks::all(session, &mut ranks, extent(family, size));
    // SAFETY: the process's last call of MPI.
    check(unsafe { (library.finalize)() });
}

/// How much is tried on so many ranks: everything once.
fn extent(family: AbiFamily, size: usize) -> CaseSelection {
    match (family, size) {
        (AbiFamily::OpenMpi, 3) => CaseSelection::All,
        (AbiFamily::OpenMpi, 1..=4) | (AbiFamily::Mpich, 1..=2) => CaseSelection::Pairs,
        _ => CaseSelection::Values,
    }
}
