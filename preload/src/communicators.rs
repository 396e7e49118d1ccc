//! The communicators that have been used, and what holds on each.
//!
//! A communicator is known by what the session keeps of it, in an attribute that MPI deletes with it. While it is
//! new nothing else is made for it: the first calls of each collective are the MPI library's, and are counted. Then
//! its ranks agree, and beside the attribute, so that a call needs no question to MPI, there is a table by handle. Its
//! entries are written without a lock being taken by readers: an entry of a communicator changes only when
//! it stops being new or is freed, and neither can be while it is in another call.

use std::{
    array,
    ffi::{c_int, c_void},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use records::{Collective, Layout, profile::Profile};
use runner::{AbiFamily, Handle};

use crate::{
    carry_out::RecentCalls,
    choice::MethodTables,
    exploring::{self, CommunicatorExplorer},
    freed_communicators, gpu,
    job::JobContext,
    known_communicators::{self, CommunicatorPlace},
    library,
    say::say,
};

/// What the session keeps of a communicator.
#[derive(Debug)]
pub struct CommunicatorEntry {
    /// In the table by handle.
    key: usize,
    /// Of each collective, while it is new; see [`CommunicatorEntry::count`].
    calls: [AtomicU32; Collective::ALL.len()],
    /// It is new to each collective for so many calls.
    calls_while_new: [AtomicU32; Collective::ALL.len()],
    /// Nanoseconds in these calls, by a sample of them.
    nanoseconds: AtomicU64,
    settled: OnceLock<SettledCommunicator>,
    /// Whether it is in the table by handle as a new one.
    is_listed_as_new: AtomicBool,
    /// Whether it is new no more, and so in the table by handle if that has room.
    is_listed: AtomicBool,
    /// Where methods are tried on it while the application runs.
    explorer: OnceLock<Arc<CommunicatorExplorer>>,
    recent: RecentCalls,
}

/// What its ranks have agreed on.
#[derive(Debug, Clone, Copy)]
struct SettledCommunicator {
    tables: &'static MethodTables,
    /// This process's.
    rank: u32,
    /// Whether it is one of [`TUNED`].
    is_tuned: bool,
}

impl CommunicatorEntry {
    fn new(key: usize, calls_while_new: u32) -> Self {
        CommunicatorEntry {
            key,
            calls: [const { AtomicU32::new(0) }; Collective::ALL.len()],
            calls_while_new: array::from_fn(|_| AtomicU32::new(calls_while_new)),
            nanoseconds: AtomicU64::new(0),
            is_listed_as_new: AtomicBool::new(false),
            settled: OnceLock::new(),
            is_listed: AtomicBool::new(false),
            explorer: OnceLock::new(),
            recent: RecentCalls::default(),
        }
    }

    /// After a call on it while it was new, of which the library returned this code. All ranks must come to the
    /// same call as the first that is not the library's any more, though one of them may be refused a call that
    /// the others carry out. So it is counted as the library itself matches the calls of ranks: those of one
    /// collective in their order, without those that were refused, which did not happen on this rank.
    ///
    /// # Safety
    /// MPI must be initialised.
    #[inline(always)]
    pub unsafe fn count(&self, collective: Collective, code: c_int) {
        let job = if code == 0 { None } else { JobContext::current() };
        // SAFETY: MPI is initialised (contract of this function), which is all that `is_refusal` relies on.
        if !job.is_some_and(|job| unsafe { library::is_refusal(job.library, code) }) {
            let calls = &self.calls[collective as usize];
            // By one thread at a time: calls on a communicator come one after the other.
            calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Whether a call of a collective on it is the library's, and to be counted.
    #[inline(always)]
    pub fn is_new_to(&self, collective: Collective) -> bool {
        let calls = self.calls[collective as usize].load(Ordering::Relaxed);
        let limit = self.calls_while_new[collective as usize].load(Ordering::Relaxed);
        !self.is_listed.load(Ordering::Relaxed) && calls < limit
    }

    /// Whether the next call of a collective on a new communicator is to be timed.
    #[inline(always)]
    pub fn is_sampled(&self, collective: Collective) -> bool {
        let calls = self.calls[collective as usize].load(Ordering::Relaxed);
        calls % SAMPLED_CALLS == SAMPLED_CALLS - 1
    }

    /// A call that was sampled has taken so long.
    pub fn add_sample(&self, taken: Duration) {
        let nanoseconds = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        let nanoseconds = nanoseconds.saturating_mul(SAMPLED_CALLS.into());
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Whether its calls have taken so long that to explore on it is worth what its ranks need for that; else it stays
    /// new for more calls of this collective.
    ///
    /// # Safety
    /// All ranks of the live communicator `comm` must be at the same call.
    unsafe fn is_worth_exploring(
        &self,
        job: &JobContext,
        comm: Handle,
        collective: Collective,
    ) -> bool {
        let own = [self.nanoseconds.load(Ordering::Relaxed) as f64, 1.0];
        // SAFETY: all ranks are here (contract of this function).
        let sums = unsafe { exploring::sum_over_ranks(job, comm, own.into()) };
        let is_worth = matches!(sums.as_deref(), Some(&[sum, ranks])
            if sum >= ranks * WORTH_EXPLORING.as_nanos() as f64);
        if !is_worth {
            let limit = &self.calls_while_new[collective as usize];
            let longer = limit.load(Ordering::Relaxed).saturating_mul(LONGER_WHILE_NEW);
            limit.store(longer, Ordering::Relaxed);
        }
        is_worth
    }

    /// What holds on the communicator, with its explorer.
    fn place(&self, settled: SettledCommunicator) -> CommunicatorPlace {
        // SAFETY: the explorer lives as long as the entry, which MPI deletes with the communicator; whoever asks is
        // in a call on it, and the table by handle forgets it before.
        let explorer = self.explorer.get().map(|explorer| unsafe { &*Arc::as_ptr(explorer) });
        // SAFETY: as for the explorer.
        let recent = unsafe { &*ptr::from_ref(&self.recent) };
        let SettledCommunicator { tables, rank, .. } = settled;
        let recent = (explorer.is_none() && !tables.watched).then_some(recent);
        CommunicatorPlace { tables, rank, explorer, new: None, recent }
    }
}

/// Of so many calls of each collective on a new communicator one is timed.
const SAMPLED_CALLS: u32 = 32;
/// What the ranks of a communicator need to explore takes some 50 microseconds inside a node: half a hundredth of
/// this, which its collectives must have taken before.
const WORTH_EXPLORING: Duration = Duration::from_millis(10);
/// Where they have not, it is looked again after so many times the calls.
const LONGER_WHILE_NEW: u32 = 8;

/// How many communicators of this process may have a second one for our messages.
static TUNED: AtomicUsize = AtomicUsize::new(0);

/// MPICH has 2048 communicators at a time; the application shall not miss those that we take.
const MAX_OF_MPICH: usize = 256;

/// Whether this process has merged two groups. Only then can there be communicators of processes
/// that didn't begin in one world: spawned or connected ones, which may be without this library and
/// don't answer what it asks when a communicator is first used.
static MERGED: AtomicBool = AtomicBool::new(false);

/// Whether the user has been warned that processes have different settings.
static DIFFERENCE_TOLD: AtomicBool = AtomicBool::new(false);

/// What holds on a communicator that an application's call is for. Nothing where the call is to
/// pass untouched. The first call for which a communicator is not new any more is collective.
///
/// # Safety
/// `comm` must be what the application passed as its communicator: a live one, or one that the library refuses.
#[inline(always)]
pub unsafe fn find(comm: Handle, collective: Collective) -> Option<CommunicatorPlace> {
    match known_communicators::first(comm) {
        Some(place) if place.holds_for(collective) => Some(place),
        // SAFETY: the handle is what the application passed (contract of this function), as `search` wants.
        _ => unsafe { search(known_communicators::key(comm), collective) },
    }
}

/// # Safety
/// The key must be what the application passed, with nothing but a handle's bits.
#[cold]
#[inline(never)]
unsafe fn search(key: usize, collective: Collective) -> Option<CommunicatorPlace> {
    let job = JobContext::current()?;
    if key == 0 || key == job.library.constants.no_comm {
        return None;
    }
    let others = known_communicators::others(key);
    if let Some(place) = others.filter(|place| place.holds_for(collective)) {
        return Some(place);
    }
    if freed_communicators::contains(key) {
        return None;
    }
    // SAFETY: `key` is live or the library refuses it (contract of this function); with a job and a key MPI is
    // initialised. It is not freed before the call for which the entry is wanted has ended.
    let entry: &'static CommunicatorEntry = unsafe {
        match job.session.kept(key) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let calls_while_new = exploring::calls_while_new(job);
                job.session.keep(key, || CommunicatorEntry::new(key, calls_while_new)).ok()?
            }
            // No communicator at all: what the library says of the application's call comes next.
            Err(_) => return None,
        }
    };
    // What is forced holds from the first call on, and on the world all ranks are there at once.
    let is_at_once = key == job.library.constants.world || !job.settings.forced.is_empty();
    let is_worth = || {
        // Profiles hold after the first calls, whatever these took.
        let is_asked = job.exploring.is_some() && !exploring::begins_early(job);
        // SAFETY: all ranks are at this call, whose number they have counted alike. Where there are others, which may
        // be without this library, nothing is asked.
        !is_asked
            || unsafe { is_foreign(job, key) || entry.is_worth_exploring(job, key, collective) }
    };
    let is_settled = || entry.is_listed.load(Ordering::Relaxed);
    let is_new = !is_at_once && (entry.is_new_to(collective) || (!is_settled() && !is_worth()));
    if is_new && !job.is_watched() {
        let tables = JobContext::idle_tables(0);
        let place =
            CommunicatorPlace { tables, rank: 0, explorer: None, new: Some(entry), recent: None };
        if !entry.is_listed_as_new.swap(true, Ordering::Relaxed) {
            known_communicators::add(key, place);
        }
        return Some(place);
    }
    let settled = match entry.settled.get() {
        Some(settled) => *settled,
        None => {
            // SAFETY: as above.
            let settled = unsafe { settle(job, key)? };
            let settled = *entry.settled.get_or_init(|| settled);
            // SAFETY: all ranks are here, as for `settle`.
            unsafe { add_explorer(job, key, entry, settled) };
            settled
        }
    };
    if is_new {
        let SettledCommunicator { tables, rank, is_tuned } = settled;
        // Its calls are noted by the layout on which they are.
        let MethodTables { procs, layout, .. } = *tables;
        let tables = if is_tuned { job.untuned_tables(procs, layout) } else { tables };
        let new = Some(entry);
        return Some(CommunicatorPlace { tables, rank, explorer: None, new, recent: None });
    }
    if !entry.is_listed.swap(true, Ordering::Relaxed) {
        known_communicators::remove(key);
        known_communicators::add(key, entry.place(settled));
    }
    Some(entry.place(settled))
}

/// Where methods are to be tried on a communicator, its ranks make what that needs.
///
/// # Safety
/// `comm` must be live, and all its ranks must be here with what they have settled.
unsafe fn add_explorer(
    job: &JobContext,
    comm: Handle,
    entry: &CommunicatorEntry,
    settled: SettledCommunicator,
) {
    let SettledCommunicator { tables, rank, is_tuned } = settled;
    let Some(exploring) = job.exploring.as_ref().filter(|exploring| exploring.is_on()) else {
        return;
    };
    let Some(layout) = tables.layout.filter(|_| is_tuned) else { return };
    // SAFETY: `comm` is live, and all its ranks are here (contract of this function).
    unsafe {
        let Ok(ours) = job.session.prepare(comm) else { return };
        let made = CommunicatorExplorer::new(job, exploring, rank, layout, ours, tables);
        let explorer = entry.explorer.get_or_init(|| Arc::new(made));
        exploring.add(job, ours, explorer);
    }
}

/// Begins to try methods on the world, which was settled before the directory was read.
///
/// # Safety
/// `world` must be MPI's own, all its processes must do this, and none of its calls is under way.
pub unsafe fn explore(job: &JobContext, world: Handle) {
    // SAFETY: `world` is live, and all its processes are here (contract of this function).
    unsafe {
        let Ok(Some(entry)) = job.session.kept::<CommunicatorEntry>(world) else { return };
        let Some(settled) = entry.settled.get() else { return };
        add_explorer(job, world, entry, *settled);
        known_communicators::remove(entry.key);
        known_communicators::add(entry.key, entry.place(*settled));
    }
}

/// Ends what is under way on all communicators, as before `MPI_Finalize`.
///
/// # Safety
/// All processes of the world must do this.
pub unsafe fn finish_agreements(job: &JobContext) {
    let living = job.exploring.iter().flat_map(|exploring| exploring.living());
    // SAFETY: what was begun was begun on all ranks, which all come here (contract of this function).
    living.for_each(|explorer| unsafe {
        explorer.wait_for_agreement(job);
        explorer.take_last_sums();
    });
}

/// Lets end what is under way on a communicator that is about to be freed, whether it is in the table by handle or not.
///
/// # Safety
/// The key must be of a live communicator, or of one that the library refuses to free.
pub unsafe fn before_free(job: &JobContext, key: usize) {
    if job.exploring.is_none() || [0, job.library.constants.no_comm].contains(&key) {
        return;
    }
    // SAFETY: the communicator is live or refused (contract of this function).
    unsafe {
        let kept = job.session.kept::<CommunicatorEntry>(key);
        if let Some(explorer) = kept.ok().flatten().and_then(|entry| entry.explorer.get()) {
            explorer.wait_for_agreement(job);
        }
    }
}

/// All ranks of a communicator are here with the same call on it, whether one of them is then refused it or not.
///
/// # Safety
/// `comm` must be live, and all its ranks must be here.
unsafe fn settle(job: &'static JobContext, comm: Handle) -> Option<SettledCommunicator> {
    let library = job.library;
    let (mut is_inter, mut rank, mut size) = (0, 0, 0);
    // SAFETY: `comm` is live (contract of this function); outputs are locals.
    let code = unsafe {
        (library.comm_test_inter)(comm, &mut is_inter)
            | (library.comm_rank)(comm, &mut rank)
            | (library.comm_size)(comm, &mut size)
    };
    if code != 0 {
        return None;
    }
    let (rank, procs) = (u32::try_from(rank).ok()?, u32::try_from(size).ok()?);
    // SAFETY: as above.
    if is_inter != 0 || unsafe { has_strangers(job, comm, size)? } {
        let tables = JobContext::idle_tables(procs);
        return Some(SettledCommunicator { tables, rank, is_tuned: false });
    }
    // There is nothing to gain, and in Open MPI 4.1 threads that make communicators of one-rank ones at once wait
    // for each other forever.
    if procs == 1 && comm != library.constants.world {
        // SAFETY: `comm` is live, and its rank is here (contract of this function).
        let tables = job.untuned_tables(procs, unsafe { layout(job, comm, procs)? });
        return Some(SettledCommunicator { tables, rank, is_tuned: false });
    }
    let has_room = reserve(job);
    // SAFETY: as above; all ranks are here.
    let settled = unsafe {
        agree(job, comm, rank, has_room).and_then(|agreed| {
            let tables = match agreed {
                _ if gpu::is_agreed() && agreed != CommunicatorAgreement::Nothing => {
                    job.untuned_tables(procs, None)
                }
                CommunicatorAgreement::Settings => job.tables(procs, layout(job, comm, procs)?),
                CommunicatorAgreement::NoRoom => job.untuned_tables(procs, None),
                CommunicatorAgreement::Nothing => JobContext::idle_tables(procs),
            };
            let has_methods = tables.has_methods() || job.exploring.is_some();
            let is_tuned = agreed == CommunicatorAgreement::Settings && has_methods;
            if is_tuned {
                // What is refused here is refused to the call, too, which tells the application.
                let _ = job.session.prepare(comm);
            }
            Some(SettledCommunicator { tables, rank, is_tuned })
        })
    };
    if has_room && !settled.is_some_and(|settled| settled.is_tuned) {
        TUNED.fetch_sub(1, Ordering::Relaxed);
    }
    settled
}

/// Before the application merges two groups.
///
/// # Safety
/// There is no condition.
pub unsafe fn merging() {
    MERGED.store(true, Ordering::Relaxed);
}

/// Whether there are processes of another world (see [`MERGED`]). To these the ones of this world
/// are strangers, so that all ranks come to the same answer without a message.
///
/// # Safety
/// `comm` must be live, of `size` ranks, and MPI initialised.
unsafe fn has_strangers(job: &JobContext, comm: Handle, size: c_int) -> Option<bool> {
    if !MERGED.load(Ordering::Relaxed) {
        return Some(false);
    }
    let library = job.library;
    let (mut group, mut world): (Handle, Handle) = (0, 0);
    let ranks: Vec<c_int> = (0..size).collect();
    let mut there = ranks.clone();
    // SAFETY: `comm` is live (contract of this function), and the world is MPI's own; both arrays have a place
    // for each rank.
    let code = unsafe {
        let (from, into) = (ranks.as_ptr(), there.as_mut_ptr());
        (library.comm_group)(comm, &mut group)
            | (library.comm_group)(job.library.constants.world, &mut world)
            | (library.group_translate_ranks)(group, size, from, world, into)
            | (library.group_free)(&mut group)
            | (library.group_free)(&mut world)
    };
    // One that isn't there is MPI_UNDEFINED, which is below 0.
    (code == 0).then(|| there.iter().any(|rank| *rank < 0))
}

/// Whether it is an inter-communicator or has strangers, or cannot be asked: its calls are the MPI library's.
///
/// # Safety
/// `comm` must be live, and MPI initialised.
unsafe fn is_foreign(job: &JobContext, comm: Handle) -> bool {
    let (library, mut is_inter, mut size) = (job.library, 0, 0);
    // SAFETY: `comm` is live (contract of this function); outputs are locals.
    unsafe {
        let code =
            (library.comm_test_inter)(comm, &mut is_inter) | (library.comm_size)(comm, &mut size);
        code != 0 || is_inter != 0 || has_strangers(job, comm, size).unwrap_or(true)
    }
}

/// Whether there may be one more communicator with a second one.
fn reserve(job: &JobContext) -> bool {
    let most = match job.library.constants.family {
        AbiFamily::OpenMpi => usize::MAX,
        // The ABI of MPI 5 may be MPICH's.
        AbiFamily::Mpich | AbiFamily::Standard => MAX_OF_MPICH,
    };
    let more = |tuned: usize| (tuned < most).then_some(tuned + 1);
    TUNED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// What the ranks of a communicator have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommunicatorAgreement {
    /// The settings, and room for a second communicator.
    Settings,
    /// The settings alone.
    NoRoom,
    Nothing,
}

/// Nothing where MPI fails. A wrong program's ranks may come here with different calls (see
/// [`CommunicatorEntry::count`]), and then what is sent must not meet a call of the application's. So it is by a
/// nonblocking function, which never matches a blocking one.
unsafe fn agree(
    job: &JobContext,
    comm: Handle,
    rank: u32,
    has_room: bool,
) -> Option<CommunicatorAgreement> {
    let digest = job.settings.digest;
    let (has_room, is_on_host) = (u64::from(has_room), u64::from(!job.has_gpu));
    let (own, mut all) = ([digest, !digest, has_room, is_on_host], [0_u64; 4]);
    let bytes = size_of_val(&own) as c_int;
    let (call, byte, and) =
        (job.library, job.library.constants.byte, job.library.constants.bitwise_and);
    let (mut request, status) = (0, call.constants.status_ignore as *mut c_void);
    // SAFETY: both buffers hold so many bytes, and live until the request has ended.
    let code = unsafe {
        let (from, into) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        match (call.iallreduce)(from, into, bytes, byte, and, comm, &mut request) {
            0 => (call.wait)(&mut request, status),
            code => code,
        }
    };
    if code != 0 {
        return None;
    }
    if all[3] == 0 && comm == job.library.constants.world {
        gpu::agree();
    }
    // The bits that all have set, and those that none has.
    let is_agreed = all[0] == !all[1];
    if !is_agreed && rank == 0 && !DIFFERENCE_TOLD.swap(true, Ordering::Relaxed) {
        say("the ranks have different settings (COLIBRI_* or the contents of the profiles; \
             does the launcher pass them to every node?); the application runs untuned");
    }
    Some(match (is_agreed, all[2] != 0) {
        (true, true) => CommunicatorAgreement::Settings,
        (true, false) => CommunicatorAgreement::NoRoom,
        (false, _) => CommunicatorAgreement::Nothing,
    })
}

/// Which process is on which node, if a profile or a trace asks: the same to all processes.
///
/// # Safety
/// `comm` must be live, of so many ranks, all of which are here.
unsafe fn layout(job: &JobContext, comm: Handle, procs: u32) -> Option<Option<Layout>> {
    let asks = |profile: &Profile| profile.nodes.is_some() || profile.layout.is_some();
    if job.settings.trace.is_none()
        && job.exploring.is_none()
        && !job.settings.profiles.iter().any(asks)
    {
        return Some(None);
    }
    // SAFETY: `comm` is live, of so many ranks, all of which are here (contract of this function).
    let nodes = unsafe { job.session.nodes_by_number(comm, procs) }.ok()?;
    let layout = Layout::from_nodes(&nodes).ok();
    if comm == job.library.constants.world {
        let several = layout.is_some_and(|layout| layout.nodes() > 1);
        job.has_several_nodes.store(several, Ordering::Relaxed);
    }
    Some(layout)
}

impl Drop for CommunicatorEntry {
    /// When the application frees the communicator.
    fn drop(&mut self) {
        if self.settled.get().is_some_and(|settled| settled.is_tuned) {
            TUNED.fetch_sub(1, Ordering::Relaxed);
        }
        known_communicators::remove(self.key);
        if let (Some(explorer), Some(job)) = (self.explorer.get(), JobContext::current())
            && let Some(exploring) = &job.exploring
        {
            exploring.end(explorer);
        }
    }
}

/// From here on communicators are looked for.
pub fn open(job: &JobContext) {
    known_communicators::set_handle_bits(job.library.constants.handle_bits);
}

/// The first use of the world: whether this is its first process; nothing where the processes
/// have different settings.
///
/// # Safety
/// `world` must be MPI's own, and all its processes must do this.
pub unsafe fn init_world(world: Handle) -> Option<bool> {
    // SAFETY: `world` is a live communicator, all of whose processes are here (contract of this function), as
    // `find` wants.
    let place = unsafe { find(world, Collective::Barrier)? };
    place.tables.agreed.then_some(place.rank == 0)
}

/// From here on all calls are the MPI library's, and pass as fast as they can: nothing is to be replaced or noted.
///
/// # Safety
/// As [`close`].
pub unsafe fn leave_alone(job: &JobContext) {
    // SAFETY: `close` relies on no more than this function's contract.
    unsafe { close(job) };
    known_communicators::stand_for_all(JobContext::idle_tables(0));
}

/// From here on nothing is found, whatever an application still calls.
///
/// # Safety
/// MPI must still be there, and all processes of the world do this.
pub unsafe fn close(job: &JobContext) {
    for comm in [job.library.constants.world, job.library.constants.own] {
        // SAFETY: both communicators are MPI's own, and all their ranks are here (contract of this function).
        // MPI ends; what it won't give up ends with it.
        let _ = unsafe { job.session.release(comm) };
    }
    known_communicators::set_handle_bits(0);
}
