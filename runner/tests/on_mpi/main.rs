//! Our algorithms against the library's own collectives, bit for bit, on real MPI libraries.
//!
//! The program starts itself under the `mpirun` of each library that is there, which it loads at
//! run time.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "all for the one reason in `run_rank`")]

mod cases;
mod kinds;
#[path = "../launched/mod.rs"]
mod launched;
mod library;
mod methods;
mod reused;
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod special;

use std::{env, ffi::c_int, process::Command, time::Instant};

use cases::{Group, Operator, TriedCases};
use colibri_runner::{Executor, Handle, Session};
use kinds::Kind;
use launched::aside;
use library::{Library, THREAD_MULTIPLE, UserOperation, call};
use skipped::skipped;

/// Set for the processes that `mpirun` starts: the file of the library to load.
const LIBRARY: &str = "COLIBRI_RUNNER_TEST_LIBRARY";

/// An MPI library's launcher, what it calls itself, the library's file, and the ranks to test on.
struct Installation {
    launchers: &'static [&'static str],
    version: &'static str,
    library: &'static str,
    ranks: &'static [u32],
}

const INSTALLATIONS: [Installation; 2] = [
    Installation {
        launchers: &["mpirun.openmpi", "mpirun"],
        version: "Open MPI",
        library: "libmpi.so.40",
        ranks: &[1, 2, 3, 4, 5, 7, 8],
    },
    // Its ranks spin while they wait, so that more of them than processors take very long.
    Installation {
        launchers: &["mpirun.mpich", "mpirun"],
        version: "HYDRA",
        library: "libmpich.so.12",
        ranks: &[1, 2, 3, 4],
    },
];

#[global_allocator]
static ALLOCATOR: special::Counting = special::Counting;

fn main() {
    if let Ok(library) = env::var(LIBRARY) {
        run_rank(&library);
    } else if env::args().any(|argument| argument == "--list") {
        println!("ours_agree_with_the_librarys: test");
    } else if !env::args().any(|argument| argument == "--ignored") {
        for family in INSTALLATIONS {
            let Some(launcher) = family.launcher() else {
                skipped("our algorithms", &format!("no mpirun of {} here", family.version));
                continue;
            };
            for ranks in family.ranks {
                let start = Instant::now();
                family.run(launcher, *ranks);
                println!("{} on {ranks} ranks: {:.1?}", family.version, start.elapsed());
            }
            if family.version == "Open MPI" {
                let case = "allreduce of 2 pairs, root 0, commutative";
                aside::show(|| family.command(launcher, 2), case);
            }
        }
    }
}

impl Installation {
    fn launcher(&self) -> Option<&'static str> {
        self.launchers.iter().copied().find(|launcher| {
            let version = Command::new(launcher).arg("--version").output();
            version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(self.version))
        })
    }

    /// Runs this program to its end, for which it has twenty minutes.
    fn run(&self, launcher: &str, ranks: u32) {
        if let Err(problem) = aside::run_setting_aside(|| self.command(launcher, ranks)) {
            panic!("{}, {ranks} ranks: {problem}", self.version);
        }
    }

    fn command(&self, launcher: &str, ranks: u32) -> Command {
        let mut command = Command::new(launcher);
        if self.version == "Open MPI" {
            command
                .args(["--oversubscribe", "--bind-to", "none"])
                .args(["--mca", "mpi_yield_when_idle", "1"])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(["-np", &ranks.to_string()]).arg(env::current_exe().unwrap());
        command.env(LIBRARY, self.library);
        command
    }
}

fn run_rank(file: &str) {
    // MPI lives as long as the process.
    let library: &Library = Box::leak(Box::new(Library::load(file)));
    let world = library.names.world;
    // Else the job would wait for a rank that has panicked.
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("{panic}");
        call!(library, c"MPI_Abort", world => Handle, 1 => c_int);
    }));
    let mut level = 0;
    let nothing = std::ptr::null_mut::<c_int>();
    call!(library, c"MPI_Init_thread", nothing => *mut c_int, nothing => *mut c_int,
        THREAD_MULTIPLE => c_int, &mut level => *mut c_int);
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    call!(library, c"MPI_Comm_rank", world => Handle, &mut rank => *mut c_int);
    call!(library, c"MPI_Comm_size", world => Handle, &mut size => *mut c_int);
    let group = Group { library, comm: world, rank: rank as u32, size: size as u32 };
    // Handles and buffers are this program's own, and right by construction.
    let session = Session::open(library.table()).unwrap();
    // Ranks share memory though they are more than the processors.
    session.set_shared_memory(Session::SHARED_MEMORY_BYTES, true);
    let kinds = Kind::all(library);
    let operators = operators(library, &kinds);
    let thrifty = size > if library.is_mpich() { 2 } else { 4 };
    let mut executor = Executor::new(session);
    let once = TriedCases { thrifty, times: 1 };
    cases::check_all(&mut executor, &group, &kinds, &operators, once);
    // Calls that are carried out as earlier ones were: those with named types.
    let (numbers, sum) = (kinds[kinds.len() - 1], &operators[operators.len() - 1..]);
    let again = TriedCases { thrifty: true, times: 2 };
    cases::check_all(&mut executor, &group, &[numbers; 7], sum, again);
    if aside::is_native() {
        call!(library, c"MPI_Finalize");
        return;
    }
    // As if messages above 2^31 elements, and elements above 2^31 bytes, were short.
    let mut executor = executor.with_longest(7);
    if !(thrifty && library.is_mpich()) {
        let some = TriedCases { thrifty: true, times: 1 };
        cases::check_all(&mut executor, &group, &kinds, &operators, some);
    }
    let mut executor = Executor::new(session);
    special::communicators_that_are_freed(&mut executor, &group);
    special::what_is_kept_of_a_communicator(session, &mut executor, &group);
    reused::operations(&mut executor, &group);
    reused::types(&mut executor, &group);
    special::wildcards_of_the_application(&mut executor, &group);
    special::what_is_refused(&mut executor, &group);
    special::absolute_addresses(&mut executor, &group);
    special::elements_of_nothing(&mut executor, &group);
    special::many_segments(&mut executor, &group);
    special::a_limit_to_scratch_memory(session, &group);
    special::nothing_is_allocated_again(session, &group);
    if level >= THREAD_MULTIPLE {
        special::threads_at_the_same_time(session, &group);
    }
    call!(library, c"MPI_Finalize");
}

/// One that is not commutative and one that is, on each kind of pairs, and a predefined one on
/// numbers.
fn operators(library: &Library, kinds: &[Kind; 7]) -> Vec<Operator> {
    let make = |function: UserOperation, commutative: bool| {
        let mut handle: Handle = 0;
        call!(library, c"MPI_Op_create", function => UserOperation, c_int::from(commutative) => c_int,
            &mut handle => *mut Handle);
        handle
    };
    let made = [(make(kinds::compose, false), false), (make(kinds::mix, true), true)];
    let pairs = kinds.iter().filter(|kind| kind.is_pair()).flat_map(|kind| {
        made.map(|(handle, commutative)| Operator { kind: *kind, handle, commutative })
    });
    let numbers = kinds.iter().filter(|kind| !kind.is_pair());
    let sum = library.names.sum;
    pairs
        .chain(numbers.map(|kind| Operator { kind: *kind, handle: sum, commutative: true }))
        .collect()
}
