//! Collectives composed of other collectives: the mock-ups of the performance guidelines.
//!
//! A specialised collective should not be slower than a composition of others that does the same
//! work; where it is, the composition replaces it. The guidelines GL1 to GL22 and the memory that
//! each mock-up needs are those of S. Hunold and A. Carpen-Amarie, "Autotuning MPI Collectives
//! using Performance Guidelines" (HPC Asia 2018), Table 1; P9 and P17 are from S. Hunold,
//! A. Carpen-Amarie, F. D. Lübbe, J. L. Träff, "Automatic Verification of Self-Consistent MPI
//! Performance Guidelines" (Euro-Par/EuroMPI 2016).
//!
//! Inner collectives are those of the table, called on our duplicate of the application's
//! communicator: they can't be mixed up with the application's own traffic there, whatever else
//! is under way, and a library that stands in for MPI gives a table of MPI's own functions, so
//! that they are not replaced in their turn. Their errors come back as codes; the caller raises
//! them on the application's communicator.

mod allgather;
mod allreduce;
mod alltoall;
mod bcast;
mod blocks;
mod calls;
mod facts;
mod gather;
mod limits;
mod mockup;
mod operands;
mod packing_room;
mod part;
mod reduce;
mod reduce_scatter;
mod reduce_scatter_block;
mod reductions;
mod scan;
mod scatter;

use std::{cell::Cell, ffi::c_int};

use records::Collective;

use self::{
    calls::MockupWork, facts::Facts, limits::MemoryPlan, operands::Operands, part::BufferPart,
};
pub use self::{
    limits::{COUNTS_MEMORY, Limits, MEMORY},
    mockup::Mockup,
};
use crate::{
    Arguments, Error, Handle, Result, Session, SignificantSide, SignificantSides,
    duplicate::CommunicatorMember, layout::ALIGNMENT,
};

/// Every mock-up, in the order of the guidelines.
pub static ALL: [&Mockup; 24] = [
    &allgather::GATHER_BCAST,
    &allgather::ALLTOALL,
    &allgather::ALLREDUCE,
    &allgather::ALLGATHERV,
    &allreduce::REDUCE_BCAST,
    &allreduce::REDUCE_SCATTER_BLOCK_ALLGATHER,
    &allreduce::REDUCE_SCATTER_ALLGATHERV,
    &alltoall::ALLTOALLV,
    &bcast::ALLGATHERV,
    &bcast::SCATTER_ALLGATHER,
    &gather::ALLGATHER,
    &gather::GATHERV,
    &gather::REDUCE,
    &reduce::ALLREDUCE,
    &reduce::REDUCE_SCATTER_BLOCK_GATHER,
    &reduce::REDUCE_SCATTER_GATHERV,
    &reduce_scatter_block::REDUCE_THEN_SCATTER,
    &reduce_scatter_block::REDUCE_SCATTER,
    &reduce_scatter_block::ALLREDUCE,
    &scan::EXSCAN_REDUCE_LOCAL,
    &scatter::BCAST,
    &scatter::SCATTERV,
    &reduce_scatter::ALLREDUCE,
    &reduce_scatter::REDUCE_SCATTERV,
];

/// The mock-up of this name.
///
/// # Errors
/// There is none; says which is nearest, and all there are.
pub fn find(name: &str) -> std::result::Result<&'static Mockup, String> {
    ALL.into_iter().find(|mockup| mockup.name == name).ok_or_else(|| {
        let known = ALL.map(|mockup| mockup.name);
        records::unknown("mock-up", name, &known)
    })
}

/// The mock-up of a collective that is made of these functions, in any order.
pub fn made_of(collective: Collective, functions: &[String]) -> Option<&'static Mockup> {
    let sorted = |functions: &[String]| {
        let mut functions = functions.to_vec();
        functions.sort_unstable();
        functions
    };
    let wanted = sorted(functions);
    of_collective(collective).find(|mockup| sorted(&mockup.functions()) == wanted)
}

/// The mock-ups of a collective.
pub fn of_collective(collective: Collective) -> impl Iterator<Item = &'static Mockup> {
    ALL.into_iter().filter(move |mockup| mockup.collective == collective)
}

/// Carries out mock-ups, one at a time; a program has one per thread that calls them.
///
/// Its memory grows with the greatest call so far, up to the limits. Only where a rank's own type must be packed, and
/// that memory does not hold it, more is taken for the time of the call.
#[derive(Debug)]
pub struct Mockups {
    session: &'static Session,
    limits: Limits,
    messages: Vec<u128>,
    integers: Vec<c_int>,
    longest: c_int,
}

