//! `MPI_Alltoall` as another collective: GL8.

use records::Collective;

use super::{calls::Work, facts::Needs, mockup::Mockup, part::Part};
use crate::{Arguments, Result};

pub(super) static ALLTOALLV: Mockup = Mockup {
    name: "alltoall_as_alltoallv",
    guideline: "GL8",
    collective: Collective::Alltoall,
    memory: "2pI",
    needs: |facts| Needs { integers: 2 * facts.procs, ..Needs::default() },
    run: alltoallv,
};

unsafe fn alltoallv(work: &mut Work<'_>, arguments: &Arguments) -> Result<()> {
    let Arguments::Alltoall { send, receive } = arguments else {
        return Err(Mockup::other(arguments));
    };
    let send = Part::unless_in_place(work.mpi, send)?;
    let receive = Part::of(work.mpi, receive)?;
    // SAFETY: the application's own parts.
    unsafe { work.alltoallv(send, receive) }
}
