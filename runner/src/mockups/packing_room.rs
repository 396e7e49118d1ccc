//! Memory of a rank whose own type must be packed.

use super::calls::MockupWork;
use crate::{Error, Result, layout::ALIGNMENT};

impl MockupWork<'_> {
    /// Room for so many bytes, because this rank's type must be packed or unpacked: at most once in a
    /// call. No other rank knows, so that no limit can refuse it: where the memory that is there
    /// does not hold it, more is taken until the call ends.
    ///
    /// # Errors
    /// The system has no such memory.
    pub fn packing_room(&mut self, bytes: u64) -> Result<*mut u8> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes <= self.rest.1 {
            return Ok(self.rest.0);
        }
        let reserved = self.beyond.try_reserve_exact(bytes.div_ceil(ALIGNMENT));
        reserved.map_err(|_| Error::Memory(bytes))?;
        Ok(self.beyond.as_mut_ptr().cast())
    }
}
