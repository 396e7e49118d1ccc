//! The steps of a schedule, on MPI.

use std::ffi::{c_int, c_void};

use records::Collective;
use schedules::{Buffer, OperandOrder, Range, Step, shared::TurnPlaces};

use crate::{
    Error, Handle, Mpi, Result, Session,
    arithmetic::NumberOperation,
    duplicate::Duplicate,
    element_rows::ElementRows,
    error::check,
    layout::BufferLayout,
    memory::{self, SharedArea},
    message::{Content, copy, copy_by_message, pieces},
    tags::TAG_SELF,
    window::Window,
};

/// Lines of a cache that are asked for ahead: of so many steps, so many bytes of each. A core has room for some 50
/// lines on their way.
const MAX_PREFETCHED: usize = 32;
const MAX_PREFETCHED_BYTES: usize = 256;
const CACHE_LINE_BYTES: usize = 64;
/// So many sources of a combination are handed on at once.
pub(crate) const MAX_SOURCES: usize = 16;

/// In place of a request; no library has a request of this handle.
const NOTHING_BEGUN: Handle = 0;

/// Where element (word) 0 of each of a schedule's buffers lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferAddresses {
    /// Only read.
    pub send: *mut u8,
    pub receive: *mut u8,
    pub temporary: *mut u8,
    /// Only read.
    pub counts: *mut u8,
    pub header: *mut u8,
}

/// What the steps of a call depend on beside where its buffers are: the same of all calls that one program is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallContext {
    pub session: &'static Session,
    pub collective: Collective,
    pub comm: Duplicate,
    /// Of the elements; words have their own.
    pub layout: BufferLayout,
    /// Of a call that combines data; else 0.
    pub operation: Handle,
    /// What the operation does to these elements, where they are numbers.
    pub arithmetic: Option<NumberOperation>,
    /// Elements above which the library takes no count.
    pub longest: c_int,
}

impl CallContext {
    #[inline]
    pub fn mpi(&self) -> &'static Mpi {
        &self.session.mpi
    }

    /// For the messages of one call. Each call takes one, on all ranks alike.
    #[inline]
    pub fn next_tag(&self) -> c_int {
        self.comm.numbers.next_tag(self.collective)
    }
}

/// Where ranks of this node share memory.
#[derive(Clone, Copy)]
pub(crate) struct AreaInCall<'a> {
    pub area: &'a SharedArea,
    /// The call's first turn.
    pub first: u64,
    /// Of the turns' data.
    pub places: TurnPlaces,
}

/// What one execution works with.
pub(crate) struct Execution<'a> {
    pub call: &'a CallContext,
    pub memory: BufferAddresses,
    /// How the elements lie in `memory.temporary`.
    pub rows: ElementRows,
    pub requests: &'a mut [Handle],
    pub window: &'a mut Window,
    /// Of this call's messages.
    pub tag: c_int,
    pub area: Option<AreaInCall<'a>>,
    /// The first thing that went wrong.
    pub failure: Option<Error>,
}

/// A range as MPI sees it.
struct MpiRange {
    address: *mut u8,
    layout: BufferLayout,
    count: u64,
}

impl<'a> Execution<'a> {
    #[inline]
    fn place(&self, range: Range) -> MpiRange {
        let base = match range.buffer {
            Buffer::Send => self.memory.send,
            Buffer::Receive => self.memory.receive,
            Buffer::Temporary => {
                let offset = self.rows.offset(&self.call.layout, range.start);
                let address = self.memory.temporary.wrapping_offset(offset);
                return MpiRange { address, layout: self.call.layout, count: range.count };
            }
            Buffer::Shared { owner, turn } => {
                self.shared(turn, |of, turn| of.area.data(owner, turn, of.places))
            }
            Buffer::Line { owner, flag, turn } => {
                self.shared(turn, |of, turn| of.area.payload(owner, flag, turn))
            }
            Buffer::Counts => return self.words(self.memory.counts, range),
            Buffer::Header => return self.words(self.memory.header, range),
        };
        let address = base.wrapping_offset(self.call.layout.offset(range.start));
        MpiRange { address, layout: self.call.layout, count: range.count }
    }

