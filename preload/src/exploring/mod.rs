//! Choice while the application runs: what `choosing::exploring` decides, carried out on one communicator.
//!
//! | file | what it does |
//! |---|---|
//! | `mod.rs` | the explorer of a communicator: which method a call gets, and what becomes of its time |
//! | `rank_sum.rs` | numbers summed over the ranks, beside the application's calls |
//! | `short_list.rs` | which methods may be tried, where nobody has ranked them |
//! | `knowledge.rs` | what is known from other jobs and communicators, and what is kept of this one |
//!
//! A class of calls is one collective with sizes between two powers of two: what all ranks know. Calls that are left
//! alone are counted, and nothing else: see [`CallsAlone`].

mod knowledge;
mod rank_sum;
mod short_list;

use std::{
    cell::Cell,
    ffi::c_int,
    fmt,
    num::NonZeroU32,
    ptr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    },
    time::Instant,
};

use choosing::exploring::{
    Account, AgreementStep, CallClass, CallEnd, CallsAlone, Candidate, ClassIndex, Explorer,
    SizeClass, Turn,
};
use records::{
    Collective, Layout, Method, Point,
    learned::{Learned, LearnedClass},
    profile::{CALLS_WHILE_NEW, REPLACED},
};
use runner::{Counts, Handle, Runnable, Side};

pub use self::knowledge::{Exploring, wait_until_kept};
use self::rank_sum::RankSum;
use crate::{
    choice::MethodTables, clock::Nanoseconds, finally::Finally, job::JobContext, library,
    lock::lock, say::say, settings::ADAPT,
};

/// After so many calls of a collective on a communicator its ranks look whether these took long enough to explore. The
/// look takes as long as a dozen of the shortest calls.
const CALLS_BEFORE_EXPLORING: u32 = 256;

/// Whether methods hold on a communicator after [`CALLS_WHILE_NEW`] calls of a collective, whatever these took.
pub fn begins_early(job: &JobContext) -> bool {
    let by_turns = job.exploring.as_ref().is_some_and(|exploring| exploring.settings.by_turns);
    by_turns || !job.settings.profiles.is_empty()
}

/// How many calls of each collective are left alone on a new communicator.
pub fn calls_while_new(job: &JobContext) -> u32 {
    match job.exploring.is_some() && !begins_early(job) {
        true => CALLS_BEFORE_EXPLORING,
        false => CALLS_WHILE_NEW,
    }
}

/// Numbers of each rank, summed; nothing where MPI fails. It meets no blocking call of the application's.
///
/// # Safety
/// All ranks of the live communicator must do this.
pub unsafe fn sum_over_ranks(job: &JobContext, comm: Handle, own: Vec<f64>) -> Option<Vec<f64>> {
    let mut agreement = RankSum::default();
    // SAFETY: all ranks are here (contract of this function).
    unsafe {
        agreement.begin(job, comm, own);
        agreement.finish(job)
    }
}

/// The explorer of one communicator of the application's.
pub struct CommunicatorExplorer {
    pub rank: u32,
    /// Of the collectives that are explored, a bit each. None any more where it was given up and profiles name methods.
    collectives: AtomicU32,
    layout: Layout,
    /// Ours, of the same ranks.
    ours: Handle,
    tables: &'static MethodTables,
    /// Whether each call gets the next method.
    by_turns: bool,
    /// What rank 0 knew of this layout when the communicator was first used; the world's comes later.
    known: OnceLock<Learned>,
    /// The class of the last call of each collective: most calls are like the one before.
    last: [LastClass; Collective::ALL.len()],
    /// By collective, and then by size: made where they are used, since there may be thousands of communicators.
    classes: [OnceLock<Box<ClassesBySize>>; Collective::ALL.len()],
    state: Mutex<ExplorerState>,
    /// Apart from the state, which threads on other communicators ask for what was learned: they must not wait for
    /// the ranks of this one. Only who is in a call on this communicator, or frees it, touches it.
    agreement: Mutex<RankSum>,
}

impl fmt::Debug for CommunicatorExplorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommunicatorExplorer").field("layout", &self.layout).finish_non_exhaustive()
    }
}

struct ExplorerState {
    explorer: Explorer,
    /// Who called first, by [`this_thread`].
    thread: Option<NonZeroU32>,
    /// Calls by turns.
    calls: u32,
}

/// What calls of a class are left alone, by elements and type of one of its calls. Only the thread that is in a call on
/// the communicator touches it.
#[derive(Default)]
struct LastClass {
    /// Null before the first.
    alone: AtomicPtr<CallsAlone>,
    count: AtomicI64,
    datatype: AtomicUsize,
}

