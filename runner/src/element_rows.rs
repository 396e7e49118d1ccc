//! Where the elements of a schedule's scratch memory lie.

use schedules::Range;

use crate::{
    Error, Result,
    layout::{ALIGNMENT, BufferLayout},
};

/// Elements of [`Buffer::Temporary`](schedules::Buffer::Temporary), in rows that stand apart. Those of a
/// row follow each other as in the application's buffers.
///
/// Elements may reach beyond their extent and lie between each other. Then no two of a buffer overlap as far
/// as MPI promises it ([`Call::disjoint`](schedules::Call::disjoint)), while scratch memory may hold more in a
/// row, such as several operands. Nor do the gaps between elements that are far from each other belong into
/// memory where an operand has one element. Compact elements need no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementRows {
    /// Elements of a row; more than there are where one row holds all.
    length: u64,
    /// Bytes from a row to the next.
    stride: usize,
    /// Where element 0 lies, in bytes from the beginning of the memory.
    base: isize,
    /// Of all rows.
    bytes: usize,
}

impl ElementRows {
    /// For so many elements, of which any `disjoint` in a row don't overlap.
    ///
    /// # Errors
    /// No memory holds them.
    pub fn new(layout: &BufferLayout, elements: u64, disjoint: u64) -> Result<Self> {
        let is_row = layout.is_compact() || elements <= disjoint;
        let length = if is_row { elements } else { disjoint.max(1) };
        let (base, row) = layout.placement(length)?;
        let others = if is_row { 0 } else { elements.div_ceil(length) - 1 };
        let stride = row.next_multiple_of(ALIGNMENT);
        let before = usize::try_from(others).ok().and_then(|others| others.checked_mul(stride));
        let bytes = before.and_then(|before| before.checked_add(row));
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::Refused(format!("{elements} elements of scratch are more than any memory holds"))
        })?;
        Ok(ElementRows { length: if is_row { u64::MAX } else { length }, stride, base, bytes })
    }

    /// Bytes of memory, from an aligned beginning on.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Element 0 in memory that begins there.
    pub fn first(&self, beginning: *mut u8) -> *mut u8 {
        beginning.wrapping_offset(self.base)
    }

    /// Where an element begins, in bytes from element 0.
    #[inline]
    pub fn offset(&self, layout: &BufferLayout, index: u64) -> isize {
        match index < self.length {
            true => layout.offset(index),
            false => {
                let rows = (index / self.length) as usize * self.stride;
                rows as isize + layout.offset(index % self.length)
            }
        }
    }

    /// Elements from one on to the end of its row.
    #[inline]
    pub fn left(&self, index: u64) -> u64 {
        match index < self.length {
            true => self.length - index,
            false => self.length - index % self.length,
        }
    }

    /// The parts of a range that lie in one row each: where they begin, in bytes from the range's first
    /// element, and their elements.
    pub fn runs(&self, layout: &BufferLayout, range: Range) -> impl Iterator<Item = (isize, u64)> {
        let (rows, layout, begin) = (*self, *layout, self.offset(layout, range.start));
        let mut done = 0;
        std::iter::from_fn(move || {
            let start = range.start + done;
            let length = rows.left(start).min(range.count - done);
            done += length;
            (length > 0).then(|| (rows.offset(&layout, start) - begin, length))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schedules::Buffer;

    use super::*;

    fn layout(size: usize, extent: isize, true_lower: isize, true_extent: isize) -> BufferLayout {
        BufferLayout { datatype: 0, size, lower: 0, extent, true_lower, true_extent }
    }

    proptest! {
        /// All bytes of all elements lie in the memory, those of different rows apart, and each row's first
        /// element is aligned as the application's.
        #[test]
        fn rows_stand_apart_in_their_memory(
            extent in -70_isize..70,
            true_lower in -50_isize..50,
            true_extent in 1_isize..60,
            elements in 1_u64..40,
            disjoint in 1_u64..12,
        ) {
            let layout = layout(true_extent as usize, extent, true_lower, true_extent);
            let rows = ElementRows::new(&layout, elements, disjoint).unwrap();
            let mut ends: Vec<(isize, isize)> = Vec::new();
            let mut start = 0;
            while start < elements {
                let length = rows.left(start).min(elements - start);
                let base = rows.base + rows.offset(&layout, start);
                prop_assert!(layout.is_compact() || length <= disjoint);
                prop_assert_eq!(base.rem_euclid(ALIGNMENT as isize), 0);
                let begins = (0..length).map(|index| {
                    let place = rows.base + rows.offset(&layout, start + index);
                    assert_eq!(place, base + layout.offset(index));
                    place + true_lower
                });
                let begins: Vec<isize> = begins.collect();
                let (first, last) = (begins.iter().min().unwrap(), begins.iter().max().unwrap());
                ends.push((*first, *last + true_extent));
                start += length;
            }
            prop_assert!(ends[0].0 >= 0 && ends[ends.len() - 1].1 <= rows.bytes as isize);
            prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?}", ends);
        }

        #[test]
        fn runs_tile_a_range(start in 0_u64..30, count in 0_u64..30, disjoint in 1_u64..12) {
            let layout = layout(4, 1, 0, 4);
            let rows = ElementRows::new(&layout, start + count, disjoint).unwrap();
            let mut index = start;
            for (offset, length) in rows.runs(&layout, Range::new(Buffer::Temporary, start, count)) {
                let place = rows.offset(&layout, index) - rows.offset(&layout, start);
                prop_assert_eq!(offset, place);
                prop_assert!(length <= rows.left(index));
                index += length;
            }
            prop_assert_eq!(index, start + count);
        }
    }

    #[test]
    fn gaps_count_only_between_elements_of_one_operand() {
        let far = layout(4, 100 << 20, 0, 4);
        assert_eq!(ElementRows::new(&far, 5, 1).unwrap().bytes(), 4 * 16 + 4);
        let of_two = (100 << 20) + 4_usize;
        assert_eq!(
            ElementRows::new(&far, 4, 2).unwrap().bytes(),
            of_two.next_multiple_of(16) + of_two
        );
        // MPI_DOUBLE_INT, in a row.
        assert_eq!(ElementRows::new(&layout(12, 16, 0, 12), 5, 1).unwrap().bytes(), 4 * 16 + 12);
        assert!(ElementRows::new(&layout(4, 1 << 61, 0, 4), 12, 3).is_err());
        assert_eq!(ElementRows::new(&far, 0, 3).unwrap().bytes(), 0);
    }
}
