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

/// Sets of calls that a communicator remembers: its digest tells in which of them a call may be.
const SETS: usize = 64;
/// Calls of a set. With these, programs of 100 different calls find room for nearly all.
const WAYS: usize = 4;

type CallSet = [OnceLock<Box<RecentCall>>; WAYS];

/// Those of one communicator.
#[derive(Debug, Default)]
pub struct RecentCalls {
    /// A bit for each collective of which there is one.
    collectives: AtomicU32,
    /// What libraries know `MPI_IN_PLACE` by.
    in_place: AtomicUsize,
    /// Made with the first. A call stays as long as the communicator, so that who reads needs no lock.
    sets: OnceLock<Box<[CallSet; SETS]>>,
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

/// The set that a call may be in.
#[inline(always)]
fn set_index(digest: u64) -> usize {
    (digest >> (u64::BITS - SETS.ilog2())) as usize
}

impl RecentCalls {
    /// The earlier call that this one repeats.
    #[inline(always)]
    pub fn find(&self, arguments: &Arguments, rank: u32) -> Option<&RecentCall> {
        if self.collectives.load(Ordering::Relaxed) & bit(arguments.collective) == 0 {
            return None;
        }
        let sides = [described(&arguments.send)?, described(&arguments.receive)?];
        let sets = self.sets.get()?;
        let place_of_in_place = self.in_place.load(Ordering::Relaxed);
        let in_place = arguments.is_in_place(rank, place_of_in_place);
        let digest = digest(arguments, sides[1], in_place);
        // A set is filled from its beginning on.
        let mut in_set = sets[set_index(digest)].iter().map_while(OnceLock::get);
        let call = in_set.find(|call| call.digest == digest)?;
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

    /// Remembers a call that was carried out, if it is by types and an operation of MPI's own, in buffers that lie apart, and
    /// its set has room.
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
        let sets =
            self.sets.get_or_init(|| Box::new([const { [const { OnceLock::new() }; WAYS] }; SETS]));
        let place_of_in_place = job.library.constants.in_place;
        let in_place = arguments.is_in_place(place.rank, place_of_in_place);
        let digest = digest(&arguments, received, in_place);
        let set = &sets[set_index(digest)];
        // Known, but not repeated: its buffers were others than usual.
        if set.iter().filter_map(OnceLock::get).any(|call| call.digest == digest) {
            return;
        }
        let Some(free) = set.iter().find(|way| way.get().is_none()) else { return };
        // SAFETY: as this function's contract says.
        let Some(lengths) = (unsafe { call.lengths() }) else { return };
        self.in_place.store(place_of_in_place, Ordering::Relaxed);
        free.get_or_init(|| {
            Box::new(RecentCall {
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
            })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A program's calls of some sizes and roots find room, by handles as Open MPI and MPICH have them.
    #[test]
    fn calls_of_many_sizes_and_roots_find_room() {
        for (datatype, operation) in
            [(0x7f3a_52c8_1de0, 0x7f3a_52c8_9a40), (0x4c00_080b, 0x5800_0003)]
        {
            let mut sets = [0_usize; SETS];
            for (collective, roots) in [(Collective::Bcast, 4), (Collective::Allreduce, 1)] {
                for (root, size) in
                    (0..roots).flat_map(|root| (0..20).map(move |size| (root, size)))
                {
                    let operation = if collective.combines() { operation } else { 0 };
                    let arguments = Arguments { collective, root, operation, ..Arguments::BARRIER };
                    sets[set_index(digest(&arguments, (1 << size, datatype), false))] += 1;
                }
            }
            let without_room: usize = sets.iter().map(|calls| calls.saturating_sub(WAYS)).sum();
            assert!(without_room <= 5, "{without_room} of 100 calls");
        }
    }
}
