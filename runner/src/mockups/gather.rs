//! `MPI_Gather` as other collectives: GL11 to GL13.

use std::ffi::c_int;

use records::Collective;

use super::{
    calls::{MockupWork, in_a_row},
    facts::MockupNeeds,
    mockup::Mockup,
    part::BufferPart,
};
use crate::{Arguments, Result};

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

/// A rank's part of the call.
struct GatherSides {
    root: c_int,
    /// Nothing where the root sends in place.
    send: Option<BufferPart>,
    /// The first block at the root.
    receive: Option<BufferPart>,
}

fn sides(work: &MockupWork<'_>, arguments: &Arguments) -> Result<GatherSides> {
    let Arguments::Gather { send, receive, root } = arguments else {
        return Err(Mockup::other(arguments));
    };
    if work.comm.rank as c_int != *root {
        let send = Some(BufferPart::from_block(work.mpi, send)?);
        return Ok(GatherSides { root: *root, send, receive: None });
    }
    let send = BufferPart::unless_in_place(work.mpi, send)?;
    Ok(GatherSides { root: *root, send, receive: Some(BufferPart::from_block(work.mpi, receive)?) })
}

impl GatherSides {
    /// Memory for a block of every rank, with this rank's own in its place: the root's receive
    /// buffer, if bytes can lie there, else the first buffer. Whether it is the former.
    unsafe fn gathered(&self, work: &MockupWork<'_>) -> Result<(*mut u8, bool)> {
        let (mut all, mut is_direct) = (work.buffers[0], false);
        let mut own = self.send;
        if let Some(receive) = self.receive {
            is_direct = receive.layout.is_plain(work.mpi)?;
            if is_direct {
                all = receive.base;
            } else if own.is_none() {
                own = Some(receive.at(work.rank()));
            }
        }
        if let Some(own) = own {
            // SAFETY: `all` holds a block of every rank.
            unsafe { work.pack(&own, work.element(all, work.rank() * work.facts.count))? };
        }
        Ok((all, is_direct))
    }

    /// The root's blocks reach their places.
    unsafe fn finish(&self, work: &MockupWork<'_>, all: *mut u8, is_direct: bool) -> Result<()> {
        match self.receive {
            // SAFETY: `all` holds a block of every rank.
            Some(receive) if !is_direct => unsafe {
                work.unpack(all, &receive.times(work.procs()))
            },
            _ => Ok(()),
        }
    }
}

/// All ranks gather in place, since a root that was called so must.
unsafe fn allgather(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let sides = sides(work, arguments)?;
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        let (all, is_direct) = sides.gathered(work)?;
        work.allgather(None, work.part(all, work.facts.count))?;
        sides.finish(work, all, is_direct)
    }
}

unsafe fn gatherv(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let GatherSides { root, send, receive } = sides(work, arguments)?;
    // SAFETY: the application's own parts.
    unsafe { work.gatherv(send, receive, work.procs(), in_a_row, root) }
}

/// Every rank's bytes but its own block's are zero, so that their bitwise or is all blocks.
///
/// The root does not combine in place: MPICH 4.0 then reads its operand at the address that says
/// `MPI_IN_PLACE`, from 2 KiB on and where the root is not rank 0.
unsafe fn reduce(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let GatherSides { root, send, receive } = sides(work, arguments)?;
    let (bytes, total) = (work.facts.count, work.facts.total());
    let operand = work.buffers[0];
    let (start, end) = (work.rank() * bytes, (work.rank() + 1) * bytes);
    // SAFETY: `operand` and the root's `result` hold a block of every rank.
    unsafe {
        operand.write_bytes(0, start as usize);
        work.element(operand, end).write_bytes(0, (total - end) as usize);
        if let Some(own) = send.or_else(|| receive.map(|receive| receive.at(work.rank()))) {
            work.pack(&own, work.element(operand, start))?;
        }
        match receive {
            None => work.reduce(Some(operand), std::ptr::null_mut(), total, root),
            Some(receive) if receive.layout.is_plain(work.mpi)? => {
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
