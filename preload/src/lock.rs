//! Locks of tables that live as long as the process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A table behind a poisoned lock is still a table: nothing in it can be half written that matters.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
