//! A job whose launcher was killed must end: its ranks would go on, unseen, writing to a record
//! that the next run has begun to complete.

use std::sync::atomic::{AtomicI32, Ordering};

static LAUNCHER: AtomicI32 = AtomicI32::new(0);

fn parent() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// Remembers who launched this rank.
pub fn remember() {
    LAUNCHER.store(parent(), Ordering::Relaxed);
}

/// Ends this rank if its launcher has died. The MPI library would notice too, but only after about
/// a second.
pub fn end_if_gone() {
    let launcher = LAUNCHER.load(Ordering::Relaxed);
    if launcher != 0 && parent() != launcher {
        std::process::exit(1);
    }
}
