//! How an executor carries out a call that all ranks have agreed on.

use std::{ffi::c_int, mem, ptr, slice, sync::Arc};

use records::{BufferContent, Collective};
use schedules::Call;

use crate::{
    Arguments, Error, Executor, Handle, Result, ScheduledMethod,
    agreed::{UniformArguments, Vectors, too_many},
    arithmetic::NumberOperation,
    duplicate::{CommunicatorMember, Duplicate},
    element_rows::ElementRows,
    execution::{AreaInCall, BufferAddresses, CallContext, Execution},
    layout::BufferLayout,
    memory::{self, SharedArea},
    packing::Packing,
    programs::ProgramKey,
    scratch::{Resources, ScratchMemory},
    sides::{ApplicationBuffer, ApplicationBuffers, ReceiveReads},
};

impl Executor {
    /// Carries out a call by the program of an earlier one like it, if that is there.
    ///
    /// # Safety
    /// As [`Executor::run`]; the key must be of these arguments.
    pub(crate) unsafe fn follow(
        &mut self,
        key: &ProgramKey,
        arguments: &Arguments,
    ) -> Option<Result<()>> {
        let program = self.programs.find(key)?;
        if let Some(memory) = &program.memory {
            self.ran = Some(program.method());
            self.is_in_memory = true;
            // SAFETY: by the key the arguments differ from those of the earlier call in their buffers alone, which
            // are as the call's contract says.
            let outcome = unsafe { memory.run(arguments.send.address, arguments.receive.address) };
            return Some(outcome.map_err(|error| *error));
        }
        let tag = program.call.next_tag();
        let Resources { temporary, requests, window, .. } = &mut self.resources;
        let rows = program.rows;
        let temporary = match temporary.reserve(rows.bytes()) {
            Ok(beginning) => rows.first(beginning),
            Err(error) => {
                if let Some((area, turns, _)) = &program.area {
                    area.skip_turns(*turns);
                }
                return Some(Err(error));
            }
        };
        if requests.len() < program.requests {
            requests.resize(program.requests, 0);
        }
        let area = match &program.area {
            None => None,
            Some((area, turns, places)) => match area.begin_turns(*turns) {
                Ok(first) => Some(AreaInCall { area, first, places: *places }),
                Err(error) => return Some(Err(error)),
            },
        };
        window.begin_call();
        let (send, receive) = (arguments.send.address.cast(), arguments.receive.address.cast());
        let (counts, header) = (ptr::null_mut(), ptr::null_mut());
        let mut execution = Execution {
            call: &program.call,
            memory: BufferAddresses { send, receive, temporary, counts, header },
            rows,
            requests,
            window,
            tag,
            area,
            failure: None,
        };
        self.ran = Some(program.method());
        // SAFETY: the buffers are valid for what the arguments say (the call's contract), which by the key is
        // what the steps were made for.
        unsafe { execution.steps(&program.steps) };
        Some(match execution.failure {
            None => {
                self.resources.trim();
                Ok(())
            }
            Some(error) => {
                self.resources.abandon();
                Err(error)
            }
        })
    }

    /// Runs a collective that combines data: on the application's own elements, whose layout the
    /// operation may have to know.
    ///
    /// # Safety
    /// As [`Executor::run`]; the method has been agreed on.
    pub(crate) unsafe fn combine(
        &mut self,
        key: Option<ProgramKey>,
        method: &ScheduledMethod,
        arguments: &Arguments,
        agreed: &UniformArguments,
        (comm, member): (Handle, CommunicatorMember),
    ) -> Result<()> {
        let layout = agreed.layout;
        let address = self.session.mpi.constants.in_place;
        let in_place = arguments.is_in_place(member.rank, address);
        if !in_place && arguments.send.address.addr() == address {
            return Err(Error::Invalid("MPI_IN_PLACE is for the root alone".to_owned()));
        }
        let vectors = mem::take(&mut self.resources.vectors);
        let call = Call { in_place, ..agreed.call(method, member.size, &vectors) };
        layout.span(longest_buffer(&call, method.collective())?)?;
        // SAFETY: the application's buffers hold these elements where MPI looks at them.
        let outcome = unsafe {
            let duplicate = self.session.duplicate(comm, member)?;
            let context = self.context(method, duplicate, layout, arguments.operation);
            let tag = context.next_tag();
            let nodes = self.session.nodes_for(method, comm, duplicate)?;
            if let Some(nodes) = &nodes {
                self.limit.check_on_nodes(method, &call, agreed, nodes)?;
            }
            let call = Call { nodes: nodes.as_deref(), ..call };
            let area = self.session.area_for(method, comm, duplicate, nodes.as_deref())?;
            let call = with_area(method, call, area.as_deref(), layout)?;
            let buffers = (arguments.send.address.cast(), arguments.receive.address.cast());
            let outcome = self.execute(method, &context, &call, tag, buffers, area.as_deref());
            if outcome.is_ok() {
                self.learn(key, &context, &call, area.as_ref());
            }
            outcome
        };
        self.keep(vectors, outcome)
    }

