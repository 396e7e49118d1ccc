//! One rank's part of a collective, on MPI.

use std::{ffi::c_int, mem, ptr, slice};

use records::Collective;
use schedules::{Call, Round};

use crate::{
    Arguments, Error, Handle, Method, Reduction, Result, Session,
    agreed::{Agreed, Vectors, too_many},
    duplicate::{Duplicate, Member},
    execution::{Execution, Memory},
    layout::Layout,
    limit::Limit,
    packing::Packing,
    scratch::{Resources, Scratch},
    sides::{Load, Side, Sides},
    types::Types,
};

/// Carries out collectives, one at a time.
///
/// Memory and requests are kept from call to call, so that a call like an earlier one allocates
/// nothing; of each of the two buffers up to 64 MiB are kept.
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
    session: &'static Session,
    round: Round,
    resources: Resources,
    longest: c_int,
    limit: Option<Limit>,
    ran: Option<Method>,
    types: Types,
    last: Option<Last>,
}

/// The communicator of the last call.
#[derive(Debug, Clone, Copy)]
struct Last {
    comm: Handle,
    member: Member,
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
            longest: c_int::MAX,
            limit: None,
            ran: None,
            types: Types::default(),
            last: None,
        }
    }

    /// With another number of elements above which a message is described by a type of blocks,
    /// so that what is done above 2^31 can be tried with little memory.
    #[must_use]
    pub fn with_longest(self, longest: c_int) -> Self {
        Executor { longest: longest.max(1), ..self }
    }

    /// With a limit in bytes to the scratch memory of a call, the same on all ranks; what may
    /// exceed it on any rank is refused by [`Executor::accepts`] on all.
    ///
    /// Counted is what the algorithm needs on the rank where it needs most, and the packed form of
    /// the data that is moved, whether this rank has to pack or not, since others may have to; not
    /// the gaps between the elements of a reduction. What gatherv and scatterv need depends on
    /// counts that only the root knows, so that with a limit they are refused.
    #[must_use]
    pub fn with_scratch_limit(self, bytes: u64) -> Self {
        Executor { limit: Some(Limit::new(bytes)), ..self }
    }

    /// What was carried out last, since the last [`Executor::forget`].
    pub fn ran(&self) -> Option<&Method> {
        self.ran.as_ref()
    }

    /// Forgets what was carried out.
    pub fn forget(&mut self) {
        self.ran = None;
    }

    /// Whether a method can carry out a call. It depends only on what MPI demands to be equal on
    /// all ranks of `comm` (the collective, the root, the operation, the size of the communicator
    /// and of the message), so that all ranks come to the same answer without a message; nothing
    /// is sent, and no communicator is made.
    ///
    /// After this, [`Executor::run`] fails only where MPI does, where memory is lacking, or where
    /// this rank's arguments are wrong by MPI's own rules ([`Error::Invalid`]).
    ///
    /// # Safety
    /// As [`Executor::run`].
    ///
    /// # Errors
    /// [`Error::Refused`] says why it can't; [`Error::Invalid`] and [`Error::Mpi`] say what is
    /// wrong with the call.
    pub unsafe fn accepts(
        &mut self,
        method: &Method,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for all arguments.
        unsafe {
            let member = self.member(comm)?;
            self.agree(method, arguments, member, comm).map(|_| ())
        }
    }

    /// Carries out a collective by one of our algorithms.
    ///
    /// # Safety
    /// The arguments must be as MPI demands for their collective, with handles of the session's
    /// library, on all ranks of `comm`, and these must all call it with the same method. Wrong
    /// counts, roots and methods are refused.
    ///
    /// # Errors
    /// See [`Error`], and [`Executor::accepts`] for what is refused.
    pub unsafe fn run(
        &mut self,
        method: &Method,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for all arguments.
        unsafe {
            let member = self.member(comm)?;
            let agreed = self.agree(method, arguments, member, comm)?;
            if let Some(data) = arguments.reduction() {
                self.combine(method, data, &agreed, member, comm)?;
            } else {
                let mpi = &self.session.mpi;
                let sides = Sides::of(mpi, &self.types, arguments, &agreed, member)?;
                self.move_data(method, &sides, &agreed, member, comm)?;
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
    unsafe fn member(&mut self, comm: Handle) -> Result<Member> {
        let released = self.session.released();
        match self.last {
            Some(last) if last.comm == comm && last.released == released => Ok(last.member),
            _ => {
                // SAFETY: the caller vouches for the communicator.
                let member = unsafe { self.session.member(comm)? };
                self.last = member.has_duplicate().then_some(Last { comm, member, released });
                Ok(member)
            }
        }
    }

    /// What all ranks know of the call, and that the method can carry it out.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn agree(
        &mut self,
        method: &Method,
        arguments: &Arguments,
        member: Member,
        comm: Handle,
    ) -> Result<Agreed> {
        let (wanted, collective) = (method.collective(), arguments.collective());
        if wanted != collective {
            let problem = format!("{method} is a method of {wanted}, not {collective}");
            return Err(Error::Refused(problem));
        }
        let mpi = &self.session.mpi;
        self.types.begin_call();
        // SAFETY: the caller vouches for the arguments, which hold a count per rank.
        let agreed = unsafe {
            let agreed = Agreed::of(mpi, &self.types, arguments, member)?;
            if let Arguments::ReduceScatter { counts, .. } = arguments {
                self.resources.vectors.set_contiguous(*counts, member.size, agreed.unit)?;
            }
            self.session.check_packing(comm)?;
            agreed
        };
        let call = agreed.call(method, member.size, &self.resources.vectors);
        method.entry.check(&call).map_err(|error| Error::Refused(error.to_string()))?;
        if let Some(limit) = &mut self.limit {
            limit.check(method, &call, &agreed)?;
        }
        Ok(agreed)
    }

    /// Runs a collective that combines data: on the application's own elements, whose layout the
    /// operation may have to know.
    ///
    /// # Safety
    /// As [`Executor::run`]; the method has been agreed on.
    unsafe fn combine(
        &mut self,
        method: &Method,
        data: &Reduction,
        agreed: &Agreed,
        member: Member,
        comm: Handle,
    ) -> Result<()> {
        let mpi = &self.session.mpi;
        let layout = self.types.of(mpi, data.datatype)?.layout;
        let in_place = data.send.addr() == mpi.constants.in_place;
        if in_place && method.collective() == Collective::Reduce && member.rank != agreed.root {
            return Err(Error::Invalid("MPI_IN_PLACE is for the root alone".to_owned()));
        }
        let vectors = mem::take(&mut self.resources.vectors);
        let call = Call { in_place, ..agreed.call(method, member.size, &vectors) };
        layout.span(longest_buffer(&call, method.collective())?)?;
        // SAFETY: the application's buffers hold these elements where MPI looks at them.
        let outcome = unsafe {
            let comm = self.session.duplicate(comm, member)?;
            let buffers = (data.send.cast::<u8>().cast_mut(), data.receive.cast());
            self.execute(method, &call, comm, layout, buffers, data.operation)
        };
        self.keep(vectors, outcome)
    }

    /// Runs a collective that moves data, or nothing: as bytes, since ranks may describe it by
    /// different types of one signature. What doesn't lie in memory as its bytes is packed.
    ///
    /// # Safety
    /// As [`Executor::run`]; the method has been agreed on.
    unsafe fn move_data(
        &mut self,
        method: &Method,
        sides: &Sides,
        agreed: &Agreed,
        member: Member,
        comm: Handle,
    ) -> Result<()> {
        let mpi = &self.session.mpi;
        let mut vectors = mem::take(&mut self.resources.vectors);
        let is_vector = agreed.packed.is_none();
        if is_vector {
            sides.set_vectors(&mut vectors)?;
        }
        let mut call = agreed.call(method, member.size, &vectors);
        call.in_place = sides.in_place;
        if is_vector {
            (call.counts, call.displacements) = (&vectors.counts, &vectors.displacements);
        }
        let scratch = |side: Option<Side>| side.map_or(0, |side| side.scratch());
        let sent = scratch(sides.send);
        let packed = self.resources.packed.reserve(sent + scratch(sides.receive))?;
        let send = sides.send.map_or(ptr::null_mut(), |side| side.message(packed));
        let receive =
            sides.receive.map_or(ptr::null_mut(), |side| side.message(packed.wrapping_add(sent)));
        // SAFETY: the application's buffers are as it says, the packed ones have been reserved.
        let outcome = unsafe {
            let comm = self.session.duplicate(comm, member)?;
            let longest = self.longest;
            let packing = |layout| Packing { mpi, comm: comm.comm, layout, longest };
            if let Some(side) = &sides.send {
                side.pack(&packing(side.layout()), send)?;
            }
            if let Some(side) = &sides.receive {
                match sides.load {
                    Load::Nothing => {}
                    Load::Own => side.pack_block(&packing(side.layout()), receive, comm.rank)?,
                    Load::All => side.pack(&packing(side.layout()), receive)?,
                }
            }
            let bytes = Layout::bytes(mpi);
            let outcome = self.execute(method, &call, comm, bytes, (send, receive), 0);
            match &sides.receive {
                Some(side) if sides.store && outcome.is_ok() => {
                    side.unpack(&packing(side.layout()), receive)
                }
                _ => outcome,
            }
        };
        self.keep(vectors, outcome)
    }

    /// Keeps the vectors for the next call; after a failure messages may still be reading them.
    fn keep(&mut self, vectors: Vectors, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) => self.resources.vectors = vectors,
            Err(_) => mem::forget(vectors),
        }
        outcome
    }

    /// Runs all rounds of this rank's program.
    ///
    /// # Safety
    /// The buffers (send, receive) must hold what the schedule of the call reads and writes there.
    unsafe fn execute(
        &mut self,
        method: &Method,
        call: &Call<'_>,
        comm: Duplicate,
        layout: Layout,
        (send, receive): (*mut u8, *mut u8),
        operation: Handle,
    ) -> Result<()> {
        let entry = method.entry;
        let needs = entry.needs(call, comm.rank);
        let Resources { temporary, requests, header, .. } = &mut self.resources;
        let room = |needed: u64, temporary: &mut Scratch| {
            let (base, bytes) = layout.placement(needed).map_err(|_| Error::Memory(usize::MAX))?;
            Ok(temporary.reserve(bytes)?.wrapping_offset(base))
        };
        let slots = needs.slots as usize;
        if requests.len() < slots {
            requests.resize(slots, 0);
        }
        let words = needs.header as usize;
        header.clear();
        header.resize(words, 0);
        let header = header.as_mut_ptr();
        let memory = Memory {
            send,
            receive,
            // With a header, it is known only after round 0.
            temporary: room(if words == 0 { needs.temporary } else { 0 }, temporary)?,
            counts: call.counts.as_ptr().cast_mut().cast(),
            header: header.cast(),
        };
        let (mpi, longest) = (&self.session.mpi, self.longest);
        let mut execution = Execution { mpi, comm, layout, memory, operation, longest, requests };
        self.ran = Some(*method);
        let mut index = 0;
        loop {
            // Round 0 brings the header.
            let known = if index == 0 { 0 } else { words };
            // SAFETY: it has so many words, and no message writes to them any more.
            let call = Call { header: unsafe { slice::from_raw_parts(header, known) }, ..*call };
            if index == 1 && words > 0 {
                let needed = entry.needs(&call, comm.rank).temporary;
                execution.memory.temporary = room(needed, temporary)?;
            }
            if !entry.round(&call, comm.rank, index, &mut self.round) {
                return Ok(());
            }
            // SAFETY: the checker has shown that the steps stay within the buffers.
            if let Err(error) = unsafe { execution.steps(self.round.steps()) } {
                self.resources.abandon();
                return Err(error);
            }
            if self.round.is_last() {
                return Ok(());
            }
            index += 1;
        }
    }
}

/// Elements of the longest buffer of a reduction.
fn longest_buffer(call: &Call<'_>, collective: Collective) -> Result<u64> {
    match collective {
        Collective::ReduceScatter => Ok(call.counts.iter().sum()),
        Collective::ReduceScatterBlock => {
            let all = call.count.checked_mul(u64::from(call.ranks));
            all.ok_or_else(|| too_many(call.count))
        }
        _ => Ok(call.count),
    }
}
