//! Datatypes, as the places of a datum's bytes.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::{c_int, c_void},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::world::{FakeResult, set};
use crate::Handle;

/// A named type.
pub const BYTE: Handle = 1;
/// Two bytes, `x -> a x + b` modulo 256, at places 1 and 4 of 6: a derived type.
pub const SPREAD: Handle = 3;
/// Made with large counts: who asks by the function for small ones is refused.
pub const LARGE: Handle = 4;
/// Types that are made while the program runs have handles from here on.
const FIRST_MADE: Handle = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeType {
    /// Where the bytes of a datum lie from its address, in the order of the signature.
    pub places: Vec<isize>,
    pub lower: isize,
    pub extent: isize,
}

static MADE: Mutex<Option<HashMap<Handle, Arc<FakeType>>>> = Mutex::new(None);

fn made() -> MutexGuard<'static, Option<HashMap<Handle, Arc<FakeType>>>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle of a new type.
pub fn new_type(new: FakeType) -> Handle {
    let mut made = made();
    let made = made.get_or_insert_default();
    let handle = (FIRST_MADE..).find(|handle| !made.contains_key(handle)).unwrap();
    made.insert(handle, Arc::new(new));
    handle
}

pub fn layout(datatype: Handle) -> Arc<FakeType> {
    let named =
        |places: &[isize], extent| Arc::new(FakeType { places: places.into(), lower: 0, extent });
    match datatype {
        BYTE => named(&[0], 1),
        SPREAD => named(&[1, 4], 6),
        other => match made().get_or_insert_default().get(&other) {
            Some(made) => Arc::clone(made),
            None => panic!("no datatype {other}"),
        },
    }
}

impl FakeType {
    /// Where the bytes of so many elements lie from the first one's address.
    pub fn offsets(&self, count: usize) -> impl Iterator<Item = isize> + '_ {
        let begin = |index: usize| (index as isize).wrapping_mul(self.extent);
        (0..count).flat_map(move |index| self.places.iter().map(move |place| begin(index) + place))
    }

    /// The first and one past the last of the bytes between which a datum lies.
    pub fn true_bounds(&self) -> (isize, isize) {
        let (first, last) = (self.places.iter().min(), self.places.iter().max());
        (first.copied().unwrap_or(0), last.map_or(0, |last| last + 1))
    }

    /// Whether elements follow each other as their bytes.
    pub fn is_dense(&self) -> bool {
        let bytes = self.places.len() as isize;
        self.true_bounds() == (0, bytes) && self.extent == bytes
    }

    /// Whether two of so many elements have a byte in common.
    pub fn overlap(&self, count: usize) -> bool {
        let (first, end) = self.true_bounds();
        let mut seen = BTreeSet::new();
        count > 1
            && self.extent.abs() < end - first
            && !self.offsets(count).all(|offset| seen.insert(offset))
    }

    /// Puts bytes where elements lie, of which no two may overlap.
    pub unsafe fn scatter(&self, bytes: &[u8], into: *mut c_void, count: usize) -> FakeResult {
        if bytes.len() != count * self.places.len() {
            return Err(format!("{} bytes for {count} elements: {self:?}", bytes.len()));
        }
        if self.overlap(count) {
            return Err(format!("{count} elements are written that overlap: {self:?}"));
        }
        for (offset, byte) in self.offsets(count).zip(bytes) {
            // SAFETY: the caller's buffer has room for `count` elements.
            unsafe { *into.cast::<u8>().wrapping_offset(offset) = *byte };
        }
        Ok(())
    }
}

/// The bytes of elements, in the order of the signature.
pub unsafe fn gather(from: *const c_void, count: usize, datatype: Handle) -> Vec<u8> {
    let layout = layout(datatype);
    let bytes = layout.offsets(count);
    // SAFETY: the caller's buffer holds `count` elements.
    bytes.map(|offset| unsafe { *from.cast::<u8>().wrapping_offset(offset) }).collect()
}

/// Puts bytes where elements lie.
pub unsafe fn scatter(
    bytes: &[u8],
    into: *mut c_void,
    count: usize,
    datatype: Handle,
) -> FakeResult {
    // SAFETY: the caller's buffer has room for `count` elements.
    unsafe { layout(datatype).scatter(bytes, into, count) }
}

pub unsafe extern "C-unwind" fn type_size_x(datatype: Handle, size: *mut i64) -> c_int {
    set(size, layout(datatype).places.len() as i64)
}

pub unsafe extern "C-unwind" fn type_get_extent(
    datatype: Handle,
    lower: *mut isize,
    extent: *mut isize,
) -> c_int {
    let layout = layout(datatype);
    set(lower, layout.lower) + set(extent, layout.extent)
}

pub unsafe extern "C-unwind" fn type_get_true_extent(
    datatype: Handle,
    lower: *mut isize,
    extent: *mut isize,
) -> c_int {
    let (first, end) = layout(datatype).true_bounds();
    set(lower, first) + set(extent, end - first)
}

pub unsafe extern "C-unwind" fn type_get_envelope(
    datatype: Handle,
    _integers: *mut c_int,
    _addresses: *mut c_int,
    _types: *mut c_int,
    combiner: *mut c_int,
) -> c_int {
    set(combiner, c_int::from(datatype != BYTE)) + c_int::from(datatype == LARGE)
}

pub unsafe extern "C-unwind" fn type_get_envelope_c(
    datatype: Handle,
    _integers: *mut i64,
    _addresses: *mut i64,
    _counts: *mut i64,
    _types: *mut i64,
    combiner: *mut c_int,
) -> c_int {
    set(combiner, c_int::from(datatype != BYTE))
}

pub unsafe extern "C-unwind" fn type_create_hindexed(
    count: c_int,
    lengths: *const c_int,
    places: *const isize,
    of: Handle,
    made: *mut Handle,
) -> c_int {
    let of = layout(of);
    let mut all = FakeType { places: Vec::new(), lower: isize::MAX, extent: 0 };
    let mut upper = isize::MIN;
    for block in 0..count as usize {
        // SAFETY: the caller's arrays are so long.
        let (length, place) = unsafe { (*lengths.add(block) as usize, *places.add(block)) };
        all.places.extend(of.offsets(length).map(|offset| place + offset));
        for index in 0..length {
            let begin = place + of.lower + (index as isize).wrapping_mul(of.extent);
            all.lower = all.lower.min(begin);
            upper = upper.max(begin + of.extent);
        }
    }
    all.extent = upper.wrapping_sub(all.lower);
    set(made, new_type(all))
}

pub unsafe extern "C-unwind" fn type_create_resized(
    of: Handle,
    lower: isize,
    extent: isize,
    made: *mut Handle,
) -> c_int {
    let places = layout(of).places.clone();
    set(made, new_type(FakeType { places, lower, extent }))
}

pub unsafe extern "C-unwind" fn type_commit(_datatype: *mut Handle) -> c_int {
    0
}

pub unsafe extern "C-unwind" fn type_free(datatype: *mut Handle) -> c_int {
    // SAFETY: the caller's place for a handle.
    let gone = unsafe { std::ptr::replace(datatype, 0) };
    assert!(made().get_or_insert_default().remove(&gone).is_some(), "no datatype {gone}");
    0
}
