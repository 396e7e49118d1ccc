//! MPICH 4.0 over UCX comes out of `MPI_Finalize`.
//!
//! There it closes its connections and drives the network until all of them are closed; then it waits for
//! the other processes in its launcher's barrier, where it drives the network no more. A rank whose
//! connections close late needs an answer from those that are in that barrier already, and never gets it.
//! By then every call of the program has ended, and what it has sent is with the kernels: a closing that
//! takes longer than a second is taken for done.

use std::{
    ffi::{CStr, c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicI64, Ordering},
};

use crate::now;

/// Far longer than a closing takes that is answered.
const PATIENCE_NANOSECONDS: i64 = 1_000_000_000;

/// When the first connection was closed; 0 before.
static CLOSING: AtomicI64 = AtomicI64::new(0);

type Disconnect = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type IsCompleted = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Replaces UCX's, which MPICH calls in `MPI_Finalize` alone: the same, and notes when that was.
///
/// # Safety
/// UCX's own: an endpoint that is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_disconnect_nb(endpoint: *mut c_void) -> *mut c_void {
    let _ = CLOSING.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
    let replaced = next(c"ucp_disconnect_nb");
    if replaced.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: it is the function of that name, of this type; the caller's endpoint.
    unsafe { mem::transmute::<*mut c_void, Disconnect>(replaced)(endpoint) }
}

/// Replaces UCX's: the same, except that what was asked for is done once closing takes too long.
///
/// # Safety
/// UCX's own: a request that is not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_request_is_completed(request: *mut c_void) -> c_int {
    let replaced = next(c"ucp_request_is_completed");
    if replaced.is_null() || is_too_long(CLOSING.load(Ordering::Relaxed), now()) {
        return 1;
    }
    // SAFETY: it is the function of that name, of this type; the caller's request.
    unsafe { mem::transmute::<*mut c_void, IsCompleted>(replaced)(request) }
}

fn is_too_long(closing: i64, now: i64) -> bool {
    closing > 0 && now - closing > PATIENCE_NANOSECONDS
}

/// The function that is replaced; null in a program without UCX, which never calls it.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a text of C; the handle is one of the system's own.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_is_awaited_and_not_for_ever() {
        assert!(!is_too_long(0, i64::MAX), "nothing is being closed");
        assert!(!is_too_long(5, 5 + PATIENCE_NANOSECONDS));
        assert!(is_too_long(5, 6 + PATIENCE_NANOSECONDS));
    }
}
