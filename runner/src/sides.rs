//! The two sides of a call that moves data: what this rank sends, and where it receives.

use records::BufferContent;

use crate::{
    Arguments, Counts, Error, Result, Session, Side, SignificantSide, SignificantSides,
    agreed::{Vectors, non_negative, too_many},
    duplicate::CommunicatorMember,
    layout::BufferLayout,
    packing::Packing,
    types::Type,
};

/// What of the receive buffer the schedule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveReads {
    Nothing,
    /// This rank's own block.
    Own,
    All,
}

/// A buffer of the application.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplicationBuffer {
    side: Side,
    layout: BufferLayout,
    blocks: u32,
    /// Of all blocks.
    bytes: u64,
    is_plain: bool,
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
    /// # Safety
    /// An array must have an entry for each rank, as long as this is used: [`block`](Self::block) reads it again.
    unsafe fn new(of: Type, given: SignificantSide) -> Result<Self> {
        let (layout, SignificantSide { side, blocks, .. }) = (of.layout, given);
        let size = layout.size as u64;
        let bytes = match side.counts {
            Counts::Uniform(count) => {
                let count = non_negative(count)?;
                let all = count.checked_mul(u64::from(blocks)).ok_or_else(|| too_many(count))?;
                let bytes = all.checked_mul(size).ok_or_else(|| too_many(all))?;
                if bytes > 0 {
                    layout.span(all)?;
                }
                bytes
            }
            counts @ Counts::PerRank { .. } => (0..blocks).try_fold(0_u64, |bytes, rank| {
                // SAFETY: there is a count for each of the ranks (contract of this function).
                let count = non_negative(unsafe { counts.of_rank(rank) })?;
                let block = count.checked_mul(size);
                block.and_then(|block| bytes.checked_add(block)).ok_or_else(|| too_many(count))
            })?,
        };
        Ok(ApplicationBuffer { side, layout, blocks, bytes, is_plain: of.is_plain })
    }

    /// Whether memory doesn't hold the very bytes of messages.
    fn is_packed(&self) -> bool {
        self.bytes > 0 && !self.is_plain
    }

    fn is_even(&self) -> bool {
        matches!(self.side.counts, Counts::Uniform(_))
    }

    /// Bytes of scratch memory that its packed form takes.
    pub fn scratch(&self) -> usize {
        if self.is_packed() { self.bytes as usize } else { 0 }
    }

    /// First element and number of elements of a block.
    fn block(&self, index: u32) -> (i64, u64) {
        let counts = self.side.counts;
        // SAFETY: `new` was promised entries for `blocks` ranks as long as this is used; `index` is
        // below `blocks`, where loops end and as `pack_block` is promised.
        let (place, count) = unsafe { (counts.place(index), counts.of_rank(index)) };
        (place, count.max(0) as u64)
    }

    fn address(&self, element: i64) -> *mut u8 {
        let offset = (element as isize).wrapping_mul(self.layout.extent);
        self.side.address.cast::<u8>().wrapping_offset(offset)
    }

    /// Where the first byte of the message is: in `scratch`, or in the application's memory, for
    /// blocks with displacements at the lowest of these.
    pub fn message(&self, scratch: *mut u8) -> *mut u8 {
        match self.is_packed() {
            true => scratch,
            false if self.is_even() => self.side.address.cast(),
            false => self.address(self.lowest()),
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
            let place = match self.is_packed() {
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
        let (blocks, even) = match self.is_even() {
            true => (1, Some((0, self.block(0).1 * u64::from(self.blocks)))),
            false => (self.blocks, None),
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
        if self.is_packed() {
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
        if !self.is_packed() {
            return Ok(());
        }
        let (place, count) = self.block(index);
        let before: u64 = match self.is_even() {
            true => count * u64::from(index),
            false => (0..index).map(|other| self.block(other).1).sum(),
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
        if self.is_packed() {
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
        session: &Session,
        arguments: &Arguments,
        member: CommunicatorMember,
    ) -> Result<Self> {
        let SignificantSides { send, receive, in_place } =
            arguments.significant(member.rank, member.size, session.mpi.constants.in_place);
        let buffer = |side: Option<SignificantSide>| {
            side.map(|given| {
                let of = session.type_of(given.side.datatype)?;
                // SAFETY: a significant array has an entry for each rank as long as the sides are used (the
                // call's contract).
                unsafe { ApplicationBuffer::new(of, given) }
            })
            .transpose()
        };
        let sends = arguments.collective.sends();
        if sends == BufferContent::Nothing {
            // The one buffer of a broadcast is what schedules take for the receive buffer.
            let (load, store) = match send {
                Some(_) => (ReceiveReads::All, false),
                None => (ReceiveReads::Nothing, true),
            };
            let receive = buffer(send.or(receive).filter(|_| member.size > 1))?;
            return Ok(ApplicationBuffers { send: None, receive, in_place, load, store });
        }
        let load = match sends {
            _ if !in_place => ReceiveReads::Nothing,
            BufferContent::All => ReceiveReads::All,
            _ => ReceiveReads::Own,
        };
        let (send, receive) = (buffer(send)?, buffer(receive)?);
        Ok(ApplicationBuffers { send, receive, in_place, load, store: true })
    }

    /// Whether their types outlive the call, and none needs to be packed.
    pub fn are_plain(&self) -> bool {
        [self.send, self.receive].iter().flatten().all(|side| side.is_plain)
    }

    /// The blocks of a v-form as this rank knows them: all of them at the root, elsewhere its own.
    pub fn set_vectors(&self, vectors: &mut Vectors) -> Result<()> {
        let uneven = [&self.send, &self.receive].into_iter().flatten().find(|side| !side.is_even());
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
