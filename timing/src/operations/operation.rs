//! How a collective is called, filled and checked.

use std::ffi::{c_int, c_void};

use records::{BufferContent, Collective, Root};
use runner::{Arguments, Counts, Handle, RankArray, Side};

use super::buffers::Buffers;
use crate::{Error, Result, peers::Peers};

/// How a collective is called, filled and checked.
#[derive(Debug)]
pub struct MeasuredOperation {
    pub collective: Collective,
    /// What is called, for the record.
    pub description: &'static str,
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
    /// Bytes of the outgoing and the incoming buffer for a message size and a number of processes.
    pub fn room(&self, bytes: usize, procs: u32) -> (usize, usize) {
        let held = |content: BufferContent| content.bytes(bytes as u64, procs) as usize;
        (held(self.collective.sends()), held(self.collective.receives()))
    }

    /// What is called with: the buffers must have room for it, and be
    /// [prepared](MeasuredOperation::prepare).
    pub fn arguments(&self, buffers: &mut Buffers, bytes: usize, place: CallingRank) -> Arguments {
        let (collective, constants) = (self.collective, buffers.constants);
        let (sent, received) = self.room(bytes, place.procs);
        let send = buffers.outgoing_mut()[..sent].as_mut_ptr().cast();
        let receive = buffers.incoming_mut()[..received].as_mut_ptr().cast();
        let element = collective.element_bytes(bytes as u64);
        let (datatype, operation) = match element {
            1 => (constants.byte, constants.bitwise_xor),
            _ => (constants.double, constants.sum),
        };
        let blocks = Blocks {
            own: (bytes as u64 / element) as i64,
            counts: buffers.counts(),
            displacements: buffers.displacements(),
            datatype,
        };
        if !collective.combines() {
            return blocks.arguments(collective, send, receive, place);
        }
        let counts = match collective.has_counts() {
            true => Counts::in_a_row(RankArray::Int(blocks.counts.as_ptr())),
            false => Counts::Uniform(blocks.own),
        };
        let root = place.root as c_int;
        Arguments::combining(collective, send, receive, counts, datatype, operation, root)
    }

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
                    "{} of {bytes} bytes on {procs} ranks gave a wrong result: byte {index} on \
                     rank {rank} is {found}, expected {wanted}",
                    self.collective
                )));
            }
        }
        Ok(())
    }
}

/// The blocks of a call that moves data.
pub(super) struct Blocks<'a> {
    /// Elements of this rank's.
    pub own: i64,
    /// Elements of each rank's, and where they begin; for the collectives that have a count for each.
    pub counts: &'a [c_int],
    pub displacements: &'a [c_int],
    pub datatype: Handle,
}

impl Blocks<'_> {
    /// The arguments of a call with them.
    pub fn arguments(
        &self,
        collective: Collective,
        send: *mut c_void,
        receive: *mut c_void,
        place: CallingRank,
    ) -> Arguments {
        let side = |address, content| {
            let counts = match content {
                BufferContent::Nothing => return Side::NONE,
                BufferContent::All | BufferContent::AllAtRoot if collective.has_counts() => {
                    Counts::PerRank {
                        counts: RankArray::Int(self.counts.as_ptr()),
                        displacements: Some(RankArray::Int(self.displacements.as_ptr())),
                    }
                }
                _ => Counts::Uniform(self.own),
            };
            Side { address, counts, datatype: self.datatype }
        };
        let send = side(send, collective.sends());
        let receive = side(receive, collective.receives());
        Arguments::moving(collective, send, receive, place.root as c_int)
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
