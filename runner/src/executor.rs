//! One rank's part of a collective, on MPI.

use std::ffi::{c_int, c_void};

use records::Collective;
use schedules::{Buffer, Call, Order, Range, Round, Step};

use crate::{
    Arguments, Block, Error, Handle, Method, Mpi, Reduction, Result, Session,
    duplicate::Duplicate,
    error::check,
    layout::Layout,
    message::{Content, TAG, copy, pieces},
    packing::Packing,
    scratch::Resources,
};

/// Carries out collectives, one at a time; a program has one per thread that calls them.
///
/// Memory and requests are kept from call to call, so that a call like an earlier one allocates
/// nothing; of each of the two buffers up to 64 MiB are kept.
///
/// Return codes of MPI are returned. The caller passes them to the error handler of the
/// application's communicator.
#[derive(Debug)]
pub struct Executor {
    session: &'static Session,
    round: Round,
    resources: Resources,
    longest: c_int,
    ran: Option<Method>,
}

/// Where element 0 of each of a schedule's buffers lies.
#[derive(Debug, Clone, Copy)]
struct Memory {
    send: *const u8,
    receive: *mut u8,
    temporary: *mut u8,
}

impl Memory {
    fn read(&self, layout: &Layout, range: Range) -> *const u8 {
        match range.buffer {
            Buffer::Send => self.send.wrapping_offset(layout.offset(range.start)),
            _ => self.write(layout, range),
        }
    }

    /// Schedules never write to `Send`, and those that are run here have no words.
    fn write(&self, layout: &Layout, range: Range) -> *mut u8 {
        let base = if range.buffer == Buffer::Temporary { self.temporary } else { self.receive };
        base.wrapping_offset(layout.offset(range.start))
    }
}

/// What one execution works with.
struct Execution<'a> {
    mpi: &'a Mpi,
    comm: Duplicate,
    layout: Layout,
    memory: Memory,
    operation: Handle,
    longest: c_int,
    requests: &'a mut [Handle],
}

impl Executor {
    /// In a session of this process.
    pub fn new(session: &'static Session) -> Self {
        Executor {
            session,
            round: Round::default(),
            resources: Resources::default(),
            longest: c_int::MAX,
            ran: None,
        }
    }

    /// With another number of elements above which a message is described by a type of blocks,
    /// so that what is done above 2^31 can be tried with little memory.
    #[must_use]
    pub fn with_longest(self, longest: c_int) -> Self {
        Executor { longest: longest.max(1), ..self }
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
        &self,
        method: &Method,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for the handles.
        unsafe {
            let ranks = self.session.intra_size(comm)?;
            let call = self.call(method, arguments, ranks)?;
            method.entry.check(&call).map_err(|error| Error::Refused(error.to_string()))
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
            self.accepts(method, arguments, comm)?;
            let comm = self.session.duplicate(comm)?;
            let call = self.call(method, arguments, comm.size)?;
            match arguments {
                Arguments::Bcast { data, .. } => self.bcast(method, data, call, comm)?,
                Arguments::Reduce { data, .. } => self.reduce(method, data, call, comm)?,
                other => return Err(not_yet(other.collective())),
            }
        }
        self.resources.trim();
        Ok(())
    }

