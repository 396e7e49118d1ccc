//! `MPI_Allgather` as other collectives: GL1 to GL4.

use records::Collective;

use super::{
    calls::{MockupWork, in_a_row},
    facts::MockupNeeds,
    mockup::Mockup,
    part::BufferPart,
};
use crate::Result;

pub(super) static GATHER_BCAST: Mockup = Mockup {
    name: "allgather_as_gather_bcast",
    guideline: "GL1",
    collective: Collective::Allgather,
    memory: "none",
    needs: |_| MockupNeeds::default(),
    run: gather_bcast,
};

pub(super) static ALLTOALL: Mockup = Mockup {
    name: "allgather_as_alltoall",
    guideline: "GL2",
    collective: Collective::Allgather,
    memory: "pn",
    needs: |facts| MockupNeeds { buffers: [facts.total(), 0], ..MockupNeeds::default() },
    run: alltoall,
};

pub(super) static ALLREDUCE: Mockup = Mockup {
    name: "allgather_as_allreduce",
    guideline: "GL3",
    collective: Collective::Allgather,
    memory: "none",
    needs: |_| MockupNeeds::default(),
    run: allreduce,
};

pub(super) static ALLGATHERV: Mockup = Mockup {
    name: "allgather_as_allgatherv",
    guideline: "GL4",
    collective: Collective::Allgather,
    memory: "2pI",
    needs: |facts| MockupNeeds { integers: 2 * facts.procs, ..MockupNeeds::default() },
    run: allgatherv,
};

/// Memory for the bytes of all blocks: the receive buffer, if bytes can lie there, else room to pack
/// in. Whether it is the former, so that nothing is to be unpacked.
fn room(work: &mut MockupWork<'_>, receive: &BufferPart) -> Result<(*mut u8, bool)> {
    match work.is_plain(receive)? {
        true => Ok((receive.base, true)),
        false => Ok((work.packing_room(work.facts.total())?, false)),
    }
}

unsafe fn gather_bcast(work: &mut MockupWork<'_>) -> Result<()> {
    let (receive, own) = (work.received(), work.own_block());
    let (all, is_direct) = room(work, &receive)?;
    let bytes = work.facts.count;
    let place = work.element(all, work.rank() * bytes);
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        if !(is_direct && work.send.is_none()) {
            work.pack(&own, place)?;
        }
        match work.rank() {
            0 => work.gather(None, Some(work.part(all, bytes)), 0)?,
            _ => work.gather(Some(work.part(place, bytes)), None, 0)?,
        }
        work.bcast(work.part(all, work.facts.total()), 0)?;
        if is_direct { Ok(()) } else { work.unpack(all, &receive.times(work.procs())) }
    }
}

unsafe fn alltoall(work: &mut MockupWork<'_>) -> Result<()> {
    let (receive, own) = (work.received(), work.own_block());
    let (copies, bytes) = (work.buffers[0], work.facts.count);
    let (received, is_direct) = room(work, &receive)?;
    // SAFETY: `copies` and `received` hold a block of every rank.
    unsafe {
        work.pack(&own, copies)?;
        for rank in 1..work.procs() {
            work.copy(copies, work.element(copies, rank * bytes), bytes)?;
        }
        work.alltoall(work.part(copies, bytes), work.part(received, bytes))?;
        if is_direct { Ok(()) } else { work.unpack(received, &receive.times(work.procs())) }
    }
}

/// Every rank's bytes but its own block's are zero, so that their bitwise or is all blocks.
unsafe fn allreduce(work: &mut MockupWork<'_>) -> Result<()> {
    let (receive, own) = (work.received(), work.own_block());
    let (bytes, total) = (work.facts.count, work.facts.total());
    let (all, is_direct) = room(work, &receive)?;
    let start = work.rank() * bytes;
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        all.write_bytes(0, start as usize);
        let rest = total - start - bytes;
        work.element(all, start + bytes).write_bytes(0, rest as usize);
        if !(is_direct && work.send.is_none()) {
            work.pack(&own, work.element(all, start))?;
        }
        work.allreduce(None, all, total)?;
        if is_direct { Ok(()) } else { work.unpack(all, &receive.times(work.procs())) }
    }
}

unsafe fn allgatherv(work: &mut MockupWork<'_>) -> Result<()> {
    let (receive, own) = (work.received(), work.own_block());
    let (all, is_direct) = room(work, &receive)?;
    let bytes = work.facts.count;
    // SAFETY: `all` holds a block of every rank.
    unsafe {
        if !(is_direct && work.send.is_none()) {
            work.pack(&own, work.element(all, work.rank() * bytes))?;
        }
        work.allgatherv(None, work.part(all, bytes), work.procs(), in_a_row)?;
        if is_direct { Ok(()) } else { work.unpack(all, &receive.times(work.procs())) }
    }
}
