//! Preloaded: a rank that waits gives its core away until something arrives, so that many ranks can
//! share few cores.
//!
//! With more ranks than cores, Open MPI's waiting loop (with `mpi_yield_when_idle`) calls `poll` on
//! its sockets without waiting, finds nothing, calls `sched_yield`, and does so over and over. The
//! kernel passes the core from one waiting rank to the next, and the one rank that has work waits for
//! all the others.
//!
//! Here a `sched_yield` is taken for what it means, "I found nothing to do", and the next `poll` of
//! that thread that asks for no waiting waits after all, for [`IDLE_VARIABLE`] at most: the rank
//! sleeps in the kernel, and is woken by the packet that it waits for, at once. A `sched_yield` after
//! another without a `poll` between them sleeps for a moment.
//!
//! Sleeping alone (5 us in each `sched_yield`) was tried and serves less: on a virtual machine such a
//! sleep took 20 us of processor time and rarely gave the core away.
//!
//! MPICH's waiting loop never yields: it asks its sockets, by `epoll_wait` (UCX) or `poll`, over and
//! over. Where [`POLLS_VARIABLE`] says so, a thread that has asked so often in a row, at once and in
//! vain, counts as idle, too, and its next question waits.
//!
//! MPICH 4.0 over UCX is also helped out of `MPI_Finalize`: [`ucx`].
//!
//! Nothing else changes for the program; a thread that works between its `poll`s is not held up.
//! Linux only; loaded by `LD_PRELOAD`.

use std::{
    cell::Cell,
    env,
    ffi::c_int,
    panic::catch_unwind,
    ptr,
    sync::atomic::{AtomicI64, Ordering},
};

pub mod ucx;

/// In the environment: how many microseconds at most an idle rank waits for its sockets, 1 to 100000.
/// Long (1000) where all its messages come through sockets. Short where some come through shared
/// memory, which wakes nobody: without the variable it is 20.
pub const IDLE_VARIABLE: &str = "COLIBRI_IDLE_MICROSECONDS";

/// In the environment: how many questions in a row in vain make a rank idle, 1 to 1000000. Without
/// the variable no number does.
pub const POLLS_VARIABLE: &str = "COLIBRI_IDLE_POLLS";

const MAX_POLLS: i64 = 1_000_000;

const DEFAULT_IDLE_NANOSECONDS: i64 = 20_000;
const MAX_IDLE_MICROSECONDS: i64 = 100_000;

/// How long a yield sleeps where no sockets are asked between: more than the timer itself costs.
const SLEEP_NANOSECONDS: i64 = 20_000;

/// A `poll` later than this after the yield belongs to a program that works between its tests for a
/// message, not to a waiting loop.
const WAITING_LOOP_NANOSECONDS: i64 = 20_000;

/// By default the kernel may wake a sleeper 50 us late, to gather timers; that would be in the latency
/// of everything measured.
const TIMER_SLACK_NANOSECONDS: libc::c_ulong = 1_000;

thread_local! {
    /// When this thread yielded (nanoseconds of the monotonic clock), if it has not polled since.
    static YIELDED: Cell<Option<i64>> = const { Cell::new(None) };
    static SLACK_IS_SET: Cell<bool> = const { Cell::new(false) };
    /// How often in a row this thread has asked its sockets in vain, and when it last did.
    static IN_VAIN: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// Replaces the system's: notes that this thread found nothing to do; sleeps for a moment if it was
/// noted already. Returns 0 and leaves `errno` as it was, as the system's does on Linux.
#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> c_int {
    keeping_errno(|| {
        wake_in_time();
        if YIELDED.get().is_some() {
            let sleep = timespec(SLEEP_NANOSECONDS);
            // SAFETY: `sleep` lives through the call; a null remainder is allowed. A signal that ends
            // the sleep early is no error: a yield promises no duration.
            unsafe { libc::nanosleep(&sleep, ptr::null_mut()) };
        }
        YIELDED.set(Some(now()));
        0
    })
}

/// Replaces the system's: the same, except that the first `poll` right after a `sched_yield` which
/// asks for no waiting waits a little.
///
/// # Safety
/// The system's own: `sockets` points to `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(
    sockets: *mut libc::pollfd,
    count: libc::nfds_t,
    milliseconds: c_int,
) -> c_int {
    if !(milliseconds == 0 && is_waiting_loop()) {
        let limit = timespec(i64::from(milliseconds) * 1_000_000);
        let limit = if milliseconds < 0 { ptr::null() } else { &raw const limit };
        // SAFETY: the caller's entries; the limit lives through the call, and null means for ever.
        return noting(milliseconds, || unsafe { libc::ppoll(sockets, count, limit, ptr::null()) });
    }
    let limit = timespec(idle_nanoseconds());
    // SAFETY: as above.
    waiting(|| unsafe { libc::ppoll(sockets, count, &limit, ptr::null()) })
}

