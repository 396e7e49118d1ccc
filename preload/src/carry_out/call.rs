//! Which calls are carried out or noted here, and what is known of each.

use choosing::exploring::CallsAlone;
use records::Collective;
use runner::{Arguments, Handle, Runnable};

use super::recent::RecentCall;
use crate::{
    communicators::{self, CommunicatorEntry},
    exploring::{DefaultCall, ExploredCall},
    job::JobContext,
    known_communicators::{self, CommunicatorPlace},
};

/// What is known of a call at first sight.
pub enum FirstSight {
    /// It is the MPI library's.
    LeftAlone,
    /// So it is, and was counted here.
    Counted(&'static CallsAlone),
    /// So it is, and is to be timed.
    Timed(&'static CallsAlone),
    /// So it is, and is to be counted: the communicator is new.
    New(&'static CommunicatorEntry),
    /// It repeats this one.
    Recent(&'static RecentCall),
    /// [`choose`] tells.
    Open,
}

/// Whether a call is known to be the MPI library's, as it came, by what is at hand: nothing is called
/// here, so that what stands before the library's function keeps its arguments in registers and ends in
/// a jump.
///
/// # Safety
/// As [`choose`].
#[inline(always)]
pub unsafe fn at_first_sight(arguments: &Arguments, comm: Handle) -> FirstSight {
    let Some(place) = known_communicators::first(comm) else { return FirstSight::Open };
    if let Some(call) = place.recent.and_then(|recent| recent.find(arguments, place.rank)) {
        return FirstSight::Recent(call);
    }
    let table = place.tables.for_collective(arguments.collective);
    if place.tables.watched {
        return FirstSight::Open;
    }
    let collective = arguments.collective;
    if let Some(entry) = place.new {
        return match entry.is_new_to(collective) && !entry.is_sampled(collective) {
            true => FirstSight::New(entry),
            false => FirstSight::Open,
        };
    }
    let explorer = place.explorer.filter(|explorer| explorer.explores(collective));
    if table.is_empty() && explorer.is_none() {
        return FirstSight::LeftAlone;
    }
    let side = arguments.sizing(place.rank);
    let of_default = |call| match call {
        DefaultCall::Counted(alone) => FirstSight::Counted(alone),
        DefaultCall::Timed(alone) => FirstSight::Timed(alone),
    };
    if let Some(call) = explorer.and_then(|it| it.last_default_call(collective, &side)) {
        return of_default(call);
    }
    let Some(job) = JobContext::current() else { return FirstSight::Open };
    // SAFETY: these are the application's arguments (contract of this function): `counts` has an entry for each
    // process of `place`.
    let bytes =
        unsafe { arguments.message_bytes(place.rank, place.tables.procs, job.session, false) };
    match (bytes, explorer) {
        (None, _) => FirstSight::Open,
        (Some(0), _) if collective != Collective::Barrier => FirstSight::LeftAlone,
        (Some(bytes), Some(explorer)) => {
            explorer.default_call(collective, &side, bytes).map_or(FirstSight::Open, of_default)
        }
        (Some(bytes), None) if table.has_none(bytes) => FirstSight::LeftAlone,
        (Some(_), None) => FirstSight::Open,
    }
}

/// The call if it is to be carried out, noted or counted here; nothing where it is the MPI library's, as it
/// came.
///
/// # Safety
/// Arguments and communicator must be the application's (see [`carry_out`](super)), between `MPI_Init` and
/// `MPI_Finalize` or not.
#[inline(always)]
pub unsafe fn choose(arguments: Arguments, comm: Handle) -> Option<InterceptedCall> {
    // SAFETY: `comm` is what the application passed, and so are datatypes and `counts`, which has an entry for
    // each process of `place` (contract of this function).
    unsafe {
        let place = communicators::find(comm, arguments.collective)?;
        let new = place.new;
        let table = place.tables.for_collective(arguments.collective);
        let explorer = place
            .explorer
            .filter(|explorer| new.is_none() && explorer.explores(arguments.collective));
        if table.is_empty() && !place.tables.watched && new.is_none() && explorer.is_none() {
            return None;
        }
        let job = JobContext::current()?;
        let counted = |place| InterceptedCall {
            job,
            arguments,
            comm,
            place,
            bytes: 0,
            choice: None,
            explored: None,
        };
        if new.is_some() && !place.tables.watched {
            return Some(counted(place));
        }
        let Some(bytes) =
            arguments.message_bytes(place.rank, place.tables.procs, job.session, true)
        else {
            // As where nothing is watched: the other ranks' calls may be right.
            let tables = JobContext::idle_tables(place.tables.procs);
            return new.map(|_| counted(CommunicatorPlace { tables, ..place }));
        };
        // Messages without data are the library's: there is nothing to gain, and ranks may then pass what they like as
        // the type.
        let has_data = bytes > 0 || arguments.collective == Collective::Barrier;
        let explored = explorer
            .filter(|_| has_data)
            .map(|explorer| explorer.begin(job, arguments.collective, bytes));
        let choice = match (&explored, has_data) {
            (Some(explored), _) => explored.method(),
            (None, true) => table.find(bytes),
            (None, false) => None,
        };
        if choice.is_none() && !place.tables.watched && explored.is_none() {
            return None;
        }
        Some(InterceptedCall { job, arguments, comm, place, bytes, choice, explored })
    }
}

/// A call whose method may not be the library's, or that is noted or counted.
#[derive(Clone, Copy)]
pub struct InterceptedCall {
    pub(super) job: &'static JobContext,
    pub(super) arguments: Arguments,
    pub(super) comm: Handle,
    pub(super) place: CommunicatorPlace,
    pub(super) bytes: u64,
    pub(super) choice: Option<&'static Runnable>,
    /// Where methods are tried while the application runs.
    pub(super) explored: Option<ExploredCall>,
}
