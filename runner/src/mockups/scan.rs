//! `MPI_Scan` as another collective: GL20.

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::Result;

pub(super) static EXSCAN_REDUCE_LOCAL: Mockup = Mockup {
    name: "scan_as_exscan_reduce_local",
    guideline: "GL20",
    collective: Collective::Scan,
    memory: "n in place or where the operation is not commutative",
    needs: |facts| MockupNeeds { buffers: [facts.count, 0], ..MockupNeeds::default() },
    run: exscan_reduce_local,
};

/// `MPI_Reduce_local` leaves its result in the operand that stands on the right. Where that has to
/// be this rank's own, what the lower ranks have combined to is received beside it.
unsafe fn exscan_reduce_local(work: &mut MockupWork<'_>) -> Result<()> {
    let (receive, buffer, count) = (work.received().base, work.buffers[0], work.facts.count);
    let (in_place, own) = (work.send.is_none(), work.operand());
    let is_first = work.rank() == 0;
    // SAFETY: the application's own buffers; ours holds an operand.
    unsafe {
        if !in_place && work.facts.commutative {
            work.exscan(own, receive, count)?;
            return match is_first {
                true => work.copy(own, receive, count),
                false => work.reduce_local(own, receive, count),
            };
        }
        work.exscan(own, buffer, count)?;
        if !in_place {
            work.copy(own, receive, count)?;
        }
        if is_first { Ok(()) } else { work.reduce_local(buffer, receive, count) }
    }
}
