//! One rank's part of a collective, on MPI.

use std::{ffi::c_int, sync::Arc};

use schedules::Round;

#[cfg(test)]
use crate::window::Window;
use crate::{
    Arguments, Counts, Error, Handle, MemoryProgram, Result, ScheduledMethod, Session,
    agreed::UniformArguments,
    duplicate::CommunicatorMember,
    limit::Limit,
    programs::{ProgramKey, Programs},
    scratch::Resources,
    sides::ApplicationBuffers,
};

/// Carries out collectives, one at a time.
///
/// Memory, requests and the programs of the last calls are kept from call to call, so that a call
/// like an earlier one allocates nothing and is not worked out again; of each of the two buffers
/// up to 64 MiB are kept.
///
/// Return codes of MPI are returned. The caller passes them to the error handler of the
/// application's communicator.
///
/// A thread has an executor of its own. Threads that call at the same time, each on another
/// communicator, need `MPI_THREAD_MULTIPLE` and no more: what they share, the session, does not
/// change, and the attribute by which a communicator has its duplicate is the communicator's. Two
/// collectives at the same time on one communicator are against MPI's rules, by us as by MPI.
#[derive(Debug)]
pub struct Executor {
    pub(crate) session: &'static Session,
    pub(crate) round: Round,
    pub(crate) resources: Resources,
    pub(crate) programs: Programs,
    pub(crate) longest: c_int,
    pub(crate) limit: Limit,
    pub(crate) ran: Option<ScheduledMethod>,
    last: Option<Last>,
    /// Whether the last call followed a program of memory alone.
    pub(crate) is_in_memory: bool,
}

/// The communicator of the last call.
#[derive(Debug, Clone, Copy)]
struct Last {
    comm: Handle,
    member: CommunicatorMember,
    /// See [`Session::released`].
    released: u64,
}

impl Executor {
    /// In a session of this process.
    pub fn new(session: &'static Session) -> Self {
        Executor {
            session,
            round: Round::default(),
            resources: Resources::default(),
            programs: Programs::default(),
            longest: c_int::MAX,
            limit: Limit::usual(),
            ran: None,
            last: None,
            is_in_memory: false,
        }
    }

    /// With another number of elements above which a message is described by a type of blocks,
    /// so that what is done above 2^31 can be tried with little memory.
    #[must_use]
    pub fn with_longest(self, longest: c_int) -> Self {
        Executor { longest: longest.max(1), programs: Programs::default(), ..self }
    }

    /// With a limit in bytes to the scratch memory of a call, the same on all ranks; what may
    /// exceed it on any rank is refused on all.
    ///
    /// Counted is what is allocated for the algorithm on the rank where it needs most, with the gaps
    /// between the elements of a reduction, and the packed form of the data that is moved, whether
    /// this rank has to pack or not, since others may have to. What gatherv and scatterv need depends
    /// on counts that only the root knows, so that with a limit they are refused.
    ///
    /// Without this, a limit of 64 MiB holds for reductions of elements that reach beyond their extent
    /// or have more gaps than data, whose scratch memory may be many times the data; no other.
    #[must_use]
    pub fn with_scratch_limit(self, bytes: u64) -> Self {
        Executor { limit: Limit::new(bytes), programs: Programs::default(), ..self }
    }

    /// With another number of messages than [`Window::MESSAGES`], so that few are enough to try what is done
    /// when a window is full.
    #[cfg(test)]
    pub(crate) fn with_window(mut self, messages: u32) -> Self {
        self.resources.window = Window::new(messages);
        self
    }

    /// What the last call was carried out by.
    pub fn ran(&self) -> Option<&ScheduledMethod> {
        self.ran.as_ref()
    }

    /// The program of the last call, if it followed that of an earlier one and went through shared memory alone.
    pub fn memory_program(&self) -> Option<&Arc<MemoryProgram>> {
        self.programs.last().filter(|_| self.is_in_memory)?.memory.as_ref()
    }

    /// Gives up what is kept of communicators that have been freed.
    pub fn forget_freed_communicators(&mut self) {
        self.programs.forget_freed_communicators(self.session.released());
    }

