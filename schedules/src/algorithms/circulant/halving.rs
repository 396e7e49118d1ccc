//! One block each.
//!
//! A rank's blocks are counted from its own on, cyclically. On a level, `held` of them are of
//! concern; those from the middle on are what the rank that far after this one is concerned with.
//! The next level has the blocks before the middle.

use std::marker::PhantomData;

use crate::{Buffer, Call, Range, Round, algorithms::reduce_scatter::BlockDivision};

/// One rank's levels.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Halving {
    ranks: u32,
    rank: u32,
}

impl Halving {
    pub const fn new(ranks: u32, rank: u32) -> Self {
        Halving { ranks, rank }
    }

    /// Number of levels.
    pub const fn levels(&self) -> u32 {
        u32::BITS - (self.ranks - 1).leading_zeros()
    }

    /// Where the middle of a level is, and how many blocks are of concern.
    pub fn level(&self, level: u32) -> (u32, u32) {
        let held = |level: u32| u64::from(self.ranks).div_ceil(1 << level) as u32;
        (held(level + 1), held(level))
    }
}

/// A vector in scratch memory, turned so that this rank's block comes first.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Turned<B> {
    halving: Halving,
    /// Elements before this rank's block, and of all blocks.
    before: u64,
    whole: u64,
    blocks: PhantomData<B>,
}

impl<B: BlockDivision> Turned<B> {
    pub fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = B::whole(call).count;
        let halving = Halving::new(call.ranks, rank);
        Turned { halving, before: begin::<B>(call, rank), whole, blocks: PhantomData }
    }

    pub const fn levels(&self) -> u32 {
        self.halving.levels()
    }

    /// Elements of all blocks.
    pub const fn whole(&self) -> u64 {
        self.whole
    }

    /// Elements of scratch memory where blocks come in to be combined: the most are those of the first
    /// level.
    pub fn incoming(&self, call: &Call<'_>) -> u64 {
        if call.ranks < 2 {
            return 0;
        }
        let (middle, held) = self.halving.level(0);
        self.at(call, 0, held - middle).count
    }

    /// The blocks at the places `first..end`.
    pub fn at(&self, call: &Call<'_>, first: u32, end: u32) -> Range {
        let start = self.offset(call, first);
        Range::new(Buffer::Temporary, start, self.offset(call, end) - start)
    }

    fn offset(&self, call: &Call<'_>, place: u32) -> u64 {
        let behind = call.ranks - self.halving.rank;
        match place <= behind {
            true => begin::<B>(call, self.halving.rank + place) - self.before,
            false => self.whole - self.before + begin::<B>(call, place - behind),
        }
    }

    /// From a buffer in which the vector stands in rank order.
    pub fn turn(&self, from: Buffer, out: &mut Round) {
        for (straight, turned) in self.pieces() {
            out.copy(Range { buffer: from, ..straight }, turned);
        }
    }

    /// Back into the receive buffer.
    pub fn turn_back(&self, out: &mut Round) {
        for (straight, turned) in self.pieces() {
            out.copy(turned, straight);
        }
    }

    /// In rank order, and turned.
    fn pieces(&self) -> [(Range, Range); 2] {
        let behind = self.whole - self.before;
        let piece = |straight, turned, count| {
            (
                Range::new(Buffer::Receive, straight, count),
                Range::new(Buffer::Temporary, turned, count),
            )
        };
        [piece(self.before, 0, behind), piece(0, behind, self.before)]
    }

    /// A level of a reduce-scatter: what others are concerned with goes there, and what comes is
    /// combined.
    pub fn reduce(&self, call: &Call<'_>, level: u32, out: &mut Round) {
        let (middle, held) = self.halving.level(level);
        let (from, to) = self.partners(call, middle);
        let into = self.at(call, 0, held - middle);
        let scratch = Range::new(Buffer::Temporary, self.whole, into.count);
        out.exchange(from, scratch, to, self.at(call, middle, held));
        out.combine_left(scratch, into);
    }

    /// A level of an allgather, the last one first: the same messages the other way round.
    pub fn gather(&self, call: &Call<'_>, level: u32, out: &mut Round) {
        let (middle, held) = self.halving.level(level);
        let (to, from) = self.partners(call, middle);
        out.exchange(from, self.at(call, middle, held), to, self.at(call, 0, held - middle));
    }

    fn partners(&self, call: &Call<'_>, distance: u32) -> (u32, u32) {
        (call.before(self.halving.rank, distance), call.after(self.halving.rank, distance))
    }
}

/// Elements before a block.
fn begin<B: BlockDivision>(call: &Call<'_>, block: u32) -> u64 {
    if block == 0 { 0 } else { B::span(call, 0, block).count }
}
