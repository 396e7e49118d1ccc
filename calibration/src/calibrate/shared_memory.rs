//! Flags and reads of memory that ranks of one node share, by the methods that work through it.

use std::collections::BTreeMap;

use records::{Algorithm, Collective, Method, OwnMethod, Root};
use runner::{Arguments, MethodRunner, Runnable, mockups::Limits};
use timing::operations::{Buffers, CallingRank, operation_of};

use super::cells::{Experiment, SizedExperiment};
use crate::{Error, Result, exchange::Communicator, table, world};

/// One rank's hands in shared memory.
#[derive(Debug)]
pub struct SharedMember {
    runner: MethodRunner,
    /// Among the first so many of the ranks that share.
    communicators: BTreeMap<u32, Communicator>,
    buffers: Buffers,
}

impl SharedMember {
    /// Each number of ranks has a communicator and an area of its own: so many times what a program may share.
    const AREAS: u64 = 8;

    /// For the cells in which this rank takes part; `sharing` are the ranks that share memory, in their order. None on
    /// all of them where they turn out to share none.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn new(
        comm: &Communicator,
        sharing: &[u32],
        cells: &[SizedExperiment],
    ) -> Result<Option<Self>> {
        let cells = || cells.iter().filter(|cell| cell.experiment.is_in_shared_memory());
        let Some(most) = cells().map(|cell| cell.procs).max() else { return Ok(None) };
        let place = sharing.iter().position(|rank| *rank == comm.rank());
        let Some(place) = place.filter(|place| *place < most as usize) else { return Ok(None) };
        let bytes = cells().map(|cell| cell.bytes as usize).max().unwrap_or_default();
        let session = table::session()?;
        session.set_shared_memory(Self::AREAS * schedules::shared::DEFAULT_NODE_BYTES, true);
        let constants = session.mpi().constants;
        let mut member = SharedMember {
            runner: MethodRunner::new(session, Limits::of_environment()?),
            communicators: BTreeMap::new(),
            buffers: Buffers::new(bytes, bytes, constants),
        };
        // All of them first: those of fewer ranks share where these do.
        let mut procs: Vec<u32> = cells().map(|cell| cell.procs).collect();
        procs.sort_unstable_by(|a, b| b.cmp(a));
        procs.dedup();
        for procs in procs.into_iter().filter(|procs| place < *procs as usize) {
            let among = comm.of_ranks(&sharing[..procs as usize])?;
            member.communicators.insert(procs, among);
            match member.barrier(procs)?.run(&mut member.runner) {
                Err(Error::Own(runner::Error::Refused(why))) => {
                    if place == 0 {
                        world::warn(&format!("flags and reads are not measured: {why}"));
                    }
                    return Ok(None);
                }
                outcome => outcome?,
            }
        }
        Ok(Some(member))
    }

    /// This rank's part in a row. What is called with is worked out before.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn take_part(&mut self, cell: &SizedExperiment) -> Result<()> {
        let read = match cell.experiment {
            Experiment::SharedReads => {
                let method = OwnMethod::plain(Algorithm::SharedCells).with_segment(cell.bytes);
                Some(self.call(cell.procs, Collective::Bcast, method, cell.bytes)?)
            }
            _ => None,
        };
        let barrier = self.barrier(cell.procs)?;
        for _ in 0..cell.messages {
            if let Some(read) = &read {
                read.run(&mut self.runner)?;
            }
            barrier.run(&mut self.runner)?;
        }
        Ok(())
    }

    fn barrier(&mut self, procs: u32) -> Result<SharedCall> {
        self.call(procs, Collective::Barrier, OwnMethod::plain(Algorithm::SharedFlags), 0)
    }

    fn call(
        &mut self,
        procs: u32,
        collective: Collective,
        method: OwnMethod,
        bytes: u64,
    ) -> Result<SharedCall> {
        let Some(&among) = self.communicators.get(&procs) else {
            return Err(Error::Usage(format!("{procs} ranks share no memory here")));
        };
        let method = Runnable::new(collective, &Method::Own(method))?;
        let method = method.ok_or_else(|| Error::Usage(format!("no method for {collective}")))?;
        let place = CallingRank::in_communicator(&among, Root::Rank(0));
        let arguments =
            operation_of(collective).arguments(&mut self.buffers, bytes as usize, place);
        Ok(SharedCall { method, arguments, among })
    }
}

/// A call that all ranks of a communicator make. Its arguments lie in the buffers of the [`SharedMember`] that made
/// it, which outlives it.
struct SharedCall {
    method: Runnable,
    arguments: Arguments,
    among: Communicator,
}

impl SharedCall {
    fn run(&self, runner: &mut MethodRunner) -> Result<()> {
        // SAFETY: the buffers, from which the arguments were cut, hold what they say and are not moved; all ranks of
        // the communicator take part in the cell, by the same methods.
        unsafe { runner.run(&self.method, &self.arguments, self.among.handle())? };
        Ok(())
    }
}
