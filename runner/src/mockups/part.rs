//! What calls inside a mock-up send and receive.

use super::facts::Facts;
use crate::{Arguments, Result, Session, SignificantSide, layout::BufferLayout};

/// Elements of the application's, or of a buffer of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferPart {
    /// Element 0.
    pub base: *mut u8,
    pub count: u64,
    pub layout: BufferLayout,
}

impl BufferPart {
    /// The first block of a side of a call that these facts are of.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]), and the side be of them.
    pub unsafe fn from_side(
        session: &Session,
        facts: &Facts,
        arguments: &Arguments,
        given: &SignificantSide,
    ) -> Result<Self> {
        let layout = match arguments.collective.combines() {
            true => facts.layout,
            false => session.type_of(given.side.datatype)?.layout,
        };
        // SAFETY: an array has an entry for each rank (the call's contract).
        let count = unsafe { given.first_count() } as u64;
        Ok(BufferPart { base: given.side.address.cast(), count, layout })
    }

    /// The block so many blocks like this further.
    pub fn at(self, index: u64) -> Self {
        let offset = self.layout.offset(self.count).wrapping_mul(index as isize);
        BufferPart { base: self.base.wrapping_offset(offset), ..self }
    }

    /// So many blocks like this, one after the other.
    pub fn times(self, blocks: u64) -> Self {
        BufferPart { count: self.count * blocks, ..self }
    }
}
