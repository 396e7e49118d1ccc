//! `MPI_Scatter` as other collectives: GL21, GL22.

use std::ffi::c_int;

use records::Collective;

use super::{
    calls::{Work, in_a_row},
    facts::Needs,
    mockup::Mockup,
    part::Part,
};
use crate::{Arguments, Result};

pub(super) static BCAST: Mockup = Mockup {
    name: "scatter_as_bcast",
    guideline: "GL21",
    collective: Collective::Scatter,
    memory: "pn",
    needs: |facts| Needs { buffers: [facts.total(), 0], ..Needs::default() },
    run: bcast,
};

pub(super) static SCATTERV: Mockup = Mockup {
    name: "scatter_as_scatterv",
    guideline: "GL22",
    collective: Collective::Scatter,
    memory: "2pI",
    needs: |facts| Needs { integers: 2 * facts.procs, ..Needs::default() },
    run: scatterv,
};

/// A rank's part of the call.
struct Sides {
    root: c_int,
    /// The first block at the root.
    send: Option<Part>,
    /// Nothing where the root receives in place.
    receive: Option<Part>,
}

fn sides(work: &Work<'_>, arguments: &Arguments) -> Result<Sides> {
    let Arguments::Scatter { send, receive, root } = arguments else {
        return Err(Mockup::other(arguments));
    };
    if work.comm.rank as c_int != *root {
        let receive = Some(Part::of(work.mpi, receive)?);
        return Ok(Sides { root: *root, send: None, receive });
    }
    let receive = Part::unless_in_place(work.mpi, receive)?;
    Ok(Sides { root: *root, send: Some(Part::of(work.mpi, send)?), receive })
}

/// Ranks may describe the blocks by different types, so that bytes are sent; and from memory of
/// ours: a library may write to the root's, if only what is there already (MPICH does, by ring and
/// doubling), while what an application scatters may be constant.
unsafe fn bcast(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let Sides { root, send, receive } = sides(work, arguments)?;
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

unsafe fn scatterv(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let Sides { root, send, receive } = sides(work, arguments)?;
    // SAFETY: the application's own parts.
    unsafe { work.scatterv(send, work.procs(), in_a_row, receive, root) }
}
