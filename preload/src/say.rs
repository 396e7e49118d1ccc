//! What is printed for the user.

use std::{
    ffi::c_int,
    io::{ErrorKind, Write},
    ptr, thread,
    time::{Duration, Instant},
};

/// A line for the user; where it can't be written there is nobody to tell. In one piece, so that a
/// launcher which ends the job meanwhile has all of it or none.
pub fn say(text: &str) {
    let line = format!("colibri: {text}\n");
    without_broken_pipes(|| std::io::stderr().write_all(line.as_bytes()));
}

/// Writes without the signal that ends a program whose pipe nobody reads any more.
fn without_broken_pipes(write: impl FnOnce() -> std::io::Result<()>) {
    // SAFETY: sets of signals are plain numbers, and outputs are locals. The mask is this thread's; what it was is put back.
    unsafe {
        let (mut pipe, mut pending, mut before): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::sigpending(&raw mut pending);
        let was_pending = libc::sigismember(&raw const pending, libc::SIGPIPE) == 1;
        if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before) != 0 {
            return;
        }
        let is_broken = write().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        if is_broken && !was_pending {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
    }
}

/// Waits, for a second at most, until who reads standard error has read what was said: MPICH's launcher
/// drops what it hasn't read when a process ends the job.
pub fn wait_until_read() {
    let begin = Instant::now();
    let mut unread: c_int = 0;
    while begin.elapsed() < Duration::from_secs(1) {
        // SAFETY: the output is a local. Of a pipe it tells the bytes that nobody has read.
        let code = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::FIONREAD, &mut unread) };
        if code != 0 || unread == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    // It has yet to hand it on.
    thread::sleep(Duration::from_millis(100));
}
