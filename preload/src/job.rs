//! What holds in this process between `MPI_Init` and `MPI_Finalize`.

use std::{
    collections::HashMap,
    ptr,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
    time::Instant,
};

use records::Layout;
use runner::{Handle, MethodRunner, Mpi, Runnable, Session};

use crate::{
    choice::MethodTables,
    exploring::Exploring,
    gpu, library,
    lock::lock,
    settings::{self, PreloadSettings, SettingFault},
    usage::UsageCounts,
};

/// Everything that calls need.
pub struct JobContext {
    /// The session's table.
    pub library: &'static Mpi,
    pub settings: PreloadSettings,
    pub session: &'static Session,
    /// Whether this process may have buffers on a GPU.
    pub has_gpu: bool,
    /// A communicator of this process alone that returns errors: on it arguments are tried.
    pub alone: Handle,
    /// A communicator of all processes, on which what they have done is gathered; where that is asked for.
    pub gathering: OnceLock<Handle>,
    pub usage: UsageCounts,
    /// Where methods are tried while the application runs.
    pub exploring: Option<Exploring>,
    pub started: Instant,
    /// Those that no call is using.
    ///
    /// Boxed: a runner is some KiB, and a short call would copy it twice.
    #[allow(clippy::vec_box, reason = "they are moved in and out at each call")]
    runners: Mutex<Vec<Box<MethodRunner>>>,
    tables: Mutex<HashMap<(u32, Option<Layout>), &'static MethodTables>>,
    untuned: Mutex<HashMap<(u32, Option<Layout>), &'static MethodTables>>,
    /// Whether the application's operation is defined for a datatype; see `carry_out`. Who holds it makes a collective
    /// call on `alone`.
    pub tried: Mutex<HashMap<(Handle, Handle), bool>>,
    /// Whether the job's ranks are on several nodes, as far as this is looked at (see `communicators`).
    pub has_several_nodes: AtomicBool,
}

static JOB: AtomicPtr<JobContext> = AtomicPtr::new(ptr::null_mut());