/// Calls of one collective and class of sizes.
struct Class {
    index: ClassIndex,
    alone: Arc<CallsAlone>,
    /// What the arms from 1 on are carried out by.
    methods: Box<[&'static Runnable]>,
    /// Calls by turns.
    calls: AtomicU32,
}

/// What is known of a class from before.
struct KnownClass {
    candidates: Vec<Candidate>,
    /// What carries each of them out.
    methods: Vec<&'static Runnable>,
    learned: Option<LearnedClass>,
}

/// The classes of one collective, each after its first call. Nothing where a profile's method begins or ends between the
/// sizes of one: each call has what the profile names for its size.
type ClassesBySize = [OnceLock<Option<Box<Class>>>; SizeClass::COUNT];

impl CommunicatorExplorer {
    /// `ours`: our communicator of the same ranks, in this layout; `tables`: what profiles say of it.
    pub fn new(
        job: &JobContext,
        exploring: &Exploring,
        rank: u32,
        layout: Layout,
        ours: Handle,
        tables: &'static MethodTables,
    ) -> Self {
        let forced = |collective: &Collective| {
            job.settings.forced.iter().any(|(forced, _)| forced == collective)
        };
        let explored = REPLACED.into_iter().filter(|collective| !forced(collective));
        CommunicatorExplorer {
            rank,
            collectives: explored.fold(0, |bits, collective| bits | 1 << collective as u32).into(),
            layout,
            ours,
            tables,
            by_turns: exploring.settings.by_turns,
            known: OnceLock::new(),
            last: Default::default(),
            classes: [const { OnceLock::new() }; Collective::ALL.len()],
            state: Mutex::new(ExplorerState {
                explorer: Explorer::new(layout, exploring.settings.budget),
                thread: None,
                calls: 0,
            }),
            agreement: Mutex::default(),
        }
    }

    /// Whether calls of a collective are explored: it is replaced, and nothing is forced for it.
    #[inline(always)]
    pub fn explores(&self, collective: Collective) -> bool {
        self.collectives.load(Ordering::Relaxed) >> collective as u32 & 1 != 0
    }

    /// From here on this is known of its layout.
    pub fn set_known(&self, known: Learned) {
        let _ = self.known.set(known);
    }

    /// The class of a call; nothing before its first call has ended, and in it nothing where it isn't explored.
    #[inline(always)]
    fn class(&self, collective: Collective, size: SizeClass) -> Option<Option<&Class>> {
        let sizes = self.classes[collective as usize].get()?;
        Some(sizes[size.index()].get()?.as_deref())
    }

    /// Whether a call of the last class of its collective is the library's without being asked for, where `side` tells
    /// its size; see [`Self::default_call`].
    #[inline(always)]
    pub fn last_default_call(
        &self,
        collective: Collective,
        side: &Side,
    ) -> Option<DefaultCall<'_>> {
        let last = &self.last[collective as usize];
        // SAFETY: null, or of a class, which lives as long as this.
        let alone = unsafe { last.alone.load(Ordering::Relaxed).as_ref() }?;
        let Counts::Uniform(count) = side.counts else { return None };
        let is_same = count == last.count.load(Ordering::Relaxed)
            && side.datatype == last.datatype.load(Ordering::Relaxed);
        is_same.then(|| default_call(alone)).flatten()
    }

