//! Types of a pair of 32-bit numbers, however it lies in memory.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicIsize, Ordering},
};

use colibri_runner::{Handle, Side};

use crate::library::{Library, call};

/// How pairs are described: as elements of a type, or as two numbers each.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub datatype: Handle,
    /// Elements of the type in a pair.
    pub per_pair: i64,
    /// Where the parts of a pair are, in bytes.
    pub places: [isize; 2],
    /// From a pair to the next.
    pub extent: isize,
}

/// Where the pairs lie that an operation is called on.
static LAYOUT: [AtomicIsize; 3] = [const { AtomicIsize::new(0) }; 3];

/// Bytes before the address that is passed: there are types that begin below it.
const BEFORE: usize = 64;

impl Kind {
    /// Parts at these places, with these bounds.
    pub fn new(library: &Library, places: [isize; 2], lower: isize, extent: isize) -> Self {
        let (mut parts, mut datatype): (Handle, Handle) = (0, 0);
        let lengths: [c_int; 2] = [1, 1];
        call!(library, c"MPI_Type_create_hindexed", 2 => c_int, lengths.as_ptr() => *const c_int,
            places.as_ptr() => *const isize, library.names.number => Handle,
            &mut parts => *mut Handle);
        call!(library, c"MPI_Type_create_resized", parts => Handle, lower => isize,
            extent => isize, &mut datatype => *mut Handle);
        call!(library, c"MPI_Type_commit", &mut datatype => *mut Handle);
        call!(library, c"MPI_Type_free", &mut parts => *mut Handle);
        Kind { datatype, per_pair: 1, places, extent }
    }

    /// Dense, dense in another order, with gaps, shifted, below its address, interleaved; and
    /// numbers.
    pub fn all(library: &Library) -> [Kind; 7] {
        let kind = |places, lower, extent| Kind::new(library, places, lower, extent);
        let numbers =
            Kind { datatype: library.names.number, per_pair: 2, places: [0, 4], extent: 8 };
        [
            kind([0, 4], 0, 8),
            kind([4, 0], 0, 8),
            kind([0, 8], 0, 16),
            kind([12, 4], 0, 24),
            kind([-8, 4], -8, 20),
            kind([0, 12], 0, 8),
            numbers,
        ]
    }

    /// Whether elements of the type are pairs, for operations on these.
    pub fn is_pair(&self) -> bool {
        self.per_pair == 1
    }

    /// Whether the pairs follow each other without gaps.
    pub fn is_dense(&self) -> bool {
        self.extent == 8 && self.places.iter().all(|place| (0..8).contains(place))
    }

    /// Memory for `pairs` pairs, with something recognisable everywhere.
    pub fn memory(&self, pairs: usize, salt: u32) -> Vec<u32> {
        let words = (2 * BEFORE + (pairs + 2) * self.extent as usize) / 4;
        let word = |word: u32| word.wrapping_mul(2_654_435_761).rotate_left(7) ^ salt;
        (0..words as u32).map(word).collect()
    }

    /// Where a number of the pairs is in the memory.
    fn place(&self, index: usize) -> usize {
        let place = (index / 2) as isize * self.extent + self.places[index % 2];
        (BEFORE as isize + place) as usize / 4
    }

    /// The numbers of the pairs from `first` on.
    pub fn numbers(&self, memory: &[u32], first: usize, pairs: usize) -> Vec<u32> {
        (2 * first..2 * (first + pairs)).map(|index| memory[self.place(index)]).collect()
    }

    /// Puts numbers where the first pairs are.
    pub fn put(&self, memory: &mut [u32], numbers: &[u32]) {
        for (index, number) in numbers.iter().enumerate() {
            memory[self.place(index)] = *number;
        }
    }

    /// So many pairs at the address of the memory.
    pub fn block(&self, memory: &mut [u32], pairs: usize) -> Side {
        Side::uniform(address(memory), pairs as i64 * self.per_pair, self.datatype)
    }

    /// From now on, operations are called on this kind.
    pub fn is_operand(&self) {
        let layout = [self.places[0], self.places[1], self.extent];
        LAYOUT.iter().zip(layout).for_each(|(place, value)| place.store(value, Ordering::Relaxed));
    }
}

/// What is passed for the memory.
pub fn address(memory: &mut [u32]) -> *mut c_void {
    memory.as_mut_ptr().wrapping_byte_add(BEFORE).cast()
}

/// Calls `combine` with the pairs of both operands; the result replaces the second.
fn each_pair(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    combine: impl Fn([u32; 2], [u32; 2]) -> [u32; 2],
) {
    let [first, second, extent] = [0, 1, 2].map(|part| LAYOUT[part].load(Ordering::Relaxed));
    for index in 0..unsafe { *count } as isize {
        let part = |base: *mut c_void, place: isize| {
            base.wrapping_byte_offset(index * extent + place).cast::<u32>()
        };
        unsafe {
            let pair = |base| [*part(base, first), *part(base, second)];
            let [a, b] = combine(pair(left), pair(right));
            (*part(right, first), *part(right, second)) = (a, b);
        }
    }
}

/// `x -> a x + b`, one after the other: associative, not commutative.
pub unsafe extern "C" fn compose(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    each_pair(left, right, count, |[a, b], [c, d]| {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    });
}

/// Sums and exclusive ors: commutative.
pub unsafe extern "C" fn mix(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    each_pair(left, right, count, |[a, b], [c, d]| [a.wrapping_add(c), b ^ d]);
}