/// Replaces the system's, as [`poll`].
///
/// # Safety
/// The system's own: `events` has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    room: c_int,
    milliseconds: c_int,
) -> c_int {
    if !(milliseconds == 0 && is_waiting_loop()) {
        // SAFETY: the caller's events; without a mask it is the call that is replaced.
        return noting(milliseconds, || unsafe {
            libc::epoll_pwait(epoll, events, room, milliseconds, ptr::null())
        });
    }
    let limit = timespec(idle_nanoseconds());
    let mut own = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
    // Its own limit counts milliseconds; the epoll is itself a file that can be waited for.
    // SAFETY: one entry, and the limit, live through the call.
    let ready = waiting(|| unsafe { libc::ppoll(&mut own, 1, &limit, ptr::null()) });
    if ready <= 0 {
        return ready;
    }
    // SAFETY: as above.
    unsafe { libc::epoll_pwait(epoll, events, room, 0, ptr::null()) }
}

/// Whether this thread has found nothing to do just now, and asks again.
fn is_waiting_loop() -> bool {
    let polls = limits().polls;
    let (times, then) = IN_VAIN.get();
    let asked_in_vain = polls > 0 && times >= polls;
    let yielded = YIELDED.take();
    let last = yielded.or(asked_in_vain.then_some(then));
    let is_waiting = last.is_some_and(|then| now() - then < WAITING_LOOP_NANOSECONDS);
    if !is_waiting && asked_in_vain {
        IN_VAIN.set((0, 0));
    }
    is_waiting
}

/// A question as it was put; what came of it is noted if it was not to wait.
fn noting(milliseconds: c_int, ask: impl FnOnce() -> c_int) -> c_int {
    YIELDED.set(None);
    let ready = ask();
    if milliseconds == 0 && limits().polls > 0 {
        let (times, then) = IN_VAIN.get();
        let now = now();
        let goes_on = ready == 0 && now - then < WAITING_LOOP_NANOSECONDS;
        let times = if goes_on { times + 1 } else { i64::from(ready == 0) };
        IN_VAIN.set((times, now));
    }
    ready
}

/// The wait of an idle thread.
fn waiting(wait: impl FnOnce() -> c_int) -> c_int {
    keeping_errno_unless_failed(|| {
        wake_in_time();
        let ready = wait();
        let (times, _) = IN_VAIN.get();
        IN_VAIN.set(if ready == 0 { (times, now()) } else { (0, 0) });
        // The caller did not ask for waiting and need not know of a signal that ended it.
        if ready < 0 && errno() == libc::EINTR { 0 } else { ready }
    })
}

fn wake_in_time() {
    if !SLACK_IS_SET.replace(true) {
        // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NANOSECONDS) };
    }
}

fn timespec(nanoseconds: i64) -> libc::timespec {
    libc::timespec { tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000 }
}

