//! `MPI_Scatter` as other collectives: GL21, GL22.

use std::ffi::c_int;

use records::Collective;

use super::{
    calls::{MockupWork, in_a_row},
    facts::MockupNeeds,
    mockup::Mockup,
    part::BufferPart,
};
use crate::{Arguments, Result};

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

/// A rank's part of the call.
struct ScatterSides {
    root: c_int,
    /// The first block at the root.
    send: Option<BufferPart>,
    /// Nothing where the root receives in place.
    receive: Option<BufferPart>,
}

fn sides(work: &MockupWork<'_>, arguments: &Arguments) -> Result<ScatterSides> {
    let Arguments::Scatter { send, receive, root } = arguments else {
        return Err(Mockup::other(arguments));
    };
    if work.comm.rank as c_int != *root {
        let receive = Some(BufferPart::from_block(work.mpi, receive)?);
        return Ok(ScatterSides { root: *root, send: None, receive });
    }
    let receive = BufferPart::unless_in_place(work.mpi, receive)?;
    Ok(ScatterSides { root: *root, send: Some(BufferPart::from_block(work.mpi, send)?), receive })
}

/// Ranks may describe the blocks by different types, so that bytes are sent; and from memory of
/// ours: a library may write to the root's, if only what is there already (MPICH does, by ring and
/// doubling), while what an application scatters may be constant.
unsafe fn bcast(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let ScatterSides { root, send, receive } = sides(work, arguments)?;
    let (bytes, total) = (work.facts.count, work.facts.total());
    let all = work.buffers[0];
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        if let Some(send) = send {
            work.pack(&send.times(work.procs()), all)?;
        }
        work.bcast(work.part(all, total), root)?;
        match receive {
            Some(receive) => work.unpack(work.element(all, work.rank() * bytes), &receive),
            None => Ok(()),
        }
    }
}

unsafe fn scatterv(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let ScatterSides { root, send, receive } = sides(work, arguments)?;
    // SAFETY: the application's own parts.
    unsafe { work.scatterv(send, work.procs(), in_a_row, receive, root) }
}