    /// The same of any call of so many bytes, which `side` tells by a type of MPI's own or no element.
    #[inline(always)]
    pub fn default_call(
        &self,
        collective: Collective,
        side: &Side,
        bytes: u64,
    ) -> Option<DefaultCall<'_>> {
        let alone = &*self.class(collective, SizeClass::of(bytes))??.alone;
        if let Counts::Uniform(count) = side.counts {
            let last = &self.last[collective as usize];
            last.count.store(count, Ordering::Relaxed);
            last.datatype.store(side.datatype, Ordering::Relaxed);
            last.alone.store(ptr::from_ref(alone).cast_mut(), Ordering::Relaxed);
        }
        default_call(alone)
    }

    /// What a call is carried out by.
    pub fn begin(
        &'static self,
        job: &JobContext,
        collective: Collective,
        bytes: u64,
    ) -> ExploredCall {
        let call = CallClass { collective, size: SizeClass::of(bytes) };
        let class = match self.class(collective, call.size) {
            Some(Some(class)) => class,
            not_explored => {
                let of_profile = self.tables.for_collective(collective).find(bytes);
                let (class, method) = match not_explored {
                    Some(_) => (ClassOfCall::OfProfile, of_profile),
                    None => {
                        let method = of_profile.or_else(|| self.learned_method(job, call));
                        (ClassOfCall::New(call), method)
                    }
                };
                let (turn, asking) = (Turn { arm: 0, is_timed: false }, Asking::Asked);
                return ExploredCall { explorer: self, class, turn, method, asking };
            }
        };
        let (arm, is_timed, asking) = if self.by_turns {
            let arm = class.calls.load(Ordering::Relaxed) % (class.methods.len() as u32 + 1);
            (arm, true, Asking::Asked)
        } else if let Some(arm) = class.alone.take() {
            (arm, false, Asking::Alone)
        } else if let Some(arm) = class.alone.timed_arm() {
            (arm, true, Asking::TimedAlone)
        } else {
            let Turn { arm, is_timed } = lock(&self.state).explorer.next(class.index);
            (arm, is_timed, Asking::Asked)
        };
        let turn = Turn { arm, is_timed };
        let method =
            (turn.arm as usize).checked_sub(1).and_then(|arm| class.methods.get(arm).copied());
        let class = ClassOfCall::Known(class);
        ExploredCall { explorer: self, class, turn, method, asking }
    }

    /// After the first call of a class that was not refused: all ranks come to it in one order, and a rank that is
    /// refused another call has no class more than they.
    fn add_class(&self, job: &JobContext, call: CallClass) {
        if let Some(exploring) = &job.exploring {
            let sizes = self.classes[call.collective as usize]
                .get_or_init(|| Box::new([const { OnceLock::new() }; SizeClass::COUNT]));
            let class = sizes[call.size.index()].get_or_init(|| {
                self.is_explored(call).then(|| Box::new(self.new_class(job, exploring, call)))
            });
            let Some(class) = class else { return };
            // It is the first that is counted.
            if !self.by_turns && class.alone.take().is_none() {
                let end = CallEnd { seconds: None, was_declined: false };
                lock(&self.state).explorer.ended(class.index, end);
            }
        }
    }

    /// Whether calls of a class may get other methods: profiles name one for all its sizes, or none.
    fn is_explored(&self, CallClass { collective, size }: CallClass) -> bool {
        let table = self.tables.for_collective(collective);
        self.by_turns || !table.changes_within(size.first_bytes(), size.last_bytes())
    }

    /// What the first call of a class gets, which is no class before it has ended: what other jobs have chosen.
    #[cold]
    fn learned_method(&self, job: &JobContext, call: CallClass) -> Option<&'static Runnable> {
        let exploring = job.exploring.as_ref()?;
        self.known.get()?.find(call.collective, self.layout, call.size.first_bytes())?;
        if self.by_turns || !self.is_explored(call) {
            return None;
        }
        let KnownClass { candidates, methods, learned } = self.known_class(job, exploring, call);
        let arm = lock(&self.state).explorer.first_arm(call, candidates, learned.as_ref());
        Some(methods[(arm as usize).checked_sub(1)?])
    }

    fn new_class(&self, job: &JobContext, exploring: &Exploring, class: CallClass) -> Class {
        let KnownClass { candidates, methods, learned } = self.known_class(job, exploring, class);
        let mut state = lock(&self.state);
        let (index, alone) = state.explorer.add_class(class, candidates, learned.as_ref());
        if self.by_turns {
            alone.clear();
        }
        Class { index, alone, methods: methods.into(), calls: AtomicU32::new(1) }
    }

    fn known_class(&self, job: &JobContext, exploring: &Exploring, class: CallClass) -> KnownClass {
        let (collective, bytes) = (class.collective, class.size.first_bytes());
        let known = self.known.get();
        let mut learned =
            known.and_then(|known| known.find(collective, self.layout, bytes)).cloned();
        let confirmed = self.tables.for_collective(collective).find(bytes);
        let mut candidates =
            short_list::candidates(class, self.layout, Some(exploring), learned.as_ref());
        if let Some(method) = confirmed.map(Runnable::method) {
            candidates.retain(|candidate| candidate.method != method);
            candidates.insert(0, short_list::unbounded(method.clone()));
            // What a profile names was confirmed: it is used from the first call on, and then watched.
            learned = Some(of_profile(class, self.layout, method));
        }
        let limits = job.settings.limits();
        let runnable = |candidate: &Candidate| {
            let made = exploring.runnable(collective, &candidate.method)?;
            made.check(self.layout.procs(), bytes, limits).ok()?;
            Some(made)
        };
        let (candidates, methods) = candidates
            .into_iter()
            .filter_map(|candidate| runnable(&candidate).map(|made| (candidate, made)))
            .unzip();
        KnownClass { candidates, methods, learned }
    }

    /// Lets end what is under way, as before the communicator is freed. What comes of it is kept: where the library
    /// refuses to free it, the explorer gets the sums after the same call as on all other ranks.
    ///
    /// # Safety
    /// MPI must be initialised, and the communicator live.
    pub unsafe fn wait_for_agreement(&self, job: &JobContext) {
        // SAFETY: what was begun was begun on all ranks, at the same call.
        unsafe { lock(&self.agreement).wait(job) };
    }

    /// There will be no call any more: what has ended is taken into account.
    pub fn take_last_sums(&self) {
        if let Some(sums) = lock(&self.agreement).take_ended() {
            lock(&self.state).explorer.agreed(&sums);
        }
    }

    /// An agreement every other call, which ends after the next one.
    ///
    /// # Safety
    /// As [`ExploredCall::end`].
    unsafe fn agree_by_turns(&self, job: &JobContext) {
        let calls = {
            let mut state = lock(&self.state);
            state.calls += 1;
            state.calls
        };
        let mut agreement = lock(&self.agreement);
        // SAFETY: all ranks are here after the same call (contract of this function).
        unsafe {
            if calls % 2 == 1 {
                return agreement.begin(job, self.ours, vec![1.0]);
            }
            let sums = agreement.finish(job).unwrap_or_default();
            assert_eq!(sums, [f64::from(self.layout.procs())], "a sum over the ranks");
        }
    }

    /// What it has learned so far.
    pub fn learned(&self) -> Vec<LearnedClass> {
        lock(&self.state).explorer.learned()
    }

    /// What it has cost and gained.
    pub fn account(&self) -> Account {
        lock(&self.state).explorer.account()
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }
}

