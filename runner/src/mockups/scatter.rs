//! `MPI_Scatter` as other collectives: GL21, GL22.

use records::Collective;

use super::{
    calls::{MockupWork, in_a_row},
    facts::MockupNeeds,
    mockup::Mockup,
};
use crate::Result;

pub(super) static BCAST: Mockup = Mockup {
    name: "scatter_as_bcast",
    guideline: "GL21",
    collective: Collective::Scatter,
    memory: "pn",
    needs: |facts| MockupNeeds { buffers: [facts.total(), 0], ..MockupNeeds::default() },
    run: bcast,
};

pub(super) static SCATTERV: Mockup = Mockup {
    name: "scatter_as_scatterv",
    guideline: "GL22",
    collective: Collective::Scatter,
    memory: "2pI",
    needs: |facts| MockupNeeds { integers: 2 * facts.procs, ..MockupNeeds::default() },
    run: scatterv,
};

/// Ranks may describe the blocks by different types, so that bytes are sent; and from memory of
/// ours: a library may write to the root's, if only what is there already (MPICH does, by ring and
/// doubling), while what an application scatters may be constant.
unsafe fn bcast(work: &mut MockupWork<'_>) -> Result<()> {
    let (bytes, total) = (work.facts.count, work.facts.total());
    let all = work.buffers[0];
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        if let Some(send) = work.send {
            work.pack(&send.times(work.procs()), all)?;
        }
        work.bcast(work.part(all, total), work.root())?;
        match work.receive {
            Some(receive) => work.unpack(work.element(all, work.rank() * bytes), &receive),
            None => Ok(()),
        }
    }
}

unsafe fn scatterv(work: &mut MockupWork<'_>) -> Result<()> {
    // SAFETY: the application's own parts.
    unsafe { work.scatterv(work.send, work.procs(), in_a_row, work.receive, work.root()) }
}
