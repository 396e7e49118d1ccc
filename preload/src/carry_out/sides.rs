//! What one rank sends and receives in a call, as MPI looks at it there.

use std::ptr;

use runner::{Arguments, Block, Counts, Handle, Reduction, Result, SubstituteBuffer};

use super::call::InterceptedCall;

/// A buffer that counts on this rank: so many blocks, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignificantBuffer {
    pub block: Block,
    pub blocks: i64,
}

/// Both, as far as they count on this rank and are not in place where that is allowed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SignificantBuffers {
    pub send: Option<SignificantBuffer>,
    pub receive: Option<SignificantBuffer>,
}

impl SignificantBuffer {
    fn one(block: Block) -> Option<SignificantBuffer> {
        Some(SignificantBuffer { block, blocks: 1 })
    }

    /// All blocks as one.
    fn whole(self) -> Block {
        Block { count: self.block.count.saturating_mul(self.blocks), ..self.block }
    }
}

impl InterceptedCall {
    /// Whether this rank is the root.
    pub(super) fn is_root(&self, root: std::ffi::c_int) -> bool {
        root == self.place.rank
    }

    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn sides(&self) -> SignificantBuffers {
        let procs = i64::from(self.place.plans.procs);
        let unless_in_place = |block: Block, blocks| {
            (!self.is_in_place(block.buffer)).then_some(SignificantBuffer { block, blocks })
        };
        let all = |block: &Block| Some(SignificantBuffer { block: *block, blocks: procs });
        match &self.arguments {
            Arguments::Bcast { data, root } if self.is_root(*root) => {
                SignificantBuffers { send: SignificantBuffer::one(*data), receive: None }
            }
            Arguments::Bcast { data, .. } => {
                SignificantBuffers { send: None, receive: SignificantBuffer::one(*data) }
            }
            Arguments::Allgather { send, receive } => {
                SignificantBuffers { send: unless_in_place(*send, 1), receive: all(receive) }
            }
            Arguments::Alltoall { send, receive } => {
                SignificantBuffers { send: unless_in_place(*send, procs), receive: all(receive) }
            }
            Arguments::Gather { send, receive, root } if self.is_root(*root) => {
                SignificantBuffers { send: unless_in_place(*send, 1), receive: all(receive) }
            }
            Arguments::Gather { send, .. } => {
                SignificantBuffers { send: SignificantBuffer::one(*send), receive: None }
            }
            Arguments::Scatter { send, receive, root } if self.is_root(*root) => {
                SignificantBuffers { send: all(send), receive: unless_in_place(*receive, 1) }
            }
            Arguments::Scatter { receive, .. } => {
                SignificantBuffers { send: None, receive: SignificantBuffer::one(*receive) }
            }
            // SAFETY: `combined` relies on the application's arguments, which these are (contract of this
            // function).
            _ => unsafe { self.combined() },
        }
    }

