//! `MPI_Scan` as another collective: GL20.

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::{Arguments, Result};

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
unsafe fn exscan_reduce_local(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let Arguments::Scan { data, .. } = arguments else { return Err(Mockup::other(arguments)) };
    let (receive, buffer, count) = (data.receive.cast::<u8>(), work.buffers[0], work.facts.count);
    let in_place = work.is_in_place(data.send);
    let own = if in_place { receive.cast_const() } else { data.send.cast() };
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