/// A call on a communicator with an explorer.
#[derive(Clone, Copy)]
pub struct ExploredCall {
    explorer: &'static CommunicatorExplorer,
    class: ClassOfCall,
    turn: Turn,
    method: Option<&'static Runnable>,
    asking: Asking,
}

/// A call that is the library's without being asked for.
#[derive(Debug, Clone, Copy)]
pub enum DefaultCall<'a> {
    /// It was taken off these.
    Counted(&'a CallsAlone),
    /// Its time is wanted: see [`add_timed`].
    Timed(&'a CallsAlone),
}

/// Whether the next call is the library's without being asked for.
#[inline(always)]
fn default_call(alone: &CallsAlone) -> Option<DefaultCall<'_>> {
    match alone.is_default() {
        false => None,
        true if alone.take().is_some() => Some(DefaultCall::Counted(alone)),
        true => alone.timed_arm().map(|_| DefaultCall::Timed(alone)),
    }
}

/// Whether the explorer is asked for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    Alone,
    TimedAlone,
    Asked,
}

#[derive(Clone, Copy)]
enum ClassOfCall {
    Known(&'static Class),
    /// It is the first of its class.
    New(CallClass),
    /// Its class is not explored.
    OfProfile,
}

impl ExploredCall {
    /// What it is carried out by; nothing: the library.
    pub fn method(&self) -> Option<&'static Runnable> {
        self.method
    }

    pub fn is_timed(&self) -> bool {
        self.turn.is_timed
    }

    /// As [`put_back_if_thrown`], if the call is counted.
    pub fn put_back_if_thrown(&self) -> Option<impl Drop + use<>> {
        match (self.class, self.asking) {
            (ClassOfCall::Known(class), Asking::Alone) => Some(put_back_if_thrown(&class.alone)),
            _ => None,
        }
    }

