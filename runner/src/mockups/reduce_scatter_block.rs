//! `MPI_Reduce_scatter_block` as other collectives: GL17 to GL19.

use std::ffi::c_int;

use records::Collective;

use super::{Mockup, calls::Work, facts::Needs};
use crate::{Arguments, Result};

pub(super) static REDUCE_THEN_SCATTER: Mockup = Mockup {
    name: "reduce_scatter_block_as_reduce_then_scatter",
    guideline: "GL17",
    collective: Collective::ReduceScatterBlock,
    memory: "pn at rank 0",
    needs: |facts| Needs { buffers: [facts.total(), 0], ..Needs::default() },
    run: reduce_then_scatter,
};

pub(super) static REDUCE_SCATTER: Mockup = Mockup {
    name: "reduce_scatter_block_as_reduce_scatter",
    guideline: "GL18",
    collective: Collective::ReduceScatterBlock,
    memory: "pI",
    needs: |facts| Needs {
        integers: facts.procs,
        indivisible: facts.total(),
        commutative: true,
        ..Needs::default()
    },
    run: reduce_scatter,
};

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "reduce_scatter_block_as_allreduce",
    guideline: "GL19",
    collective: Collective::ReduceScatterBlock,
    memory: "pn",
    needs: |facts| Needs { buffers: [facts.total(), 0], ..Needs::default() },
    run: allreduce,
};

/// The operand unless in place, where it is then, and the place of the result.
fn sides(
    work: &Work<'_>,
    arguments: &Arguments,
) -> Result<(Option<*const u8>, *const u8, *mut u8)> {
    let Arguments::ReduceScatterBlock { data, .. } = arguments else {
        return Err(Mockup::other(arguments));
    };
    let receive = data.receive.cast::<u8>();
    match work.is_in_place(data.send) {
        true => Ok((None, receive, receive)),
        false => Ok((Some(data.send.cast()), data.send.cast(), receive)),
    }
}

unsafe fn reduce_then_scatter(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let (_, operand, receive) = sides(work, arguments)?;
    let (count, all) = (work.facts.count, work.buffers[0]);
    let blocks = (work.rank() == 0).then(|| work.part(all, count));
    // SAFETY: the application's own buffers; ours holds the whole result.
    unsafe {
        work.reduce(Some(operand), all, work.facts.total(), 0)?;
        work.scatter(blocks, Some(work.part(receive, count)), 0)
    }
}

unsafe fn reduce_scatter(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let (send, _, receive) = sides(work, arguments)?;
    let count = work.facts.count as c_int;
    // SAFETY: the application's own buffers.
    unsafe { work.reduce_scatter(send, receive, |_| count) }
}

unsafe fn allreduce(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let (_, operand, receive) = sides(work, arguments)?;
    let (count, all) = (work.facts.count, work.buffers[0]);
    // SAFETY: the application's own buffers; ours holds the whole result.
    unsafe {
        work.allreduce(Some(operand), all, work.facts.total())?;
        work.copy(work.element(all, work.rank() * count), receive, count)
    }
}
