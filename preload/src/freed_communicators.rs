//! Communicators that are being freed: what the delete callbacks of their attributes call on them is the
//! MPI library's.
//!
//! Which methods hold on a communicator is known by attributes of it. These cannot be asked for while
//! they are deleted: MPICH would follow those that are gone, and search without end. All ranks are in the
//! same callback then, so that all leave the call to the library.

use std::{cell::RefCell, mem::ManuallyDrop};

use runner::Handle;

use crate::{communicators, job::JobContext, known_communicators};

thread_local! {
    /// Those that this thread is about to free; a callback may free another one. Never dropped: programs
    /// free communicators at the process's exit, too, after all that a thread drops.
    static BEING_FREED: ManuallyDrop<RefCell<Vec<usize>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Before the application frees one.
///
/// # Safety
/// `comm` must be null or point to a handle, of the size that the MPI library's have.
pub unsafe fn begin(comm: *const Handle) {
    let bits = JobContext::current().map_or(0, |job| job.library.constants.handle_bits);
    // SAFETY: MPICH's handles are ints, and what lies behind one is not ours to read.
    let key = unsafe {
        match (comm.is_null(), bits) {
            (true, _) | (_, 0) => 0,
            (false, usize::MAX) => *comm,
            (false, _) => *comm.cast::<u32>() as usize,
        }
    };
    if let Some(job) = JobContext::current() {
        // SAFETY: it is live with all its ranks about to free it, or the library refuses it.
        unsafe { communicators::before_free(job, key) };
    }
    known_communicators::remove(key);
    BEING_FREED.with(|freed| freed.borrow_mut().push(key));
}

/// After that, whether it has been freed or not.
pub fn end() {
    BEING_FREED.with(|freed| freed.borrow_mut().pop());
    if let Some(job) = JobContext::current() {
        job.forget_freed_communicators();
    }
}

/// Whether this thread is about to free the communicator of a key.
pub fn contains(key: usize) -> bool {
    BEING_FREED.with(|freed| freed.borrow().contains(&key))
}