    /// What the schedule is made for, as far as all ranks know it.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn call(
        &self,
        method: &Method,
        arguments: &Arguments,
        ranks: u32,
    ) -> Result<Call<'static>> {
        let mpi = &self.session.mpi;
        let (wanted, collective) = (method.collective(), arguments.collective());
        if wanted != collective {
            let problem = format!("{method} is a method of {wanted}, not {collective}");
            return Err(Error::Refused(problem));
        }
        let (count, layout, root, operation) = match arguments {
            Arguments::Bcast { data, root } => {
                let layout = Layout::of(mpi, data.datatype)?;
                let bytes = non_negative(data.count)?.checked_mul(layout.size as u64);
                let bytes = bytes.ok_or_else(|| {
                    Error::Invalid(format!("{} elements of {} bytes", data.count, layout.size))
                })?;
                (bytes, Layout::bytes(mpi), *root, None)
            }
            Arguments::Reduce { data, count, root } => {
                let layout = Layout::of(mpi, data.datatype)?;
                (non_negative(*count)?, layout, *root, Some(data.operation))
            }
            other => return Err(not_yet(other.collective())),
        };
        let mut commutative = 1;
        if let Some(operation) = operation {
            // SAFETY: the caller vouches for the operation.
            let code = unsafe { (mpi.op_commutative)(operation, &mut commutative) };
            check("MPI_Op_commutative", code)?;
        }
        let root = u32::try_from(root)
            .ok()
            .filter(|root| *root < ranks)
            .ok_or_else(|| Error::Invalid(format!("root {root}; wanted 0 to {}", ranks - 1)))?;
        Ok(Call {
            root,
            segment: method.segment(layout.size as u64),
            fan_out: method.fan_out(),
            commutative: commutative != 0,
            ..Call::new(ranks, count)
        })
    }

    /// # Safety
    /// As [`Executor::run`]; `call` is of these arguments.
    unsafe fn bcast(
        &mut self,
        method: &Method,
        data: &Block,
        call: Call<'static>,
        comm: Duplicate,
    ) -> Result<()> {
        let mpi = &self.session.mpi;
        let layout = Layout::of(mpi, data.datatype)?;
        let (user, count, bytes) = (data.buffer.cast::<u8>(), data.count as u64, call.count);
        layout.span(count)?;
        let is_packed = bytes > 0 && comm.size > 1 && !layout.is_plain(mpi)?;
        let message = if is_packed { self.resources.packed.reserve(bytes as usize)? } else { user };
        let packing = Packing { mpi, comm: comm.comm, layout, longest: self.longest };
        if is_packed && comm.rank == call.root {
            // SAFETY: the application's buffer holds `count` elements, `message` their bytes.
            unsafe { packing.pack(user, message, count)? };
        }
        // SAFETY: `message` holds `bytes` bytes on every rank.
        unsafe {
            let buffers = (message.cast_const(), message);
            self.execute(method, &call, comm, Layout::bytes(mpi), buffers, 0)?;
        }
        if is_packed && comm.rank != call.root {
            // SAFETY: as above.
            unsafe { packing.unpack(message, user, count)? };
        }
        Ok(())
    }

    /// # Safety
    /// As [`Executor::run`]; `call` is of these arguments.
    unsafe fn reduce(
        &mut self,
        method: &Method,
        data: &Reduction,
        mut call: Call<'static>,
        comm: Duplicate,
    ) -> Result<()> {
        let mpi = &self.session.mpi;
        let layout = Layout::of(mpi, data.datatype)?;
        layout.span(call.count)?;
        call.in_place = comm.rank == call.root && data.send.addr() == mpi.constants.in_place;
        // SAFETY: the application's buffers hold `count` elements each where MPI looks at them.
        unsafe {
            let buffers = (data.send.cast::<u8>(), data.receive.cast::<u8>());
            self.execute(method, &call, comm, layout, buffers, data.operation)
        }
    }

    /// Runs all rounds of this rank's program.
    ///
    /// # Safety
    /// `buffers` (send, receive) must hold what the schedule of the call reads and writes there.
    unsafe fn execute(
        &mut self,
        method: &Method,
        call: &Call<'_>,
        comm: Duplicate,
        layout: Layout,
        (send, receive): (*const u8, *mut u8),
        operation: Handle,
    ) -> Result<()> {
        let entry = method.entry;
        let needs = entry.needs(call, comm.rank);
        let (base, bytes) = layout.placement(needs.temporary)?;
        let Resources { temporary, requests, .. } = &mut self.resources;
        let temporary = temporary.reserve(bytes)?.wrapping_offset(base);
        let slots = needs.slots as usize;
        if requests.len() < slots {
            requests.resize(slots, 0);
        }
        let mut execution = Execution {
            mpi: &self.session.mpi,
            comm,
            layout,
            memory: Memory { send, receive, temporary },
            operation,
            longest: self.longest,
            requests,
        };
        self.ran = Some(*method);
        let mut index = 0;
        while entry.round(call, comm.rank, index, &mut self.round) {
            for step in self.round.steps() {
                // SAFETY: the checker has shown that the steps stay within the buffers.
                if let Err(error) = unsafe { execution.step(step) } {
                    self.resources.abandon();
                    return Err(error);
                }
            }
            index += 1;
        }
        Ok(())
    }
}

