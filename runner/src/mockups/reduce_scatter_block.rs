//! `MPI_Reduce_scatter_block` as other collectives: GL17 to GL19.

use std::ffi::c_int;

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::Result;

pub(super) static REDUCE_THEN_SCATTER: Mockup = Mockup {
    name: "reduce_scatter_block_as_reduce_then_scatter",
    guideline: "GL17",
    collective: Collective::ReduceScatterBlock,
    memory: "pn at rank 0, and the data of all blocks once more where the type has gaps",
    needs: |facts| MockupNeeds {
        operands: facts.total(),
        packed: facts.packed(facts.total()),
        ..MockupNeeds::default()
    },
    run: reduce_then_scatter,
};

pub(super) static REDUCE_SCATTER: Mockup = Mockup {
    name: "reduce_scatter_block_as_reduce_scatter",
    guideline: "GL18",
    collective: Collective::ReduceScatterBlock,
    memory: "pI",
    needs: |facts| MockupNeeds {
        integers: facts.procs,
        indivisible: facts.total(),
        commutative: true,
        ..MockupNeeds::default()
    },
    run: reduce_scatter,
};

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "reduce_scatter_block_as_allreduce",
    guideline: "GL19",
    collective: Collective::ReduceScatterBlock,
    memory: "pn",
    needs: |facts| MockupNeeds { operands: facts.total(), ..MockupNeeds::default() },
    run: allreduce,
};

/// What has gaps is scattered as bytes: MPICH 4.0's `MPI_Scatter` says of long messages of elements
/// like `MPI_DOUBLE_INT` that they are truncated.
unsafe fn reduce_then_scatter(work: &mut MockupWork<'_>) -> Result<()> {
    let (operand, receive) = (work.operand(), work.received().base);
    let count = work.facts.count;
    let own = work.part(receive, count);
    // SAFETY: the application's own buffers; ours hold the whole result.
    unsafe {
        work.reduce_operands(operand, work.facts.total())?;
        if work.facts.layout.is_dense() {
            let blocks = (work.rank() == 0).then(|| work.part(work.operands.first, count));
            return work.scatter(blocks, Some(own), 0);
        }
        let block = work.packed_part(work.packed, count);
        match work.rank() {
            0 => {
                work.pack_operands(work.facts.total(), block.base)?;
                work.scatter(Some(block), None, 0)?;
            }
            _ => work.scatter(None, Some(block), 0)?,
        }
        work.unpack(block.base, &own)
    }
}

unsafe fn reduce_scatter(work: &mut MockupWork<'_>) -> Result<()> {
    let send = work.send.map(|send| send.base.cast_const());
    let count = work.facts.count as c_int;
    // SAFETY: the application's own buffers.
    unsafe { work.reduce_scatter(send, work.received().base, |_| count) }
}

unsafe fn allreduce(work: &mut MockupWork<'_>) -> Result<()> {
    let (operand, receive) = (work.operand(), work.received().base);
    let count = work.facts.count;
    // SAFETY: the application's own buffers; ours holds the whole result.
    unsafe {
        work.allreduce_operands(operand, work.facts.total())?;
        work.copy_operands(work.rank() * count, count, receive)
    }
}
