//! Waiting without burning a core.

use crate::clock::{self, Nanos, now};

/// Lets timers of this process fire within a microsecond of their time; the default lets them be
/// 50 us late.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory. A kernel that refuses
    // leaves timers as they were, which shows in the observations as late starts.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000_u64, 0_u64, 0_u64, 0_u64) };
}

/// Sleeps until the clock shows `instant`; returns at once where that has passed.
pub fn sleep_until(instant: Nanos) {
    let instant = clock::of_kernel(instant);
    let time = libc::timespec {
        tv_sec: (instant / 1_000_000_000) as libc::time_t,
        tv_nsec: (instant % 1_000_000_000) as _,
    };
    let absolute = libc::TIMER_ABSTIME;
    // SAFETY: `time` is a valid timespec, and with an absolute time no remainder is written.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, absolute, &time, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

/// Sleeps until shortly before `instant` and watches the clock for the rest: exact, but only for a
/// rank that has a processor to itself.
pub fn wait_until(instant: Nanos) {
    /// Later than this a sleeper rarely wakes.
    const WAKE_UP: Nanos = 100_000;
    sleep_until(instant - WAKE_UP);
    while now() < instant {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_ends_after_the_instant_and_a_passed_one_does_not_wait() {
        let instant = now() + 2_000_000;
        sleep_until(instant);
        assert!(now() >= instant);
        sleep_until(instant - 1_000_000_000);
        sleep_until(0);
        let instant = now() + 500_000;
        wait_until(instant);
        assert!(now() >= instant);
    }
}
