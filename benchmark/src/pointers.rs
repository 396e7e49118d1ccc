//! Pointers of the caller's.
//!
//! Safety of all functions here: a pointer that isn't null is aligned and valid as long as what is made of it
//! is used, and what it leads to is made of numbers, of which any bits are a value: C need not have written to
//! results.

use std::slice;

use crate::failure::BenchFailure;

/// Said of a pointer that is null.
pub fn null() -> BenchFailure {
    BenchFailure::Refused("a pointer is null; expected the address of what is asked for".into())
}

/// What a pointer of the caller's leads to.
///
/// # Safety
/// It must be null or valid for reads.
///
/// # Errors
/// It is null.
pub unsafe fn some<'a, T>(pointer: *const T) -> Result<&'a T, BenchFailure> {
    // SAFETY: `pointer` is null, of which nothing is made, or valid for reads (contract of this function).
    unsafe { pointer.as_ref() }.ok_or_else(null)
}

/// The same, to be written.
///
/// # Safety
/// It must be null or valid for reads and writes, and nothing else may use what it leads to.
///
/// # Errors
/// It is null.
pub unsafe fn some_mut<'a, T>(pointer: *mut T) -> Result<&'a mut T, BenchFailure> {
    // SAFETY: `pointer` is null, of which nothing is made, or valid and ours alone (contract of this function).
    unsafe { pointer.as_mut() }.ok_or_else(null)
}

/// So many elements of the caller's.
///
/// # Safety
/// It must be null or valid for reads of so many elements.
///
/// # Errors
/// It is null.
pub unsafe fn slice<'a, T>(first: *const T, count: usize) -> Result<&'a [T], BenchFailure> {
    match first.is_null() {
        true => Err(null()),
        // SAFETY: `first` is not null, and so valid for reads of `count` elements (contract of this function).
        false => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}

/// The same, to be written.
///
/// # Safety
/// It must be null or valid for reads and writes of so many elements, and nothing else may use them.
///
/// # Errors
/// It is null.
pub unsafe fn slice_mut<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], BenchFailure> {
    match first.is_null() {
        true => Err(null()),
        // SAFETY: `first` is not null, and so valid for `count` elements, which are ours alone (contract of
        // this function).
        false => Ok(unsafe { slice::from_raw_parts_mut(first, count) }),
    }
}
