//! The collectives that mock-ups are composed of.
//!
//! Data that is only moved goes in one call, whatever its count: above 2^31 - 1 elements it is
//! described by a type of blocks. Operands go in as many calls as their count wants.
//!
//! MPI lets ranks name one signature by different types, but a library that cuts messages or
//! chooses its algorithm by the type at hand may then decide differently from rank to rank. The
//! calls of long messages by which Open MPI 4.1's `MPI_Bcast` and `MPI_Gather` failed in the tests
//! look like that, and `MPI_Allgatherv` is taken to be no safer. A collective that the application
//! calls may be carried out by another here, whose trouble it has not chosen: mock-ups which call
//! these send bytes.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    ptr,
};

use super::{facts::Facts, operands::Operands, part::BufferPart};
use crate::{
    Arguments, Mpi, Result, Session,
    duplicate::Duplicate,
    layout::BufferLayout,
    message::{self, Content},
    packing::Packing,
};

/// What a mock-up works with.
///
/// Safety of all functions here: parts and addresses must hold what they say, on the ranks where
/// they are significant, and all ranks of `comm` must call the collectives in the same order.
/// Operands are elements of `facts.layout`.
pub(super) struct MockupWork<'a> {
    pub session: &'a Session,
    pub mpi: &'a Mpi,
    pub arguments: &'a Arguments,
    /// The first block that this rank sends; nothing where it sends none, or in place.
    pub send: Option<BufferPart>,
    /// The first block where it receives any, or where its data is in place.
    pub receive: Option<BufferPart>,
    /// Our duplicate of the application's communicator.
    pub comm: Duplicate,
    pub facts: Facts,
    /// Element 0 of each of the two buffers that the mock-up needs.
    pub buffers: [*mut u8; 2],
    pub operands: Operands,
    /// For the bytes that it needs for packed elements.
    pub packed: *mut u8,
    /// What they leave of the memory that is there, and its bytes.
    pub rest: (*mut u8, usize),
    /// Where that is too little for what this rank packs.
    pub beyond: Vec<u128>,
    /// For the counts and displacements that it needs.
    pub integers: &'a mut [MaybeUninit<c_int>],
    /// The most elements that a call takes.
    pub longest: c_int,
    /// The first call of MPI that failed, with its code.
    pub failure: Cell<Option<(&'static str, c_int)>>,
}

/// An argument of a call: an address, and what is there.
struct MockupArgument<'a> {
    address: *mut c_void,
    content: Content<'a>,
}

impl<'a> MockupWork<'a> {
    /// Keeps the first failure of a collective; the others follow nevertheless, since the other ranks are in
    /// them or will be.
    pub fn note(&self, call: &'static str, code: c_int) {
        if code != 0 && self.failure.get().is_none() {
            self.failure.set(Some((call, code)));
        }
    }

    pub fn rank(&self) -> u64 {
        u64::from(self.comm.rank)
    }

    pub fn procs(&self) -> u64 {
        self.facts.procs
    }

