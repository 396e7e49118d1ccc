//! The two sides of a call that moves data: what this rank sends, and where it receives.

use crate::{
    Arguments, Block, Counts, Error, Mpi, Result, VectorBlocks,
    agreed::{UniformArguments, Vectors, non_negative, too_many},
    duplicate::CommunicatorMember,
    layout::BufferLayout,
    packing::Packing,
    types::{DatatypeCache, Type},
};

/// What of the receive buffer the schedule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveReads {
    Nothing,
    /// This rank's own block.
    Own,
    All,
}

/// Where the blocks of a side are.
#[derive(Debug, Clone, Copy)]
enum BlockPlacement {
    /// One after the other, each of so many elements.
    Even { count: u64 },
    /// By the application's counts and displacements.
    Uneven { counts: Counts, displacements: Counts },
}

/// A buffer of the application.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplicationBuffer {
    user: *mut u8,
    layout: BufferLayout,
    form: BlockPlacement,
    blocks: u32,
    /// Of all blocks.
    bytes: u64,
    /// Whether memory doesn't hold the very bytes of messages.
    packed: bool,
}

/// Both sides, as far as they mean something on this rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplicationBuffers {
    pub send: Option<ApplicationBuffer>,
    pub receive: Option<ApplicationBuffer>,
    pub in_place: bool,
    pub load: ReceiveReads,
    /// Whether there is something to unpack afterwards.
    pub store: bool,
}

impl ApplicationBuffer {
    fn even(of: Type, block: &Block, blocks: u32) -> Result<Self> {
        let layout = of.layout;
        let count = non_negative(block.count)?;
        let all = count.checked_mul(u64::from(blocks)).ok_or_else(|| too_many(count))?;
        let bytes = all.checked_mul(layout.size as u64).ok_or_else(|| too_many(all))?;
        let user = block.buffer.cast();
        ApplicationBuffer {
            user,
            layout,
            form: BlockPlacement::Even { count },
            blocks,
            bytes,
            packed: !of.is_plain,
        }
        .checked()
    }

    /// # Safety
    /// There must be a count and a displacement for each of the ranks, as long as this is used:
    /// [`block`](Self::block) reads them again.
    unsafe fn uneven(of: Type, blocks: &VectorBlocks, ranks: u32) -> Result<Self> {
        let layout = of.layout;
        let VectorBlocks { buffer, counts, displacements, .. } = *blocks;
        let mut bytes = 0_u64;
        for rank in 0..ranks as usize {
            // SAFETY: `rank` is below `ranks`, for each of which there is a count (contract of this function).
            let count = non_negative(unsafe { counts.get(rank) })?;
            let block = count.checked_mul(layout.size as u64);
            let sum = block.and_then(|block| bytes.checked_add(block));
            bytes = sum.ok_or_else(|| too_many(count))?;
        }
        let form = BlockPlacement::Uneven { counts, displacements };
        let packed = !of.is_plain;
        ApplicationBuffer { user: buffer.cast(), layout, form, blocks: ranks, bytes, packed }
            .checked()
    }

    fn checked(self) -> Result<Self> {
        if self.bytes == 0 {
            return Ok(ApplicationBuffer { packed: false, ..self });
        }
        if let BlockPlacement::Even { count } = self.form {
            self.layout.span(count * u64::from(self.blocks))?;
        }
        Ok(self)
    }

    /// Bytes of scratch memory that its packed form takes.
    pub fn scratch(&self) -> usize {
        if self.packed { self.bytes as usize } else { 0 }
    }

    /// First element and number of elements of a block.
    fn block(&self, index: u32) -> (i64, u64) {
        match self.form {
            BlockPlacement::Even { count } => ((count * u64::from(index)) as i64, count),
            BlockPlacement::Uneven { counts, displacements } => {
                // SAFETY: `uneven` was promised entries for `blocks` ranks as long as this is used; `index` is
                // below `blocks`, where loops end and as `pack_block` is promised.
                let (count, place) =
                    unsafe { (counts.get(index as usize), displacements.get(index as usize)) };
                (place, count.max(0) as u64)
            }
        }
    }