    /// An address in the memory that ranks share, in a turn of the call.
    #[inline]
    fn shared(&self, turn: u32, at: impl FnOnce(AreaInCall<'a>, u64) -> *mut u8) -> *mut u8 {
        // Without an area no schedule that needs one is carried out.
        self.area.map_or(std::ptr::null_mut(), |of| at(of, of.first + u64::from(turn)))
    }

    /// How many elements of the range, from its first on, follow each other as the type says.
    #[inline]
    fn contiguous(&self, range: Range) -> u64 {
        match range.buffer {
            Buffer::Temporary => self.rows.left(range.start).min(range.count),
            _ => range.count,
        }
    }

    /// A range as an argument of a message: its address, and what is there.
    #[inline]
    fn message(&self, range: Range) -> Result<(*mut u8, Content<'a>)> {
        let MpiRange { address, layout, count } = self.place(range);
        let content = match self.contiguous(range) < range.count {
            false => Content::new(self.call.mpi(), &layout, count, self.call.longest)?,
            true => {
                let runs = self.rows.runs(&layout, range);
                Content::of_runs(self.call.mpi(), &layout, runs, self.call.longest)?
            }
        };
        Ok((address, content))
    }

    /// Words travel as bytes.
    fn words(&self, base: *mut u8, range: Range) -> MpiRange {
        let bytes = |words: u64| words * size_of::<u64>() as u64;
        let address = base.wrapping_add(bytes(range.start) as usize);
        let layout = BufferLayout::bytes(self.call.mpi());
        MpiRange { address, layout, count: bytes(range.count) }
    }

    /// Carries out the steps of a round, all of them: where one fails, other ranks still wait for the
    /// messages of those after it, which go out with what is there. What failed first is kept in `failure`.
    ///
    /// A request that MPI fails to complete is complete nevertheless, as one whose message was longer than
    /// its place is.
    ///
    /// # Safety
    /// As [`Execution::step`].
    pub unsafe fn steps(&mut self, steps: &[Step]) {
        let mut rest = steps;
        while let [step, others @ ..] = rest {
            // SAFETY: the step's contract is this function's, for each of the steps.
            rest = unsafe {
                match self.together(rest) {
                    Some(after) => after,
                    None => {
                        self.noted_step(step);
                        others
                    }
                }
            };
        }
    }

    /// Carries out the first of some steps with others that follow it, where that is faster; what comes after these.
    ///
    /// A message that is waited for before anything else begins is sent or received by MPI's
    /// blocking function, which makes no request: beside a message of a microsecond that is seen.
    /// For a send that holds, too, if only other waits come before its own: what they wait for is
    /// under way, and goes on while MPI sends.
    ///
    /// # Safety
    /// As [`Execution::step`], for each of the steps.
    #[inline]
    unsafe fn together<'s>(&mut self, steps: &'s [Step]) -> Option<&'s [Step]> {
        // SAFETY: the step's contract is this function's. What is put beside a flag is dense, and fits there; it is
        // the flag of this rank that is raised next.
        unsafe {
            match steps {
                [Step::Send { peer, slot, range }, others @ ..] => {
                    let waits = waits_before(others, *slot)?;
                    let outcome = self.send(*peer, *range);
                    self.note(outcome);
                    others[..waits].iter().for_each(|wait| self.noted_step(wait));
                    Some(&others[waits + 1..])
                }
                [Step::Receive { peer, slot, range }, Step::Wait { slot: waited }, others @ ..]
                    if slot == waited =>
                {
                    let outcome = self.receive(*peer, *range);
                    self.note(outcome);
                    Some(others)
                }
                [
                    step @ (Step::Await { .. } | Step::AwaitAll { .. }),
                    Step::Copy { .. } | Step::Combine { .. },
                    _,
                    ..,
                ] => {
                    self.noted_step(step);
                    self.prefetch(&steps[1..]);
                    Some(&steps[1..])
                }
                [
                    Step::Copy { source, into: Range { buffer: Buffer::Line { .. }, count, .. } },
                    Step::Signal { flag, turn, value },
                    others @ ..,
                ] if self.failure.is_none() => {
                    let AreaInCall { area, first, .. } = self.area?;
                    let from = self.place(*source).address.cast_const();
                    let bytes = *count as usize * self.call.layout.size;
                    area.signal_with(*flag, first + u64::from(*turn), *value, from, bytes);
                    Some(others)
                }
                [Step::Combine { into, order: OperandOrder::SourceFirst, .. }, ..] => {
                    let arithmetic = self.call.arithmetic?;
                    let is_short = arithmetic.takes(&self.call.layout, into.count);
                    is_short.then(|| self.combine_numbers(arithmetic, *into, steps))
                }
                _ => None,
            }
        }
    }

    /// Carries out the steps from the first on that combine numbers into one range; the steps after these.
    ///
    /// # Safety
    /// As [`Execution::step`].
    #[inline]
    unsafe fn combine_numbers<'s>(
        &self,
        arithmetic: NumberOperation,
        into: Range,
        steps: &'s [Step],
    ) -> &'s [Step] {
        let to = self.place(into).address;
        let (mut sources, rest) = combined_into(into, steps);
        loop {
            let mut addresses = [std::ptr::null(); MAX_SOURCES];
            let mut number = 0;
            for (address, source) in addresses.iter_mut().zip(&mut sources) {
                *address = self.place(source).address.cast_const();
                number += 1;
            }
            if number == 0 {
                return rest;
            }
            // SAFETY: all ranges lie in their buffers and are as long, and none overlaps what they are combined into (the
            // steps' contract); numbers are dense, so that each is one run of them.
            unsafe { arithmetic.combine(&addresses[..number], to, into.count as usize) };
        }
    }

    /// Asks for the beginnings of what the next steps read of other ranks, so that these come side by side.
    #[inline]
    fn prefetch(&self, steps: &[Step]) {
        for range in read_next(steps) {
            let MpiRange { address, layout, count } = self.place(range);
            prefetch_beginning(address, count as usize * layout.size);
        }
    }

    /// # Safety
    /// As [`Execution::step`].
    #[inline]
    unsafe fn noted_step(&mut self, step: &Step) {
        // SAFETY: the step's contract is this function's.
        let outcome = unsafe { self.step(step) };
        self.note(outcome);
    }

    #[inline]
    fn note(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    /// # Safety
    /// As [`Execution::step`].
    unsafe fn send(&mut self, peer: u32, range: Range) -> Result<()> {
        let (address, content) = self.message(range)?;
        let Content { count, datatype, .. } = &content;
        let (send, name) = match self.window.is_full_by_sending_to(peer) {
            true => (self.call.mpi().ssend, "MPI_Ssend"),
            false => (self.call.mpi().send, "MPI_Send"),
        };
        let (from, peer) = (address.cast_const().cast(), peer as c_int);
        // SAFETY: `range` lies in its buffer (the step's contract), `content` says what is there, and MPI is
        // done with it on return.
        let code = unsafe { send(from, *count, *datatype, peer, self.tag, self.call.comm.comm) };
        check(name, code)
    }

    /// # Safety
    /// As [`Execution::step`].
    unsafe fn receive(&self, peer: u32, range: Range) -> Result<()> {
        let (address, content) = self.message(range)?;
        let Content { count, datatype, .. } = &content;
        let (into, peer) = (address.cast(), peer as c_int);
        let (mpi, comm) = (self.call.mpi(), self.call.comm.comm);
        let status = mpi.constants.status_ignore as *mut c_void;
        // SAFETY: `range` lies in a buffer to be written (the step's contract), `content` says what is there,
        // and MPI is done with it on return.
        let code = unsafe { (mpi.recv)(into, *count, *datatype, peer, self.tag, comm, status) };
        check("MPI_Recv", code)
    }

    /// # Safety
    /// The step's contract: its ranges lie in the buffers of `memory`, valid for reads and, where they are
    /// received, copied or combined into, for writes. The two of a copy or combination have one length and
    /// don't overlap. Until the wait for a message's slot its range stays in place, and nothing else writes to
    /// what is sent or looks at what is received. Communicator and datatype are live, and so is the operation
    /// of a combination.
    unsafe fn step(&mut self, step: &Step) -> Result<()> {
        let mpi = self.call.mpi();
        match *step {
            Step::Send { peer, slot, range } | Step::SendReady { peer, slot, range } => {
                let (send, name) = match step {
                    Step::SendReady { .. } => (mpi.irsend, "MPI_Irsend"),
                    _ if self.window.is_full_by_sending_to(peer) => (mpi.issend, "MPI_Issend"),
                    _ => (mpi.isend, "MPI_Isend"),
                };
                let (address, content) = self.message(range)?;
                let request = &mut self.requests[slot as usize];
                *request = NOTHING_BEGUN;
                // SAFETY: `range` lies in its buffer and is left alone until the slot is waited on (the step's
                // contract); requests stay in place meanwhile.
                let code = unsafe {
                    let (from, peer) = (address.cast_const().cast(), peer as c_int);
                    let (count, datatype) = (content.count, content.datatype);
                    send(from, count, datatype, peer, self.tag, self.call.comm.comm, request)
                };
                begun(name, code, request)
            }
            Step::Receive { peer, slot, range } => {
                let (address, content) = self.message(range)?;
                let request = &mut self.requests[slot as usize];
                *request = NOTHING_BEGUN;
                // SAFETY: as above.
                let code = unsafe {
                    let (into, peer) = (address.cast(), peer as c_int);
                    let (count, datatype) = (content.count, content.datatype);
                    (mpi.irecv)(into, count, datatype, peer, self.tag, self.call.comm.comm, request)
                };
                begun("MPI_Irecv", code, request)
            }
            Step::Wait { slot } => {
                if self.requests[slot as usize] == NOTHING_BEGUN {
                    return Ok(());
                }
                let status = mpi.constants.status_ignore as *mut c_void;
                // SAFETY: the slot holds a request that was begun above.
                let code = unsafe { (mpi.wait)(&mut self.requests[slot as usize], status) };
                check("MPI_Wait", code)
            }
            Step::Copy { source, into } => {
                // SAFETY: both ranges lie in their buffers, are as long and don't overlap (the step's
                // contract).
                unsafe { self.copy(source, into) }
            }
            Step::Signal { .. }
            | Step::Await { .. }
            | Step::AwaitAll { .. }
            | Step::AwaitFinished { .. }
            | Step::Finish { .. } => self.flag_step(step),
            Step::Combine { source, into, order: OperandOrder::SourceFirst } => {
                // SAFETY: as above.
                unsafe { self.reduce_local(source, into) }
            }
            Step::Combine { source, into, order: OperandOrder::IntoFirst } => {
                // SAFETY: as above; the source may be lost, and never is `Send`.
                unsafe {
                    self.reduce_local(into, source)?;
                    self.copy(source, into)
                }
            }
        }
    }

    /// A step with the flags of shared memory.
    #[inline]
    fn flag_step(&self, step: &Step) -> Result<()> {
        let Some(AreaInCall { area, first, .. }) = self.area else { return Ok(()) };
        // Nobody comes any more, and nobody learns that this rank was here: each finds out by itself who is missing.
        if matches!(self.failure, Some(Error::Peer(_))) {
            return Ok(());
        }
        // SAFETY: the communicator is live while a call on it is carried out.
        let progress = || unsafe { memory::progress(self.call.mpi(), &self.call.comm, TAG_SELF) };
        match *step {
            Step::Signal { flag, turn, value } => area.signal(flag, first + u64::from(turn), value),
            Step::Finish { turn, all_have_begun } => {
                area.finish(first + u64::from(turn), all_have_begun);
            }
            Step::Await { rank, flag, turn, value } => {
                area.await_flag(rank, flag, first + u64::from(turn), value, progress)?;
            }
            Step::AwaitAll { flag, turn, value } => {
                area.await_all(flag, first + u64::from(turn), value, progress)?;
            }
            Step::AwaitFinished { turn, depth } => {
                area.await_finished(first + u64::from(turn), depth, progress)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// # Safety
    /// As [`Execution::step`].
    unsafe fn copy(&self, source: Range, into: Range) -> Result<()> {
        if self.contiguous(source) < source.count || self.contiguous(into) < into.count {
            let (from, to) = (self.message(source)?, self.message(into)?);
            // SAFETY: as below.
            return unsafe {
                let (from, to) = ((from.0.cast_const(), &from.1), (to.0, &to.1));
                copy_by_message(self.call.mpi(), &self.call.comm, from, to)
            };
        }
        let CallContext { comm, longest, .. } = self.call;
        let (from, to) = (self.place(source), self.place(into));
        let addresses = (from.address.cast_const(), to.address);
        // SAFETY: both ranges lie in their buffers, are as long and don't overlap (the step's contract); each
        // is one run of elements.
        unsafe { copy(self.call.mpi(), comm, &to.layout, *longest, addresses, to.count) }
    }

    /// `into = source op into`.
    ///
    /// # Safety
    /// As [`Execution::step`].
    unsafe fn reduce_local(&self, source: Range, into: Range) -> Result<()> {
        let CallContext { layout, operation, longest, .. } = *self.call;
        let reduce_local = self.call.mpi().reduce_local;
        let mut done = 0;
        while done < into.count {
            let rest = |range: Range| Range {
                start: range.start + done,
                count: range.count - done,
                ..range
            };
            let (source, into) = (rest(source), rest(into));
            let run = self.contiguous(source).min(self.contiguous(into));
            let (from, to) = (self.place(source), self.place(into));
            for (start, length) in pieces(run, longest) {
                let offset = layout.offset(start);
                let from = from.address.wrapping_offset(offset).cast_const().cast();
                let to = to.address.wrapping_offset(offset).cast();
                // SAFETY: both are parts of the step's ranges, which don't overlap, of `length` elements;
                // datatype and operation are live (the step's contract).
                let code = unsafe { reduce_local(from, to, length, layout.datatype, operation) };
                check("MPI_Reduce_local", code)?;
            }
            done += run;
        }
        Ok(())
    }
}

/// What the next steps read of what other ranks share, as far as it is to be asked for ahead. What lies beside a flag
/// comes with it.
pub(crate) fn read_next(steps: &[Step]) -> impl Iterator<Item = Range> {
    let reads = steps.iter().map_while(|step| match step {
        Step::Copy { source, .. } | Step::Combine { source, .. } => Some(*source),
        _ => None,
    });
    let is_shared = |range: &Range| matches!(range.buffer, Buffer::Shared { .. });
    reads.take(MAX_PREFETCHED).filter(is_shared)
}

/// What the first steps combine into one range, as the first operand, and the steps after these.
#[inline]
pub(crate) fn combined_into(into: Range, steps: &[Step]) -> (impl Iterator<Item = Range>, &[Step]) {
    let source = move |step: &Step| match *step {
        Step::Combine { source, into: one, order: OperandOrder::SourceFirst } if one == into => {
            Some(source)
        }
        _ => None,
    };
    let number = steps.iter().take_while(|step| source(step).is_some()).count();
    let (first, rest) = steps.split_at(number);
    (first.iter().filter_map(source), rest)
}

/// Asks for the beginning of so many bytes.
#[inline]
pub(crate) fn prefetch_beginning(address: *const u8, bytes: usize) {
    for line in (0..bytes.min(MAX_PREFETCHED_BYTES)).step_by(CACHE_LINE_BYTES) {
        memory::prefetch(address.wrapping_add(line));
    }
}

/// What came of the beginning of a message; where it failed there is nothing to wait for.
#[inline]
fn begun(call: &'static str, code: c_int, request: &mut Handle) -> Result<()> {
    if code != 0 {
        *request = NOTHING_BEGUN;
    }
    check(call, code)
}

/// How many waits come before that for a slot, if nothing else does.
fn waits_before(steps: &[Step], slot: u32) -> Option<usize> {
    let waited = |step: &Step| matches!(step, Step::Wait { slot: waited } if *waited == slot);
    let end = steps.iter().position(|step| waited(step) || !matches!(step, Step::Wait { .. }))?;
    waited(&steps[end]).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_may_block_if_only_waits_come_before_its_own() {
        let wait = |slot| Step::Wait { slot };
        let range = Range::new(Buffer::Receive, 0, 1);
        let send = Step::Send { peer: 0, slot: 3, range };
        assert_eq!(waits_before(&[wait(1), send], 1), Some(0));
        assert_eq!(waits_before(&[wait(0), wait(2), wait(1)], 1), Some(2));
        assert_eq!(waits_before(&[wait(0), send, wait(1)], 1), None);
        assert_eq!(waits_before(&[wait(0)], 1), None);
        assert_eq!(waits_before(&[], 1), None);
    }
}
