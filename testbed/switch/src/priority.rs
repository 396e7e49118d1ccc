//! Being there in time: the process's place among all others.

use std::num::NonZero;

use anyhow::{Context, Result};
use rustix::{mm::MlockAllFlags, process, thread};

/// Above everything that is not real-time itself; below what the kernel runs at such priorities.
const PRIORITY: i32 = 10;

/// What was inherited is given back: the caller's terminal and every file but the standard ones, so
/// that nobody waits for this process by one of them.
pub fn leave_the_caller() -> Result<()> {
    // It is refused to the leader of a group, which has left already.
    let _ = process::setsid();
    // SAFETY: this is the first thing that the process does: no open file belongs to anything in it.
    let closed = unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    match closed {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).context("cannot close inherited files"),
    }
}

/// Before all other programs, never waiting for a page of memory; tells whether that is allowed. Where
/// it is not, timers are at least not gathered.
pub fn before_all_others() -> bool {
    // Both are better than one, and neither is needed.
    let _ = thread::set_current_timer_slack(NonZero::new(1));
    let locked = rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).is_ok();
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: `parameter` lives through the call; 0 is this process.
    let first = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } == 0;
    locked && first
}
