//! `MPI_Reduce` as other collectives: GL14 to GL16.

use records::Collective;

use super::{
    blocks::{Deal, reduce_shares},
    calls::MockupWork,
    facts::MockupNeeds,
    mockup::Mockup,
};
use crate::Result;

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "reduce_as_allreduce",
    guideline: "GL14",
    collective: Collective::Reduce,
    memory: "n, at the root only in place",
    needs: |facts| MockupNeeds { buffers: [facts.count, 0], ..MockupNeeds::default() },
    run: allreduce,
};

pub(super) static REDUCE_SCATTER_BLOCK_GATHER: Mockup = Mockup {
    name: "reduce_as_reduce_scatter_block_gather",
    guideline: "GL15",
    collective: Collective::Reduce,
    memory: "(n+c)/p + (n+c) where p does not divide the count, else n/p; the data once more where the type has gaps",
    needs: |facts| {
        let padded = if facts.padded() > facts.count { facts.padded() } else { 0 };
        MockupNeeds {
            buffers: [padded, facts.share()],
            packed: facts.packed(facts.padded()),
            indivisible: facts.padded(),
            commutative: true,
            combines_none: true,
            ..MockupNeeds::default()
        }
    },
    run: reduce_scatter_block_gather,
};

pub(super) static REDUCE_SCATTER_GATHERV: Mockup = Mockup {
    name: "reduce_as_reduce_scatter_gatherv",
    guideline: "GL16",
    collective: Collective::Reduce,
    memory: "(floor(n/(Cp))+1)C + 2pI, C = 256 bytes",
    needs: |facts| MockupNeeds {
        buffers: [Deal::from_facts(facts).most(), 0],
        integers: 2 * facts.procs,
        indivisible: facts.count,
        commutative: true,
        combines_none: Deal::from_facts(facts).leaves_out(),
        ..MockupNeeds::default()
    },
    run: reduce_scatter_gatherv,
};

/// A root that is called in place gets the result by way of the buffer: in the call inside, all
/// ranks would have to be.
unsafe fn allreduce(work: &mut MockupWork<'_>) -> Result<()> {
    let (at_root, in_place, receive) = (work.is_root(), work.send.is_none(), work.received().base);
    let (count, buffer) = (work.facts.count, work.buffers[0]);
    let into = if at_root && !in_place { receive } else { buffer };
    // SAFETY: the application's own buffers; ours holds the result.
    unsafe {
        work.allreduce(Some(work.operand()), into, count)?;
        if in_place { work.copy(buffer, receive, count) } else { Ok(()) }
    }
}

/// What has gaps is gathered as bytes: MPICH 4.0's `MPI_Gather` says of long messages of elements
/// like `MPI_DOUBLE_INT` that they are truncated.
unsafe fn reduce_scatter_block_gather(work: &mut MockupWork<'_>) -> Result<()> {
    let (root, at_root, receive) = (work.root(), work.is_root(), work.received().base);
    let [padded, own] = work.buffers;
    if !work.facts.layout.is_dense() {
        let shares = work.packed_part(work.packed, work.facts.share());
        let share = shares.at(work.rank());
        let (send, into) = if at_root { (None, Some(shares)) } else { (Some(share), None) };
        // SAFETY: as below; as bytes elements need no more than with their gaps.
        unsafe {
            reduce_shares(work, work.operand(), own)?;
            work.pack(&work.part(own, work.facts.share()), share.base)?;
            work.gather(send, into, root)?;
            return match at_root {
                true => work.unpack(shares.base, &work.part(receive, work.facts.count)),
                false => Ok(()),
            };
        }
    }
    let is_padded = work.facts.padded() > work.facts.count;
    let share = work.facts.share();
    let all = if is_padded { padded } else { receive };
    let into = at_root.then(|| work.part(all, share));
    // SAFETY: the application's own buffers; ours hold what `needs` says.
    unsafe {
        reduce_shares(work, work.operand(), own)?;
        work.gather(Some(work.part(own, share)), into, root)?;
        match at_root && is_padded {
            true => work.copy(padded, receive, work.facts.count),
            false => Ok(()),
        }
    }
}

unsafe fn reduce_scatter_gatherv(work: &mut MockupWork<'_>) -> Result<()> {
    let (root, at_root, receive) = (work.root(), work.is_root(), work.received().base);
    let (deal, own) = (Deal::from_facts(&work.facts), work.buffers[0]);
    let part = work.part(own, deal.part(work.rank()).0);
    let into = at_root.then(|| work.part(receive, work.facts.count));
    // SAFETY: as above.
    unsafe {
        work.reduce_scatter(Some(work.operand()), own, |rank| deal.as_int(rank).0)?;
        work.gatherv(Some(part), into, 1, |rank, _| deal.as_int(rank), root)
    }
}
