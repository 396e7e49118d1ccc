//! `MPI_Alltoall` as another collective: GL8.

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup, part::BufferPart};
use crate::{Arguments, Result};

pub(super) static ALLTOALLV: Mockup = Mockup {
    name: "alltoall_as_alltoallv",
    guideline: "GL8",
    collective: Collective::Alltoall,
    memory: "2pI",
    needs: |facts| MockupNeeds { integers: 2 * facts.procs, ..MockupNeeds::default() },
    run: alltoallv,
};

unsafe fn alltoallv(work: &mut MockupWork<'_>, arguments: &Arguments) -> Result<()> {
    let Arguments::Alltoall { send, receive } = arguments else {
        return Err(Mockup::other(arguments));
    };
    let send = BufferPart::unless_in_place(work.mpi, send)?;
    let receive = BufferPart::from_block(work.mpi, receive)?;
    // SAFETY: the application's own parts.
    unsafe { work.alltoallv(send, receive) }
}
