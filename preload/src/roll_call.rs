//! Whether every process of the world has this library.
//!
//! Where it is preloaded for some commands or nodes only, the other processes never answer what it
//! asks when a communicator is first used, and the job would wait for ever. So those that have it
//! call the roll first, by no means that the others would have to answer: each publishes its name
//! (`MPI_Publish_name`), and rank 0 looks for all of them. Nothing is sent from rank to rank, where a
//! receive of the application's from anyone could catch it, and no collective is begun, which would
//! be out of step on the others from then on. The launcher keeps the names, and all processes have
//! passed its barrier in `MPI_Init` shortly before, so that a missing one is not long in doubt.
//!
//! Rank 0 says "all" or "not all" by one more name, for which the others wait once they have found
//! rank 0's own. One that does not find that in time takes back its name and looks again: either
//! rank 0 comes later and misses it, or it is there now and its word counts. So all that have the
//! library come to the same, however slow one of them is.

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use runner::{Handle, Mpi};

/// After so long without a new name, the missing processes are taken to be without this library.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pauses between two looks: twice as long each time, as nearly all processes come within a millisecond, while a
/// launcher that many ask for long has other work.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// What is published with a name; MPI wants something.
const PORT: &CStr = c"here";

/// Above so many processes the roll is called only where the launcher says that it started several
/// commands: the launcher keeps two names of each process, and rank 0 asks for them one by one.
const MOST: c_int = 1024;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roll {
    /// All have it; or that can't be known here.
    Full,
    /// Not all have it. One process gets the reason, for the user.
    NotFull(Option<String>),
}

/// The names of this world, in an MPI library that keeps them for us.
struct Names<'a> {
    library: &'a Mpi,
    world: String,
}

/// Calls the roll.
///
/// # Safety
/// MPI must just have been initialised, by this thread.
pub unsafe fn call(library: &Mpi) -> Roll {
    let (mut rank, mut size, mut parent): (c_int, c_int, Handle) = (0, 0, 0);
    // SAFETY: MPI is initialised; outputs are locals.
    let code = unsafe {
        (library.comm_rank)(library.constants.world, &mut rank)
            | (library.comm_size)(library.constants.world, &mut size)
            | (library.comm_get_parent)(&mut parent)
    };
    // Spawned processes have the environment of who spawned them.
    let is_spawned = parent & library.constants.handle_bits != library.constants.no_comm;
    let unasked = is_spawned || (size > MOST && commands() == 1) || !keeps_names(&namespace());
    if code != 0 || size == 1 || unasked {
        return Roll::Full;
    }
    // SAFETY: as above.
    unsafe {
        let Some(handlers) = returning_errors(library) else { return Roll::Full };
        let names = Names { library, world: world_name() };
        let roll = match rank {
            0 => names.call_all(size),
            _ => names.answer(rank),
        };
        if roll == Roll::Full {
            meet(library);
        }
        restore(library, handlers);
        roll
    }
}

/// After the processes have met: rank 0's word, if it has given it, has been received.
///
/// # Safety
/// MPI must be initialised.
pub unsafe fn over(library: &Mpi) {
    if !GIVEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: MPI is initialised (contract of this function), and the communicators whose handlers change are
    // MPI's own.
    unsafe {
        if let Some(handlers) = returning_errors(library) {
            let names = Names { library, world: world_name() };
            names.leave_behind(ALL);
            names.leave_behind("0");
            restore(library, handlers);
        }
    }
}

