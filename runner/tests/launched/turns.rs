//! For ranks that spin while they wait, of which there are more than processors.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
    time::Duration,
};

/// How long a rank runs before it steps aside, and how long for. A processor's slice lasts some
/// milliseconds, and a collective call takes several turns of all ranks.
const RUN: Duration = Duration::from_micros(200);
const STEP_ASIDE: Duration = Duration::from_micros(100);

static TIMER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// From now on this thread steps aside for a moment after each moment that it has run, whatever it
/// is doing: sleeping, it loses no claim to its share of a busy machine, as it would by yielding.
pub fn take_turns() {
    // SAFETY: the structures are valid where they are zero but for what is set here; the handler
    // calls nothing but what may be called from one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = step_aside as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, ptr::null_mut()), 0);
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = ptr::null_mut();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        TIMER.store(timer, Ordering::Relaxed);
        run_on();
    }
}

/// The timer is set anew after each sleep, so that a rank which then waits for a processor still
/// runs for a while once it has one.
extern "C" fn step_aside(_signal: c_int) {
    // SAFETY: the thread's own error number, which what was interrupted may be about to read.
    unsafe {
        let before = *libc::__errno_location();
        libc::nanosleep(&time(STEP_ASIDE), ptr::null_mut());
        run_on();
        *libc::__errno_location() = before;
    }
}

unsafe fn run_on() {
    let once = libc::itimerspec { it_interval: time(Duration::ZERO), it_value: time(RUN) };
    // SAFETY: the timer that `take_turns` has made.
    unsafe { libc::timer_settime(TIMER.load(Ordering::Relaxed), 0, &once, ptr::null_mut()) };
}

const fn time(duration: Duration) -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: duration.subsec_nanos() as i64 }
}
