//! How a collective is called, filled and checked.

use records::{Collective, Root};
use runner::Arguments;

use super::buffers::Buffers;
use crate::{Error, Result, peers::Peers};

/// How a collective is called, filled and checked.
#[derive(Debug)]
pub struct MeasuredOperation {
    pub collective: Collective,
    /// What is called, for the record.
    pub description: &'static str,
    /// Bytes of the outgoing and the incoming buffer for a message size and a number of processes.
    pub room: fn(bytes: usize, procs: usize) -> (usize, usize),
    /// What is called with: the buffers must have room for it, and be
    /// [prepared](MeasuredOperation::prepare).
    pub arguments: fn(&mut Buffers, bytes: usize, place: CallingRank) -> Arguments,
    /// Fills the outgoing buffer so that the result can be checked.
    pub(super) fill: fn(&mut Buffers, bytes: usize, place: CallingRank),
    /// Bytes of the result on a rank, in the incoming buffer.
    pub(super) length: fn(bytes: usize, place: CallingRank) -> usize,
    /// What stands at a byte of the result on a rank.
    pub(super) expected: fn(index: usize, bytes: usize, place: CallingRank) -> u8,
}

/// A rank among those that call.
#[derive(Debug, Clone, Copy)]
pub struct CallingRank {
    pub rank: u32,
    /// How many there are.
    pub procs: u32,
    /// The root of the call; of no meaning where the collective has none.
    pub root: u32,
}

impl MeasuredOperation {
    /// Fills the buffers so that [`check`](Self::check) can tell a right result from a wrong or a
    /// missing one.
    pub fn prepare(&self, buffers: &mut Buffers, bytes: usize, place: CallingRank) {
        let length = (self.length)(bytes, place);
        for (index, byte) in buffers.incoming_mut()[..length].iter_mut().enumerate() {
            *byte = !(self.expected)(index, bytes, place);
        }
        (self.fill)(buffers, bytes, place);
    }

    /// Compares the result with what it should be.
    ///
    /// # Errors
    /// It is another; the error names the first wrong byte.
    pub fn check(&self, buffers: &Buffers, bytes: usize, place: CallingRank) -> Result<()> {
        let result = &buffers.incoming()[..(self.length)(bytes, place)];
        for (index, &found) in result.iter().enumerate() {
            let wanted = (self.expected)(index, bytes, place);
            if wanted != found {
                let CallingRank { rank, procs, .. } = place;
                return Err(Error::WrongResult(format!(
                    "{} of {bytes} bytes on {procs} processes gave a wrong result: byte {index} on \
                     rank {rank} is {found}, expected {wanted}",
                    self.collective
                )));
            }
        }
        Ok(())
    }
}

impl CallingRank {
    /// This rank in a communicator.
    pub fn in_communicator(comm: &impl Peers, root: Root) -> Self {
        let procs = comm.size();
        CallingRank { rank: comm.rank(), procs, root: root.among(procs) }
    }

    /// Whether it is the root.
    pub(super) const fn is_root(self) -> bool {
        self.rank == self.root
    }
}
