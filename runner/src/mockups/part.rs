//! What calls inside a mock-up send and receive.

use crate::{Block, Mpi, Result, layout::Layout};

/// Elements of the application's, or of a buffer of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Element 0.
    pub base: *mut u8,
    pub count: u64,
    pub layout: Layout,
}

impl Part {
    /// A block of a call that [`Facts`](super::facts::Facts) were made of.
    pub fn of(mpi: &Mpi, block: &Block) -> Result<Self> {
        let layout = Layout::of(mpi, block.datatype)?;
        Ok(Part { base: block.buffer.cast(), count: block.count as u64, layout })
    }

    /// As [`Part::of`]; nothing where the block is `MPI_IN_PLACE`.
    pub fn unless_in_place(mpi: &Mpi, block: &Block) -> Result<Option<Self>> {
        match block.buffer.addr() == mpi.constants.in_place {
            true => Ok(None),
            false => Part::of(mpi, block).map(Some),
        }
    }

    /// The block so many blocks like this further.
    pub fn at(self, index: u64) -> Self {
        let offset = self.layout.offset(self.count).wrapping_mul(index as isize);
        Part { base: self.base.wrapping_offset(offset), ..self }
    }

    /// So many blocks like this, one after the other.
    pub fn times(self, blocks: u64) -> Self {
        Part { count: self.count * blocks, ..self }
    }
}
