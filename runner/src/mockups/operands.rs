//! Operands of all ranks' blocks in memory of ours, combined by as many elements at a time as don't overlap.

use crate::{element_rows::ElementRows, layout::BufferLayout};

/// Where they lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands {
    /// Element 0; the others follow it where the type has no gaps.
    pub first: *mut u8,
    pub rows: ElementRows,
    pub layout: BufferLayout,
}

impl Operands {
    pub fn element(&self, index: u64) -> *mut u8 {
        self.first.wrapping_offset(self.rows.offset(&self.layout, index))
    }

    /// Starts and lengths of the parts of `count` elements that lie as the type says.
    pub fn runs(&self, start: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
        let (rows, end) = (self.rows, start + count);
        let mut next = start;
        std::iter::from_fn(move || {
            let begin = next;
            next += rows.left(begin).min(end - begin);
            (begin < end).then_some((begin, next - begin))
        })
    }
}