    fn address(&self, element: i64) -> *mut u8 {
        self.user.wrapping_offset((element as isize).wrapping_mul(self.layout.extent))
    }

    /// Where the first byte of the message is: in `scratch`, or in the application's memory, for
    /// blocks with displacements at the lowest of these.
    pub fn message(&self, scratch: *mut u8) -> *mut u8 {
        match (self.packed, self.form) {
            (true, _) => scratch,
            (false, BlockPlacement::Even { .. }) => self.user,
            (false, BlockPlacement::Uneven { .. }) => self.address(self.lowest()),
        }
    }

    /// The lowest displacement of a block that isn't empty.
    fn lowest(&self) -> i64 {
        let blocks = (0..self.blocks).map(|index| self.block(index));
        blocks.filter(|(_, count)| *count > 0).map(|(place, _)| place).min().unwrap_or(0)
    }

    /// Where the blocks are in the message, and how long, in bytes.
    pub fn set_vectors(&self, vectors: &mut Vectors) -> Result<()> {
        vectors.clear();
        let size = self.layout.size as u64;
        let (lowest, mut end) = (self.lowest(), 0);
        for index in 0..self.blocks {
            let (place, count) = self.block(index);
            let place = match self.packed {
                true => end,
                false if count * size == 0 => 0,
                false => {
                    let above = place.abs_diff(lowest);
                    above.checked_mul(size).ok_or_else(|| too_many(above))?
                }
            };
            vectors.push(count * size, place);
            end += count * size;
        }
        Ok(())
    }

    /// Blocks of elements and where they go in the packed form, in bytes.
    fn runs(&self) -> impl Iterator<Item = (i64, u64, usize)> {
        let size = self.layout.size;
        let (blocks, even) = match self.form {
            BlockPlacement::Even { count } => (1, Some((0, count * u64::from(self.blocks)))),
            BlockPlacement::Uneven { .. } => (self.blocks, None),
        };
        (0..blocks).scan(0, move |end, index| {
            let (place, count) = even.unwrap_or_else(|| self.block(index));
            let start = *end;
            *end += count as usize * size;
            Some((place, count, start))
        })
    }

    /// Brings what the schedule reads into `message`.
    ///
    /// # Safety
    /// The application's memory must be valid for the elements of all blocks, for reads to pack and for writes
    /// to unpack; `message` must be so for [`scratch`](Self::scratch) bytes. `packing` must be of this side's
    /// layout, whose datatype is live.
    pub unsafe fn pack(&self, packing: &Packing<'_>, message: *mut u8) -> Result<()> {
        if self.packed {
            for (place, count, start) in self.runs() {
                // SAFETY: `place` and `count` are a block of the application's, and `message` has room for all
                // blocks (contract of this function).
                unsafe { packing.pack(self.address(place), message.wrapping_add(start), count)? };
            }
        }
        Ok(())
    }

    /// As [`ApplicationBuffer::pack`], for one of even blocks or of the blocks of a v-form.
    ///
    /// # Safety
    /// As [`ApplicationBuffer::pack`]; `index` must be below the number of blocks.
    pub unsafe fn pack_block(
        &self,
        packing: &Packing<'_>,
        message: *mut u8,
        index: u32,
    ) -> Result<()> {
        let (place, count) = self.block(index);
        let before: u64 = match (self.packed, self.form) {
            (false, _) => return Ok(()),
            (true, BlockPlacement::Even { count }) => count * u64::from(index),
            (true, BlockPlacement::Uneven { .. }) => {
                (0..index).map(|other| self.block(other).1).sum()
            }
        };
        let message = message.wrapping_add(before as usize * self.layout.size);
        // SAFETY: `place` and `count` are a block of the application's, and `message` has room for it behind
        // those before (contract of this function).
        unsafe { packing.pack(self.address(place), message, count) }
    }

    /// Brings the message to the application's memory.
    ///
    /// # Safety
    /// As [`ApplicationBuffer::pack`].
    pub unsafe fn unpack(&self, packing: &Packing<'_>, message: *const u8) -> Result<()> {
        if self.packed {
            for (place, count, start) in self.runs() {
                // SAFETY: `message` holds all blocks, and `place` and `count` are one of the application's
                // (contract of this function).
                unsafe { packing.unpack(message.wrapping_add(start), self.address(place), count)? };
            }
        }
        Ok(())
    }