impl JobContext {
    /// Nothing before `MPI_Init` and after `MPI_Finalize`.
    #[inline]
    pub fn current() -> Option<&'static JobContext> {
        // SAFETY: null, or a job that was leaked.
        unsafe { JOB.load(Ordering::Acquire).as_ref() }
    }

    /// From here on this is the current job, to the end of the process or [`JobContext::leave`].
    pub fn enter(self) -> &'static JobContext {
        let job: &'static JobContext = Box::leak(Box::new(self));
        JOB.store(ptr::from_ref(job).cast_mut(), Ordering::Release);
        job
    }

    /// From here on there is none.
    pub fn leave() {
        JOB.store(ptr::null_mut(), Ordering::Release);
    }

    /// What a thread carries out one call with; to be given back by [`JobContext::give_back`]. No lock is
    /// held meanwhile, so that threads on different communicators don't wait for each other.
    pub fn take_runner(&self) -> Box<MethodRunner> {
        let spare = lock(&self.runners).pop();
        spare.unwrap_or_else(|| {
            let runner = MethodRunner::new(self.session, self.settings.limits());
            Box::new(match self.settings.memory_bytes {
                Some(bytes) => runner.with_scratch_limit(bytes),
                None => runner,
            })
        })
    }

    pub fn give_back(&self, runner: Box<MethodRunner>) {
        lock(&self.runners).push(runner);
    }

    /// Has the runners that no thread uses give up what they keep of communicators that are no more.
    pub fn forget_freed_communicators(&self) {
        lock(&self.runners).iter_mut().for_each(|runner| runner.forget_freed_communicators());
    }

    /// The tables for communicators of a size and, where a profile asks for it, a layout; made once.
    pub fn tables(&self, procs: u32, layout: Option<Layout>) -> &'static MethodTables {
        let mut tables = lock(&self.tables);
        tables.entry((procs, layout)).or_insert_with(|| {
            let PreloadSettings { forced, profiles, .. } = &self.settings;
            Box::leak(Box::new(MethodTables::new(
                forced,
                profiles,
                procs,
                layout,
                self.is_watched(),
            )))
        })
    }

    /// Tables without any method, for a communicator of so many processes; calls are noted as on others.
    pub fn untuned_tables(&self, procs: u32, layout: Option<Layout>) -> &'static MethodTables {
        let mut tables = lock(&self.untuned);
        tables.entry((procs, layout)).or_insert_with(|| {
            Box::leak(Box::new(MethodTables::new(&[], &[], procs, layout, self.is_watched())))
        })
    }

    /// Tables for communicators of a size on which everything is left to the library.
    pub fn idle_tables(procs: u32) -> &'static MethodTables {
        static IDLE: Mutex<Vec<&'static MethodTables>> = Mutex::new(Vec::new());
        let mut idle = lock(&IDLE);
        if let Some(tables) = idle.iter().find(|tables| tables.procs == procs) {
            return tables;
        }
        let tables: &'static MethodTables = Box::leak(Box::new(MethodTables::idle(procs)));
        idle.push(tables);
        tables
    }

    /// Whether any call may be replaced or is noted.
    pub fn has_anything_to_do(&self) -> bool {
        let PreloadSettings { forced, profiles, .. } = &self.settings;
        let is_exploring = self.exploring.as_ref().is_some_and(Exploring::is_on);
        let has_methods = !forced.is_empty() || !profiles.is_empty() || is_exploring;
        self.is_watched() || (has_methods && !gpu::is_agreed())
    }

    pub fn is_watched(&self) -> bool {
        self.settings.trace.is_some() || self.settings.footer
    }

    /// After `MPI_Init`.
    ///
    /// # Errors
    /// There is no MPI library that is known, or it refuses.
    pub fn open() -> Result<(Self, Option<SettingFault>), String> {
        let session = Session::open(library::find()?).map_err(|error| error.to_string())?;
        let library = session.mpi();
        let (outcome, digest) = settings::read();
        let (settings, fault) = match outcome {
            Ok(settings) => (settings, None),
            Err(fault) => (PreloadSettings { digest, ..PreloadSettings::default() }, Some(fault)),
        };
        let forced = settings.forced.iter().filter_map(|(_, choice)| choice.as_ref());
        session.set_shared_memory(
            settings.shared_bytes.unwrap_or(Session::SHARED_MEMORY_BYTES),
            forced.map(Runnable::method).any(|method| method.shares_memory())
                || settings.exploring.as_ref().is_some_and(|exploring| exploring.by_turns),
        );
        let is_on_host = settings.is_on_host;
        let mut alone = 0;
        let refused = |code| format!("the MPI library refuses what is needed (error code {code})");
        // SAFETY: MPI is initialised; handles are the library's, outputs are locals.
        let code = unsafe {
            (library.comm_split)(library.constants.own, 0, 0, &mut alone)
                | (library.comm_set_errhandler)(alone, library.constants.errors_return)
        };
        if code != 0 {
            return Err(refused(code));
        }
        let exploring = settings.exploring.as_ref();
        let exploring = exploring.map(|settings| Exploring::new(settings, library::version()));
        let job = JobContext {
            library,
            settings,
            session,
            // What ends the job is printed first.
            has_gpu: fault.is_none() && !is_on_host && gpu::is_loaded(),
            alone,
            gathering: OnceLock::new(),
            usage: UsageCounts::default(),
            exploring,
            started: Instant::now(),
            runners: Mutex::default(),
            tables: Mutex::default(),
            untuned: Mutex::default(),
            tried: Mutex::default(),
            has_several_nodes: AtomicBool::new(false),
        };
        Ok((job, fault))
    }

    /// Gives back to MPI what `open` took.
    ///
    /// # Safety
    /// No call may use it any more.
    pub unsafe fn free(&self) {
        let mut alone = self.alone;
        // SAFETY: made by `open`.
        unsafe { (self.library.comm_free)(&mut alone) };
    }
}