fn now() -> i64 {
    let mut time = timespec(0);
    // SAFETY: `time` is ours to be filled.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What the environment says.
#[derive(Clone, Copy)]
struct YieldLimits {
    idle_nanoseconds: i64,
    /// 0: none.
    polls: i64,
}

/// Read once; what is no number in the range counts as not given, as there is nobody to complain to.
fn limits() -> YieldLimits {
    static IDLE: AtomicI64 = AtomicI64::new(0);
    static POLLS: AtomicI64 = AtomicI64::new(0);
    let idle_nanoseconds = IDLE.load(Ordering::Acquire);
    if idle_nanoseconds > 0 {
        return YieldLimits { idle_nanoseconds, polls: POLLS.load(Ordering::Relaxed) };
    }
    let asked = |name: &str, most| {
        // A panic may not cross into C.
        let text = catch_unwind(|| env::var(name).ok()).ok().flatten();
        text.and_then(|text| text.parse().ok()).filter(|number| (1..=most).contains(number))
    };
    let polls = asked(POLLS_VARIABLE, MAX_POLLS).unwrap_or(0);
    let idle_nanoseconds = asked(IDLE_VARIABLE, MAX_IDLE_MICROSECONDS)
        .map_or(DEFAULT_IDLE_NANOSECONDS, |microseconds: i64| microseconds * 1_000);
    POLLS.store(polls, Ordering::Relaxed);
    IDLE.store(idle_nanoseconds, Ordering::Release);
    YieldLimits { idle_nanoseconds, polls }
}

fn idle_nanoseconds() -> i64 {
    limits().idle_nanoseconds
}

fn errno() -> c_int {
    // SAFETY: the address of this thread's errno, valid for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: as in `errno`; nothing else writes this thread's.
    unsafe { *libc::__errno_location() = value };
}

fn keeping_errno(call: impl FnOnce() -> c_int) -> c_int {
    let before = errno();
    let result = call();
    set_errno(before);
    result
}

fn keeping_errno_unless_failed(call: impl FnOnce() -> c_int) -> c_int {
    let before = errno();
    let result = call();
    if result >= 0 {
        set_errno(before);
    }
    result
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::{fd::AsRawFd, unix::net::UnixStream},
        time::{Duration, Instant},
    };

    use super::*;

    fn timed(call: impl FnOnce() -> c_int) -> (c_int, Duration) {
        let begin = Instant::now();
        (call(), begin.elapsed())
    }

    /// The lower bounds are the system's promise not to wake a sleeper early; the upper one is a
    /// second where the waiting would be for ever.
    #[test]
    fn a_yield_makes_the_next_poll_wait_and_only_that() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut socket = libc::pollfd { fd: there.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        let mut ask = |milliseconds| timed(|| unsafe { poll(&mut socket, 1, milliseconds) });
        let idle = Duration::from_nanos(DEFAULT_IDLE_NANOSECONDS as u64);

        set_errno(libc::EDOM);
        assert_eq!(sched_yield(), 0);
        // Where the thread was off its core in between it is no waiting loop: try until it was not.
        let waited = (0..100).any(|_| {
            sched_yield();
            let (ready, time) = ask(0);
            assert_eq!(ready, 0);
            time >= idle
        });
        assert!(waited);
        assert_eq!(errno(), libc::EDOM);
        assert_eq!(YIELDED.get(), None, "the yield is used up");
        let (ready, time) = ask(3);
        assert!(ready == 0 && time >= Duration::from_millis(3), "asked to wait, it waits");

        sched_yield();
        let (_, time) = timed(|| sched_yield());
        assert!(
            time >= Duration::from_nanos(SLEEP_NANOSECONDS as u64),
            "no poll between: it sleeps"
        );

        here.write_all(b"x").unwrap();
        assert_eq!(ask(0).0, 1);
        assert_eq!(ask(-1).0, 1);
        // SAFETY: no entries at all, and an invalid one: the error is the system's.
        let wrong = unsafe { poll(ptr::null_mut(), 1, 0) };
        assert_eq!((wrong, errno()), (-1, libc::EFAULT));
        // SAFETY: PR_GET_TIMERSLACK touches no memory.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1_000);
    }

    /// In a process of its own, since the environment is read once.
    #[test]
    fn who_asks_in_vain_often_enough_waits() {
        const CHILD: &str = "COLIBRI_TEST_OF_POLLS";
        if env::var_os(CHILD).is_none() {
            let test = std::process::Command::new(env::current_exe().unwrap())
                .args(["--exact", "tests::who_asks_in_vain_often_enough_waits"])
                .env(CHILD, "1")
                .env(POLLS_VARIABLE, "50")
                .env(IDLE_VARIABLE, "2000")
                .status();
            return assert!(test.unwrap().success());
        }
        let (mut here, there) = UnixStream::pair().unwrap();
        // SAFETY: no pointers.
        let epoll = unsafe { libc::epoll_create1(0) };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
        // SAFETY: one event.
        let added =
            unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, there.as_raw_fd(), &mut event) };
        assert_eq!(added, 0);
        // SAFETY: room for one event.
        let mut ask = || timed(|| unsafe { epoll_wait(epoll, &mut event, 1, 0) });
        let is_long = |time: Duration| time >= Duration::from_millis(2);
        let times: Vec<Duration> = (0..50).map(|_| ask().1).collect();
        let at_once = times.iter().filter(|time| !is_long(**time)).count();
        assert!(at_once >= 40, "{times:?}");
        // Where the thread was off its core it is no waiting loop: try until it was not.
        assert!((0..2000).any(|_| is_long(ask().1)));
        std::thread::sleep(Duration::from_millis(1));
        assert!(!is_long(ask().1), "it has worked between");
        (0..2000).any(|_| is_long(ask().1));
        here.write_all(b"x").unwrap();
        assert_eq!(ask().0, 1);
    }
}
