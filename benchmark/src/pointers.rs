//! Pointers of the caller's.

use std::slice;

use crate::failure::BenchFailure;

/// Said of a pointer that is null.
pub fn null() -> BenchFailure {
    BenchFailure::Refused("a pointer is null; expected the address of what is asked for".into())
}

/// What a pointer of the caller's leads to.
///
/// # Safety
/// It must be null or valid.
///
/// # Errors
/// It is null.
pub unsafe fn some<'a, T>(pointer: *const T) -> Result<&'a T, BenchFailure> {
    // SAFETY: the caller vouches for it.
    unsafe { pointer.as_ref() }.ok_or_else(null)
}

/// The same, to be written.
///
/// # Safety
/// It must be null or valid, and the caller's alone.
///
/// # Errors
/// It is null.
pub unsafe fn some_mut<'a, T>(pointer: *mut T) -> Result<&'a mut T, BenchFailure> {
    // SAFETY: the caller vouches for it.
    unsafe { pointer.as_mut() }.ok_or_else(null)
}

/// So many elements of the caller's.
///
/// # Safety
/// It must be null or have so many elements.
///
/// # Errors
/// It is null.
pub unsafe fn slice<'a, T>(first: *const T, count: usize) -> Result<&'a [T], BenchFailure> {
    match first.is_null() {
        true => Err(null()),
        // SAFETY: the caller vouches for the length.
        false => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}

/// The same, to be written.
///
/// # Safety
/// It must be null or have room for so many elements, and be the caller's alone.
///
/// # Errors
/// It is null.
pub unsafe fn slice_mut<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], BenchFailure> {
    match first.is_null() {
        true => Err(null()),
        // SAFETY: the caller vouches for the length.
        false => Ok(unsafe { slice::from_raw_parts_mut(first, count) }),
    }
}
