//! Data in memory: types of one signature with different gaps, and what may change of a buffer.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicIsize, Ordering},
};

use colibri_runner::{Handle, Side};

use super::{
    definition::{Datum, added_multiplied, composed},
    library::{Library, check},
};

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
    /// Bytes of an element's data.
    pub fn size(&self) -> usize {
        let [(_, first), (_, second)] = self.places;
        (first + second) / self.per_datum as usize
    }

    /// Whether its type was made for it alone.
    pub fn is_derived(&self) -> bool {
        self.per_datum == 1 && self.fill == Fill::Anything && !self.is_absolute
    }

    /// Whether data follow each other without gaps or overlap.
    pub fn is_packed(&self) -> bool {
        let [(first, a), (second, b)] = self.places;
        let (begin, end) = (first.min(second), (first + a as isize).max(second + b as isize));
        end - begin == self.extent
    }

    /// Whether a datum has parts of different types.
    pub fn is_mixed(&self) -> bool {
        self.fill == Fill::DoubleInts
    }

    /// Bytes of a datum.
    pub fn bytes(&self) -> usize {
        self.places.iter().map(|(_, length)| length).sum()
    }

    /// The value of a datum: for each salt and place another.
    pub fn datum(&self, salt: u64, index: usize) -> Datum {
        let word = noise(index, salt);
        let small = ((word % 1000) as f64).to_le_bytes();
        let [low, high] =
            [word as u32, (word >> 32) as u32].map(|half| u64::from(half).to_le_bytes());
        match self.fill {
            Fill::Anything => [low, high],
            Fill::Doubles => [small, [0; 8]],
            Fill::DoubleInts => [small, high],
        }
    }
}

fn noise(index: usize, salt: u64) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        ^ salt.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

/// Memory with data of a kind.
#[derive(Debug)]
pub struct Buffer {
    kind: Kind,
    data: usize,
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
    /// So many data, with something recognisable between and around them.
    pub fn new(library: &Library, kind: Kind, data: usize, salt: u64) -> Self {
        let words = (2 * BEFORE + (data + 2) * kind.extent as usize).div_ceil(8);
        let words = (0..words).map(|index| noise(index, !salt)).collect();
        let mut buffer = Buffer::with(library, kind, data, words);
        for index in 0..data {
            buffer.put(index, kind.datum(salt, index));
        }
        buffer
    }

    fn with(library: &Library, kind: Kind, data: usize, words: Vec<u64>) -> Self {
        let mut buffer = Buffer { kind, data, words, absolute: None };
        if kind.is_absolute {
            let (one, place) = ([1], [buffer.address().addr() as isize]);
            let (mut moved, mut made) = (0, 0);
            // SAFETY: arrays of one.
            unsafe {
                let (one, place, inner) = (one.as_ptr(), place.as_ptr(), kind.datatype);
                check((library.mpi.type_create_hindexed)(1, one, place, inner, &mut moved));
                check((library.mpi.type_create_resized)(moved, 0, kind.extent, &mut made));
                check((library.mpi.type_commit)(&mut made));
            }
            library.free_type(moved);
            buffer.absolute = Some((*library, made));
        }
        buffer
    }

    /// The same bytes elsewhere.
    pub fn copied(&self, library: &Library) -> Self {
        Buffer::with(library, self.kind, self.data, self.words.clone())
    }

    pub fn address(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().wrapping_byte_add(BEFORE).cast()
    }

    /// So many data, as an argument.
    pub fn block(&mut self, data: usize) -> Side {
        let count = data as i64 * self.kind.per_datum;
        match self.absolute {
            Some((_, datatype)) => Side::uniform(ptr::null_mut(), count, datatype),
            None => Side::uniform(self.address(), count, self.kind.datatype),
        }
    }

    /// Writes a datum.
    pub fn put(&mut self, index: usize, datum: Datum) {
        for ((place, length), part) in self.kind.places.into_iter().zip(datum) {
            let start = BEFORE as isize + index as isize * self.kind.extent + place;
            let into = self.words.as_mut_ptr().wrapping_byte_offset(start).cast::<u8>();
            // SAFETY: there is room for the datum.
            unsafe { part.as_ptr().copy_to_nonoverlapping(into, length) };
        }
    }

    /// Takes over all data from a buffer of the same kind, without what is in the gaps.
    pub fn take(&mut self, from: &Buffer) {
        let (mine, theirs) = (self.words.as_mut_ptr(), from.words.as_ptr());
        for datum in 0..self.data {
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
        if self.words == other.words {
            return None;
        }
        let word = self.words.iter().zip(&other.words).position(|(a, b)| a != b)?;
        let byte = (self.words[word] ^ other.words[word]).trailing_zeros() / 8;
        Some((8 * word) as isize + byte as isize - BEFORE as isize)
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

/// [`composed`].
pub unsafe extern "C" fn compose(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    // SAFETY: called by MPI.
    unsafe { each_pair(left, right, count, composed) };
}

/// [`added_multiplied`].
pub unsafe extern "C" fn add_multiply(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    // SAFETY: called by MPI.
    unsafe { each_pair(left, right, count, added_multiplied) };
}
