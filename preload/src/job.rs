//! What holds in this process between `MPI_Init` and `MPI_Finalize`.

use std::{
    collections::HashMap,
    env,
    ffi::{c_int, c_void},
    io::Write,
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use runner::{Handle, Session};

use crate::{
    choice::Plans,
    communicators, gpu,
    library::Library,
    roll_call::{self, Roll},
    settings::{self, Fault, Settings},
    types::Types,
    usage::{self, Usage},
    worker::Worker,
};

/// Everything that calls need.
pub struct Job {
    pub library: Library,
    pub settings: Settings,
    pub session: &'static Session,
    /// Of the attribute by which communicators are known.
    pub keyval: c_int,
    /// Whether this process may have buffers on a GPU.
    pub has_gpu: bool,
    /// A communicator of this process alone that returns errors: on it arguments are tried.
    pub alone: Handle,
    pub types: Types,
    pub usage: Usage,
    pub started: Instant,
    /// Those that no call is using.
    workers: Mutex<Vec<Worker>>,
    plans: Mutex<HashMap<(u32, Option<u32>), &'static Plans>>,
    untuned: Mutex<HashMap<u32, &'static Plans>>,
    /// Whether the application's operation is defined for a datatype; see `carry_out`.
    pub tried: Mutex<HashMap<(Handle, Handle), bool>>,
}

const ON_GPU: &str = "a process has a GPU's runtime loaded (CUDA, HIP or Level Zero), so that buffers may \
    lie on the GPU: every call is left to the MPI library; COLIBRI_GPU=host says that all buffers are \
    in the host's memory";

static JOB: AtomicPtr<Job> = AtomicPtr::new(ptr::null_mut());

/// A table behind a poisoned lock is still a table: nothing in it can be half written that matters.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line for the user; where it can't be written there is nobody to tell. In one piece, so that a
/// launcher which ends the job meanwhile has all of it or none.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("colibri: {text}\n").as_bytes());
}

/// Waits, for a second at most, until who reads standard error has read what was said: MPICH's launcher
/// drops what it hasn't read when a process ends the job.
fn wait_until_read() {
    let begin = Instant::now();
    let mut unread: c_int = 0;
    while begin.elapsed() < Duration::from_secs(1) {
        // SAFETY: the output is a local. Of a pipe it tells the bytes that nobody has read.
        let code = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::FIONREAD, &mut unread) };
        if code != 0 || unread == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    // It has yet to hand it on.
    thread::sleep(Duration::from_millis(100));
}

impl Job {
    /// Nothing before `MPI_Init` and after `MPI_Finalize`.
    #[inline]
    pub fn current() -> Option<&'static Job> {
        // SAFETY: null, or a job that was leaked.
        unsafe { JOB.load(Ordering::Acquire).as_ref() }
    }

    /// What a thread carries out one call with; to be given back by [`Job::give_back`]. No lock is
    /// held meanwhile, so that threads on different communicators don't wait for each other.
    pub fn worker(&self) -> Worker {
        let spare = lock(&self.workers).pop();
        spare.unwrap_or_else(|| Worker::new(self.session, self.settings.memory_bytes))
    }

    pub fn give_back(&self, worker: Worker) {
        lock(&self.workers).push(worker);
    }

    /// The tables for communicators of a size; made once.
    pub fn plans(&self, procs: u32, nodes: Option<u32>) -> &'static Plans {
        let mut plans = lock(&self.plans);
        plans.entry((procs, nodes)).or_insert_with(|| {
            let Settings { forced, profiles, .. } = &self.settings;
            Box::leak(Box::new(Plans::new(forced, profiles, procs, nodes, self.is_watched())))
        })
    }

    /// The same without any method; calls are noted as on others.
    pub fn untuned_plans(&self, procs: u32) -> &'static Plans {
        let mut plans = lock(&self.untuned);
        plans.entry(procs).or_insert_with(|| {
            Box::leak(Box::new(Plans::new(&[], &[], procs, None, self.is_watched())))
        })
    }

    /// Tables for communicators of a size on which everything is left to the library.
    pub fn idle_plans(procs: u32) -> &'static Plans {
        static IDLE: Mutex<Vec<&'static Plans>> = Mutex::new(Vec::new());
        let mut idle = lock(&IDLE);
        if let Some(plans) = idle.iter().find(|plans| plans.procs == procs) {
            return plans;
        }
        let plans: &'static Plans = Box::leak(Box::new(Plans::idle(procs)));
        idle.push(plans);
        plans
    }

    pub fn is_watched(&self) -> bool {
        self.settings.trace.is_some() || self.settings.footer
    }

    fn open() -> Result<(Self, Option<Fault>), String> {
        let library = Library::find()?;
        let session = Session::open(library.mpi).map_err(|error| error.to_string())?;
        let (outcome, digest) = settings::read();
        let (settings, fault) = match outcome {
            Ok(settings) => (settings, None),
            Err(fault) => (Settings { digest, ..Settings::default() }, Some(fault)),
        };
        let is_on_host = settings.is_on_host;
        let (mut keyval, mut alone) = (0, 0);
        let call = &library.mpi;
        let refused = |code| format!("the MPI library refuses what is needed (error code {code})");
        // SAFETY: MPI is initialised; handles are the library's, outputs are locals.
        let code = unsafe {
            let (copy, delete) = (communicators::copy, communicators::delete);
            (call.comm_create_keyval)(copy, delete, &mut keyval, ptr::null_mut::<c_void>())
                | (call.comm_split)(library.own, 0, 0, &mut alone)
                | (call.comm_set_errhandler)(alone, library.mpi.constants.errors_return)
        };
        if code != 0 {
            return Err(refused(code));
        }
        // SAFETY: as above.
        let types = unsafe { Types::new(&library).map_err(refused)? };
        let job = Job {
            library,
            settings,
            session,
            keyval,
            // What ends the job is told first.
            has_gpu: fault.is_none() && !is_on_host && gpu::is_loaded(),
            alone,
            types,
            usage: Usage::default(),
            started: Instant::now(),
            workers: Mutex::default(),
            plans: Mutex::default(),
            untuned: Mutex::default(),
            tried: Mutex::default(),
        };
        Ok((job, fault))
    }

    /// Gives back to MPI what `open` took.
    ///
    /// # Safety
    /// No call may use it any more.
    unsafe fn free(&self) {
        let (mut alone, mut keyval) = (self.alone, self.keyval);
        // SAFETY: both were made by `open`.
        unsafe {
            (self.library.mpi.comm_free)(&mut alone);
            (self.library.mpi.comm_free_keyval)(&mut keyval);
        }
    }
}

