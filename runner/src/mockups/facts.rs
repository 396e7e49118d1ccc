//! What all ranks of a call know alike.

use records::Collective;

use crate::{
    Arguments, Counts, Handle, Result, Session,
    agreed::{UniformArguments, non_negative, too_many},
    duplicate::CommunicatorMember,
    layout::BufferLayout,
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
    /// Whether the operation is the program's own, not MPI's.
    pub is_own_operation: bool,
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
    /// Whether a call inside may combine no elements. Open MPI 4.1 then calls the operation with a length of 0:
    /// in `MPI_Reduce_scatter` where a rank has none, in `MPI_Reduce_scatter_block` among 4 ranks. Operations of
    /// programs may not be ready for that: those of ScaLAPACK's BLACS combine one element, whatever the length.
    pub combines_none: bool,
    /// The most elements that a call inside takes as `int`, where it can neither be cut into
    /// several calls nor described by a type of blocks.
    pub indivisible: u64,
}

impl Facts {
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) with `member` of its communicator; only
    /// what is significant on this rank is looked at.
    pub unsafe fn from_arguments(
        session: &Session,
        arguments: &Arguments,
        member: CommunicatorMember,
    ) -> Result<Self> {
        // SAFETY: the call's contract is this function's.
        let agreed = unsafe { UniformArguments::of(session, arguments, member)? };
        let UniformArguments { count, layout, commutative, .. } = agreed;
        let procs = u64::from(member.size);
        if !arguments.collective.combines() {
            let (operation, disjoint) = (session.mpi.constants.bitwise_or, u64::MAX);
            let is_own_operation = false;
            return Ok(Facts {
                procs,
                count,
                layout,
                disjoint,
                operation,
                commutative,
                is_own_operation,
            });
        }
        let (mut all, mut most) = (count, count);
        if let Counts::PerRank { counts, .. } = arguments.send.counts {
            for rank in 0..member.size as usize {
                // SAFETY: there is a count for each rank (the call's contract).
                let count = non_negative(unsafe { counts.get(rank) })?;
                all = all.checked_add(count).ok_or_else(|| too_many(count))?;
                most = most.max(count);
            }
        }
        let operation = arguments.operation;
        let is_own_operation = !session.mpi.constants.is_named_operation(operation);
        Ok(Facts {
            procs,
            count: all,
            layout,
            disjoint: most,
            operation,
            commutative,
            is_own_operation,
        })
    }

    /// Of a call of `bytes` as [`Collective::message_size`] counts them, with the elements that
    /// Colibri measures with.
    pub fn of_measured(collective: Collective, procs: u32, bytes: u64) -> Self {
        let size = collective.element_bytes(bytes);
        let (procs, elements) = (u64::from(procs), bytes / size);
        let count = match collective.has_counts() {
            true => elements.saturating_mul(procs),
            false => elements,
        };
        // Handles are for calls, of which there will be none.
        let (layout, operation) = (BufferLayout::plain(0, size as u32), 0);
        Facts {
            procs,
            count,
            layout,
            disjoint: u64::MAX,
            operation,
            commutative: true,
            is_own_operation: false,
        }
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