    /// Runs a collective that moves data, or nothing: as bytes, since ranks may describe it by
    /// different types of one signature. What doesn't lie in memory as its bytes is packed.
    ///
    /// # Safety
    /// As [`Executor::run`]; the method has been agreed on.
    pub(crate) unsafe fn move_data(
        &mut self,
        key: Option<ProgramKey>,
        method: &ScheduledMethod,
        sides: &ApplicationBuffers,
        agreed: &UniformArguments,
        (comm, member): (Handle, CommunicatorMember),
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
        let scratch = |side: Option<ApplicationBuffer>| side.map_or(0, |side| side.scratch());
        let sent = scratch(sides.send);
        // SAFETY: the application's communicator.
        let duplicate = unsafe { self.session.duplicate(comm, member)? };
        let bytes = BufferLayout::bytes(mpi);
        let context = self.context(method, duplicate, bytes, 0);
        let tag = context.next_tag();
        // SAFETY: the application's buffers are as it says, the packed ones have been reserved.
        let outcome = unsafe {
            let nodes = self.session.nodes_for(method, comm, duplicate)?;
            let call = Call { nodes: nodes.as_deref(), ..call };
            let area = self.session.area_for(method, comm, duplicate, nodes.as_deref())?;
            let call = with_area(method, call, area.as_deref(), bytes)?;
            let longest = self.longest;
            let packing = |layout| Packing { mpi, comm: duplicate.comm, layout, longest };
            let packed = self.resources.packed.reserve(sent + scratch(sides.receive));
            let packed = packed.and_then(|packed| {
                let send = sides.send.map_or(ptr::null_mut(), |side| side.message(packed));
                let receive = packed.wrapping_add(sent);
                let receive = sides.receive.map_or(ptr::null_mut(), |side| side.message(receive));
                if let Some(side) = &sides.send {
                    side.pack(&packing(side.layout()), send)?;
                }
                if let Some(side) = &sides.receive {
                    match sides.load {
                        ReceiveReads::Nothing => {}
                        ReceiveReads::Own => {
                            side.pack_block(&packing(side.layout()), receive, duplicate.rank)?
                        }
                        ReceiveReads::All => side.pack(&packing(side.layout()), receive)?,
                    }
                }
                Ok((send, receive))
            });
            let buffers = match packed {
                Ok(buffers) => buffers,
                Err(error) => {
                    self.skip_turns(method, &call, duplicate.rank, area.as_deref());
                    return Err(error);
                }
            };
            let receive = buffers.1;
            let outcome = self.execute(method, &context, &call, tag, buffers, area.as_deref());
            if outcome.is_ok() {
                self.learn(key, &context, &call, area.as_ref());
            }
            match &sides.receive {
                Some(side) if sides.store && outcome.is_ok() => {
                    side.unpack(&packing(side.layout()), receive)
                }
                _ => outcome,
            }
        };
        self.keep(vectors, outcome)
    }

    fn context(
        &self,
        method: &ScheduledMethod,
        comm: Duplicate,
        layout: BufferLayout,
        operation: Handle,
    ) -> CallContext {
        let (session, longest) = (self.session, self.longest);
        let handles = &session.mpi.constants.arithmetic;
        let arithmetic = NumberOperation::find(handles, &layout, operation);
        let collective = method.collective();
        CallContext { session, collective, comm, layout, operation, arithmetic, longest }
    }

    /// Keeps the program of a call that was carried out.
    fn learn(
        &mut self,
        key: Option<ProgramKey>,
        context: &CallContext,
        call: &Call<'_>,
        area: Option<&Arc<SharedArea>>,
    ) {
        if let Some(key) = key {
            self.programs.keep(key, context, call, area, &mut self.round);
        }
    }

