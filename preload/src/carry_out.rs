//! One call of the application: by a method of ours or by the library.
//!
//! Unsafe functions here rely on "the application's arguments": what an application passed to MPI's function of
//! the collective, for the time of that call. So
//! - a handle that is significant on this rank is a live one of the loaded library, or one that the library
//!   itself refuses when it is asked about it;
//! - an array that is significant on this rank has an entry for each rank of the communicator;
//! - a buffer that is significant on this rank is valid for what count and datatype say, or at an address that
//!   the library refuses, which `judge` sees without following it (Open MPI refuses none, and would itself
//!   crash).
//!
//! All ranks of a communicator make the same call on it, but for those that are refused theirs.

mod call;
mod judging;
mod recent;
mod sides;

use std::{
    ffi::c_int,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use self::judging::Judgement;
pub use self::{
    call::{FirstSight, InterceptedCall, at_first_sight, choose},
    recent::RecentCalls,
};
use records::{Collective, Layout};
use runner::{AbiFamily, Error, Runnable, function_name};

use crate::{say::say, settings::MEMORY};

impl InterceptedCall {
    /// The code of a method of ours, or of `library`: the MPI library's own function with the same
    /// arguments.
    ///
    /// # Safety
    /// As [`choose`].
    #[inline(never)]
    pub unsafe fn carry_out(self, library: &dyn Fn() -> c_int) -> c_int {
        let is_timed = self.explored.is_some_and(|explored| explored.is_timed());
        let is_sampled =
            self.place.new.is_some_and(|entry| entry.is_sampled(self.arguments.collective));
        let is_watched = self.place.tables.watched;
        let started = (is_watched || is_timed || is_sampled).then(Instant::now);
        let ours = self.choice.and_then(|method| {
            // SAFETY: these are the application's arguments (contract of `choose`), and all ranks have the same
            // choice for them.
            let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { self.run_or_decline(method) }));
            outcome.unwrap_or_else(|_| self.end_after_fault())
        });
        let ours = ours.map(|outcome| self.number(outcome));
        let code = ours.unwrap_or_else(|| {
            // The application's error handler may throw an exception, which tells no code: it counts as a call that was
            // refused, as most that a program catches and repeats are.
            let thrown = self.explored.and_then(|explored| explored.put_back_if_thrown());
            let code = library();
            mem::forget(thrown);
            code
        });
        // Before the handler of what a method of ours has found, which may throw, too.
        self.book(started, ours, code);
        if let Some(code) = ours {
            self.raise(code);
        }
        code
    }

    /// What is to be known of a call after it. `ours`: the code of a method of ours; `code`: what the application gets.
    fn book(&self, started: Option<Instant>, ours: Option<c_int>, code: c_int) {
        let is_sampled =
            self.place.new.is_some_and(|entry| entry.is_sampled(self.arguments.collective));
        let is_watched = self.place.tables.watched;
        if let Some(entry) = self.place.new {
            if let Some(started) = started.filter(|_| is_sampled) {
                entry.add_sample(started.elapsed());
            }
            // SAFETY: the application is between `MPI_Init` and `MPI_Finalize`.
            unsafe { entry.count(self.arguments.collective, code) };
        }
        if let Some(explored) = self.explored {
            let declined = self.choice.is_some() && ours.is_none();
            // SAFETY: the application is between `MPI_Init` and `MPI_Finalize`; all ranks make this call.
            unsafe { explored.end(self.job, started, declined, code) };
        }
        if let Some(started) = started.filter(|_| is_watched) {
            let ran = self.choice.filter(|_| ours.is_some());
            let collective = self.arguments.collective;
            let tables = self.place.tables;
            // In a job on one node the number of processes tells everything.
            let several_nodes = self.job.has_several_nodes.load(Ordering::Relaxed);
            let layout = tables.layout.filter(|_| several_nodes);
            let layout = layout.unwrap_or(Layout::flat(tables.procs));
            self.job.usage.note(collective, layout, self.bytes, ran, started.elapsed());
        }
    }

    /// A panic of ours ends the job: the other ranks would wait forever.
    #[cold]
    fn end_after_fault(&self) -> ! {
        say(&format!("a fault in {}; the job ends", function_name(self.arguments.collective)));
        let library = &self.job.library;
        // SAFETY: MPI is initialised.
        unsafe { (library.abort)(library.constants.world, 3) };
        std::process::abort()
    }

    /// What came of it, or nothing if the call is the library's: all ranks decide that alike, but for those that it
    /// refuses (see [`Judgement`]).
    ///
    /// # Safety
    /// As [`choose`]; all ranks must have the same method.
    unsafe fn run_or_decline(&self, method: &Runnable) -> Option<Result<(), Error>> {
        // SAFETY: these are the application's arguments, with one method on all ranks (contract of this
        // function), or describe the same data.
        unsafe {
            match self.judge() {
                Judgement::Library => None,
                _ if self.breaks_library(method) => None,
                Judgement::Sound => self.run(method),
                Judgement::InPlace => self.in_place().run(method),
                Judgement::Uncommitted => self.with_committed(|call| call.run_or_decline(method)),
                Judgement::Aside => self.aside(method),
            }
        }
    }

    /// Receives in memory of ours, and then where the application wants it.
    ///
    /// # Safety
    /// As [`choose`]; all ranks must have the same method.
    unsafe fn aside(&self, method: &Runnable) -> Option<Result<(), Error>> {
        // SAFETY: these are the application's arguments (contract of this function); `substitute` has room for
        // all that is received, and `into`, of the application, for as much.
        unsafe {
            let (mut substitute, arguments) = match self.with_substitute() {
                Ok(made) => made,
                Err(error) => return Some(Err(error)),
            };
            let outcome = (InterceptedCall { arguments, ..*self }).run(method)?;
            Some(match (outcome, self.significant().receive) {
                (Ok(()), Some(into)) => substitute.deliver(self.job.session, &into, self.comm),
                (Ok(()), None) => Ok(()),
                (Err(error), _) => {
                    substitute.abandon();
                    Err(error)
                }
            })
        }
    }

    /// Nothing if the method can't carry out the call, here or on any other rank.
    ///
    /// # Safety
    /// As [`choose`]; the call must have been judged to be one that the library does not refuse, and all ranks
    /// must have the same method.
    unsafe fn run(&self, method: &Runnable) -> Option<Result<(), Error>> {
        let mut runner = self.job.take_runner();
        // SAFETY: the arguments were judged, so that handles and buffers are as the call's contract says; one
        // method on all ranks (contract of this function).
        let outcome = unsafe { runner.run(method, &self.arguments, self.comm) };
        if let (Ok(()), Some(recent)) = (&outcome, self.place.recent)
            && let Some(program) = runner.memory_program(method)
        {
            // SAFETY: as above.
            unsafe { recent.remember(self, program) };
        }
        self.job.give_back(runner);
        match outcome {
            // Nothing was sent, here or on any other rank, or it is wrong by MPI's rules.
            Err(Error::Invalid(_)) => None,
            Err(Error::Refused(_)) => {
                self.tell_why_nothing_is_shared();
                None
            }
            outcome => Some(outcome),
        }
    }

    /// Tells the application's error handler what went wrong; gives its code.
    fn code(&self, outcome: Result<(), Error>) -> c_int {
        let code = self.number(outcome);
        self.raise(code);
        code
    }

    /// Tells the application's error handler, if anything went wrong.
    fn raise(&self, code: c_int) {
        if code != 0 {
            // SAFETY: the communicator is the application's.
            unsafe { (self.job.library.comm_call_errhandler)(self.comm, code) };
        }
    }

    /// The code of what went wrong, 0 for nothing; what the code does not tell is said.
    fn number(&self, outcome: Result<(), Error>) -> c_int {
        match outcome {
            Ok(()) => 0,
            Err(Error::Mpi { code, .. }) => code,
            Err(Error::Memory(bytes)) => {
                self.tell(&format!(
                    "no memory for {bytes} bytes of scratch; with a {MEMORY} below that such calls are the \
                     MPI library's"
                ));
                self.job.library.constants.error_memory
            }
            Err(error @ Error::Peer(_)) => {
                self.tell(&error.to_string());
                self.job.library.constants.error_other
            }
            Err(_) => self.job.library.constants.error_other,
        }
    }

    /// A line for the user who asked for it, once, if ranks could not share memory.
    fn tell_why_nothing_is_shared(&self) {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        if self.explored.is_none()
            && let Some(why) = self.job.session.why_nothing_is_shared()
            && !IS_TOLD.swap(true, Ordering::Relaxed)
        {
            say(&format!("{why}; such calls are the MPI library's"));
        }
    }

    /// A line for the user, of this call and its method.
    fn tell(&self, what: &str) {
        let by = self.choice.map(|choice| format!(" by {choice}")).unwrap_or_default();
        say(&format!("{}{by}: {what}", function_name(self.arguments.collective)));
    }

    /// Whether a mock-up would bring the application to a place where MPICH crashes by itself, and
    /// to which it doesn't go without us. Seen in 4.0.2 on 2 ranks: Reduce_scatter_block with an
    /// operation that is not commutative, and Reduce in place of more than 2 KiB where the root is
    /// not rank 0. The same on all ranks.
    ///
    /// # Safety
    /// As [`choose`].
    unsafe fn breaks_library(&self, method: &Runnable) -> bool {
        let library = &self.job.library;
        let (Runnable::Mockup(mockup), AbiFamily::Mpich) = (method, library.constants.family)
        else {
            return false;
        };
        let inner = mockup.name.split_once("_as_").map_or("", |(_, inner)| inner);
        match self.arguments.collective {
            Collective::Allreduce | Collective::Reduce => {
                let mut commutative = 1;
                // SAFETY: the operation is the application's, and no null handle (see `combines`); the output
                // is a local.
                unsafe { (library.op_commutative)(self.arguments.operation, &mut commutative) };
                commutative == 0 && inner.starts_with("reduce_scatter_block")
            }
            Collective::Gather => self.arguments.root != 0 && inner == "reduce",
            _ => false,
        }
    }
}