    pub fn layout(&self) -> BufferLayout {
        self.layout
    }
}

impl ApplicationBuffers {
    /// Looks at nothing that MPI says is not significant on this rank.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]), with as many ranks as `member` says,
    /// as long as the sides are used.
    pub unsafe fn from_arguments(
        mpi: &Mpi,
        types: &DatatypeCache,
        arguments: &Arguments,
        agreed: &UniformArguments,
        member: CommunicatorMember,
    ) -> Result<Self> {
        let (ranks, is_root) = (member.size, member.rank == agreed.root);
        let is_in_place = |block: &Block| block.buffer.addr() == mpi.constants.in_place;
        let of = |datatype| types.look_up(mpi, datatype);
        let even =
            |block: &Block, blocks| ApplicationBuffer::even(of(block.datatype)?, block, blocks);
        let uneven = |blocks: &VectorBlocks| {
            // SAFETY: a block per rank at the root, by MPI.
            unsafe { ApplicationBuffer::uneven(of(blocks.datatype)?, blocks, ranks) }
        };
        let (in_place, send, receive, load);
        match arguments {
            Arguments::Bcast { data, .. } => {
                (in_place, send) = (false, None);
                receive = (ranks > 1).then(|| even(data, 1)).transpose()?;
                load = if is_root { ReceiveReads::All } else { ReceiveReads::Nothing };
            }
            Arguments::Gather { send: own, .. } | Arguments::Gatherv { send: own, .. } => {
                in_place = is_root && is_in_place(own);
                send = (!in_place).then(|| even(own, 1)).transpose()?;
                receive = match arguments {
                    Arguments::Gather { receive, .. } if is_root => Some(even(receive, ranks)?),
                    Arguments::Gatherv { receive, .. } if is_root => Some(uneven(receive)?),
                    _ => None,
                };
                load = if in_place { ReceiveReads::Own } else { ReceiveReads::Nothing };
            }
            Arguments::Scatter { receive: own, .. } | Arguments::Scatterv { receive: own, .. } => {
                in_place = is_root && is_in_place(own);
                receive = (!in_place).then(|| even(own, 1)).transpose()?;
                send = match arguments {
                    Arguments::Scatter { send, .. } if is_root => Some(even(send, ranks)?),
                    Arguments::Scatterv { send, .. } if is_root => Some(uneven(send)?),
                    _ => None,
                };
                load = ReceiveReads::Nothing;
            }
            Arguments::Allgather { send: own, receive: all } => {
                in_place = is_in_place(own);
                send = (!in_place).then(|| even(own, 1)).transpose()?;
                receive = Some(even(all, ranks)?);
                load = if in_place { ReceiveReads::Own } else { ReceiveReads::Nothing };
            }
            Arguments::Alltoall { send: own, receive: all } => {
                in_place = is_in_place(own);
                send = (!in_place).then(|| even(own, ranks)).transpose()?;
                receive = Some(even(all, ranks)?);
                load = if in_place { ReceiveReads::All } else { ReceiveReads::Nothing };
            }
            _ => (in_place, send, receive, load) = (false, None, None, ReceiveReads::Nothing),
        }
        let store = !(is_root && matches!(arguments, Arguments::Bcast { .. }));
        Ok(ApplicationBuffers { send, receive, in_place, load, store })
    }

    /// The blocks of a v-form as this rank knows them: all of them at the root, elsewhere its own.
    pub fn set_vectors(&self, vectors: &mut Vectors) -> Result<()> {
        let uneven = [&self.send, &self.receive]
            .into_iter()
            .flatten()
            .find(|side| matches!(side.form, BlockPlacement::Uneven { .. }));
        if let Some(side) = uneven {
            return side.set_vectors(vectors);
        }
        let own = self
            .send
            .or(self.receive)
            .ok_or_else(|| Error::Invalid("MPI_IN_PLACE is for the root alone".to_owned()))?;
        vectors.clear();
        vectors.push(own.bytes, 0);
        Ok(())
    }
}
