//! `MPI_Alltoall` as another collective: GL8.

use records::Collective;

use super::{calls::MockupWork, facts::MockupNeeds, mockup::Mockup};
use crate::Result;

pub(super) static ALLTOALLV: Mockup = Mockup {
    name: "alltoall_as_alltoallv",
    guideline: "GL8",
    collective: Collective::Alltoall,
    memory: "2pI",
    needs: |facts| MockupNeeds { integers: 2 * facts.procs, ..MockupNeeds::default() },
    run: alltoallv,
};

unsafe fn alltoallv(work: &mut MockupWork<'_>) -> Result<()> {
    // SAFETY: the application's own parts.
    unsafe { work.alltoallv(work.send, work.received()) }
}