    /// Keeps the vectors for the next call; after a failure messages may still be reading them.
    fn keep(&mut self, vectors: Vectors, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) => self.resources.vectors = vectors,
            Err(_) => mem::forget(vectors),
        }
        outcome
    }

    /// A rank that fails alone, before it begins a call, takes the call's turns all the same: the next call's flags would
    /// be taken for this one's.
    fn skip_turns(
        &mut self,
        method: &ScheduledMethod,
        call: &Call<'_>,
        rank: u32,
        area: Option<&SharedArea>,
    ) {
        if let Some(area) = area {
            area.skip_turns(method.entry.needs_in(call, rank, &mut self.round).turns);
        }
    }

    /// Runs all rounds of this rank's program, whatever fails in one (see [`Execution::steps`]); but nothing after
    /// a header that did not come, by which the rest goes.
    ///
    /// # Safety
    /// The buffers (send, receive) must hold what the schedule of the call reads and writes there.
    unsafe fn execute(
        &mut self,
        method: &ScheduledMethod,
        context: &CallContext,
        call: &Call<'_>,
        tag: c_int,
        (send, receive): (*mut u8, *mut u8),
        area: Option<&SharedArea>,
    ) -> Result<()> {
        let (entry, rank) = (method.entry, context.comm.rank);
        self.round.begin_call();
        let needs = entry.needs_in(call, rank, &mut self.round);
        let Resources { temporary, requests, window, header, .. } = &mut self.resources;
        window.begin_call();
        let disjoint = call.disjoint(method.collective());
        let room = |needed: u64, temporary: &mut ScratchMemory| {
            let rows = ElementRows::new(&context.layout, needed, disjoint);
            let rows = rows.map_err(|_| Error::Memory(usize::MAX))?;
            Ok((rows.first(temporary.reserve(rows.bytes())?), rows))
        };
        if requests.len() < needs.slots as usize {
            requests.resize(needs.slots as usize, 0);
        }
        let words = needs.header as usize;
        header.clear();
        header.resize(words, 0);
        let header = header.as_mut_ptr();
        if let Some(area) = area {
            let (elements, size) = (needs.shared_elements, context.layout.size);
            if let Some(bytes) = area.lacks(area.places(elements, size), elements, size) {
                // SAFETY: the communicator is live; all its ranks are in this call, which needs the same on all.
                unsafe { memory::provide(context.mpi(), context.comm, area, bytes)? };
            }
        }
        // With a header, it is known only after round 0.
        let known = if words == 0 { needs.temporary } else { 0 };
        let (first, rows) = match room(known, temporary) {
            Ok(room) => room,
            Err(error) => {
                if let Some(area) = area {
                    area.skip_turns(needs.turns);
                }
                return Err(error);
            }
        };
        let memory = BufferAddresses {
            send,
            receive,
            temporary: first,
            counts: call.counts.as_ptr().cast_mut().cast(),
            header: header.cast(),
        };
        let area = match area {
            Some(area) => {
                let places = area.places(needs.shared_elements, context.layout.size);
                Some(AreaInCall { area, first: area.begin_turns(needs.turns)?, places })
            }
            None => None,
        };
        let failure = None;
        let mut execution =
            Execution { call: context, memory, rows, requests, window, tag, area, failure };
        self.ran = Some(*method);
        let mut index = 0;
        loop {
            // Round 0 brings the header.
            let known = if index == 0 { 0 } else { words };
            // SAFETY: it has so many words, and no message writes to them any more.
            let call = Call { header: unsafe { slice::from_raw_parts(header, known) }, ..*call };
            if index == 1 && words > 0 {
                let needed = entry.needs_in(&call, rank, &mut self.round).temporary;
                (execution.memory.temporary, execution.rows) = room(needed, temporary)?;
            }
            if !entry.round(&call, rank, index, &mut self.round) {
                break;
            }
            // SAFETY: the checker has shown that the steps stay within the buffers.
            unsafe { execution.steps(self.round.steps()) };
            let is_lost = words > 0 && index == 0 && execution.failure.is_some();
            if self.round.is_last() || is_lost {
                break;
            }
            index += 1;
        }
        match execution.failure {
            None => Ok(()),
            Some(error) => {
                self.resources.abandon();
                Err(error)
            }
        }
    }
}

/// A call with the memory that the ranks of a node share, if its method uses that.
///
/// # Errors
/// It will not do for the call, on all ranks alike.
fn with_area<'a>(
    method: &ScheduledMethod,
    call: Call<'a>,
    area: Option<&SharedArea>,
    layout: BufferLayout,
) -> Result<Call<'a>> {
    let Some(area) = area else { return Ok(call) };
    let (shared, line) = area.capacity(layout.size);
    let call = Call { shared, line, ..call };
    method.entry.check(&call).map_err(|error| Error::Refused(error.to_string()))?;
    Ok(call)
}

/// Elements of the longest buffer of a reduction.
fn longest_buffer(call: &Call<'_>, collective: Collective) -> Result<u64> {
    match collective.sends() {
        BufferContent::All if collective.has_counts() => Ok(call.counts.iter().sum()),
        BufferContent::All => {
            let all = call.count.checked_mul(u64::from(call.ranks));
            all.ok_or_else(|| too_many(call.count))
        }
        _ => Ok(call.count),
    }
}