    /// The sides of a reduction.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    unsafe fn combined(&self) -> SignificantBuffers {
        let (rank, procs) = (self.place.rank as usize, self.place.plans.procs as usize);
        let sides = |data: &Reduction, sent: i64, received: Option<i64>| {
            let Reduction { send, receive, datatype, .. } = *data;
            let side = |buffer, count| SignificantBuffer {
                block: Block { buffer, count, datatype },
                blocks: 1,
            };
            let is_in_place = self.is_in_place(send.cast_mut());
            // In place the operand is where the result will be.
            let received = if is_in_place { Some(received.unwrap_or(sent)) } else { received };
            SignificantBuffers {
                send: (!is_in_place).then(|| side(send.cast_mut(), sent)),
                receive: received.map(|count| side(receive, count)),
            }
        };
        match &self.arguments {
            Arguments::Reduce { data, count, root } => {
                let is_root = self.is_root(*root);
                let mut sides = sides(data, *count, is_root.then_some(*count));
                if !is_root {
                    // In place is for the root alone: elsewhere it is no address to send from.
                    let (buffer, datatype) = (data.send.cast_mut(), data.datatype);
                    sides.send = SignificantBuffer::one(Block { buffer, count: *count, datatype });
                    sides.receive = None;
                }
                sides
            }
            Arguments::Allreduce { data, count } | Arguments::Scan { data, count } => {
                sides(data, *count, Some(*count))
            }
            // Who gets nothing may pass any address.
            Arguments::Exscan { data, count } => sides(data, *count, (rank != 0).then_some(*count)),
            Arguments::ReduceScatterBlock { data, count } => {
                sides(data, count.saturating_mul(procs as i64), Some(*count))
            }
            Arguments::ReduceScatter { data, counts } => {
                // SAFETY: `rank` is a process of the communicator, for each of which the application's `counts`
                // has an entry (contract of this function).
                let count = |rank| unsafe { Counts::get(*counts, rank) };
                let own = Some(count(rank)).filter(|count| *count > 0);
                sides(data, (0..procs).map(count).sum(), own)
            }
            _ => SignificantBuffers::default(),
        }
    }

    /// Whether the two share memory, or may: of types with gaps only the ends are looked at.
    ///
    /// # Safety
    /// Both must be of the application's arguments (see [`carry_out`](super)).
    pub(super) unsafe fn overlap(
        &self,
        one: &SignificantBuffer,
        other: &SignificantBuffer,
    ) -> bool {
        let (from, into) = (one.block.buffer.addr(), other.block.buffer.addr());
        // SAFETY: both datatypes are of the application's arguments (contract of this function), as `is_named`
        // and `ends` want.
        unsafe {
            let are_named =
                self.is_named(one.block.datatype) && self.is_named(other.block.datatype);
            if are_named && self.are_far(from, into) {
                return false;
            }
            match (self.ends(one), self.ends(other)) {
                (Some(one), Some(other)) => one.0 < other.1 && other.0 < one.1,
                _ => false,
            }
        }
    }

    /// Whether buffers of MPI's own types that begin at these addresses can't share memory: such
    /// types have fewer gaps than data, so that most pairs are told apart by this.
    #[inline(always)]
    pub(super) fn are_far(&self, one: usize, other: usize) -> bool {
        let most = self.bytes.saturating_mul(2 * u64::from(self.place.plans.procs));
        one.abs_diff(other) as u64 >= most
    }

    /// The addresses between which the data of a side lies; nothing where there is none.
    ///
    /// # Safety
    /// As [`Self::overlap`].
    unsafe fn ends(&self, side: &SignificantBuffer) -> Option<(i128, i128)> {
        let Block { buffer, count, datatype } = side.whole();
        let (mut lower, mut extent, mut true_lower, mut true_extent) = (0, 0, 0, 0);
        let call = &self.job.library.mpi;
        // SAFETY: `datatype` is live or the library refuses it (contract of this function); outputs are locals.
        let code = unsafe {
            (call.type_get_extent)(datatype, &mut lower, &mut extent)
                | (call.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent)
        };
        if code != 0 || count == 0 || true_extent == 0 {
            return None;
        }
        let first = buffer.addr() as i128 + true_lower as i128;
        let last = first + i128::from(count - 1) * extent as i128;
        Some((first.min(last), first.max(last) + true_extent as i128))
    }

    /// Whether the one side of this rank is its block of the other, by the same type, so that it
    /// is as well in place.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)), with both sides significant on this
    /// rank.
    pub(super) unsafe fn is_own_block(&self) -> bool {
        let (one, all) = match &self.arguments {
            Arguments::Allgather { send, receive } => (send, receive),
            Arguments::Gather { send, receive, .. } => (send, receive),
            Arguments::Scatter { send, receive, .. } => (receive, send),
            _ => return false,
        };
        if !self.is_same_type(one.datatype, all.datatype) || one.count != all.count {
            return false;
        }
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: `all` is significant here (contract of this function), so that its datatype is live; outputs
        // are locals.
        let code = unsafe {
            (self.job.library.mpi.type_get_extent)(all.datatype, &mut lower, &mut extent)
        };
        let before = extent.wrapping_mul(one.count as isize).wrapping_mul(self.place.rank as isize);
        code == 0 && all.buffer.wrapping_byte_offset(before) == one.buffer
    }

    pub(super) fn is_same_type(&self, one: Handle, other: Handle) -> bool {
        (one ^ other) & self.job.library.handle_bits == 0
    }

    /// The same with `MPI_IN_PLACE` for the own block.
    pub(super) fn in_place(&self) -> InterceptedCall {
        let in_place = ptr::without_provenance_mut(self.job.library.mpi.constants.in_place);
        let mut arguments = self.arguments;
        match &mut arguments {
            Arguments::Allgather { send, .. } | Arguments::Gather { send, .. } => {
                send.buffer = in_place;
            }
            Arguments::Scatter { receive, .. } => receive.buffer = in_place,
            _ => {}
        }
        InterceptedCall { arguments, ..*self }
    }

    /// All that this rank receives.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)).
    pub(super) unsafe fn received(&self) -> Option<Block> {
        // SAFETY: `sides` relies on the application's arguments, which these are (contract of this function).
        unsafe { self.sides() }.receive.map(SignificantBuffer::whole)
    }

    /// Memory of ours for what this rank receives, and the arguments with it.
    ///
    /// # Safety
    /// The arguments must be the application's (see [`carry_out`](super)), of datatypes that MPI knows where
    /// data is combined.
    ///
    /// # Errors
    /// There is no such memory.
    pub(super) unsafe fn with_substitute(&self) -> Result<(SubstituteBuffer, Arguments)> {
        // SAFETY: `sides` relies on the application's arguments, which these are (contract of this function).
        let received = unsafe { self.sides() }.receive;
        let mut arguments = self.arguments;
        let made = match &mut arguments {
            Arguments::Allgather { receive, .. }
            | Arguments::Alltoall { receive, .. }
            | Arguments::Gather { receive, .. }
            | Arguments::Scatter { receive, .. } => {
                let blocks = received.map_or(0, |side| side.blocks.unsigned_abs());
                let mut made = SubstituteBuffer::of_bytes(self.bytes.saturating_mul(blocks))?;
                let datatype = self.job.library.mpi.constants.byte;
                let count = i64::try_from(self.bytes).unwrap_or(i64::MAX);
                *receive = Block { buffer: made.address(), count, datatype };
                made
            }
            Arguments::Reduce { data, .. }
            | Arguments::Allreduce { data, .. }
            | Arguments::Scan { data, .. }
            | Arguments::Exscan { data, .. }
            | Arguments::ReduceScatterBlock { data, .. }
            | Arguments::ReduceScatter { data, .. } => {
                let count = received.map_or(0, |side| side.block.count.unsigned_abs());
                // SAFETY: what is combined is of a datatype that MPI knows (contract of this function), as
                // `of_elements` wants.
                let mut made = unsafe {
                    SubstituteBuffer::of_elements(self.job.session, data.datatype, count)?
                };
                data.receive = made.address();
                made
            }
            _ => SubstituteBuffer::of_bytes(0)?,
        };
        Ok((made, arguments))
    }
}
