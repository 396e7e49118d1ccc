//! Calls of a communicator that went through shared memory, as they came: one like them is carried out without being
//! looked up, judged and worked out again.
//!
//! What a call is allowed depends on its collective, counts, types, operation and root, which are compared, and on where
//! its buffers are, which is looked at each time. Types and operations are MPI's own, whose handles keep their
//! meaning.

use std::{
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use records::Collective;
use runner::{Arguments, Counts, Handle, MemoryProgram, Runnable, Side};

use super::{
    call::InterceptedCall,
    sides::{are_usual_buffers, lie_apart},
};
use crate::{job::JobContext, known_communicators};

/// As many calls of a communicator are remembered, each in one of the two buckets that it may have.
const BUCKETS: usize = 32;

/// Those of one communicator.
#[derive(Debug, Default)]
pub struct RecentCalls {
    /// A bit for each collective of which there is one.
    collectives: AtomicU32,
    /// What libraries know `MPI_IN_PLACE` by.
    in_place: AtomicUsize,
    /// Made with the first. A call stays as long as the communicator, so that who reads needs no lock.
    calls: OnceLock<Box<[OnceLock<RecentCall>; BUCKETS]>>,
}

const _: () = assert!(Collective::ALL.len() <= u32::BITS as usize);

/// A call that may come again.
#[derive(Debug)]
pub struct RecentCall {
    collective: Collective,
    root: c_int,
    operation: Handle,
    sides: [(i64, Handle); 2],
    /// Bytes that these take; 0 where a side means nothing on this rank.
    lengths: [usize; 2],
    /// Whether `MPI_IN_PLACE` stands for this rank's data.
    in_place: bool,
    digest: u64,
    /// Processes of the communicator.
    procs: u32,
    bytes: u64,
    method: &'static Runnable,
    program: Arc<MemoryProgram>,
}

/// Elements and type, where all blocks have one count.
#[inline(always)]
fn described(side: &Side) -> Option<(i64, Handle)> {
    match side.counts {
        Counts::Uniform(count) => Some((count, side.datatype)),
        Counts::PerRank { .. } => None,
    }
}

/// Tells calls from each other, but for very few.
#[inline(always)]
fn digest(arguments: &Arguments, (count, datatype): (i64, Handle), in_place: bool) -> u64 {
    let Arguments { collective, operation, root, .. } = *arguments;
    let rest = (root as u64) << 9 | (collective as u64) << 1 | u64::from(in_place);
    (count as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (datatype as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ (operation as u64).wrapping_mul(0x1656_67b1_9e37_79f9)
        ^ rest.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where a call may be; its other bucket is the neighbour, with the last bit turned over.
#[inline(always)]
fn bucket(digest: u64) -> usize {
    (digest >> (u64::BITS - BUCKETS.ilog2())) as usize
}

impl RecentCalls {
    /// The earlier call that this one repeats.
    #[inline(always)]
    pub fn find(&self, arguments: &Arguments, rank: u32) -> Option<&RecentCall> {
        if self.collectives.load(Ordering::Relaxed) & bit(arguments.collective) == 0 {
            return None;
        }
        let sides = [described(&arguments.send)?, described(&arguments.receive)?];
        let calls = self.calls.get()?;
        let place_of_in_place = self.in_place.load(Ordering::Relaxed);
        let in_place = arguments.is_in_place(rank, place_of_in_place);
        let digest = digest(arguments, sides[1], in_place);
        let first = calls[bucket(digest)].get().filter(|call| call.digest == digest);
        let call = match first {
            Some(call) => call,
            None => calls[bucket(digest) ^ 1].get()?,
        };
        let is_like_it = call.collective == arguments.collective
            && call.sides == sides
            && call.root == arguments.root
            && call.operation == arguments.operation
            && call.in_place == in_place;
        let ranks = (rank, call.procs);
        let are_apart = |one: &Side, other: &Side| lie_apart(one, other, call.lengths);
        let are_usual = || are_usual_buffers(arguments, ranks, place_of_in_place, are_apart);
        (is_like_it && are_usual()).then_some(call)
    }

    /// Remembers a call that was carried out, if it is by types and an operation of MPI's own, in buffers that lie apart, and a
    /// bucket of its is free.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn remember(&self, call: &InterceptedCall, program: &Arc<MemoryProgram>) {
        let InterceptedCall { job, arguments, place, bytes, choice: Some(method), .. } = *call
        else {
            return;
        };
        let is_named = |operation| job.library.constants.is_named_operation(operation);
        if arguments.collective.combines() && !is_named(arguments.operation) {
            return;
        }
        let sides = [described(&arguments.send), described(&arguments.receive)];
        let [Some(sent), Some(received)] = sides else { return };
        let buckets = self.calls.get_or_init(|| Box::new([const { OnceLock::new() }; BUCKETS]));
        let place_of_in_place = job.library.constants.in_place;
        let in_place = arguments.is_in_place(place.rank, place_of_in_place);
        let digest = digest(&arguments, received, in_place);
        let first = bucket(digest);
        let free = [first, first ^ 1].into_iter().find(|bucket| buckets[*bucket].get().is_none());
        let Some(free) = free else { return };
        // SAFETY: as this function's contract says.
        let Some(lengths) = (unsafe { call.lengths() }) else { return };
        self.in_place.store(place_of_in_place, Ordering::Relaxed);
        buckets[free].get_or_init(|| RecentCall {
            collective: arguments.collective,
            root: arguments.root,
            operation: arguments.operation,
            sides: [sent, received],
            lengths,
            in_place,
            digest,
            procs: place.tables.procs,
            bytes,
            method,
            program: Arc::clone(program),
        });
        self.collectives.fetch_or(bit(arguments.collective), Ordering::Relaxed);
    }
}

#[inline(always)]
fn bit(collective: Collective) -> u32 {
    1 << collective as u32
}

/// Why a repeated call failed: nothing where a fault of ours did it.
pub type RepeatFailure = Option<Box<runner::Error>>;

impl RecentCall {
    /// Carries out a call like this one, with other buffers.
    ///
    /// # Safety
    /// The buffers are the application's, in arguments for which [`RecentCalls::find`] found this.
    ///
    /// # Errors
    /// See [`RecentCall::end_badly`].
    #[inline(never)]
    pub unsafe fn repeat(
        &self,
        send: *mut c_void,
        receive: *mut c_void,
    ) -> Result<(), RepeatFailure> {
        // SAFETY: the arguments are the application's, and differ from those of the earlier call in their buffers alone
        // (contract of this function), which was judged to be sound; all ranks have the same method for it.
        let run = || unsafe { self.program.run(send, receive) };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(outcome) => outcome.map_err(Some),
            Err(_) => Err(None),
        }
    }

    /// The code of a call that failed, whose arguments these are.
    #[cold]
    pub fn end_badly(&self, failure: RepeatFailure, arguments: Arguments, comm: Handle) -> c_int {
        let place = known_communicators::first(comm);
        let (Some(job), Some(place)) = (JobContext::current(), place) else {
            // It was found by way of both.
            std::process::abort()
        };
        let (bytes, choice) = (self.bytes, Some(self.method));
        let call = InterceptedCall { job, arguments, comm, place, bytes, choice, explored: None };
        match failure {
            Some(error) => call.code(Err(*error)),
            None => call.end_after_fault(),
        }
    }
}
