//! Memory and requests that are kept from call to call.

use crate::{Error, Handle, Result, agreed::Vectors, layout::ALIGNMENT, window::Window};

/// Scratch memory, aligned for every basic type. What nobody writes to takes no page: there may be wide
/// gaps between elements.
#[derive(Debug, Default)]
pub(crate) struct ScratchMemory {
    /// Its length says nothing.
    room: Vec<u128>,
}

impl ScratchMemory {
    /// What is kept between calls of a buffer, in bytes; more is given back after the call.
    pub const KEPT_BYTES: usize = 64 << 20;

    /// Room for so many bytes, which may hold anything.
    pub fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        let words = bytes.div_ceil(ALIGNMENT);
        if words > self.room.capacity() {
            // What is there is not to be copied.
            self.room = Vec::new();
            self.room.try_reserve_exact(words).map_err(|_| Error::Memory(bytes))?;
        }
        Ok(self.room.as_mut_ptr().cast())
    }

    /// Memory of its own for so many bytes, all 0.
    pub fn zeros(bytes: usize) -> Result<Self> {
        let mut memory = ScratchMemory::default();
        memory.reserve(bytes)?;
        memory.room.resize(bytes.div_ceil(ALIGNMENT), 0);
        Ok(memory)
    }

    /// Gives back what is more than is kept.
    pub fn trim(&mut self) {
        if self.bytes() > Self::KEPT_BYTES {
            *self = ScratchMemory::default();
        }
    }

    /// What there is.
    pub fn bytes(&self) -> usize {
        self.room.capacity() * ALIGNMENT
    }
}

/// Everything that messages under way may touch.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    /// The schedule's `Temporary`.
    pub temporary: ScratchMemory,
    /// The packed form of the application's data.
    pub packed: ScratchMemory,
    /// One per slot.
    pub requests: Vec<Handle>,
    pub window: Window,
    /// Counts and displacements, where there is one per rank.
    pub vectors: Vectors,
    /// Counts as they come.
    pub header: Vec<u64>,
}

impl Resources {
    /// After a failed call messages may still be under way, which no one will wait for: their
    /// memory must stay where it is.
    pub fn abandon(&mut self) {
        std::mem::forget(std::mem::take(self));
    }

    pub fn trim(&mut self) {
        self.temporary.trim();
        self.packed.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_up_to_a_limit() {
        let mut scratch = ScratchMemory::default();
        let first = scratch.reserve(1000).unwrap();
        scratch.trim();
        assert_eq!(scratch.reserve(1000).unwrap(), first);
        scratch.reserve(ScratchMemory::KEPT_BYTES + 1).unwrap();
        scratch.trim();
        assert_eq!(scratch.bytes(), 0);
        assert_eq!(scratch.reserve(usize::MAX / 2), Err(Error::Memory(usize::MAX / 2)));
    }
}
