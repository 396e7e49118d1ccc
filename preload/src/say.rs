//! What is printed for the user.

use std::{
    ffi::c_int,
    io::Write,
    thread,
    time::{Duration, Instant},
};

/// A line for the user; where it can't be written there is nobody to tell. In one piece, so that a
/// launcher which ends the job meanwhile has all of it or none.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("colibri: {text}\n").as_bytes());
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
