//! Calls that go through the memory of a node alone, worked out down to addresses.
//!
//! A flag comes within 100 ns. Beside that it is seen what is asked and worked out before, and how much code that
//! takes: an application has filled the caches with its own.

use std::{
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    sync::Arc,
};

use schedules::{
    Buffer, Flag, OperandOrder, Range, Step,
    shared::{LINE_BYTES, TurnPlaces},
};

use super::{SharedArea, area::copy_bytes, progress};
use crate::{
    Error, Result,
    error::check,
    execution::{self, CallContext, MAX_SOURCES},
    tags::TAG_SELF,
};

/// What one rank does in a call of an algorithm of shared memory, whatever buffers it is called with.
#[derive(Debug)]
pub struct MemoryProgram {
    call: CallContext,
    area: Arc<SharedArea>,
    places: TurnPlaces,
    /// What is awaited before anything is written: see [`Step::AwaitFinished`]. Like the end of the turn, this is no
    /// action, as short calls have little else, and each action costs a jump that the processor guesses badly.
    depth: Option<u32>,
    actions: Box<[Action]>,
    /// How the turn ends: see [`Step::Finish`].
    all_have_begun: bool,
    /// Of all combinations.
    sources: Box<[Place]>,
}

// SAFETY: the places of actions are in the area, which may be reached from any thread; what is not atomic there is
// ordered by what is, and MPI allows one collective at a time on a communicator.
unsafe impl Send for MemoryProgram {}
// SAFETY: as above.
unsafe impl Sync for MemoryProgram {}

/// Where data lie: so many bytes from the beginning of a memory.
#[derive(Debug, Clone, Copy)]
struct Place {
    memory: Memory,
    offset: usize,
}

/// What places are in.
#[derive(Debug, Clone, Copy)]
enum Memory {
    Sent,
    Received,
    /// What the call alone sees.
    Temporary,
    /// The area, where the data of this turn are as far from its beginning as those of turn 0 really are.
    Data,
    /// The area, where what lies beside the flags of this turn is as far from its beginning as of turn 0.
    Payloads,
}

const MEMORIES: usize = 5;

/// What a [`Step`] becomes before the call: ranges worked out to places, no turns (there is one), no messages. Two are
/// not steps: [`Action::SignalWith`] is a copy and a signal in one, [`Action::Prefetch`] is worked out from what
/// is read next. So a shared type would have variants that either side must refuse.
#[derive(Debug, Clone, Copy)]
enum Action {
    Signal {
        flag: Flag,
        value: u32,
    },
    /// With what lies beside the flag.
    SignalWith {
        flag: Flag,
        value: u32,
        source: Place,
        bytes: usize,
    },
    Await {
        rank: u32,
        flag: Flag,
        value: u32,
    },
    AwaitAll {
        flag: Flag,
        value: u32,
    },
    Prefetch {
        source: Place,
        bytes: usize,
    },
    Copy {
        source: Place,
        into: Place,
        bytes: usize,
    },
    /// Of as many sources as follow one another into the same place.
    Combine {
        first: usize,
        number: usize,
        into: Place,
        count: c_int,
    },
}

/// Where each memory begins in a call.
struct Beginnings([*mut u8; MEMORIES]);

impl Beginnings {
    #[inline(always)]
    fn address(&self, place: &Place) -> *mut u8 {
        self.0[place.memory as usize].wrapping_add(place.offset)
    }
}

/// Keeps what failed first.
#[cold]
fn note(error: Error, failure: &mut Option<Box<Error>>, is_alone: &mut bool) {
    let first = failure.get_or_insert_with(|| Box::new(error));
    *is_alone = matches!(**first, Error::Peer(_));
}

