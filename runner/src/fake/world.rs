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

/// What a rank waits for: a message with its number in the channel, or the receive of one.
#[derive(Clone, Copy)]
enum Awaited {
    Message(ChannelKey, u64),
    Receive(ChannelKey, u64),
}

/// The ranks of one [`run`].
#[derive(Default)]
struct FakeWorld {
    /// What was wrong, if a rank has failed.
    failed: Option<String>,
    /// A rank that posts a receive only when none of the others can go on.
    late: Option<c_int>,
    /// Ranks that have not ended.
    left: usize,
    waiting: HashMap<c_int, Awaited>,
    max_ahead: u64,
}

/// What all ranks of all worlds share.
#[derive(Default)]
struct Mailbox {
    channels: HashMap<ChannelKey, Channel>,
    worlds: HashMap<usize, FakeWorld>,
}

impl Mailbox {
    fn world(&mut self, world: usize) -> &mut FakeWorld {
        self.worlds.entry(world).or_default()
    }

    fn is_there(&self, awaited: Awaited) -> bool {
        let channel = |key| self.channels.get(&key);
        match awaited {
            Awaited::Message(key, number) => {
                channel(key).is_some_and(|channel| channel.under_way.contains_key(&number))
            }
            Awaited::Receive(key, number) => {
                channel(key).is_some_and(|channel| channel.posted > number)
            }
        }
    }

    /// Whether none but one rank can go on.
    fn is_alone(&self, world: usize) -> bool {
        let FakeWorld { left, waiting, .. } = &self.worlds[&world];
        let stuck = waiting.values().filter(|awaited| !self.is_there(**awaited));
        stuck.count() + 1 == *left
    }
}

static MAIL: Mutex<Option<Mailbox>> = Mutex::new(None);
static ARRIVED: Condvar = Condvar::new();
static WORLDS: AtomicUsize = AtomicUsize::new(1);

fn mail() -> MutexGuard<'static, Option<Mailbox>> {
    MAIL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on so many ranks, each a thread, and gives what each returned.
pub fn run<R: Send>(ranks: u32, body: impl Fn(u32) -> R + Sync) -> Vec<R> {
    run_with_late(ranks, None, body).0
}

/// Runs `body` where one rank, if any, posts a receive only when none of the others can go on. Gives, too, the most
/// messages of one rank to another for which there were no receives yet.
pub fn run_with_late<R: Send>(
    ranks: u32,
    late: Option<u32>,
    body: impl Fn(u32) -> R + Sync,
) -> (Vec<R>, u64) {
    let world = WORLDS.fetch_add(1, Ordering::Relaxed);
    let late = late.map(|rank| rank as c_int);
    let begun = FakeWorld { late, left: ranks as usize, ..FakeWorld::default() };
    mail().get_or_insert_default().worlds.insert(world, begun);
    std::thread::scope(|scope| {
        let body = &body;
        let start = |rank: u32| {
            scope.spawn(move || {
                RANK.set((world, rank as c_int, ranks as c_int));
                let _told = ToldAtTheEnd;
                body(rank)
            })
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let FakeWorld { failed, max_ahead, .. } = {
            let mut mail = mail();
            let Mailbox { channels, worlds } = mail.get_or_insert_default();
            channels.retain(|key, _| key.0 != world);
            worlds.remove(&world).unwrap()
        };
        if let Some(why) = failed {
            panic!("{why}");
        }
        (outcomes.into_iter().map(Result::unwrap).collect(), max_ahead)
    })
}

/// Nobody waits any longer for a rank that has failed.
fn fail(why: String) {
    let world = RANK.get().0;
    mail().get_or_insert_default().world(world).failed.get_or_insert(why);
    ARRIVED.notify_all();
}

/// That a rank has ended, well or not.
struct ToldAtTheEnd;

impl Drop for ToldAtTheEnd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            fail("a rank has panicked".into());
        }
        mail().get_or_insert_default().world(RANK.get().0).left -= 1;
        ARRIVED.notify_all();
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

/// Sends bytes to a rank; the channel, and the message's number there.
pub fn put(to: c_int, tag: c_int, bytes: Vec<u8>) -> (ChannelKey, u64) {
    let (world, own, _) = RANK.get();
    let key = (world, own, to, tag);
    let mut mail = mail();
    let mail = mail.get_or_insert_default();
    let channel = mail.channels.entry(key).or_default();
    let number = channel.sent;
    channel.under_way.insert(number, bytes);
    channel.sent += 1;
    let ahead = channel.sent.saturating_sub(channel.posted);
    let world = mail.world(world);
    world.max_ahead = world.max_ahead.max(ahead);
    ARRIVED.notify_all();
    (key, number)
}

/// Posts a receive; its number in the channel.
pub fn post(key: ChannelKey) -> FakeResult<u64> {
    let (world, own, _) = RANK.get();
    let is_late = mail().get_or_insert_default().world(world).late == Some(own);
    let mut mail = match is_late {
        true => wait_until(|mail| mail.is_alone(world))?,
        false => mail(),
    };
    let channel = mail.get_or_insert_default().channels.entry(key).or_default();
    channel.posted += 1;
    let number = channel.posted - 1;
    ARRIVED.notify_all();
    Ok(number)
}

/// Waits for the message of a receive.
pub fn take(key: ChannelKey, number: u64) -> FakeResult<Vec<u8>> {
    let mut mail = wait_for(Awaited::Message(key, number))?;
    let channel = mail.get_or_insert_default().channels.entry(key).or_default();
    Ok(channel.under_way.remove(&number).unwrap())
}

/// Waits for the receive of a message.
pub fn wait_for_receive(key: ChannelKey, number: u64) -> FakeResult {
    wait_for(Awaited::Receive(key, number)).map(drop)
}

fn wait_for(awaited: Awaited) -> FakeResult<MutexGuard<'static, Option<Mailbox>>> {
    let (world, own, _) = RANK.get();
    mail().get_or_insert_default().world(world).waiting.insert(own, awaited);
    // A late rank may be alone now.
    ARRIVED.notify_all();
    let mut mail = wait_until(|mail| mail.is_there(awaited))?;
    mail.get_or_insert_default().world(world).waiting.remove(&own);
    Ok(mail)
}

/// Waits until something holds, unless a rank fails.
fn wait_until(
    holds: impl Fn(&Mailbox) -> bool,
) -> FakeResult<MutexGuard<'static, Option<Mailbox>>> {
    let (world, own, _) = RANK.get();
    let mut all = mail();
    loop {
        let mail = all.get_or_insert_default();
        if holds(mail) {
            return Ok(all);
        }
        if mail.world(world).failed.is_some() {
            return Err("another rank has failed".into());
        }
        let wait = ARRIVED.wait_timeout(all, Duration::from_secs(20));
        let (next, timeout) = wait.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(format!("rank {own} waits in vain"));
        }
        all = next;
    }
}

pub fn set<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: outputs of MPI functions are places for their values.
    unsafe { *place = value };
    0
}
