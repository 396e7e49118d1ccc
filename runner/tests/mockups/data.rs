//! Data in memory: types of one signature with different gaps, and what may change of a buffer.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicIsize, Ordering},
};

use colibri_runner::{Block, Handle};

use super::library::{Library, check};

/// How data lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub datatype: Handle,
    /// Elements of the type in one datum.
    per_datum: i64,
    /// First byte and bytes of a datum's two parts.
    places: [(isize, usize); 2],
    /// Bytes from one datum to the next.
    extent: isize,
    fill: Fill,
    is_absolute: bool,
}

/// What data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Anything,
    /// Small whole doubles, whose sums are exact in any order.
    Doubles,
    /// A small whole double, then anything.
    DoubleInts,
}

/// Bytes before the address that is passed: there are types that begin below it.
const BEFORE: usize = 64;

/// Kinds of one signature, pairs of 32-bit numbers: dense, in another order, with gaps, shifted,
/// below its address, interleaved, at absolute addresses, and as numbers.
pub fn pairs(library: &Library) -> Vec<Kind> {
    let number = Kind {
        name: "numbers",
        datatype: library.number,
        per_datum: 2,
        places: [(0, 4), (4, 4)],
        extent: 8,
        fill: Fill::Anything,
        is_absolute: false,
    };
    let pair = |name, first: isize, second: isize, lower, extent| Kind {
        name,
        datatype: library.pair([first, second], lower, extent),
        per_datum: 1,
        places: [(first, 4), (second, 4)],
        extent,
        ..number
    };
    let gaps = pair("gaps", 0, 8, 0, 16);
    vec![
        pair("dense", 0, 4, 0, 8),
        number,
        gaps,
        pair("reordered", 4, 0, 0, 8),
        Kind { name: "absolute", is_absolute: true, ..gaps },
        pair("shifted", 12, 4, 0, 24),
        pair("below", -8, 4, -8, 20),
        pair("interleaved", 0, 12, 0, 8),
    ]
}

/// Operands that are added.
pub fn numbers(library: &Library) -> Kind {
    Kind {
        name: "number",
        datatype: library.number,
        per_datum: 1,
        places: [(0, 4), (4, 0)],
        extent: 4,
        fill: Fill::Anything,
        is_absolute: false,
    }
}

/// Operands that are added, of 8 bytes.
pub fn doubles(library: &Library) -> Kind {
    let datatype = library.double;
    let places = [(0, 8), (8, 0)];
    Kind { name: "double", datatype, places, extent: 8, fill: Fill::Doubles, ..numbers(library) }
}

/// A named type with a gap.
pub fn double_ints(library: &Library) -> Kind {
    Kind {
        name: "double_int",
        datatype: library.double_int,
        places: [(0, 8), (8, 4)],
        extent: 16,
        fill: Fill::DoubleInts,
        ..numbers(library)
    }
}

impl Kind {
    /// Whether its type was made for it alone.
    pub fn is_derived(&self) -> bool {
        self.per_datum == 1 && self.fill == Fill::Anything && !self.is_absolute
    }
}

/// Memory with data of a kind.
#[derive(Debug)]
pub struct Buffer {
    kind: Kind,
    words: Vec<u64>,
    /// Of a kind at absolute addresses: the type that holds this buffer's.
    absolute: Option<(Library, Handle)>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

impl Buffer {
    /// Room for so many data, with something recognisable everywhere.
    pub fn new(library: &Library, kind: Kind, data: usize, salt: u64) -> Self {
        let words = (2 * BEFORE + (data + 2) * kind.extent as usize).div_ceil(8);
        let word = |index: usize| {
            let anything = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
                ^ salt.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
            let small = (anything % 1000) as f64;
            match kind.fill {
                Fill::Doubles => small.to_bits(),
                Fill::DoubleInts if index.is_multiple_of(2) => small.to_bits(),
                _ => anything,
            }
        };
        Buffer::with(library, kind, (0..words).map(word).collect())
    }

