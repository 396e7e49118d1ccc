//! What calls inside a mock-up send and receive.

use crate::{Block, Mpi, Result, layout::BufferLayout};

/// Elements of the application's, or of a buffer of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferPart {
    /// Element 0.
    pub base: *mut u8,
    pub count: u64,
    pub layout: BufferLayout,
}

impl BufferPart {
    /// A block of a call that [`Facts`](super::facts::Facts) were made of.
    pub fn from_block(mpi: &Mpi, block: &Block) -> Result<Self> {
        let layout = BufferLayout::from_datatype(mpi, block.datatype)?;
        Ok(BufferPart { base: block.buffer.cast(), count: block.count as u64, layout })
    }

    /// As [`BufferPart::from_block`]; nothing where the block is `MPI_IN_PLACE`.
    pub fn unless_in_place(mpi: &Mpi, block: &Block) -> Result<Option<Self>> {
        match block.buffer.addr() == mpi.constants.in_place {
            true => Ok(None),
            false => BufferPart::from_block(mpi, block).map(Some),
        }
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
