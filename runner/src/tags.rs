//! Tags that tell the messages of one call from those of another on the same communicator.
//!
//! What a call leaves behind because it was wrong (lengths that differ between ranks, a rank that never
//! called) must not be taken for a later call's. So the tag holds the collective and a number, which all
//! ranks of a communicator have alike: each takes the next one as it begins to carry out a call. Arguments
//! that MPI refuses on one rank are found before: there the call did not happen, as in MPI's own
//! collectives, and takes no number. The numbers of one collective do not hang on another's, so that a rank
//! which leaves one out is out of step in that alone.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use records::Collective;

use crate::{Mpi, MpiConstants};

/// The tag of what a rank sends itself.
pub(crate) const TAG_SELF: c_int = 0;

/// The least that MPI lets the greatest tag be.
const MIN_TAG_UB: c_int = 32_767;

const COLLECTIVES: usize = Collective::ALL.len();

/// The numbers of the next calls on a communicator.
#[derive(Debug)]
pub(crate) struct CallNumbers {
    next: [AtomicU32; COLLECTIVES],
    /// How many numbers a collective has; then they begin again.
    most: u32,
}

impl CallNumbers {
    /// All from the beginning, in a library with tags up to this one.
    pub fn new(greatest_tag: c_int) -> Self {
        let most = greatest_tag.max(MIN_TAG_UB) as u32 / COLLECTIVES as u32;
        CallNumbers { next: [const { AtomicU32::new(0) }; COLLECTIVES], most }
    }

    /// From the beginning again.
    pub fn reset(&self) {
        self.next.iter().for_each(|next| next.store(0, Ordering::Relaxed));
    }

    /// The tag of the messages of a call that begins. MPI allows one at a time on a communicator, so that
    /// nobody else writes here meanwhile.
    #[inline]
    pub fn next_tag(&self, collective: Collective) -> c_int {
        let next = &self.next[collective as usize];
        let number = next.load(Ordering::Relaxed);
        next.store(if number + 1 < self.most { number + 1 } else { 0 }, Ordering::Relaxed);
        (TAG_SELF as u32 + 1 + collective as u32 + number * COLLECTIVES as u32) as c_int
    }
}

/// `MPI_TAG_UB`, which hangs on the world.
pub(crate) fn greatest_tag(mpi: &Mpi) -> c_int {
    let mut value: *const c_int = ptr::null();
    let mut there = 0;
    let MpiConstants { world, tag_ub, .. } = mpi.constants;
    let place = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: MPI writes a pointer to an int where it finds the attribute.
    unsafe {
        match (mpi.comm_get_attr)(world, tag_ub, place, &mut there) {
            0 if there != 0 => *value,
            _ => MIN_TAG_UB,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_calls_have_one_tag_until_there_are_no_more() {
        for greatest in [0, MIN_TAG_UB, 100_000] {
            let numbers = CallNumbers::new(greatest);
            let greatest = greatest.max(MIN_TAG_UB);
            let all = greatest as usize / COLLECTIVES * COLLECTIVES;
            let mut seen = HashSet::from([TAG_SELF]);
            let mut take = |collective| {
                let tag = numbers.next_tag(collective);
                assert!((0..=greatest).contains(&tag), "{tag}");
                seen.insert(tag)
            };
            for _ in 0..all / COLLECTIVES {
                assert!(Collective::ALL.into_iter().all(&mut take));
            }
            assert!(!Collective::ALL.into_iter().any(&mut take), "they begin again");
        }
    }

    #[test]
    fn collectives_are_counted_apart() {
        let numbers = CallNumbers::new(MIN_TAG_UB);
        let first = Collective::ALL.map(|collective| numbers.next_tag(collective));
        numbers.reset();
        for _ in 0..5 {
            numbers.next_tag(Collective::Bcast);
        }
        for (collective, tag) in Collective::ALL.into_iter().zip(first) {
            let again = numbers.next_tag(collective);
            assert_eq!(again == tag, collective != Collective::Bcast, "{collective}");
        }
    }
}
