//! The programs of earlier calls: a call like one of them is not worked out again.
//!
//! A short message takes two or three microseconds, and between two collectives an application has
//! filled the caches with its own. Then what a call costs is how much code and memory it touches:
//! to ask for types, to agree, to make the rounds and to look after both sides touches ten times
//! as much as to follow steps that are there.

use std::{ffi::c_int, sync::Arc};

use records::Collective;
use schedules::{Call, Round, Step, shared::TurnPlaces};

use crate::{
    Arguments, Counts, Handle, ScheduledMethod, Session, Side,
    agreed::is_commutative,
    element_rows::ElementRows,
    execution::CallContext,
    memory::{MemoryProgram, SharedArea},
};

/// All that a program depends on, if the types are plain ones, whose handles keep their meaning.
///
/// What is not significant on this rank is compared like the rest: it is read, but means nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProgramKey {
    sides: [SideKey; 2],
    method: ScheduledMethod,
    comm: Handle,
    /// See [`Session::released`]: the handle of a communicator that was freed may be another's.
    released: u64,
    collective: Collective,
    root: c_int,
    operation: Handle,
    /// Asked for at each call: the handle of an operation may be another's, too.
    commutative: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct SideKey {
    count: i64,
    datatype: Handle,
    in_place: bool,
}

/// What this rank does in a call.
#[derive(Debug)]
pub(crate) struct RankProgram {
    key: ProgramKey,
    pub call: CallContext,
    /// Requests that are under way at once.
    pub requests: usize,
    pub rows: ElementRows,
    /// Where the ranks of this node share memory, with the number of turns and where their data lie.
    pub area: Option<(Arc<SharedArea>, u64, TurnPlaces)>,
    /// What is followed where it goes through that memory alone.
    pub memory: Option<Arc<MemoryProgram>>,
    pub steps: Vec<Step>,
}

impl RankProgram {
    /// By which it was made.
    pub fn method(&self) -> ScheduledMethod {
        self.key.method
    }
}

/// The programs that were made last.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    kept: Vec<RankProgram>,
    /// Which was followed last.
    last: usize,
    /// Which is replaced next.
    oldest: usize,
    /// Where a program is put together.
    draft: Vec<Step>,
}

impl ProgramKey {
    /// Nothing for calls with a count per rank, and where the library knows no such operation. A reduce-scatter
    /// whose blocks are equal has one, if it is known how many `ranks` the communicator has.
    ///
    /// # Safety
    /// Handles and counts must be as the call's contract says (see [`Arguments`]), for as many ranks as are
    /// given.
    pub unsafe fn from_call(
        session: &Session,
        method: &ScheduledMethod,
        arguments: &Arguments,
        comm: Handle,
        ranks: Option<u32>,
    ) -> Option<Self> {
        let mpi = &session.mpi;
        let Arguments { collective, send, receive, operation, root } = *arguments;
        let side = |side: &Side| {
            let count = match side.counts {
                Counts::Uniform(count) => count,
                Counts::PerRank { counts, displacements: None } => {
                    // SAFETY: `rank` is below `ranks`, for each of which there is a count (the call's contract).
                    let count = |rank: u32| unsafe { counts.get(rank as usize) };
                    (1..ranks?).all(|rank| count(rank) == count(0)).then(|| count(0))?
                }
                Counts::PerRank { .. } => return None,
            };
            let in_place = side.address.addr() == mpi.constants.in_place;
            Some(SideKey { count, datatype: side.datatype, in_place })
        };
        let (sides, commutative) = match collective.combines() {
            // Both are described alike.
            true => ([side(&send)?; 2], is_commutative(mpi, operation).ok()?),
            false => ([side(&send)?, side(&receive)?], true),
        };
        let (method, released) = (*method, session.released());
        Some(ProgramKey { sides, method, comm, released, collective, root, operation, commutative })
    }
}

impl Programs {
    /// As many calls, by turns, are each found again.
    const MOST: usize = 16;
    /// Longer programs are of long messages or of many ranks, beside which working them out is
    /// little.
    const MAX_ROUNDS: u64 = 16;
    const MAX_STEPS: usize = 128;

    /// That which was followed last.
    pub fn last(&self) -> Option<&RankProgram> {
        self.kept.get(self.last)
    }

    /// Gives up all if a communicator was freed since: `released` communicators of the session's were. So memory that
    /// was shared on it is given back.
    pub fn forget_freed_communicators(&mut self, released: u64) {
        if self.kept.first().is_some_and(|program| program.key.released != released) {
            self.kept.clear();
            (self.last, self.oldest) = (0, 0);
        }
    }

    /// The program of an earlier call like this.
    pub fn find(&mut self, key: &ProgramKey) -> Option<&RankProgram> {
        self.forget_freed_communicators(key.released);
        if self.kept.get(self.last).is_none_or(|program| program.key != *key) {
            self.last = self.kept.iter().position(|program| program.key == *key)?;
        }
        self.kept.get(self.last)
    }

    /// Keeps the program of a call whose types are plain, if it isn't long, in place of the oldest
    /// if there are enough. Those made before a communicator was freed are never found again.
    pub fn keep(
        &mut self,
        key: ProgramKey,
        context: &CallContext,
        call: &Call<'_>,
        area: Option<&Arc<SharedArea>>,
        round: &mut Round,
    ) {
        let (entry, rank) = (key.method.entry, context.comm.rank);
        let needs = entry.needs_in(call, rank, round);
        // Plain elements never overlap.
        let rows = ElementRows::new(&context.layout, needs.temporary, u64::MAX);
        let Ok(rows) = rows else { return };
        if needs.rounds > Self::MAX_ROUNDS || needs.header > 0 {
            return;
        }
        self.draft.clear();
        for index in 0..needs.rounds {
            entry.round(call, rank, index, round);
            if self.draft.len() + round.steps().len() > Self::MAX_STEPS {
                return;
            }
            self.draft.extend_from_slice(round.steps());
        }
        let (requests, steps) = (needs.slots as usize, self.draft.clone());
        let area = area.map(|area| {
            let places = area.places(needs.shared_elements, context.layout.size);
            (Arc::clone(area), needs.turns, places)
        });
        let in_one_turn = area.as_ref().filter(|_| needs.turns == 1);
        let memory = in_one_turn.and_then(|(area, _, places)| {
            MemoryProgram::new(context, (area, *places), &steps).map(Arc::new)
        });
        let call = *context;
        let program = RankProgram { key, call, requests, rows, area, memory, steps };
        match self.kept.get_mut(self.oldest) {
            Some(oldest) => *oldest = program,
            None => self.kept.push(program),
        }
        (self.last, self.oldest) = (self.oldest, (self.oldest + 1) % Self::MOST);
    }
}
