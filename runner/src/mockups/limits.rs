//! How much memory mock-ups may use, and what fits into it.

use std::{env, ffi::c_int};

use records::quantity;

use super::{facts::Facts, mockup::Mockup};
use crate::{Error, Result, element_rows::ElementRows, layout::ALIGNMENT, limit::Limit};

/// Memory that mock-ups may use; must be the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes for data.
    pub message_bytes: usize,
    /// Bytes for counts and displacements.
    pub integer_bytes: usize,
}

/// The environment's variable for [`Limits::message_bytes`], PGMPITuneLib's `size_msg_buffer_bytes`.
pub const MEMORY: &str = "COLIBRI_MEMORY";

/// The environment's variable for [`Limits::integer_bytes`], PGMPITuneLib's `size_int_buffer_bytes`.
pub const COUNTS_MEMORY: &str = "COLIBRI_COUNTS_MEMORY";

/// 64 MiB for data, 1 MiB for counts and displacements (those of 131,072 processes).
impl Default for Limits {
    fn default() -> Self {
        Limits { message_bytes: Limit::USUAL_BYTES, integer_bytes: 1 << 20 }
    }
}

impl Limits {
    /// As the environment says, the usual ones where it says nothing.
    ///
    /// # Errors
    /// A variable is no size.
    pub fn of_environment() -> Result<Self> {
        let bytes = |name: &str, usual: usize| -> Result<usize> {
            let Some(value) = env::var_os(name) else { return Ok(usual) };
            let read = quantity::parse_bytes(&value.to_string_lossy())
                .map_err(|problem| Error::Refused(format!("{name}: {problem}")))?;
            Ok(usize::try_from(read).unwrap_or(usize::MAX))
        };
        let usual = Limits::default();
        Ok(Limits {
            message_bytes: bytes(MEMORY, usual.message_bytes)?,
            integer_bytes: bytes(COUNTS_MEMORY, usual.integer_bytes)?,
        })
    }

    /// What the environment of others has to say for these; nothing for the usual ones.
    pub fn variables(self) -> Vec<(&'static str, String)> {
        let limits = [(MEMORY, self.message_bytes), (COUNTS_MEMORY, self.integer_bytes)];
        match self == Self::default() {
            true => Vec::new(),
            false => limits.map(|(name, bytes)| (name, bytes.to_string())).into(),
        }
    }

    /// Whether a mock-up can carry out a call as Colibri measures it, without MPI: on `procs`
    /// processes, of `bytes` as [`Collective::message_size`](records::Collective::message_size) counts them, with elements without
    /// gaps and a commutative operation.
    ///
    /// # Errors
    /// As [`Mockups::run`](super::Mockups::run), before anything is sent.
    pub fn allow(&self, mockup: &Mockup, procs: u32, bytes: u64) -> Result<()> {
        let facts = Facts::of_measured(mockup.collective, procs, bytes);
        self.plan(mockup, &facts, c_int::MAX).map(|_| ())
    }

    /// What lies where in the memory.
    pub(super) fn plan(
        &self,
        mockup: &Mockup,
        facts: &Facts,
        longest: c_int,
    ) -> Result<MemoryPlan> {
        let needs = (mockup.needs)(facts);
        if needs.commutative && !facts.commutative {
            return Err(Error::Refused(format!("{mockup}: the operation is not commutative")));
        }
        if needs.combines_none && facts.is_own_operation {
            return Err(Error::Refused(format!(
                "{mockup}: no elements for some ranks, and the operation is none of MPI's"
            )));
        }
        if needs.indivisible > longest as u64 {
            return Err(Error::Refused(format!(
                "{mockup}: {} elements; the calls inside take up to {longest}",
                needs.indivisible
            )));
        }
        let is_too_long = |count: &u64| *count > facts.disjoint;
        if facts.layout.reaches_beyond_extent() && needs.buffers.iter().any(is_too_long) {
            return Err(Error::Refused(format!(
                "{mockup}: elements reach beyond their extent, so that padding may overlap them"
            )));
        }
        let mut end = 0_usize;
        let mut place = |bytes: usize| {
            let begin = end;
            end =
                end.saturating_add(bytes).checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
            begin
        };
        let mut buffers = [0; 2];
        for (base, count) in buffers.iter_mut().zip(needs.buffers) {
            let (above, bytes) = facts.layout.placement(count)?;
            *base = (place(bytes) as isize).wrapping_add(above);
        }
        let rows = ElementRows::new(&facts.layout, needs.operands, facts.disjoint)?;
        let operands = (place(rows.bytes()), rows);
        let packed = place(usize::try_from(needs.packed).unwrap_or(usize::MAX));
        let integers = needs.integers.saturating_mul(size_of::<c_int>() as u64);
        let refuse = |bytes: u64, limit: usize| {
            Err(Error::Refused(format!("{mockup}: {bytes} bytes of memory; the limit is {limit}")))
        };
        if end > self.message_bytes {
            return refuse(end as u64, self.message_bytes);
        }
        if integers > self.integer_bytes as u64 {
            return refuse(integers, self.integer_bytes);
        }
        let integer_bytes = integers as usize;
        Ok(MemoryPlan { buffers, operands, packed, used: end, integer_bytes })
    }
}

/// Where what a mock-up needs lies, in bytes from the beginning of the memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryPlan {
    /// The first elements of the buffers.
    pub buffers: [isize; 2],
    /// The beginning of the operands, and how they lie.
    pub operands: (usize, ElementRows),
    pub packed: usize,
    /// Bytes of all.
    pub used: usize,
    /// And of counts and displacements.
    pub integer_bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mockups::find;

    /// What PGMPITuneLib's Table 1 says of plain types: no data for GL1 and GL4, p blocks for GL2, GL11, GL13 and
    /// GL21. It has none for GL9 and GL10 either; ours receive at the root, too, where the message may be read-only.
    #[test]
    fn packing_is_not_charged_where_types_are_plain() {
        let allowed = |name: &str, procs: u32, bytes: u64| {
            Limits::default().allow(find(name).unwrap(), procs, bytes).is_ok()
        };
        for bytes in [32 << 10, 1 << 20, 1 << 30] {
            for name in ["allgather_as_gather_bcast", "allgather_as_allgatherv"] {
                assert!(allowed(name, 3072, bytes), "{name} at {bytes}");
            }
        }
        let of_all_blocks = ["allgather_as_alltoall", "gather_as_reduce", "gather_as_allgather"];
        for name in of_all_blocks.into_iter().chain(["scatter_as_bcast"]) {
            assert!(allowed(name, 64, 1 << 20), "{name}: exactly 64 MiB");
            assert!(!allowed(name, 65, 1 << 20), "{name}");
        }
        // 2pI: 1 MiB holds the counts of 131,072 processes.
        assert!(allowed("allgather_as_allgatherv", 131_072, 8));
        assert!(!allowed("allgather_as_allgatherv", 131_073, 8));
        for name in ["bcast_as_allgatherv", "bcast_as_scatter_allgather"] {
            assert!(allowed(name, 64, 64 << 20), "{name}: exactly 64 MiB");
            assert!(!allowed(name, 64, (64 << 20) + 1), "{name}");
        }
    }
}