/// After `MPI_Init`.
///
/// # Safety
/// MPI must have just been initialised by this thread; all processes of the world must do this.
pub unsafe fn begin() {
    let (job, fault) = match Job::open() {
        Ok(opened) => opened,
        Err(why) => {
            if is_first_by_launcher() {
                say(&format!("{why}; the application runs untuned"));
            }
            return;
        }
    };
    // SAFETY: MPI has just been initialised.
    if let Roll::NotFull(told) = unsafe { roll_call::call(&job.library) } {
        if let Some(why) = told {
            say(&format!("{why}; the application runs untuned"));
        }
        // SAFETY: it has not been used.
        unsafe { job.free() };
        return;
    }
    let job: &'static Job = Box::leak(Box::new(job));
    JOB.store(ptr::from_ref(job).cast_mut(), Ordering::Release);
    // SAFETY: all processes of the world are here.
    unsafe {
        let world = job.library.world;
        communicators::open(job);
        let met = communicators::meet(world);
        roll_call::over(&job.library);
        let Some(first) = met else { return };
        match fault {
            Some(Fault::Untuned(why)) if first => {
                say(&format!("{why}; the application runs untuned"));
            }
            Some(Fault::Fatal(why)) => {
                if first {
                    say(&why);
                    wait_until_read();
                    (job.library.mpi.abort)(world, 2);
                }
                // The first process ends the job.
                (job.library.mpi.barrier)(world);
            }
            _ if first => {
                job.settings.warnings.iter().for_each(|warning| say(warning));
                usage::warn(job);
                if gpu::is_agreed() {
                    say(ON_GPU);
                }
            }
            _ => {}
        }
    }
}

/// Before `MPI_Finalize`.
///
/// # Safety
/// MPI must be initialised and not finalised; all processes of the world must do this.
pub unsafe fn end() {
    let Some(job) = Job::current() else { return };
    // SAFETY: as above; after this no call comes here any more.
    unsafe {
        if job.is_watched() && communicators::meet(job.library.world).is_some() {
            usage::gather(job);
        }
        communicators::close(job);
        let Library { world, own, .. } = &job.library;
        for comm in [*world, *own] {
            // MPI ends; a communicator that it won't free ends with it.
            let _ = job.session.release(comm);
        }
        job.free();
    }
    JOB.store(ptr::null_mut(), Ordering::Release);
}

/// Whether the launcher calls this process the first; for what goes wrong before MPI can be asked.
fn is_first_by_launcher() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
    ranks.into_iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}