fn non_negative(count: i64) -> Result<u64> {
    u64::try_from(count)
        .map_err(|_| Error::Invalid(format!("{count} elements; wanted none or more")))
}

fn not_yet(collective: Collective) -> Error {
    Error::Refused(format!("{collective} is not among what the runner carries out"))
}

impl Execution<'_> {
    /// # Safety
    /// The ranges of the step must lie in the buffers of `memory`.
    unsafe fn step(&mut self, step: &Step) -> Result<()> {
        let (mpi, layout, memory) = (self.mpi, self.layout, self.memory);
        match *step {
            Step::Send { peer, slot, range } | Step::SendReady { peer, slot, range } => {
                let (send, name) = match step {
                    Step::SendReady { .. } => (mpi.irsend, "MPI_Irsend"),
                    _ => (mpi.isend, "MPI_Isend"),
                };
                let content = Content::new(mpi, &layout, range.count, self.longest)?;
                let from = memory.read(&layout, range).cast();
                let request = &mut self.requests[slot as usize];
                *request = 0;
                // SAFETY: the caller vouches for the range, which schedules leave alone until the
                // slot is waited on; requests stay in place meanwhile.
                let code = unsafe {
                    let (count, datatype) = (content.count, content.datatype);
                    send(from, count, datatype, peer as c_int, TAG, self.comm.comm, request)
                };
                check(name, code)
            }
            Step::Receive { peer, slot, range } => {
                let content = Content::new(mpi, &layout, range.count, self.longest)?;
                let into = memory.write(&layout, range).cast();
                let request = &mut self.requests[slot as usize];
                *request = 0;
                // SAFETY: as above.
                let code = unsafe {
                    let (count, datatype) = (content.count, content.datatype);
                    (mpi.irecv)(into, count, datatype, peer as c_int, TAG, self.comm.comm, request)
                };
                check("MPI_Irecv", code)
            }
            Step::Wait { slot } => {
                let status = mpi.constants.status_ignore as *mut c_void;
                // SAFETY: the slot holds a request that was begun above.
                let code = unsafe { (mpi.wait)(&mut self.requests[slot as usize], status) };
                check("MPI_Wait", code)
            }
            Step::Copy { source, into } => {
                // SAFETY: the caller vouches for the ranges, whose lengths agree.
                unsafe { self.copy(source, into) }
            }
            Step::Combine { source, into, order: Order::SourceFirst } => {
                // SAFETY: as above.
                unsafe { self.reduce_local(source, into) }
            }
            Step::Combine { source, into, order: Order::IntoFirst } => {
                // SAFETY: as above; the source may be lost, and never is `Send`.
                unsafe {
                    self.reduce_local(into, source)?;
                    self.copy(source, into)
                }
            }
        }
    }

    /// # Safety
    /// As [`Execution::step`].
    unsafe fn copy(&self, source: Range, into: Range) -> Result<()> {
        let from = self.memory.read(&self.layout, source);
        let to = self.memory.write(&self.layout, into);
        // SAFETY: the caller vouches for the ranges; schedules copy between distinct ones.
        unsafe { copy(self.mpi, &self.comm, &self.layout, self.longest, (from, to), into.count) }
    }

    /// `into = source op into`.
    ///
    /// # Safety
    /// As [`Execution::step`].
    unsafe fn reduce_local(&self, source: Range, into: Range) -> Result<()> {
        let from = self.memory.read(&self.layout, source);
        let to = self.memory.write(&self.layout, into);
        for (start, length) in pieces(into.count, self.longest) {
            let offset = self.layout.offset(start);
            let (from, to) = (from.wrapping_offset(offset), to.wrapping_offset(offset));
            let (datatype, operation) = (self.layout.datatype, self.operation);
            // SAFETY: the caller vouches for the ranges; the operation is the application's.
            let code = unsafe {
                (self.mpi.reduce_local)(from.cast(), to.cast(), length, datatype, operation)
            };
            check("MPI_Reduce_local", code)?;
        }
        Ok(())
    }
}
