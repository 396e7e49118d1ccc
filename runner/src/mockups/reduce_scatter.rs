//! `MPI_Reduce_scatter` as other collectives: PGMPI's own two.

use std::ffi::c_int;

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::{Arguments, Counts, Result};

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "reduce_scatter_as_allreduce",
    guideline: "P9",
    collective: Collective::ReduceScatter,
    memory: "n",
    needs: |facts| MockupNeeds { buffers: [facts.count, 0], ..MockupNeeds::default() },
    run: allreduce,
};

pub(super) static REDUCE_SCATTERV: Mockup = Mockup {
    name: "reduce_scatter_as_reduce_scatterv",
    guideline: "P17",
    collective: Collective::ReduceScatter,
    memory: "n at rank 0 + 2pI",
    needs: |facts| MockupNeeds {
        buffers: [facts.count, 0],
        integers: 2 * facts.procs,
        indivisible: facts.count,
        ..MockupNeeds::default()
    },
    run: reduce_scatterv,
};

/// The operand, the place of the result, and how many elements each rank gets.
fn sides(work: &MockupWork<'_>, arguments: &Arguments) -> Result<(*const u8, *mut u8, Counts)> {
    let Arguments::ReduceScatter { data, counts } = arguments else {
        return Err(Mockup::other(arguments));
    };
    let receive = data.receive.cast::<u8>();
    let operand = if work.is_in_place(data.send) { receive.cast_const() } else { data.send.cast() };
    Ok((operand, receive, *counts))
}

/// Number and first of a rank's elements.
unsafe fn part(counts: Counts, rank: u64) -> (u64, u64) {
    // SAFETY: there is a count for every rank; none is negative.
    let count = |rank: usize| unsafe { counts.get(rank) } as u64;
    (count(rank as usize), (0..rank as usize).map(count).sum())
}

unsafe fn allreduce(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let (operand, receive, counts) = sides(work, arguments)?;
    let all = work.buffers[0];
    // SAFETY: the application's own buffers; ours holds the whole result.
    unsafe {
        work.allreduce(Some(operand), all, work.facts.count)?;
        let (count, start) = part(counts, work.rank());
        work.copy(work.element(all, start), receive, count)
    }
}

unsafe fn reduce_scatterv(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let (operand, receive, counts) = sides(work, arguments)?;
    let all = work.buffers[0];
    // SAFETY: as above.
    unsafe {
        work.reduce(Some(operand), all, work.facts.count, 0)?;
        let (count, _) = part(counts, work.rank());
        let parts = (work.rank() == 0).then(|| work.part(all, work.facts.count));
        let of_rank = |rank, _| {
            let (count, start) = part(counts, rank);
            (count as c_int, start as c_int)
        };
        work.scatterv(parts, 1, of_rank, Some(work.part(receive, count)), 0)
    }
}
