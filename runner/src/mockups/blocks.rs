//! Operands in blocks: one of equal length for each rank, or chunks dealt to the ranks.

use std::ffi::c_int;

use super::{calls::MockupWork, facts::Facts};
use crate::Result;

/// Combines the operand block by block, and leaves this rank's block of the result at `into`.
///
/// Where the elements are no multiple of the processes, the operand is copied to the first buffer
/// and padded with its last element: every rank pads the same places, so that the operation is
/// applied to nothing but the application's own values, to each with its own partners.
///
/// # Safety
/// `operand` must hold as many elements as the facts say, and `into` have room for a share of them. Where the
/// shares are padded, the first buffer must have room for the padded operand, and neither may lie in it. All
/// ranks must do this.
pub(super) unsafe fn reduce_shares(
    work: &MockupWork<'_>,
    mut operand: *const u8,
    into: *mut u8,
) -> Result<()> {
    let Facts { count, .. } = work.facts;
    // SAFETY: `operand` and `into` have room for what is said, and the first buffer for the padded operand,
    // outside of both (contract of this function).
    unsafe {
        if work.facts.padded() > count {
            let padded = work.buffers[0];
            work.copy(operand, padded, count)?;
            let last = work.element(padded, count - 1);
            for index in count..work.facts.padded() {
                work.copy(last, work.element(padded, index), 1)?;
            }
            operand = padded;
        }
        work.reduce_scatter_block(Some(operand), into, work.facts.share())
    }
}

/// Elements dealt to the ranks in chunks, in turn. Chunks keep the parts of few elements from
/// becoming messages of a few bytes, at the cost that then not all ranks have one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deal {
    count: u64,
    procs: u64,
    /// Elements of a chunk.
    chunk: u64,
}

impl Deal {
    /// Messages shorter than this take as long as this.
    const CHUNK_BYTES: u64 = 256;

    pub fn from_facts(facts: &Facts) -> Self {
        let chunk = (Self::CHUNK_BYTES / (facts.layout.size as u64).max(1)).max(1);
        Deal { count: facts.count, procs: facts.procs, chunk }
    }

    fn chunks(self) -> u64 {
        self.count.div_ceil(self.chunk)
    }

    /// The most elements that a rank may have.
    pub fn most(self) -> u64 {
        self.chunks().div_ceil(self.procs).saturating_mul(self.chunk).min(self.count)
    }

    /// Whether some rank has none.
    pub fn leaves_out(self) -> bool {
        self.chunks() < self.procs
    }

    /// Number and first of a rank's elements: the chunks of a rank are next to each other.
    pub fn part(self, rank: u64) -> (u64, u64) {
        let (each, more) = (self.chunks() / self.procs, self.chunks() % self.procs);
        let end_of = |rank: u64| (rank + 1) * each + (rank + 1).min(more);
        let chunks_before = if rank == 0 { 0 } else { end_of(rank - 1) };
        let start = (chunks_before * self.chunk).min(self.count);
        let end = (end_of(rank) * self.chunk).min(self.count);
        (end - start, start)
    }

    /// As arguments of a call: the elements were found to be no more than an `int` counts.
    pub fn as_int(self, rank: u64) -> (c_int, c_int) {
        let (count, start) = self.part(rank);
        (count as c_int, start as c_int)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_dealt_once_and_no_rank_has_more_than_said() {
        for count in 0..60 {
            for procs in 1..9 {
                for chunk in [1, 2, 7, 100] {
                    let deal = Deal { count, procs, chunk };
                    let (mut next, mut without) = (0, false);
                    for rank in 0..procs {
                        let (elements, start) = deal.part(rank);
                        without |= elements == 0;
                        assert_eq!(start, next, "{deal:?}");
                        assert!(elements <= deal.most(), "{deal:?}");
                        // The bound of the guideline's memory.
                        assert!(elements <= (count / (chunk * procs) + 1) * chunk, "{deal:?}");
                        next += elements;
                    }
                    assert_eq!(next, count);
                    assert_eq!(deal.leaves_out(), without, "{deal:?}");
                }
            }
        }
    }
}
