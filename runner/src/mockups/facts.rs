//! What all ranks of a call know alike.

use std::ffi::c_int;

use records::Collective;

use crate::{
    Arguments, Block, Error, Handle, Mpi, Result, Session, error::check, layout::BufferLayout,
};

/// What all ranks of a call know alike: whatever is decided by this is decided alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub procs: u64,
    /// Bytes of a block (of the message, for bcast) where data is only moved: ranks may describe
    /// it by different types. Elements of a block or operand where data is combined; of all blocks
    /// for reduce_scatter.
    pub count: u64,
    /// Bytes where data is only moved, else the elements.
    pub layout: BufferLayout,
    /// How many elements in a row don't overlap, as far as MPI promises it: as many as some rank
    /// receives.
    pub disjoint: u64,
    /// The operation of a reduction; bitwise or where data is only moved.
    pub operation: Handle,
    pub commutative: bool,
}

/// What a mock-up needs for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MockupNeeds {
    /// Elements (or bytes) of two buffers, whatever the types are. What a rank needs beyond that because
    /// its own type must be packed or unpacked others don't know:
    /// [`MockupWork::packing_room`](super::calls::MockupWork::packing_room).
    pub buffers: [u64; 2],
    /// Elements of operands that are combined by as many at a time as don't overlap.
    pub operands: u64,
    /// Bytes of elements that are packed on some ranks, as all know.
    pub packed: u64,
    /// Counts and displacements.
    pub integers: u64,
    /// Whether the operation must be commutative: MPICH 4.0's `MPI_Reduce_scatter` and
    /// `MPI_Reduce_scatter_block` combine types with gaps wrongly where it is not.
    pub commutative: bool,
    /// The most elements that a call inside takes as `int`, where it can neither be cut into
    /// several calls nor described by a type of blocks.
    pub indivisible: u64,
}

impl Facts {
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`; only what is significant on
    /// this rank is looked at.
    pub unsafe fn from_arguments(
        session: &Session,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<Self> {
        let mpi = &session.mpi;
        // SAFETY: handles are live, and `counts` has an entry for each of the `procs` ranks (the call's
        // contract).
        unsafe {
            let procs = u64::from(session.member(comm)?.size);
            let at_root = |root: c_int| is_root(mpi, root, procs, comm);
            let (count, reduction) = match arguments {
                Arguments::Allgather { receive, .. } | Arguments::Alltoall { receive, .. } => {
                    (bytes(mpi, receive)?, None)
                }
                Arguments::Bcast { data, root } => {
                    at_root(*root)?;
                    (bytes(mpi, data)?, None)
                }
                Arguments::Gather { send, receive, root } => {
                    (bytes(mpi, if at_root(*root)? { receive } else { send })?, None)
                }
                Arguments::Scatter { send, receive, root } => {
                    (bytes(mpi, if at_root(*root)? { send } else { receive })?, None)
                }
                Arguments::Reduce { data, count, root } => {
                    at_root(*root)?;
                    (non_negative(*count)?, Some(data))
                }
                Arguments::Allreduce { data, count }
                | Arguments::ReduceScatterBlock { data, count }
                | Arguments::Scan { data, count } => (non_negative(*count)?, Some(data)),
                Arguments::ReduceScatter { data, counts } => {
                    let each = (0..procs as usize).map(|rank| non_negative(counts.get(rank)));
                    (each.sum::<Result<u64>>()?, Some(data))
                }
                other => {
                    let problem = format!("{} has no mock-ups", other.collective());
                    return Err(Error::Refused(problem));
                }
            };
            let Some(data) = reduction else {
                let (layout, operation) = (BufferLayout::bytes(mpi), mpi.constants.bitwise_or);
                let (disjoint, commutative) = (u64::MAX, true);
                return Ok(Facts { procs, count, layout, disjoint, operation, commutative });
            };
            let mut commutative = 0;
            let code = (mpi.op_commutative)(data.operation, &mut commutative);
            check("MPI_Op_commutative", code)?;
            let layout = BufferLayout::from_datatype(mpi, data.datatype)?;
            let disjoint = match arguments {
                Arguments::ReduceScatter { counts, .. } => {
                    let mut each = (0..procs as usize).map(|rank| non_negative(counts.get(rank)));
                    each.try_fold(0, |most, count| Ok::<_, Error>(count?.max(most)))?
                }
                _ => count,
            };
            let (operation, commutative) = (data.operation, commutative != 0);
            Ok(Facts { procs, count, layout, disjoint, operation, commutative })
        }
    }

    /// Of a call of `bytes` as [`Collective::message_size`] counts them, with the elements that
    /// Colibri measures with.
    pub fn of_measured(collective: Collective, procs: u32, bytes: u64) -> Self {
        let size = collective.element_bytes(bytes);
        let (procs, elements) = (u64::from(procs), bytes / size);
        let count = match collective {
            Collective::ReduceScatter => elements.saturating_mul(procs),
            _ => elements,
        };
        // Handles are for calls, of which there will be none.
        let (layout, operation) = (BufferLayout::plain(0, size as u32), 0);
        Facts { procs, count, layout, disjoint: u64::MAX, operation, commutative: true }
    }

    /// Bytes or elements of all blocks.
    pub fn total(&self) -> u64 {
        self.procs.saturating_mul(self.count)
    }

    /// Bytes of so many elements' data where the type has gaps; such elements are sent as bytes.
    pub fn packed(&self, elements: u64) -> u64 {
        let size = if self.layout.is_dense() { 0 } else { self.layout.size as u64 };
        elements.saturating_mul(size)
    }

    /// Bytes or elements of each of p equal blocks into which an operand or message is cut; the
    /// last may be padded.
    pub fn share(&self) -> u64 {
        self.count.div_ceil(self.procs)
    }

    /// With these shares' padding.
    pub fn padded(&self) -> u64 {
        self.share().saturating_mul(self.procs)
    }
}

/// # Safety
/// `comm` must be a live intra-communicator of so many ranks.
unsafe fn is_root(mpi: &Mpi, root: c_int, procs: u64, comm: Handle) -> Result<bool> {
    if root < 0 || root as u64 >= procs {
        return Err(Error::Invalid(format!("root {root}; expected 0 to {}", procs - 1)));
    }
    let mut rank = 0;
    // SAFETY: `comm` is live (contract of this function); `rank` is a local.
    check("MPI_Comm_rank", unsafe { (mpi.comm_rank)(comm, &mut rank) })?;
    Ok(rank == root)
}

fn bytes(mpi: &Mpi, block: &Block) -> Result<u64> {
    let count = non_negative(block.count)?;
    let mut size = 0;
    // SAFETY: `from_arguments` alone calls this, with blocks whose datatypes are live by the call's contract;
    // `size` is a local.
    check("MPI_Type_size_x", unsafe { (mpi.type_size_x)(block.datatype, &mut size) })?;
    let bytes = u64::try_from(size).ok().and_then(|size| count.checked_mul(size));
    bytes.ok_or_else(|| Error::Invalid(format!("{count} elements of {size} bytes")))
}

fn non_negative(count: i64) -> Result<u64> {
    u64::try_from(count)
        .map_err(|_| Error::Invalid(format!("{count} elements; expected 0 or more")))
}
