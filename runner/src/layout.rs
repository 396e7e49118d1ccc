//! How elements of a datatype lie in memory.

use crate::{Error, Handle, Mpi, Result, error::check};

/// The elements of a buffer: element `i` lies at `base + i * extent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    pub datatype: Handle,
    /// Bytes of data of one element.
    pub size: usize,
    pub lower: isize,
    /// From one element to the next.
    pub extent: isize,
    /// The first and the number of the bytes between which an element's data lies.
    pub true_lower: isize,
    pub true_extent: isize,
}

/// Scratch memory begins at a multiple of this, as any basic type of C wants it.
pub(crate) const ALIGNMENT: usize = align_of::<u128>();

impl BufferLayout {
    /// Bytes, the unit of collectives that move data.
    pub fn bytes(mpi: &Mpi) -> Self {
        Self::plain(mpi.constants.byte, 1)
    }

    /// Elements of `size` bytes without gaps.
    pub fn plain(datatype: Handle, size: u32) -> Self {
        let extent = size as isize;
        let (lower, true_lower, true_extent) = (0, 0, extent);
        BufferLayout { datatype, size: size as usize, lower, extent, true_lower, true_extent }
    }

    /// Of a datatype, which must be a live handle of the table's library.
    pub fn from_datatype(mpi: &Mpi, datatype: Handle) -> Result<Self> {
        let (mut size, mut lower, mut extent) = (0_i64, 0_isize, 0_isize);
        let (mut true_lower, mut true_extent) = (0_isize, 0_isize);
        // SAFETY: `datatype` is live (see above): `type_of` alone calls this, for which it is. The rest are locals.
        unsafe {
            check("MPI_Type_size_x", (mpi.type_size_x)(datatype, &mut size))?;
            let code = (mpi.type_get_extent)(datatype, &mut lower, &mut extent);
            check("MPI_Type_get_extent", code)?;
            let code = (mpi.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent);
            check("MPI_Type_get_true_extent", code)?;
        }
        let size = usize::try_from(size)
            .map_err(|_| Error::Invalid(format!("a datatype of {size} bytes")))?;
        Ok(BufferLayout { datatype, size, lower, extent, true_lower, true_extent })
    }

    /// Whether elements follow each other without gaps, so that they may be copied as bytes from
    /// one buffer of this type to another.
    pub fn is_dense(&self) -> bool {
        self.true_lower == 0
            && self.extent == self.true_extent
            && usize::try_from(self.extent) == Ok(self.size)
    }

    /// Whether elements lie one after the other, no two overlapping whatever their number, with no more
    /// gaps than data. Others reach beyond their extent, lie between each other or far apart.
    pub fn is_compact(&self) -> bool {
        let (extent, size) = (self.extent.unsigned_abs(), self.size);
        self.true_extent.unsigned_abs() <= extent && extent <= size.saturating_mul(2)
    }

    /// Whether more elements than MPI promises anything of may overlap.
    pub fn reaches_beyond_extent(&self) -> bool {
        self.true_extent.unsigned_abs() > self.extent.unsigned_abs()
    }

    /// Where element `index` begins, in bytes from the base of its buffer.
    pub fn offset(&self, index: u64) -> isize {
        // The whole buffer was measured by `span`, so that this does not overflow.
        (index as isize).wrapping_mul(self.extent)
    }

    /// Bytes from the lowest to the highest of `count` elements, and how far above the lowest
    /// byte the base of the buffer is.
    pub fn span(&self, count: u64) -> Result<(usize, isize)> {
        if count == 0 {
            return Ok((0, 0));
        }
        let reach = isize::try_from(count - 1)
            .ok()
            .and_then(|steps| steps.checked_mul(self.extent))
            .and_then(|reach| Some((reach, reach.checked_abs()?.checked_add(self.true_extent)?)));
        let Some((reach, bytes)) = reach else {
            let extent = self.extent;
            return Err(Error::Invalid(format!("{count} elements of extent {extent} overflow")));
        };
        Ok((bytes as usize, -self.true_lower - reach.min(0)))
    }

    /// Where the base of a buffer for `count` elements lies in scratch memory, in bytes from its
    /// aligned beginning, and how many bytes of it are needed.
    ///
    /// The base itself is aligned like the beginning, whatever the type's lower bound: so every
    /// datum is aligned as it is in the application's buffers.
    pub fn placement(&self, count: u64) -> Result<(isize, usize)> {
        let (bytes, above) = self.span(count)?;
        let missing = (-above).rem_euclid(ALIGNMENT as isize);
        Ok((above + missing, bytes + missing as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn layout(
        size: usize,
        extent: isize,
        true_lower: isize,
        true_extent: isize,
    ) -> BufferLayout {
        BufferLayout { datatype: 0, size, lower: 0, extent, true_lower, true_extent }
    }

    #[test]
    fn a_type_is_dense_only_without_any_gap() {
        assert!(layout(8, 8, 0, 8).is_dense());
        for gaps in [
            layout(12, 16, 0, 12), // double and int
            layout(8, 16, 0, 8),   // resized
            layout(8, 8, 4, 8),    // shifted
            layout(8, 8, 0, 16),   // interleaved
            layout(8, -8, 0, 8),   // backwards
        ] {
            assert!(!gaps.is_dense(), "{gaps:?}");
        }
    }

    #[test]
    fn elements_are_compact_without_more_gaps_than_data() {
        for compact in
            [layout(8, 8, 0, 8), layout(12, 16, 0, 12), layout(8, 16, -20, 12), layout(8, -8, 0, 8)]
        {
            assert!(compact.is_compact() && !compact.reaches_beyond_extent(), "{compact:?}");
        }
        for interleaved in [layout(8, 8, 0, 16), layout(8, 0, 0, 8), layout(8, -4, 0, 8)] {
            assert!(!interleaved.is_compact() && interleaved.reaches_beyond_extent());
        }
        for far in [layout(8, 24, 0, 8), layout(8, 24, 0, 24), layout(8, -24, 0, 8)] {
            assert!(!far.is_compact() && !far.reaches_beyond_extent(), "{far:?}");
        }
    }

    /// All bytes of all elements lie in the memory that was asked for, and the base is aligned.
    #[test]
    fn elements_lie_inside_their_scratch() {
        for layout in [
            layout(8, 8, 0, 8),
            layout(8, 16, 4, 12),
            layout(8, 16, -20, 12),
            layout(8, -8, 0, 8),
            layout(8, -24, 5, 8),
            layout(8, 8, 0, 16),
        ] {
            for count in [1, 2, 5] {
                let (base, bytes) = layout.placement(count).unwrap();
                assert_eq!(base.rem_euclid(ALIGNMENT as isize), 0);
                for index in 0..count {
                    let first = base + layout.offset(index) + layout.true_lower;
                    assert!(first >= 0, "{layout:?} {index}");
                    assert!(first + layout.true_extent <= bytes as isize, "{layout:?} {index}");
                }
            }
        }
    }

    #[test]
    fn what_no_memory_holds_is_refused() {
        assert!(layout(8, 8, 0, 8).span(u64::MAX / 2).is_err());
        assert!(layout(8, isize::MIN, 0, 8).span(2).is_err());
        assert_eq!(layout(8, 8, 0, 8).span(0), Ok((0, 0)));
    }
}
