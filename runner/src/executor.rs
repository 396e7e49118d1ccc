//! One rank's part of a collective, on MPI.

use std::ffi::{c_int, c_void};

use records::Collective;
use schedules::{Buffer, Call, Order, Range, Round, Step};

use crate::{
    Error, Handle, Method, Mpi, Result, Session,
    duplicate::Duplicate,
    error::check,
    layout::Layout,
    message::{Content, TAG, copy, pieces},
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

    /// `MPI_Bcast` by one of our algorithms.
    ///
    /// # Safety
    /// The arguments must be as `MPI_Bcast` demands, with handles of the session's library, on
    /// all ranks of `comm`, and these must all call it with the same method.
    ///
    /// # Errors
    /// See [`Error`].
    pub unsafe fn bcast(
        &mut self,
        method: &Method,
        buffer: *mut c_void,
        count: i64,
        datatype: Handle,
        root: c_int,
        comm: Handle,
    ) -> Result<()> {
        let session = self.session;
        let mpi = &session.mpi;
        // SAFETY: the caller vouches for the communicator.
        let comm = unsafe { session.duplicate(comm)? };
        let (count, root) = check_arguments(method, Collective::Bcast, count, root, &comm)?;
        let layout = Layout::of(mpi, datatype)?;
        layout.span(count)?;
        let bytes = count
            .checked_mul(layout.size as u64)
            .ok_or_else(|| Error::Refused(format!("{count} elements of {} bytes", layout.size)))?;
        let call = Call {
            root,
            segment: method.segment(1),
            fan_out: method.fan_out(),
            ..Call::new(comm.size, bytes)
        };
        let user = buffer.cast::<u8>();
        let is_packed = bytes > 0 && comm.size > 1 && !layout.is_plain(mpi)?;
        let message = if is_packed { self.resources.packed.reserve(bytes as usize)? } else { user };
        let packing = Packing { mpi, comm: comm.comm, layout, longest: self.longest };
        if is_packed && comm.rank == root {
            // SAFETY: the application's buffer holds `count` elements, `message` their bytes.
            unsafe { packing.pack(user, message, count)? };
        }
        // SAFETY: `message` holds `bytes` bytes on every rank.
        unsafe {
            let buffers = (message.cast_const(), message);
            self.execute(method, &call, comm, Layout::bytes(mpi), buffers, 0)?;
        }
        if is_packed && comm.rank != root {
            // SAFETY: as above.
            unsafe { packing.unpack(message, user, count)? };
        }
        self.resources.trim();
        Ok(())
    }

    /// `MPI_Reduce` by one of our algorithms; `send` may be `MPI_IN_PLACE` at the root.
    ///
    /// # Safety
    /// As [`Executor::bcast`], for `MPI_Reduce`.
    ///
    /// # Errors
    /// See [`Error`]. An algorithm that changes the order of operands refuses an operation that is
    /// not commutative, on all ranks alike.
    #[allow(clippy::too_many_arguments, reason = "they are those of MPI_Reduce and the method")]
    pub unsafe fn reduce(
        &mut self,
        method: &Method,
        send: *const c_void,
        receive: *mut c_void,
        count: i64,
        datatype: Handle,
        operation: Handle,
        root: c_int,
        comm: Handle,
    ) -> Result<()> {
        let session = self.session;
        let mpi = &session.mpi;
        // SAFETY: the caller vouches for the communicator.
        let comm = unsafe { session.duplicate(comm)? };
        let (count, root) = check_arguments(method, Collective::Reduce, count, root, &comm)?;
        let layout = Layout::of(mpi, datatype)?;
        layout.span(count)?;
        let mut commutative = 0;
        // SAFETY: the caller vouches for the operation.
        let code = unsafe { (mpi.op_commutative)(operation, &mut commutative) };
        check("MPI_Op_commutative", code)?;
        let call = Call {
            root,
            segment: method.segment(layout.size as u64),
            fan_out: method.fan_out(),
            commutative: commutative != 0,
            in_place: comm.rank == root && send.addr() == mpi.constants.in_place,
            ..Call::new(comm.size, count)
        };
        // SAFETY: the application's buffers hold `count` elements each where MPI looks at them.
        unsafe {
            let buffers = (send.cast::<u8>(), receive.cast::<u8>());
            self.execute(method, &call, comm, layout, buffers, operation)?;
        }
        self.resources.trim();
        Ok(())
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
        entry.check(call).map_err(|error| Error::Refused(error.to_string()))?;
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

fn check_arguments(
    method: &Method,
    collective: Collective,
    count: i64,
    root: c_int,
    comm: &Duplicate,
) -> Result<(u64, u32)> {
    if method.collective() != collective {
        let problem = format!("{method} is a method of {}, not {collective}", method.collective());
        return Err(Error::Refused(problem));
    }
    let count = u64::try_from(count)
        .map_err(|_| Error::Refused(format!("{count} elements; wanted none or more")))?;
    let root = u32::try_from(root)
        .ok()
        .filter(|root| *root < comm.size)
        .ok_or_else(|| Error::Refused(format!("root {root}; wanted 0 to {}", comm.size - 1)))?;
    Ok((count, root))
}

impl Execution<'_> {
    /// # Safety
    /// The ranges of the step must lie in the buffers of `memory`.
    unsafe fn step(&mut self, step: &Step) -> Result<()> {
        let (mpi, layout, memory) = (self.mpi, self.layout, self.memory);
        match *step {
            Step::Send { peer, slot, range } => {
                let content = Content::new(mpi, &layout, range.count, self.longest)?;
                let from = memory.read(&layout, range).cast();
                let request = &mut self.requests[slot as usize];
                *request = 0;
                // SAFETY: the caller vouches for the range, which schedules leave alone until the
                // slot is waited on; requests stay in place meanwhile.
                let code = unsafe {
                    let (count, datatype) = (content.count, content.datatype);
                    (mpi.isend)(from, count, datatype, peer as c_int, TAG, self.comm.comm, request)
                };
                check("MPI_Isend", code)
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

/// Between the application's elements and the bytes of a message.
struct Packing<'a> {
    mpi: &'a Mpi,
    comm: Handle,
    layout: Layout,
    longest: c_int,
}

impl Packing<'_> {
    /// First element and number of elements of what one call of `MPI_Pack` can take.
    fn pieces(&self, count: u64) -> Result<impl Iterator<Item = (u64, c_int)> + use<>> {
        match c_int::try_from(self.layout.size) {
            Ok(size) => Ok(pieces(count, (self.longest / size).max(1))),
            Err(_) => {
                let size = self.layout.size;
                Err(Error::Refused(format!("a datatype of {size} bytes cannot be packed")))
            }
        }
    }

    /// # Safety
    /// `user` must hold `count` elements, `message` have room for their bytes.
    unsafe fn pack(&self, user: *const u8, message: *mut u8, count: u64) -> Result<()> {
        for (start, length) in self.pieces(count)? {
            let from = user.wrapping_offset(self.layout.offset(start));
            let into = message.wrapping_add(start as usize * self.layout.size);
            let room = length * self.layout.size as c_int;
            let mut end = 0;
            // SAFETY: the caller vouches for both buffers.
            let code = unsafe {
                let datatype = self.layout.datatype;
                let into = into.cast();
                (self.mpi.pack)(from.cast(), length, datatype, into, room, &mut end, self.comm)
            };
            check("MPI_Pack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`Packing::pack`].
    unsafe fn unpack(&self, message: *const u8, user: *mut u8, count: u64) -> Result<()> {
        for (start, length) in self.pieces(count)? {
            let from = message.wrapping_add(start as usize * self.layout.size);
            let into = user.wrapping_offset(self.layout.offset(start));
            let room = length * self.layout.size as c_int;
            let mut end = 0;
            // SAFETY: the caller vouches for both buffers.
            let code = unsafe {
                let datatype = self.layout.datatype;
                let into = into.cast();
                (self.mpi.unpack)(from.cast(), room, &mut end, into, length, datatype, self.comm)
            };
            check("MPI_Unpack", code)?;
            all_bytes(end, room)?;
        }
        Ok(())
    }
}

/// A library that packs anything but the plain bytes can't be served: they are sent as bytes.
fn all_bytes(end: c_int, room: c_int) -> Result<()> {
    if end == room {
        return Ok(());
    }
    Err(Error::Refused(format!("the MPI library packs {room} bytes of data as {end}")))
}
