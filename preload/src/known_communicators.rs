//! The table of communicators by handle, read without a lock: an entry of a communicator changes only
//! when that stops being new or is freed, and neither can be while it is in another call.

use std::{
    ptr,
    sync::{
        Mutex,
        atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    },
};

use records::Collective;
use runner::{Handle, spread};

use crate::{
    carry_out::RecentCalls, choice::MethodTables, communicators::CommunicatorEntry,
    exploring::CommunicatorExplorer, lock::lock,
};

/// What holds for a process in a communicator.
#[derive(Debug, Clone, Copy)]
pub struct CommunicatorPlace {
    pub tables: &'static MethodTables,
    pub rank: u32,
    /// Where methods are tried while the application runs. It lives as long as the communicator.
    pub explorer: Option<&'static CommunicatorExplorer>,
    /// The communicator while it is new: its calls are the library's, and are counted.
    pub new: Option<&'static CommunicatorEntry>,
    /// Where calls on it are remembered, if what is chosen for a call stays the same. They live as long as the
    /// communicator.
    pub recent: Option<&'static RecentCalls>,
}

impl CommunicatorPlace {
    /// Whether nothing else is to be found of the communicator before a call of this collective.
    #[inline(always)]
    pub fn holds_for(&self, collective: Collective) -> bool {
        self.new.is_none_or(|entry| entry.is_new_to(collective))
    }
}

/// On one line of the cache.
#[repr(align(64))]
struct CachedCommunicator {
    /// The handle; 0 in an empty bucket.
    key: AtomicUsize,
    tables: AtomicPtr<MethodTables>,
    rank: AtomicU32,
    explorer: AtomicPtr<CommunicatorExplorer>,
    new: AtomicPtr<CommunicatorEntry>,
    recent: AtomicPtr<RecentCalls>,
}

const BUCKETS: usize = 1024;
/// An entry is in one of so many buckets, or not in the table.
const BUCKETS_PER_ENTRY: usize = 4;

static TABLE: [CachedCommunicator; BUCKETS] = [const {
    CachedCommunicator {
        key: AtomicUsize::new(0),
        tables: AtomicPtr::new(ptr::null_mut()),
        rank: AtomicU32::new(0),
        explorer: AtomicPtr::new(ptr::null_mut()),
        new: AtomicPtr::new(ptr::null_mut()),
        recent: AtomicPtr::new(ptr::null_mut()),
    }
}; BUCKETS];

/// One writer at a time.
static WRITING: Mutex<()> = Mutex::new(());

/// The bits of a word that make up a handle. None before MPI is initialised and after it is
/// finalised, so that every communicator looks like the empty bucket and nothing is found.
static HANDLE_BITS: AtomicUsize = AtomicUsize::new(0);

/// From here on these bits make up a handle.
pub fn set_handle_bits(bits: usize) {
    HANDLE_BITS.store(bits, Ordering::Release);
}

/// What a communicator is known by: the bits of its handle alone.
#[inline(always)]
pub fn key(comm: Handle) -> usize {
    comm & HANDLE_BITS.load(Ordering::Relaxed)
}

#[inline(always)]
fn bucket(key: usize, turn: usize) -> &'static CachedCommunicator {
    &TABLE[spread(key).wrapping_add(turn) % BUCKETS]
}

impl CachedCommunicator {
    /// The caller must be in a call on the communicator of this key.
    #[inline(always)]
    fn read(&self, key: usize) -> Option<CommunicatorPlace> {
        if self.key.load(Ordering::Acquire) != key {
            return None;
        }
        // SAFETY: null, or tables that live on.
        let tables = unsafe { self.tables.load(Ordering::Relaxed).as_ref()? };
        // SAFETY: each null, or what lives as long as the communicator, which is in a call.
        let (explorer, new, recent) = unsafe {
            (
                self.explorer.load(Ordering::Relaxed).as_ref(),
                self.new.load(Ordering::Relaxed).as_ref(),
                self.recent.load(Ordering::Relaxed).as_ref(),
            )
        };
        let rank = self.rank.load(Ordering::Relaxed);
        Some(CommunicatorPlace { tables, rank, explorer, new, recent })
    }
}

/// What holds on a communicator, if it is at its first place in the table.
#[inline(always)]
pub fn first(comm: Handle) -> Option<CommunicatorPlace> {
    let key = key(comm);
    bucket(key, 0).read(key)
}

/// What holds on a communicator, by its key, if it is at one of the other places in the table.
pub fn others(key: usize) -> Option<CommunicatorPlace> {
    (1..BUCKETS_PER_ENTRY).find_map(|turn| bucket(key, turn).read(key))
}

/// Enters one, if one of its places is empty.
pub fn add(key: usize, place: CommunicatorPlace) {
    let _writing = lock(&WRITING);
    let empty = (0..BUCKETS_PER_ENTRY)
        .map(|turn| bucket(key, turn))
        .find(|bucket| bucket.key.load(Ordering::Relaxed) == 0);
    if let Some(bucket) = empty {
        bucket.rank.store(place.rank, Ordering::Relaxed);
        let explorer = place.explorer.map_or(ptr::null(), ptr::from_ref);
        bucket.explorer.store(explorer.cast_mut(), Ordering::Relaxed);
        let new = place.new.map_or(ptr::null(), ptr::from_ref);
        bucket.new.store(new.cast_mut(), Ordering::Relaxed);
        let recent = place.recent.map_or(ptr::null(), ptr::from_ref);
        bucket.recent.store(recent.cast_mut(), Ordering::Relaxed);
        bucket.tables.store(ptr::from_ref(place.tables).cast_mut(), Ordering::Relaxed);
        bucket.key.store(key, Ordering::Release);
    }
}

/// Takes one out.
pub fn remove(key: usize) {
    let _writing = lock(&WRITING);
    let buckets = (0..BUCKETS_PER_ENTRY).map(|turn| bucket(key, turn));
    // An empty place has the key 0.
    if key != 0 {
        buckets.filter(|bucket| bucket.key.load(Ordering::Relaxed) == key).for_each(|bucket| {
            bucket.key.store(0, Ordering::Release);
            // What is empty holds nothing: see `stand_for_all`.
            bucket.tables.store(ptr::null_mut(), Ordering::Relaxed);
            bucket.explorer.store(ptr::null_mut(), Ordering::Relaxed);
            bucket.new.store(ptr::null_mut(), Ordering::Relaxed);
            bucket.recent.store(ptr::null_mut(), Ordering::Relaxed);
        });
    }
}

/// What holds where no communicator is distinguished from another, so that all have the key 0.
pub fn stand_for_all(tables: &'static MethodTables) {
    let _writing = lock(&WRITING);
    let bucket = bucket(0, 0);
    if bucket.key.load(Ordering::Relaxed) == 0 {
        bucket.tables.store(ptr::from_ref(tables).cast_mut(), Ordering::Relaxed);
    }
}