/// How many commands the launcher started, if it tells.
fn commands() -> u32 {
    let count = env::var("OMPI_NUM_APP_CTX").ok();
    count.and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// The launcher's name of the job, where it is one of PMIx.
fn namespace() -> String {
    env::var("PMIX_NAMESPACE").unwrap_or_default()
}

/// Whether a launcher may keep names. Slurm's `srun` does not, and Open MPI would tell the user so, ten
/// lines for each rank.
fn keeps_names(namespace: &str) -> bool {
    !namespace.starts_with("slurm.pmix.")
}

/// What tells this world from others in one launcher. The wire of some launchers knows no blanks.
fn world_name() -> String {
    let name = namespace();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Whether this process, rank 0, has said that all are there.
static GIVEN: AtomicBool = AtomicBool::new(false);

const ALL: &str = "all";
const NOT_ALL: &str = "not-all";

impl Names<'_> {
    /// Rank 0's part.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn call_all(&self, size: c_int) -> Roll {
        // SAFETY: MPI is initialised (contract of this function), which is all that publishing and looking up
        // rely on.
        unsafe {
            if !self.publish("0") {
                return Roll::Full;
            }
            if let Some(rank) = (1..size).find(|rank| !self.appears(&rank.to_string())) {
                self.publish(NOT_ALL);
                return Roll::NotFull(Some(missing(rank)));
            }
            if !self.publish(ALL) {
                // By which the others see that nothing more will come.
                self.take_back("0");
                return Roll::NotFull(Some("the launcher does not keep names".into()));
            }
            GIVEN.store(true, Ordering::Relaxed);
        }
        Roll::Full
    }

    /// The part of any other.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn answer(&self, rank: c_int) -> Roll {
        let own = rank.to_string();
        // SAFETY: as above.
        unsafe {
            if !self.publish(&own) {
                return Roll::Full;
            }
            if !self.appears("0") {
                self.publish(&alone(rank));
                self.take_back(&own);
                if !self.is_there("0") {
                    return Roll::NotFull(self.is_to_tell(rank).then(|| missing(0)));
                }
            }
            let mut pause = FIRST_PAUSE;
            loop {
                if self.is_there(ALL) {
                    self.leave_behind(&own);
                    return Roll::Full;
                }
                if self.is_there(NOT_ALL) || !self.is_there("0") {
                    return Roll::NotFull(None);
                }
                wait(&mut pause);
            }
        }
    }

    /// Whether this is the lowest of those that have found rank 0 to be missing. Commands and nodes
    /// have ranks in a row, so that the nearest is asked for first.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn is_to_tell(&self, rank: c_int) -> bool {
        // SAFETY: as above.
        let is_here = |rank: c_int| unsafe {
            self.is_there(&alone(rank)) || self.is_there(&rank.to_string())
        };
        !(1..rank).rev().any(is_here)
    }

    /// Waits for a name, but not for ever.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn appears(&self, name: &str) -> bool {
        let since = Instant::now();
        let mut pause = FIRST_PAUSE;
        // SAFETY: as above.
        while !unsafe { self.is_there(name) } {
            if since.elapsed() > PATIENCE {
                return false;
            }
            wait(&mut pause);
        }
        true
    }

    /// # Safety
    /// MPI must be initialised.
    unsafe fn publish(&self, name: &str) -> bool {
        let (name, publish) = (self.full(name), self.library.publish_name);
        // SAFETY: MPI is initialised (contract of this function); both are C strings that outlive the call.
        unsafe { publish(name.as_ptr(), self.library.constants.no_info, PORT.as_ptr()) == 0 }
    }

    /// # Safety
    /// MPI must be initialised.
    unsafe fn is_there(&self, name: &str) -> bool {
        // More than any library's MPI_MAX_PORT_NAME (256 or 1024).
        let mut port: [c_char; 4096] = [0; 4096];
        let (name, look_up) = (self.full(name), self.library.lookup_name);
        // SAFETY: as above; the port has room for what was published.
        unsafe { look_up(name.as_ptr(), self.library.constants.no_info, port.as_mut_ptr()) == 0 }
    }

    /// That a name can't be taken back harms nobody: it ends with the job.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn take_back(&self, name: &str) {
        let (name, take_back) = (self.full(name), self.library.unpublish_name);
        // SAFETY: as above.
        unsafe { take_back(name.as_ptr(), self.library.constants.no_info, PORT.as_ptr()) };
    }

    /// A name that nobody asks for any more, nor any other job where it has the name of this world: a launcher of PMIx
    /// forgets it with the job, sooner than it answers while the processes compute.
    ///
    /// # Safety
    /// MPI must be initialised.
    unsafe fn leave_behind(&self, name: &str) {
        if self.world.is_empty() {
            // SAFETY: as above.
            unsafe { self.take_back(name) };
        }
    }

    fn full(&self, name: &str) -> CString {
        // There is no zero byte in what is put together here.
        CString::new(format!("colibri.{}.{name}", self.world)).unwrap_or_default()
    }
}

/// Between two looks; the next time longer.
fn wait(pause: &mut Duration) {
    sleep(*pause);
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}

/// Waits until all processes are here, asleep: those that still ask the launcher wait for milliseconds where others keep
/// its processor busy.
///
/// # Safety
/// MPI must be initialised, and all processes of the world must do this.
unsafe fn meet(library: &Mpi) {
    let status = library.constants.status_ignore as *mut c_void;
    let (mut request, mut has_ended): (Handle, c_int) = (0, 0);
    // SAFETY: all processes are here (contract of this function), and the request is tested until it has ended.
    unsafe {
        let mut code = (library.ibarrier)(library.constants.world, &mut request);
        while code == 0 && has_ended == 0 {
            code = (library.test)(&mut request, &mut has_ended, status);
            if has_ended == 0 {
                sleep(FIRST_PAUSE);
            }
        }
    }
}

fn missing(rank: c_int) -> String {
    format!(
        "rank {rank} of the job is without this library (does the launcher pass LD_PRELOAD to \
         every command and node?)"
    )
}

/// By which a process says that it takes rank 0 to be missing.
fn alone(rank: c_int) -> String {
    format!("{rank}.alone")
}

/// Where errors of names are raised, according to the MPI library: the handlers of both, after
/// they have been replaced by one that returns.
unsafe fn returning_errors(library: &Mpi) -> Option<[Handle; 2]> {
    let mut handlers = [0, 0];
    // SAFETY: MPI is initialised; the communicators are its own.
    let code = unsafe {
        let mut code = 0;
        for (comm, handler) in
            [library.constants.world, library.constants.own].into_iter().zip(&mut handlers)
        {
            code |= (library.comm_get_errhandler)(comm, handler);
        }
        for comm in [library.constants.world, library.constants.own] {
            code |= (library.comm_set_errhandler)(comm, library.constants.errors_return);
        }
        code
    };
    (code == 0).then_some(handlers)
}

unsafe fn restore(library: &Mpi, handlers: [Handle; 2]) {
    for (comm, mut handler) in
        [library.constants.world, library.constants.own].into_iter().zip(handlers)
    {
        // SAFETY: as above; the handler was got from this communicator.
        unsafe {
            (library.comm_set_errhandler)(comm, handler);
            (library.errhandler_free)(&mut handler);
        }
    }
}