    /// After the call. `declined`: the method could not carry it out; `code`: what the application gets.
    ///
    /// # Safety
    /// MPI must be initialised; all ranks of the communicator come here after this call, but for those that were
    /// refused theirs.
    pub unsafe fn end(self, job: &JobContext, begun: Option<Instant>, declined: bool, code: c_int) {
        let taken = begun.map(|begun| begun.elapsed());
        // SAFETY: MPI is initialised (contract of this function).
        let is_refused = code != 0 && unsafe { library::is_refusal(job.library, code) };
        let explorer = self.explorer;
        let class = match self.class {
            ClassOfCall::Known(class) => class,
            ClassOfCall::New(_) if is_refused => return,
            ClassOfCall::OfProfile => return,
            ClassOfCall::New(call) => return explorer.add_class(job, call),
        };
        match (self.asking, is_refused) {
            // A call that was refused did not happen on this rank, and is repeated by it.
            (Asking::Alone, true) => return class.alone.put_back(),
            (Asking::Alone, false) | (_, true) => return,
            (Asking::TimedAlone, false) => {
                let nanoseconds = taken.map_or(0, |taken| taken.as_nanos() as u64);
                return class.alone.add_timed(nanoseconds, declined);
            }
            (Asking::Asked, false) => {}
        }
        if explorer.by_turns {
            class.calls.fetch_add(1, Ordering::Relaxed);
            // SAFETY: as this function's contract says.
            return unsafe { explorer.agree_by_turns(job) };
        }
        let step = {
            let mut state = lock(&explorer.state);
            let this = this_thread();
            if *state.thread.get_or_insert(this) != this {
                state.explorer.give_up();
            }
            let seconds = taken.filter(|_| self.turn.is_timed).map(|taken| taken.as_secs_f64());
            state.explorer.ended(class.index, CallEnd { seconds, was_declined: declined });
            state.explorer.agreement()
        };
        let Some(step) = step else { return };
        let begun = Instant::now();
        // SAFETY: all ranks come here after the same call, with one explorer's decision (contract of this
        // function), and `ours` is of these ranks.
        let sums = unsafe {
            match step {
                AgreementStep::Begin(numbers) => {
                    lock(&explorer.agreement).begin(job, explorer.ours, numbers);
                    None
                }
                AgreementStep::Finish => {
                    Some(lock(&explorer.agreement).finish(job).unwrap_or_default())
                }
            }
        };
        let mut state = lock(&explorer.state);
        state.explorer.agreement_took(begun.elapsed().as_secs_f64());
        let Some(sums) = sums else { return };
        state.explorer.agreed(&sums);
        if state.explorer.has_given_up() {
            if explorer.rank == 0 {
                say_why_nothing_is_tried();
            }
            // All ranks come here after the same call: from the next on, what profiles name holds as without exploring.
            if explorer.tables.has_methods() {
                explorer.collectives.store(0, Ordering::Relaxed);
            }
        }
        drop(state);
        knowledge::keep_now_and_then(job);
    }
}

/// A number of the thread that calls: the standard library's takes more than the rest of what a call needs.
fn this_thread() -> NonZeroU32 {
    static THREADS: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static THIS: Cell<Option<NonZeroU32>> = const { Cell::new(None) };
    }
    THIS.with(|this| {
        this.get().unwrap_or_else(|| {
            let number = THREADS.fetch_add(1, Ordering::Relaxed);
            // After all numbers there are some more than once.
            let number = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            this.set(Some(number));
            number
        })
    })
}

/// A line for the user, once.
fn say_why_nothing_is_tried() {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        say(&format!(
            "{ADAPT}: on a communicator on which several threads call collectives, or whose ranks are not in step, no \
             method is tried any more"
        ));
    }
}

/// What a profile says of a class: what is used, and no comparison yet.
fn of_profile(class: CallClass, layout: Layout, chosen: Method) -> LearnedClass {
    let CallClass { collective, size } = class;
    LearnedClass {
        point: Point { collective, layout, bytes: size.first_bytes() },
        last_bytes: size.last_bytes(),
        calls: 0,
        default_seconds: 0.0,
        chosen,
        tried: Vec::new(),
    }
}

/// After a call of [`DefaultCall::Timed`], which returned this code.
#[inline(never)]
pub fn add_timed(alone: &CallsAlone, begun: Nanoseconds, code: c_int) {
    let taken = begun.elapsed();
    if code == 0 || !was_refused(code) {
        alone.add_timed(taken, false);
    }
}

/// After a call that was counted and failed: one that was refused did not happen on this rank.
#[cold]
pub fn put_back_if_refused(alone: &CallsAlone, code: c_int) {
    if was_refused(code) {
        alone.put_back();
    }
}

/// Of a call that is counted and ends by an exception, which tells no code: it counts as refused, as most that a program
/// catches and repeats are. What this returns is forgotten where the call ends otherwise.
#[inline(always)]
pub fn put_back_if_thrown(alone: &CallsAlone) -> impl Drop {
    Finally(|| alone.put_back())
}

#[cold]
fn was_refused(code: c_int) -> bool {
    let job = JobContext::current();
    // SAFETY: MPI is initialised where there is a job.
    job.is_some_and(|job| unsafe { library::is_refusal(job.library, code) })
}