    fn with(library: &Library, kind: Kind, words: Vec<u64>) -> Self {
        let mut buffer = Buffer { kind, words, absolute: None };
        if kind.is_absolute {
            let (one, place) = ([1], [buffer.address().addr() as isize]);
            let (mut moved, mut made) = (0, 0);
            // SAFETY: arrays of one.
            unsafe {
                let (one, place, inner) = (one.as_ptr(), place.as_ptr(), kind.datatype);
                check((library.type_hindexed)(1, one, place, inner, &mut moved));
                check((library.type_resized)(moved, 0, kind.extent, &mut made));
                check((library.type_commit)(&mut made));
            }
            library.free_type(moved);
            buffer.absolute = Some((*library, made));
        }
        buffer
    }

    /// The same bytes elsewhere.
    pub fn copied(&self, library: &Library) -> Self {
        Buffer::with(library, self.kind, self.words.clone())
    }

    pub fn address(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().wrapping_byte_add(BEFORE).cast()
    }

    /// So many data, as an argument.
    pub fn block(&mut self, data: usize) -> Block {
        let count = data as i64 * self.kind.per_datum;
        match self.absolute {
            Some((_, datatype)) => Block { buffer: ptr::null_mut(), count, datatype },
            None => Block { buffer: self.address(), count, datatype: self.kind.datatype },
        }
    }

    /// Takes over data from a buffer of the same kind, without what is in the gaps.
    pub fn take(&mut self, from: &Buffer, data: std::ops::Range<usize>) {
        let (mine, theirs) = (self.words.as_mut_ptr(), from.words.as_ptr());
        for datum in data {
            for (place, length) in self.kind.places {
                let start = BEFORE as isize + datum as isize * self.kind.extent + place;
                let (into, from) =
                    (mine.wrapping_byte_offset(start), theirs.wrapping_byte_offset(start));
                // SAFETY: both have room for the datum.
                unsafe { from.cast::<u8>().copy_to_nonoverlapping(into.cast(), length) };
            }
        }
    }

    /// The first byte that differs from another's, counted from the address that is passed.
    pub fn difference(&self, other: &Buffer) -> Option<isize> {
        let bytes = |buffer: &Buffer| -> Vec<u8> {
            buffer.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let (mine, theirs) = (bytes(self), bytes(other));
        let differs = mine.iter().zip(&theirs).position(|(a, b)| a != b)?;
        Some(differs as isize - BEFORE as isize)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some((library, datatype)) = self.absolute {
            library.free_type(datatype);
        }
    }
}

/// Where the pairs lie that the operations are called on.
static LAYOUT: [AtomicIsize; 3] = [const { AtomicIsize::new(0) }; 3];

/// What the operations below are called on from now on.
pub fn operate_on(kind: &Kind) {
    for (place, value) in LAYOUT.iter().zip([kind.places[0].0, kind.places[1].0, kind.extent]) {
        place.store(value, Ordering::Relaxed);
    }
}

unsafe fn each_pair(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    both: impl Fn([u32; 2], [u32; 2]) -> [u32; 2],
) {
    let [first, second, extent] = [0, 1, 2].map(|part| LAYOUT[part].load(Ordering::Relaxed));
    // SAFETY: called by MPI on so many pairs.
    for index in 0..unsafe { *count } as isize {
        let parts = |base: *mut c_void| {
            [first, second]
                .map(|place| base.wrapping_byte_offset(index * extent + place).cast::<u32>())
        };
        // SAFETY: as above.
        unsafe {
            let (from, into) = (parts(left), parts(right));
            let made = both(from.map(|part| *part), into.map(|part| *part));
            into.into_iter().zip(made).for_each(|(part, value)| *part = value);
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
    let both =
        |[a, b]: [u32; 2], [c, d]: [u32; 2]| [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)];
    // SAFETY: called by MPI.
    unsafe { each_pair(left, right, count, both) };
}

/// Sum of the first and product of the second parts: commutative.
pub unsafe extern "C" fn add_multiply(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    let both = |[a, b]: [u32; 2], [c, d]: [u32; 2]| [a.wrapping_add(c), b.wrapping_mul(d)];
    // SAFETY: called by MPI.
    unsafe { each_pair(left, right, count, both) };
}
