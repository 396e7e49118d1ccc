//! `MPI_Gather` as other collectives: GL11 to GL13.

use records::Collective;

use super::{
    calls::{MockupWork, in_a_row},
    facts::MockupNeeds,
    mockup::Mockup,
};
use crate::Result;

pub(super) static ALLGATHER: Mockup = Mockup {
    name: "gather_as_allgather",
    guideline: "GL11",
    collective: Collective::Gather,
    memory: "pn off the root",
    needs: |facts| MockupNeeds { buffers: [facts.total(), 0], ..MockupNeeds::default() },
    run: allgather,
};

pub(super) static GATHERV: Mockup = Mockup {
    name: "gather_as_gatherv",
    guideline: "GL12",
    collective: Collective::Gather,
    memory: "2pI",
    needs: |facts| MockupNeeds { integers: 2 * facts.procs, ..MockupNeeds::default() },
    run: gatherv,
};

pub(super) static REDUCE: Mockup = Mockup {
    name: "gather_as_reduce",
    guideline: "GL13",
    collective: Collective::Gather,
    memory: "pn",
    needs: |facts| MockupNeeds { buffers: [facts.total(), 0], ..MockupNeeds::default() },
    run: reduce,
};

/// Memory for a block of every rank: the root's receive buffer, if bytes can lie there, else the first
/// buffer. Whether it is the former.
fn room(work: &MockupWork<'_>) -> Result<(*mut u8, bool)> {
    match work.receive {
        Some(receive) if work.is_plain(&receive)? => Ok((receive.base, true)),
        _ => Ok((work.buffers[0], false)),
    }
}

/// All ranks gather in place, since a root that was called so must.
unsafe fn allgather(work: &mut MockupWork<'_>) -> Result<()> {
    let (all, is_direct) = room(work)?;
    let bytes = work.facts.count;
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        if !(is_direct && work.send.is_none()) {
            work.pack(&work.own_block(), work.element(all, work.rank() * bytes))?;
        }
        work.allgather(None, work.part(all, bytes))?;
        match work.receive {
            Some(receive) if !is_direct => work.unpack(all, &receive.times(work.procs())),
            _ => Ok(()),
        }
    }
}

unsafe fn gatherv(work: &mut MockupWork<'_>) -> Result<()> {
    // SAFETY: the application's own parts.
    unsafe { work.gatherv(work.send, work.receive, work.procs(), in_a_row, work.root()) }
}

/// Every rank's bytes but its own block's are zero, so that their bitwise or is all blocks.
///
/// The root does not combine in place: MPICH 4.0 then reads its operand at the address that says
/// `MPI_IN_PLACE`, from 2 KiB on and where the root is not rank 0.
unsafe fn reduce(work: &mut MockupWork<'_>) -> Result<()> {
    let root = work.root();
    let (bytes, total) = (work.facts.count, work.facts.total());
    let operand = work.buffers[0];
    let (start, end) = (work.rank() * bytes, (work.rank() + 1) * bytes);
    // SAFETY: `operand` and the root's `result` hold a block of every rank.
    unsafe {
        operand.write_bytes(0, start as usize);
        work.element(operand, end).write_bytes(0, (total - end) as usize);
        work.pack(&work.own_block(), work.element(operand, start))?;
        match work.receive {
            None => work.reduce(Some(operand), std::ptr::null_mut(), total, root),
            Some(receive) if work.is_plain(&receive)? => {
                work.reduce(Some(operand), receive.base, total, root)
            }
            Some(receive) => {
                let result = work.packing_room(total)?;
                work.reduce(Some(operand), result, total, root)?;
                work.unpack(result, &receive.times(work.procs()))
            }
        }
    }
}
