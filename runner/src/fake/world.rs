//! Ranks, the messages between them, and what their functions return.

use std::{
    cell::Cell,
    collections::HashMap,
    ffi::c_int,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What a failing function returns.
pub const CODE: c_int = 42;

thread_local! {
    /// The world of this thread, its rank and how many ranks there are.
    pub static RANK: Cell<(usize, c_int, c_int)> = const { Cell::new((0, 0, 1)) };
}

/// A world, its sender, its receiver and a tag.
pub type ChannelKey = (usize, c_int, c_int, c_int);

/// Messages and receives match in the order in which they are posted.
#[derive(Default)]
struct Channel {
    sent: u64,
    posted: u64,
    under_way: HashMap<u64, Vec<u8>>,
}

/// What was wrong; a panic could not leave a function of C.
pub type FakeResult<T = ()> = Result<T, String>;

/// What all ranks of all worlds share.
#[derive(Default)]
struct Mailbox {
    channels: HashMap<ChannelKey, Channel>,
    /// Of worlds in which a rank has failed, what was wrong.
    failed: HashMap<usize, String>,
}

static MAIL: Mutex<Option<Mailbox>> = Mutex::new(None);
static ARRIVED: Condvar = Condvar::new();
static WORLDS: AtomicUsize = AtomicUsize::new(1);

fn mail() -> MutexGuard<'static, Option<Mailbox>> {
    MAIL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on so many ranks, each a thread, and gives what each returned.
pub fn run<R: Send>(ranks: u32, body: impl Fn(u32) -> R + Sync) -> Vec<R> {
    let world = WORLDS.fetch_add(1, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let body = &body;
        let start = |rank: u32| {
            scope.spawn(move || {
                RANK.set((world, rank as c_int, ranks as c_int));
                let _told = ToldIfPanicking;
                body(rank)
            })
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let failed = {
            let mut mail = mail();
            let Mailbox { channels, failed } = mail.get_or_insert_default();
            channels.retain(|key, _| key.0 != world);
            failed.remove(&world)
        };
        if let Some(why) = failed {
            panic!("{why}");
        }
        outcomes.into_iter().map(Result::unwrap).collect()
    })
}

/// Nobody waits any longer for a rank that has failed.
fn fail(why: String) {
    let world = RANK.get().0;
    mail().get_or_insert_default().failed.entry(world).or_insert(why);
    ARRIVED.notify_all();
}

struct ToldIfPanicking;

impl Drop for ToldIfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            fail("a rank has panicked".into());
        }
    }
}

/// What a function of MPI returns.
pub fn code(outcome: FakeResult) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(why) => {
            fail(why);
            CODE
        }
    }
}

/// Sends bytes to a rank.
pub fn put(to: c_int, tag: c_int, bytes: Vec<u8>) {
    let (world, own, _) = RANK.get();
    let mut mail = mail();
    let channels = &mut mail.get_or_insert_default().channels;
    let channel = channels.entry((world, own, to, tag)).or_default();
    channel.under_way.insert(channel.sent, bytes);
    channel.sent += 1;
    ARRIVED.notify_all();
}

/// Posts a receive; its number in the channel.
pub fn post(key: ChannelKey) -> u64 {
    let mut mail = mail();
    let channel = mail.get_or_insert_default().channels.entry(key).or_default();
    channel.posted += 1;
    channel.posted - 1
}

/// Waits for the message of a receive.
pub fn take(key: ChannelKey, number: u64) -> FakeResult<Vec<u8>> {
    let mut all = mail();
    loop {
        let Mailbox { channels, failed } = all.get_or_insert_default();
        let channel = channels.entry(key).or_default();
        if let Some(message) = channel.under_way.remove(&number) {
            return Ok(message);
        }
        if failed.contains_key(&key.0) {
            return Err("another rank has failed".into());
        }
        let wait = ARRIVED.wait_timeout(all, Duration::from_secs(20));
        let (next, timeout) = wait.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(format!("a message does not come: {key:?}"));
        }
        all = next;
    }
}

pub fn set<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: outputs of MPI functions are places for their values.
    unsafe { *place = value };
    0
}