impl Mockups {
    /// In a session of this process.
    pub fn new(session: &'static Session, limits: Limits) -> Self {
        let (messages, integers) = (Vec::new(), Vec::new());
        Mockups { session, limits, messages, integers, longest: c_int::MAX }
    }

    /// Takes what a call needs, where it was not taken before.
    ///
    /// # Errors
    /// There is no such memory.
    fn reserve(&mut self, plan: &MemoryPlan) -> Result<()> {
        let words = plan.used.div_ceil(ALIGNMENT);
        self.messages.try_reserve_exact(words).map_err(|_| Error::Memory(plan.used))?;
        let numbers = plan.integer_bytes.div_ceil(size_of::<c_int>());
        self.integers.try_reserve_exact(numbers).map_err(|_| Error::Memory(plan.integer_bytes))
    }

    /// With another number in place of the greatest `int`, so that what is done with counts above
    /// 2^31 can be tried with little memory; the same on all ranks.
    #[must_use]
    pub fn with_longest(self, longest: c_int) -> Self {
        Mockups { longest: longest.max(1), ..self }
    }

    /// The memory that it may use.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Carries out a collective by a mock-up.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, with handles of the
    /// session's library, and all ranks must call this with the same mock-up and limits.
    ///
    /// # Errors
    /// Before anything is sent, and on all ranks alike, [`Error::Refused`] says why it can't: inter-communicators, more
    /// memory than the limits allow, counts that a call inside takes as `int`, operations that are not commutative
    /// where a call inside may get their order wrong, padding of elements that reach beyond their extent. Else
    /// [`Error::Invalid`] says what is wrong with this rank's arguments; [`Error::Memory`] where memory is lacking, [`Error::Mpi`]
    /// where a call inside fails.
    pub unsafe fn run(
        &mut self,
        mockup: &Mockup,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the call's contract is this function's; our memory has room for the plan, and for the time of
        // the call it is this call's alone.
        unsafe {
            let (facts, plan, member) = self.plan(mockup, arguments, comm)?;
            if facts.count == 0 || facts.layout.size == 0 {
                return Ok(());
            }
            self.reserve(&plan)?;
            let memory = self.messages.as_mut_ptr().cast::<u8>();
            let (operands, rows) = plan.operands;
            let whole = self.messages.capacity() * ALIGNMENT;
            let mpi = &self.session.mpi;
            let in_place = mpi.constants.in_place;
            let SignificantSides { send, receive, .. } =
                arguments.significant(member.rank, member.size, in_place);
            let part = |side: Option<SignificantSide>| {
                side.map(|side| BufferPart::from_side(self.session, &facts, arguments, &side))
                    .transpose()
            };
            let mut work = MockupWork {
                session: self.session,
                mpi,
                arguments,
                send: part(send)?,
                receive: part(receive)?,
                comm: self.session.duplicate(comm, member)?,
                facts,
                buffers: plan.buffers.map(|base| memory.wrapping_offset(base)),
                operands: Operands {
                    first: rows.first(memory.wrapping_add(operands)),
                    rows,
                    layout: facts.layout,
                },
                packed: memory.wrapping_add(plan.packed),
                rest: (memory.wrapping_add(plan.used), whole.saturating_sub(plan.used)),
                beyond: Vec::new(),
                integers: self.integers.spare_capacity_mut(),
                longest: self.longest,
                failure: Cell::new(None),
            };
            let outcome = (mockup.run)(&mut work);
            match work.failure.get() {
                Some((call, code)) => Err(Error::Mpi { call, code }),
                None => outcome,
            }
        }
    }

    /// # Safety
    /// As [`Mockups::run`].
    unsafe fn plan(
        &self,
        mockup: &Mockup,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<(Facts, MemoryPlan, CommunicatorMember)> {
        let (wanted, given) = (mockup.collective, arguments.collective);
        if wanted != given {
            return Err(Error::Refused(format!("{mockup} is a mock-up of {wanted}, not {given}")));
        }
        // SAFETY: both rely on the call's contract, which is this function's.
        let (member, facts) = unsafe {
            let member = self.session.member(comm)?;
            (member, Facts::from_arguments(self.session, arguments, member)?)
        };
        let plan = self.limits.plan(mockup, &facts, self.longest)?;
        Ok((facts, plan, member))
    }
}