impl MemoryProgram {
    /// Of the steps of a call of one turn. Nothing where they take messages, elements with gaps, or more scratch memory
    /// than what lies beside a flag.
    pub(crate) fn new(
        context: &CallContext,
        (area, places): (&Arc<SharedArea>, TurnPlaces),
        steps: &[Step],
    ) -> Option<Self> {
        if !context.layout.is_dense() {
            return None;
        }
        let [steps @ .., Step::Finish { turn: 0, all_have_begun }] = steps else { return None };
        let (depth, mut rest) = match steps {
            [Step::AwaitFinished { turn: 0, depth }, rest @ ..] => (Some(*depth), rest),
            _ => (None, steps),
        };
        let mut program = MemoryProgram {
            call: *context,
            area: Arc::clone(area),
            places,
            depth,
            actions: Box::default(),
            all_have_begun: *all_have_begun,
            sources: Box::default(),
        };
        let mut actions = Vec::with_capacity(steps.len());
        let mut sources = Vec::new();
        while let [step, others @ ..] = rest {
            match (step, others) {
                (
                    Step::Copy { source, into },
                    [Step::Signal { flag, turn: 0, value }, after @ ..],
                ) if matches!(into.buffer, Buffer::Line { .. }) => {
                    let (source, bytes) = (program.place(*source)?, program.bytes(*source));
                    actions.push(Action::SignalWith { flag: *flag, value: *value, source, bytes });
                    rest = after;
                }
                (&Step::Combine { into, order: OperandOrder::SourceFirst, .. }, _) => {
                    let (combined, after) = execution::combined_into(into, rest);
                    let first = sources.len();
                    for source in combined {
                        sources.push(program.place(source)?);
                    }
                    let number = sources.len() - first;
                    let count = c_int::try_from(into.count).ok();
                    let count = count.filter(|count| *count <= context.longest)?;
                    let into = program.place(into)?;
                    actions.push(Action::Combine { first, number, into, count });
                    rest = after;
                }
                _ => {
                    actions.push(program.action(step)?);
                    rest = others;
                }
            }
            if let Step::Await { .. } | Step::AwaitAll { .. } = step {
                for range in execution::read_next(others) {
                    let (source, bytes) = (program.place(range)?, program.bytes(range));
                    actions.push(Action::Prefetch { source, bytes });
                }
            }
        }
        (program.actions, program.sources) = (actions.into(), sources.into());
        Some(program)
    }