    /// Carries out a collective by one of our algorithms.
    ///
    /// What is refused is refused before anything is sent, on all ranks alike: it follows from what MPI demands to be
    /// equal on all ranks of `comm` (the collective, the root, the operation, the size of the communicator and of the
    /// message), and from its nodes.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, with handles of the
    /// session's library, and all ranks must call this with the same method. Wrong counts, roots and methods
    /// are refused.
    ///
    /// # Errors
    /// [`Error::Refused`] says why it can't; [`Error::Invalid`] what is wrong with this rank's arguments by MPI's own
    /// rules; else MPI fails or memory is lacking.
    pub unsafe fn run(
        &mut self,
        method: &ScheduledMethod,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        (self.ran, self.is_in_memory) = (None, false);
        // SAFETY: the call's contract is this function's; the key is of these arguments, and what isn't like an
        // earlier call is agreed on first.
        unsafe {
            let ranks = self.known_member(comm).map(|member| member.size);
            let key = ProgramKey::from_call(self.session, method, arguments, comm, ranks);
            if let Some(outcome) = key.as_ref().and_then(|key| self.follow(key, arguments)) {
                return outcome;
            }
            let member = self.member(comm)?;
            let agreed = self.uniform_arguments(method, arguments, member, comm)?;
            // Of types that may be others at the next call no program is kept.
            let key = key.filter(|_| agreed.is_plain);
            if arguments.collective.combines() {
                self.combine(key, method, arguments, &agreed, (comm, member))?;
            } else {
                let sides = ApplicationBuffers::from_arguments(self.session, arguments, member)?;
                let key = key.filter(|_| sides.are_plain());
                self.move_data(key, method, &sides, &agreed, (comm, member))?;
            }
        }
        self.resources.trim();
        Ok(())
    }

    /// This rank's place in a communicator, which MPI is not asked for again and again. The handle
    /// may have become another communicator's, but not before MPI gave up the duplicate.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn member(&mut self, comm: Handle) -> Result<CommunicatorMember> {
        match self.known_member(comm) {
            Some(member) => Ok(member),
            None => {
                let released = self.session.released();
                // SAFETY: `comm` is a communicator (the call's contract).
                let member = unsafe { self.session.member(comm)? };
                self.last = member.has_duplicate().then_some(Last { comm, member, released });
                Ok(member)
            }
        }
    }

    /// This rank's place in a communicator, if the last call was on it.
    fn known_member(&self, comm: Handle) -> Option<CommunicatorMember> {
        let is_it = |last: &Last| last.comm == comm && last.released == self.session.released();
        self.last.filter(is_it).map(|last| last.member)
    }

    /// What all ranks know of the call, and that the method can carry it out.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn uniform_arguments(
        &mut self,
        method: &ScheduledMethod,
        arguments: &Arguments,
        member: CommunicatorMember,
        comm: Handle,
    ) -> Result<UniformArguments> {
        let (wanted, collective) = (method.collective(), arguments.collective);
        if wanted != collective {
            let problem = format!("{method} is a method of {wanted}, not {collective}");
            return Err(Error::Refused(problem));
        }
        // SAFETY: handles are live, and `counts` has an entry for each of the `member.size` ranks (the call's
        // contract).
        let agreed = unsafe {
            let agreed = UniformArguments::of(self.session, arguments, member)?;
            if let Counts::PerRank { counts, displacements: None } = arguments.send.counts {
                self.resources.vectors.set_contiguous(counts, member.size, agreed.unit())?;
            }
            self.session.check_packing(comm)?;
            agreed
        };
        let call = agreed.call(method, member.size, &self.resources.vectors);
        let checked = match method.is_node_aware() || method.uses_shared_memory() {
            true => method.entry.check_on_any_nodes(&call),
            false => method.entry.check(&call),
        };
        checked.map_err(|error| Error::Refused(error.to_string()))?;
        if method.uses_shared_memory() && !agreed.layout.is_dense() {
            let problem = format!("{method}: elements with gaps don't go through shared memory");
            return Err(Error::Refused(problem));
        }
        self.limit.check(method, &call, &agreed)?;
        Ok(agreed)
    }
}
