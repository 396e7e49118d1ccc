//! `MPI_Bcast` as other collectives: GL9, GL10.

use std::ffi::c_int;

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup, part::BufferPart};
use crate::Result;

pub(super) static ALLGATHERV: Mockup = Mockup {
    name: "bcast_as_allgatherv",
    guideline: "GL9",
    collective: Collective::Bcast,
    memory: "n+2pI",
    needs: |facts| MockupNeeds {
        buffers: [facts.count, 0],
        integers: 2 * facts.procs,
        ..MockupNeeds::default()
    },
    run: allgatherv,
};

pub(super) static SCATTER_ALLGATHER: Mockup = Mockup {
    name: "bcast_as_scatter_allgather",
    guideline: "GL10",
    collective: Collective::Bcast,
    memory: "n+c",
    needs: |facts| MockupNeeds { buffers: [facts.padded(), 0], ..MockupNeeds::default() },
    run: scatter_allgather,
};

/// The message on this rank, the root, and whether that is this rank.
fn message(work: &MockupWork<'_>) -> (BufferPart, c_int, bool) {
    (work.send.unwrap_or_else(|| work.received()), work.root(), work.is_root())
}

/// The root has all, the others nothing. It receives in memory of ours: what it sends may be read-only.
unsafe fn allgatherv(work: &mut MockupWork<'_>) -> Result<()> {
    let (data, root, at_root) = message(work);
    let is_direct = !at_root && work.is_plain(&data)?;
    let all = if is_direct { data.base } else { work.buffers[0] };
    let of_rank = |rank, count| if rank == root as u64 { (count, 0) } else { (0, 0) };
    // SAFETY: `all` holds the message.
    unsafe {
        if at_root {
            work.pack(&data, all)?;
        }
        work.allgatherv(None, work.part(all, work.facts.count), 1, of_rank)?;
        if at_root || is_direct { Ok(()) } else { work.unpack(all, &data) }
    }
}

/// The algorithm of van de Geijn, on bytes. The root receives in memory of ours: what it sends may be read-only.
unsafe fn scatter_allgather(work: &mut MockupWork<'_>) -> Result<()> {
    let (data, root, at_root) = message(work);
    let (bytes, padded) = (work.facts.count, work.facts.padded());
    let is_direct = padded == bytes && work.is_plain(&data)?;
    let all = if is_direct && !at_root { data.base } else { work.buffers[0] };
    let share = work.facts.share();
    let shares = work.part(all, share);
    let dealt = if is_direct { work.part(data.base, share) } else { shares };
    // SAFETY: `all` holds a share of every rank.
    unsafe {
        if at_root && !is_direct {
            work.pack(&data, all)?;
            work.element(all, bytes).write_bytes(0, (padded - bytes) as usize);
        }
        if at_root && is_direct {
            let rank = work.rank();
            work.copy(dealt.at(rank).base, shares.at(rank).base, share)?;
        }
        match at_root {
            true => work.scatter(Some(dealt), None, root)?,
            false => work.scatter(None, Some(shares.at(work.rank())), root)?,
        }
        work.allgather(None, shares)?;
        if at_root || is_direct { Ok(()) } else { work.unpack(all, &data) }
    }
}
