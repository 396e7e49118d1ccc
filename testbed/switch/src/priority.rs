//! Being there in time: the process's place among all others.

use std::{fs, num::NonZero, os::fd::RawFd};

use anyhow::{Context, Result};
use rustix::{mm::MlockAllFlags, process, thread};

/// Above everything that is not real-time itself; below what the kernel runs at such priorities.
const PRIORITY: i32 = 10;

/// What was inherited is given back: the caller's terminal and every file but the standard ones, so
/// that nobody waits for this process by one of them.
pub fn leave_the_caller() -> Result<()> {
    // It is refused to the leader of a group, which has left already.
    let _ = process::setsid();
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")
        .context("cannot list the open files in /proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for inherited in open.into_iter().filter(|file| *file > 2) {
        // SAFETY: this is the first thing that the process does: no open file belongs to anything in it. That by
        // which they were listed is closed already.
        unsafe { libc::close(inherited) };
    }
    Ok(())
}

/// On the last of its processors. A wakened program of such a priority stays where it last ran, whoever runs
/// there: which ranks it interrupts would otherwise be chance, for as long as a run lasts.
pub fn on_one_processor() {
    // SAFETY: a set of processors is plain numbers, for which zeroes are valid; both calls get its size, and
    // the numbers are within it. Where either is refused, it runs anywhere.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of_val(&set);
        if libc::sched_getaffinity(0, size, &raw mut set) != 0 {
            return;
        }
        let last = (0..8 * size).rev().find(|&processor| libc::CPU_ISSET(processor, &set));
        if let Some(last) = last {
            set = std::mem::zeroed();
            libc::CPU_SET(last, &mut set);
            libc::sched_setaffinity(0, size, &raw const set);
        }
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
