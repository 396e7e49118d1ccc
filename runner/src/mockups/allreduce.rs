//! `MPI_Allreduce` as other collectives: GL5 to GL7.

use records::Collective;

use super::{
    blocks::{Deal, reduce_shares},
    calls::MockupWork,
    facts::MockupNeeds,
    mockup::Mockup,
};
use crate::Result;

pub(super) static REDUCE_BCAST: Mockup = Mockup {
    name: "allreduce_as_reduce_bcast",
    guideline: "GL5",
    collective: Collective::Allreduce,
    memory: "none",
    needs: |_| MockupNeeds::default(),
    run: reduce_bcast,
};

pub(super) static REDUCE_SCATTER_BLOCK_ALLGATHER: Mockup = Mockup {
    name: "allreduce_as_reduce_scatter_block_allgather",
    guideline: "GL6",
    collective: Collective::Allreduce,
    memory: "(n+c)/p + (n+c) where p does not divide the count, else n/p (used in place)",
    needs: |facts| {
        let buffers = match facts.padded() > facts.count {
            true => [facts.padded(), facts.share()],
            // As much as in place: libraries let some ranks be so and others not.
            false => [facts.share(), 0],
        };
        MockupNeeds {
            buffers,
            indivisible: facts.padded(),
            commutative: true,
            combines_none: true,
            ..MockupNeeds::default()
        }
    },
    run: reduce_scatter_block_allgather,
};

pub(super) static REDUCE_SCATTER_ALLGATHERV: Mockup = Mockup {
    name: "allreduce_as_reduce_scatter_allgatherv",
    guideline: "GL7",
    collective: Collective::Allreduce,
    memory: "2pI + (floor(n/(Cp))+1)C (used in place), C = 256 bytes",
    needs: |facts| MockupNeeds {
        buffers: [Deal::from_facts(facts).most(), 0],
        integers: 2 * facts.procs,
        indivisible: facts.count,
        commutative: true,
        combines_none: Deal::from_facts(facts).leaves_out(),
        ..MockupNeeds::default()
    },
    run: reduce_scatter_allgatherv,
};

/// Whether the operand lies where the result will, the operand, and the place of the result.
fn sides(work: &MockupWork<'_>) -> (bool, *const u8, *mut u8) {
    (work.send.is_none(), work.operand(), work.received().base)
}

unsafe fn reduce_bcast(work: &mut MockupWork<'_>) -> Result<()> {
    let (in_place, operand, receive) = sides(work);
    let count = work.facts.count;
    let send = if in_place && work.rank() == 0 { None } else { Some(operand) };
    // SAFETY: the application's own buffers. MPI demands that those of one rank be two, also
    // where only one is significant.
    unsafe {
        let into = if work.rank() == 0 { receive } else { std::ptr::null_mut() };
        work.reduce(send, into, count, 0)?;
        work.bcast(work.part(receive, count), 0)
    }
}

unsafe fn reduce_scatter_block_allgather(work: &mut MockupWork<'_>) -> Result<()> {
    let (in_place, operand, receive) = sides(work);
    let (count, share) = (work.facts.count, work.facts.share());
    let [first, second] = work.buffers;
    // SAFETY: the application's own buffers; ours hold what `needs` says.
    unsafe {
        if work.facts.padded() > count {
            reduce_shares(work, operand, second)?;
            work.allgather(Some(work.part(second, share)), work.part(first, share))?;
            work.copy(first, receive, count)
        } else if in_place {
            reduce_shares(work, operand, first)?;
            work.allgather(Some(work.part(first, share)), work.part(receive, share))
        } else {
            reduce_shares(work, operand, work.element(receive, work.rank() * share))?;
            work.allgather(None, work.part(receive, share))
        }
    }
}

unsafe fn reduce_scatter_allgatherv(work: &mut MockupWork<'_>) -> Result<()> {
    let (in_place, operand, receive) = sides(work);
    let deal = Deal::from_facts(&work.facts);
    let (count, start) = deal.part(work.rank());
    // One past the end may be where the application's operand begins, which MPICH takes for one buffer.
    let place = if count > 0 { start } else { 0 };
    let own = if in_place { work.buffers[0] } else { work.element(receive, place) };
    let send = in_place.then(|| work.part(own, count));
    let all = work.part(receive, work.facts.count);
    // SAFETY: as above.
    unsafe {
        work.reduce_scatter(Some(operand), own, |rank| deal.as_int(rank).0)?;
        work.allgatherv(send, all, 1, |rank, _| deal.as_int(rank))
    }
}