    /// The address that says `MPI_IN_PLACE`.
    pub fn in_place(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.mpi.constants.in_place)
    }

    pub fn root(&self) -> c_int {
        self.arguments.root
    }

    pub fn is_root(&self) -> bool {
        self.arguments.is_root(self.comm.rank)
    }

    /// This rank's own block where one or all are received: what it sends, or in place its block of all.
    pub fn own_block(&self) -> BufferPart {
        self.send.unwrap_or_else(|| self.received().at(self.rank()))
    }

    /// Where the first block is received, on ranks that receive one.
    pub fn received(&self) -> BufferPart {
        self.receive.unwrap_or_else(|| self.part(ptr::null_mut(), 0))
    }

    /// This rank's operand; in place, where the result will lie.
    pub fn operand(&self) -> *const u8 {
        self.send.or(self.receive).map_or(ptr::null(), |part| part.base)
    }

    /// `count` elements (bytes, where data is only moved) of a buffer of ours, or of the
    /// application's where all ranks have the same type.
    pub fn part(&self, base: *mut u8, count: u64) -> BufferPart {
        BufferPart { base, count, layout: self.facts.layout }
    }

    /// The bytes of `count` elements from an address on.
    pub fn packed_part(&self, base: *mut u8, count: u64) -> BufferPart {
        let bytes = count * self.facts.layout.size as u64;
        BufferPart { base, count: bytes, layout: BufferLayout::bytes(self.mpi) }
    }

    /// The address of an element, from that of element 0.
    pub fn element(&self, base: *mut u8, index: u64) -> *mut u8 {
        base.wrapping_offset(self.facts.layout.offset(index))
    }

    /// A part, one of `copies` in a row, or what stands for none.
    fn given(
        &self,
        part: Option<BufferPart>,
        copies: u64,
        otherwise: *mut c_void,
    ) -> Result<MockupArgument<'a>> {
        let Some(BufferPart { base, count, layout }) = part else {
            let content = Content::new(self.mpi, &BufferLayout::bytes(self.mpi), 0, self.longest)?;
            return Ok(MockupArgument { address: otherwise, content });
        };
        let is_many = count.saturating_mul(copies) > self.longest as u64;
        let content = match is_many {
            true => Content::whole(self.mpi, &layout, count, self.longest)?,
            false => Content::new(self.mpi, &layout, count, self.longest)?,
        };
        Ok(MockupArgument { address: base.cast(), content })
    }

    /// Writes a count and a displacement for every rank, and gives where they begin.
    fn numbers(&mut self, of_rank: impl Fn(u64) -> (c_int, c_int)) -> (*const c_int, *const c_int) {
        let procs = self.facts.procs as usize;
        let (counts, displacements) = self.integers.split_at_mut(procs);
        for (rank, (count, displacement)) in counts.iter_mut().zip(displacements).enumerate() {
            let (number, place) = of_rank(rank as u64);
            count.write(number);
            displacement.write(place);
        }
        let counts = self.integers.as_ptr().cast::<c_int>();
        (counts, counts.wrapping_add(procs))
    }

    /// Whether memory holds the very bytes of a message.
    pub fn is_plain(&self, part: &BufferPart) -> Result<bool> {
        Ok(self.session.type_of(part.layout.datatype)?.is_plain)
    }

    /// Copies the application's elements as bytes.
    pub unsafe fn pack(&self, part: &BufferPart, into: *mut u8) -> Result<()> {
        if self.is_plain(part)? {
            // SAFETY: see `Work`; memory holds the bytes of the message.
            unsafe {
                let bytes = part.count as usize * part.layout.size;
                part.base.cast_const().copy_to_nonoverlapping(into, bytes);
            }
            return Ok(());
        }
        // SAFETY: see `Work`.
        unsafe { self.packing(part).pack(part.base, into, part.count) }
    }

    /// Copies bytes to the application's elements.
    pub unsafe fn unpack(&self, from: *const u8, part: &BufferPart) -> Result<()> {
        if self.is_plain(part)? {
            // SAFETY: as above.
            unsafe {
                let bytes = part.count as usize * part.layout.size;
                from.copy_to_nonoverlapping(part.base, bytes);
            }
            return Ok(());
        }
        // SAFETY: see `Work`.
        unsafe { self.packing(part).unpack(from, part.base, part.count) }
    }

    fn packing(&self, part: &BufferPart) -> Packing<'a> {
        let (mpi, comm, longest) = (self.mpi, self.comm.comm, self.longest);
        Packing { mpi, comm, layout: part.layout, longest }
    }

    /// Copies operands; the two may not overlap.
    pub unsafe fn copy(&self, from: *const u8, into: *mut u8, count: u64) -> Result<()> {
        let layout = &self.facts.layout;
        // SAFETY: see `Work`.
        unsafe { message::copy(self.mpi, &self.comm, layout, self.longest, (from, into), count) }
    }

    /// Sending nothing is sending in place.
    pub unsafe fn allgather(&self, send: Option<BufferPart>, receive: BufferPart) -> Result<()> {
        // In place the count of what is sent is not significant, but a library may look at it.
        let mut from = self.given(Some(send.unwrap_or(receive)), 1, ptr::null_mut())?;
        if send.is_none() {
            from.address = self.in_place();
        }
        let (send, receive) = (from, self.given(Some(receive), 1, ptr::null_mut())?);
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.allgather)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                receive.content.count,
                receive.content.datatype,
                self.comm.comm,
            )
        };
        self.note("MPI_Allgather", code);
        Ok(())
    }

    /// Sending nothing is sending in place. `of_rank` gives a count and a displacement, in units
    /// of the type by which one of `copies` parts like `receive` is described, of which it is known
    /// how many make up a part.
    pub unsafe fn allgatherv(
        &mut self,
        send: Option<BufferPart>,
        receive: BufferPart,
        copies: u64,
        of_rank: impl Fn(u64, c_int) -> (c_int, c_int),
    ) -> Result<()> {
        let send = self.given(send, 1, self.in_place())?;
        let receive = self.given(Some(receive), copies, ptr::null_mut())?;
        let (counts, displacements) = self.numbers(|rank| of_rank(rank, receive.content.count));
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.allgatherv)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                counts,
                displacements,
                receive.content.datatype,
                self.comm.comm,
            )
        };
        self.note("MPI_Allgatherv", code);
        Ok(())
    }

    pub unsafe fn alltoall(&self, send: BufferPart, receive: BufferPart) -> Result<()> {
        let send = self.given(Some(send), 1, ptr::null_mut())?;
        let receive = self.given(Some(receive), 1, ptr::null_mut())?;
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.alltoall)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                receive.content.count,
                receive.content.datatype,
                self.comm.comm,
            )
        };
        self.note("MPI_Alltoall", code);
        Ok(())
    }

    /// `MPI_Alltoallv` of equal blocks; sending nothing is sending in place.
    pub unsafe fn alltoallv(
        &mut self,
        send: Option<BufferPart>,
        receive: BufferPart,
    ) -> Result<()> {
        let copies = self.facts.procs;
        let mut from = self.given(send, copies, self.in_place())?;
        let mut into = self.given(Some(receive), copies, ptr::null_mut())?;
        if let Some(part) = send
            && from.content.count != into.content.count
        {
            // One set of counts and displacements serves both sides.
            from.content = Content::whole(self.mpi, &part.layout, part.count, self.longest)?;
            let BufferPart { layout, count, .. } = receive;
            into.content = Content::whole(self.mpi, &layout, count, self.longest)?;
        }
        let (counts, displacements) = self.numbers(|rank| in_a_row(rank, into.content.count));
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.alltoallv)(
                from.address,
                counts,
                displacements,
                from.content.datatype,
                into.address,
                counts,
                displacements,
                into.content.datatype,
                self.comm.comm,
            )
        };
        self.note("MPI_Alltoallv", code);
        Ok(())
    }

    pub unsafe fn bcast(&self, data: BufferPart, root: c_int) -> Result<()> {
        let data = self.given(Some(data), 1, ptr::null_mut())?;
        let Content { count, datatype, .. } = data.content;
        // SAFETY: see `Work`.
        let code = unsafe { (self.mpi.bcast)(data.address, count, datatype, root, self.comm.comm) };
        self.note("MPI_Bcast", code);
        Ok(())
    }

    /// The root sends in place by sending nothing; the others receive nothing.
    pub unsafe fn gather(
        &self,
        send: Option<BufferPart>,
        receive: Option<BufferPart>,
        root: c_int,
    ) -> Result<()> {
        let send = self.given(send, 1, self.in_place())?;
        let receive = self.given(receive, 1, ptr::null_mut())?;
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.gather)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                receive.content.count,
                receive.content.datatype,
                root,
                self.comm.comm,
            )
        };
        self.note("MPI_Gather", code);
        Ok(())
    }

    /// As [`MockupWork::gather`] and [`MockupWork::allgatherv`].
    pub unsafe fn gatherv(
        &mut self,
        send: Option<BufferPart>,
        receive: Option<BufferPart>,
        copies: u64,
        of_rank: impl Fn(u64, c_int) -> (c_int, c_int),
        root: c_int,
    ) -> Result<()> {
        let send = self.given(send, 1, self.in_place())?;
        let receive = self.given(receive, copies, ptr::null_mut())?;
        let (counts, displacements) = self.numbers(|rank| of_rank(rank, receive.content.count));
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.gatherv)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                counts,
                displacements,
                receive.content.datatype,
                root,
                self.comm.comm,
            )
        };
        self.note("MPI_Gatherv", code);
        Ok(())
    }

    /// Only the root sends; it receives in place by receiving nothing.
    pub unsafe fn scatter(
        &self,
        send: Option<BufferPart>,
        receive: Option<BufferPart>,
        root: c_int,
    ) -> Result<()> {
        let send = self.given(send, 1, ptr::null_mut())?;
        let receive = self.given(receive, 1, self.in_place())?;
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.scatter)(
                send.address,
                send.content.count,
                send.content.datatype,
                receive.address,
                receive.content.count,
                receive.content.datatype,
                root,
                self.comm.comm,
            )
        };
        self.note("MPI_Scatter", code);
        Ok(())
    }

    /// As [`MockupWork::scatter`] and [`MockupWork::allgatherv`].
    pub unsafe fn scatterv(
        &mut self,
        send: Option<BufferPart>,
        copies: u64,
        of_rank: impl Fn(u64, c_int) -> (c_int, c_int),
        receive: Option<BufferPart>,
        root: c_int,
    ) -> Result<()> {
        let send = self.given(send, copies, ptr::null_mut())?;
        let receive = self.given(receive, 1, self.in_place())?;
        let (counts, displacements) = self.numbers(|rank| of_rank(rank, send.content.count));
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.scatterv)(
                send.address,
                counts,
                displacements,
                send.content.datatype,
                receive.address,
                receive.content.count,
                receive.content.datatype,
                root,
                self.comm.comm,
            )
        };
        self.note("MPI_Scatterv", code);
        Ok(())
    }
}

/// Equal blocks one after the other: the count and displacement of a rank's.
pub(super) fn in_a_row(rank: u64, count: c_int) -> (c_int, c_int) {
    (count, rank as c_int * count)
}
