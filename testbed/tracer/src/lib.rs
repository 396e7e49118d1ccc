//! Preloaded: tells which of Open MPI's collective algorithms really ran.
//!
//! Open MPI's `tuned` component falls back without a word: an algorithm that is asked for by
//! parameter or rules file may hand over to another one, and a production build prints nothing. Its
//! algorithms are exported functions (`ompi_coll_base_<collective>_intra_<algorithm>`), though, so a
//! preloaded library sees every call. This one notes the name and the parameters and goes on to the
//! real function; nothing is changed.
//!
//! # Reading it
//!
//! From inside the program, by two functions found with `dlsym(RTLD_DEFAULT, ...)`:
//! [`colibri_tracer_reset`] and [`colibri_tracer_read`]. From outside: with
//! `COLIBRI_TRACER_FILE=path` every process appends, when it exits (not when it is killed or
//! aborts), one line for each kind of call:
//!
//! ```text
//! rank=3 pid=4711 bcast_intra_pipeline,segment=8KiB 12
//! ```
//!
//! A call made by another algorithm follows it after `>`; successive calls are separated by `;`:
//!
//! ```text
//! bcast_intra_split_bintree,segment=1KiB>bcast_intra_chain,segment=1KiB,fan-out=1;bcast_intra_binomial
//! ```
//!
//! Parameters are spelled as those of methods are, so that what is unsegmented has no `segment`. The engine below every tree
//! (`bcast_intra_generic`, `reduce_generic`) is not listed: it says nothing that its caller does not.
//!
//! # What Open MPI 4.1.4 does with what it is asked for
//!
//! Seen with p processes and messages of `count` elements of `size` bytes; the tests hold it.
//!
//! | forced | runs |
//! |---|---|
//! | bcast 1 to 9, reduce 1 to 7 | that algorithm, except as below; count 0 or p = 1: none |
//! | bcast 2, reduce 2 | fan-out 4 unless asked for otherwise |
//! | bcast 4 (splitted-binary) | its half of `floor(count / 2)` elements shorter than one segment, or a single element: a chain of fan-out 1 (a pipeline) with the same segment size. So 8 KiB segments take effect from 16 KiB on |
//! | bcast 7 (k-nomial) | radix 4 unless asked for otherwise |
//! | bcast 8, 9 (scatter-allgather, its ring) | count < p: linear. The segment size is passed on and has no effect |
//! | reduce 7 (Rabenseifner's) | count < the largest power of two that is not above p: linear. Never segmented |
//! | bcast 1, reduce 1 (linear) | never segmented |
//!
//! # Limits
//!
//! The algorithms that Open MPI 4.1 exports (5.0 exports them too), on intra-communicators, blocking.
//! An algorithm made of other collectives shows these after `>`, too. Statically linked programs
//! cannot be observed.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

mod algorithms;
mod chain;
mod interpose;
mod log;
mod summary;

use std::{
    ffi::c_char,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

/// Forgets all calls seen so far (not the counts for `COLIBRI_TRACER_FILE`).
#[unsafe(no_mangle)]
pub extern "C" fn colibri_tracer_reset() {
    // A panic may not cross into C. There is nothing to report it to.
    let _ = catch_unwind(log::reset);
}

/// Writes the calls since the last reset as text, ended by a zero byte, into `buffer` of `size` bytes.
///
/// Returns the length of the whole text without the zero byte, as `snprintf` does: the text was cut
/// if that is not below `size`. Calls beyond the first 512 are only counted: `;+N more`.
/// The outermost calls are in the order in which they returned; those under way are not in it.
///
/// # Safety
/// `buffer` points to `size` writable bytes, or `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_tracer_read(buffer: *mut c_char, size: usize) -> usize {
    let text = catch_unwind(AssertUnwindSafe(log::text)).unwrap_or_default();
    if size > 0 && !buffer.is_null() {
        let length = text.len().min(size - 1);
        // SAFETY: the caller promises `size` writable bytes; length + 1 <= size; the text is our own
        // allocation and cannot overlap them.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, length);
            *buffer.add(length) = 0;
        }
    }
    text.len()
}
