//! Which calls are carried out or noted here, and what is known of each.

use records::Collective;
use runner::{Arguments, Handle, Runnable};

use crate::{
    communicators::{self, CommunicatorEntry, FoundCommunicator},
    job::JobContext,
    known_communicators::{self, CommunicatorPlace},
};

/// Whether a call is known to be the MPI library's, as it came, by what is at hand: nothing is called
/// here, so that what stands before the library's function keeps its arguments in registers and ends in
/// a jump. Where it is false, [`choose`] tells.
///
/// # Safety
/// As [`choose`].
#[inline(always)]
pub unsafe fn is_left_alone(arguments: &Arguments, comm: Handle) -> bool {
    let Some(place) = known_communicators::first(comm) else { return false };
    let table = place.tables.for_collective(arguments.collective);
    if place.tables.watched {
        return false;
    }
    if table.is_empty() {
        return true;
    }
    let Some(job) = JobContext::current() else { return false };
    // SAFETY: these are the application's arguments (contract of this function): `counts` has an entry for each
    // process of `place`.
    match unsafe { arguments.message_bytes(place.rank, place.tables.procs, job.session, false) } {
        Some(0) => arguments.collective != Collective::Barrier,
        Some(bytes) => table.has_none(bytes),
        None => false,
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
        let FoundCommunicator { place, new } = communicators::find(comm, arguments.collective)?;
        let table = place.tables.for_collective(arguments.collective);
        if table.is_empty() && !place.tables.watched && new.is_none() {
            return None;
        }
        let job = JobContext::current()?;
        let counted =
            |place| InterceptedCall { job, arguments, comm, place, bytes: 0, choice: None, new };
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
        let choice = match bytes > 0 || arguments.collective == Collective::Barrier {
            true => table.find(bytes),
            false => None,
        };
        if choice.is_none() && !place.tables.watched {
            return None;
        }
        Some(InterceptedCall { job, arguments, comm, place, bytes, choice, new })
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
    /// While the communicator is new: the call is the library's.
    pub(super) new: Option<&'static CommunicatorEntry>,
}
