//! `MPI_Reduce_scatter` as other collectives: PGMPI's own two.

use std::ffi::c_int;

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::{Counts, Result};

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "reduce_scatter_as_allreduce",
    guideline: "P9",
    collective: Collective::ReduceScatter,
    memory: "n",
    needs: |facts| MockupNeeds { operands: facts.count, ..MockupNeeds::default() },
    run: allreduce,
};

pub(super) static REDUCE_SCATTERV: Mockup = Mockup {
    name: "reduce_scatter_as_reduce_scatterv",
    guideline: "P17",
    collective: Collective::ReduceScatter,
    memory: "n at rank 0, and the data once more where the type has gaps, + 2pI",
    needs: |facts| MockupNeeds {
        operands: facts.count,
        packed: facts.packed(facts.count),
        integers: 2 * facts.procs,
        indivisible: facts.count.max(facts.packed(facts.count)),
        ..MockupNeeds::default()
    },
    run: reduce_scatterv,
};

/// The operand, the place of the result, and how many elements each rank gets.
fn sides(work: &MockupWork<'_>) -> (*const u8, *mut u8, Counts) {
    (work.operand(), work.received().base, work.arguments.send.counts)
}

/// Number and first of a rank's elements.
unsafe fn part(counts: Counts, rank: u64) -> (u64, u64) {
    // SAFETY: there is a count for every rank; none is negative.
    unsafe { (counts.of_rank(rank as u32) as u64, counts.place(rank as u32) as u64) }
}

unsafe fn allreduce(work: &mut MockupWork<'_>) -> Result<()> {
    let (operand, receive, counts) = sides(work);
    // SAFETY: the application's own buffers; ours holds the whole result.
    unsafe {
        work.allreduce_operands(operand, work.facts.count)?;
        let (count, start) = part(counts, work.rank());
        work.copy_operands(start, count, receive)
    }
}

/// What has gaps is scattered as bytes, as by `reduce_scatter_block_as_reduce_then_scatter`.
unsafe fn reduce_scatterv(work: &mut MockupWork<'_>) -> Result<()> {
    let (operand, receive, counts) = sides(work);
    let (total, is_first) = (work.facts.count, work.rank() == 0);
    let in_units = |unit: u64| {
        move |rank, _| {
            // SAFETY: there is a count for every rank.
            let (count, start) = unsafe { part(counts, rank) };
            ((count * unit) as c_int, (start * unit) as c_int)
        }
    };
    // SAFETY: as above.
    unsafe {
        work.reduce_operands(operand, total)?;
        let own = work.part(receive, part(counts, work.rank()).0);
        if work.facts.layout.is_dense() {
            let parts = is_first.then(|| work.part(work.operands.first, total));
            return work.scatterv(parts, 1, in_units(1), Some(own), 0);
        }
        let packed = work.packed;
        if is_first {
            work.pack_operands(total, packed)?;
        }
        // The first rank's block lies where it is.
        let parts = is_first.then(|| work.packed_part(packed, total));
        let into = (!is_first).then(|| work.packed_part(packed, own.count));
        let of_rank = in_units(work.facts.layout.size as u64);
        work.scatterv(parts, 1, of_rank, into, 0)?;
        work.unpack(packed, &own)
    }
}