    /// Carries out a call like the one that it was made for, all of it whatever fails first, as others may wait.
    ///
    /// # Safety
    /// The communicator of that call must be live, and this the next collective on it, the same on all ranks. The
    /// buffers are as the call's contract says (see [`Arguments`](crate::Arguments)) for arguments that differ
    /// from those of that call in nothing but where their buffers are.
    ///
    /// # Errors
    /// [`Error::Peer`] and [`Error::Mpi`], boxed so that success comes back in a register.
    pub unsafe fn run(
        &self,
        send: *mut c_void,
        receive: *mut c_void,
    ) -> std::result::Result<(), Box<Error>> {
        // No message goes out, but other ranks may carry out this call by messages to themselves.
        self.call.next_tag();
        let turn = self.area.begin_turns(1).map_err(Box::new)?;
        let mut temporary = MaybeUninit::<[u128; LINE_BYTES / size_of::<u128>()]>::uninit();
        let area = self.area.beginning();
        let places = Beginnings([
            send.cast(),
            receive.cast(),
            temporary.as_mut_ptr().cast(),
            area.wrapping_add(self.area.data_offset(turn, self.places)),
            area.wrapping_add(SharedArea::payload_offset(turn)),
        ]);
        let mut failure = None;
        // Whether nobody comes any more: see `Execution::flag_step`.
        let mut is_alone = false;
        // SAFETY: the communicator is live (contract of this function).
        let progress = unsafe { self.progress() };
        if let Some(depth) = self.depth
            && let Err(error) = self.area.await_finished(turn, depth, progress)
        {
            note(error, &mut failure, &mut is_alone);
        }
        for action in &self.actions {
            // SAFETY: the communicator is live, and the places are valid for what the schedule does there (contract of
            // this function).
            if let Err(error) = unsafe { self.carry_out(action, turn, &places, is_alone) } {
                note(error, &mut failure, &mut is_alone);
            }
        }
        if !is_alone {
            self.area.finish(turn, self.all_have_begun);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Lets MPI go on while a flag is awaited.
    ///
    /// # Safety
    /// The communicator is live as long as what this returns is called.
    unsafe fn progress(&self) -> impl FnMut() -> Result<()> {
        // SAFETY: as this function's contract says.
        || unsafe { progress(self.call.mpi(), &self.call.comm, TAG_SELF) }
    }

    /// # Safety
    /// The places are valid for what the schedule does there, and the communicator is live.
    #[inline(always)]
    unsafe fn carry_out(
        &self,
        action: &Action,
        turn: u64,
        places: &Beginnings,
        is_alone: bool,
    ) -> Result<()> {
        // SAFETY: the communicator is live (contract of this function).
        let progress = unsafe { self.progress() };
        match action {
            Action::Copy { source, into, bytes } => {
                let (source, into) = (places.address(source).cast_const(), places.address(into));
                // SAFETY: the checker has shown that both lie in their buffers and don't overlap.
                unsafe { copy_bytes(source, into, *bytes) };
            }
            Action::Combine { first, number, into, count } => {
                let of_it = &self.sources[*first..*first + *number];
                for some in of_it.chunks(MAX_SOURCES) {
                    let mut sources = [std::ptr::null(); MAX_SOURCES];
                    for (address, source) in sources.iter_mut().zip(some) {
                        *address = places.address(source).cast_const();
                    }
                    let sources = &sources[..some.len()];
                    // SAFETY: as above.
                    unsafe { self.combine(sources, places.address(into), *count)? };
                }
            }
            Action::Prefetch { source, bytes } => {
                execution::prefetch_beginning(places.address(source), *bytes);
            }
            _ if is_alone => {}
            Action::Signal { flag, value } => self.area.signal(*flag, turn, *value),
            Action::SignalWith { flag, value, source, bytes } => {
                let source = places.address(source).cast_const();
                // SAFETY: as many bytes are there and fit beside a flag, as the schedule was told.
                unsafe { self.area.signal_with(*flag, turn, *value, source, *bytes) };
            }
            Action::Await { rank, flag, value } => {
                self.area.await_flag(*rank, *flag, turn, *value, progress)?;
            }
            Action::AwaitAll { flag, value } => {
                self.area.await_all(*flag, turn, *value, progress)?;
            }
        }
        Ok(())
    }

    /// `into = source op into`, for one source after the other.
    ///
    /// # Safety
    /// All hold so many elements, and none overlaps `into`; the operation is live.
    #[inline(never)]
    unsafe fn combine(&self, sources: &[*const u8], into: *mut u8, count: c_int) -> Result<()> {
        let CallContext { arithmetic, layout, operation, .. } = &self.call;
        if let Some(arithmetic) = arithmetic.filter(|it| it.takes(layout, count as u64)) {
            // SAFETY: as this function's contract says.
            unsafe { arithmetic.combine(sources, into, count as usize) };
            return Ok(());
        }
        let mpi = self.call.mpi();
        for source in sources {
            let (source, into) = (source.cast(), into.cast());
            // SAFETY: as above.
            let code =
                unsafe { (mpi.reduce_local)(source, into, count, layout.datatype, *operation) };
            check("MPI_Reduce_local", code)?;
        }
        Ok(())
    }
}

/// What a step becomes.
impl MemoryProgram {
    fn bytes(&self, range: Range) -> usize {
        range.count as usize * self.call.layout.size
    }

    fn place(&self, range: Range) -> Option<Place> {
        let offset = range.start as usize * self.call.layout.size;
        let in_area = |place: *mut u8| place.addr() - self.area.beginning().addr() + offset;
        let (memory, offset) = match range.buffer {
            Buffer::Send => (Memory::Sent, offset),
            Buffer::Receive => (Memory::Received, offset),
            Buffer::Temporary if offset + self.bytes(range) <= LINE_BYTES => {
                (Memory::Temporary, offset)
            }
            Buffer::Shared { owner, turn: 0 } => {
                (Memory::Data, in_area(self.area.data(owner, 0, self.places)))
            }
            Buffer::Line { owner, flag, turn: 0 } => {
                (Memory::Payloads, in_area(self.area.payload(owner, flag, 0)))
            }
            _ => return None,
        };
        Some(Place { memory, offset })
    }

    fn action(&self, step: &Step) -> Option<Action> {
        Some(match *step {
            Step::Signal { flag, turn: 0, value } => Action::Signal { flag, value },
            Step::Await { rank, flag, turn: 0, value } => Action::Await { rank, flag, value },
            Step::AwaitAll { flag, turn: 0, value } => Action::AwaitAll { flag, value },
            Step::Copy { source, into } => {
                let bytes = self.bytes(source);
                Action::Copy { source: self.place(source)?, into: self.place(into)?, bytes }
            }
            _ => return None,
        })
    }
}
