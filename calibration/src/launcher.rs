//! A job whose launcher was killed must end: its ranks would go on, unseen, writing to a record
//! that the next run has begun to complete.

use std::{
    os::unix::process::parent_id,
    sync::atomic::{AtomicU32, Ordering},
};

static LAUNCHER: AtomicU32 = AtomicU32::new(0);

/// Remembers who launched this rank.
pub fn remember() {
    LAUNCHER.store(parent_id(), Ordering::Relaxed);
}

/// Ends this rank if its launcher has died. The MPI library would notice too, but only after about
/// a second.
pub fn end_if_gone() {
    let launcher = LAUNCHER.load(Ordering::Relaxed);
    if launcher != 0 && parent_id() != launcher {
        std::process::exit(1);
    }
}
