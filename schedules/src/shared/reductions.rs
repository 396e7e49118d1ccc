//! Slices: of each chunk a rank owns a part, which it combines of what all have put down.
//!
//! Operands are combined in the order of ranks, from the last to the first, so that the result is the same bit by
//! bit from call to call and operations need not be commutative.

use records::{Algorithm, Collective};

use super::{Chunks, LINE_DEPTH, PLACES, SHARED_DEPTH, is_exchanged, line, others};
use crate::{Buffer, Call, ElementSpan, Entry, Flag, Program, Range, Round};

const ALL: u8 = 0;
const ROOT: u8 = 1;
const BLOCKS: u8 = 2;

pub(super) const ALLREDUCE: Entry = Entry::new::<Slices<ALL>>(
    Collective::Allreduce,
    Algorithm::SharedSlices,
    "each rank combines a slice of what all put into shared memory, and takes the others' results",
)
.shared()
.segmented();

pub(super) const REDUCE: Entry = Entry::new::<Slices<ROOT>>(
    Collective::Reduce,
    Algorithm::SharedSlices,
    "each rank combines a slice of what all put into shared memory; the root takes the results",
)
.shared()
.segmented();

pub(super) const REDUCE_SCATTER_BLOCK: Entry = Entry::new::<Slices<BLOCKS>>(
    Collective::ReduceScatterBlock,
    Algorithm::SharedSlices,
    "each rank combines its block of what all put into shared memory",
)
.shared();

/// Elements of the smallest slice, in lines, some 150 bytes: below it a rank has more to await than to combine (16
/// ranks of one node: 512 bytes take 1.8 us in slices of 128 bytes, 2.6 us in such of 512).
const LEAST_LINES: u64 = 3;
/// Elements that are combined at a time, in lines: 4 KiB, which stay in a core's first cache while the ranks' operands
/// pass.
const BLOCK_LINES: u64 = 85;

#[derive(Debug, Clone, Copy)]
struct Slices<const RESULT: u8> {
    rank: u32,
    chunks: Chunks,
    /// Elements of a slice. It is the same for all chunks, the last of which may have fewer slices.
    slice: u64,
    is_short: bool,
}

impl<const RESULT: u8> Slices<RESULT> {
    /// How many parts the slices of a chunk are.
    fn copies(call: &Call<'_>) -> u64 {
        if RESULT == BLOCKS { u64::from(call.ranks) } else { 1 }
    }

    /// Elements of the largest slice of a chunk.
    fn slice_size(call: &Call<'_>, chunk: u64) -> u64 {
        match RESULT {
            BLOCKS => chunk,
            _ => chunk.div_ceil(u64::from(call.ranks)).max(LEAST_LINES * call.line),
        }
    }

    /// Which elements of the chunk a rank combines, from the chunk's first on.
    fn slice(&self, index: u64, owner: u32) -> ElementSpan {
        let chunk = self.chunks.chunk(index);
        match RESULT {
            BLOCKS => ElementSpan { start: u64::from(owner) * chunk.count, count: chunk.count },
            _ => {
                let start = (u64::from(owner) * self.slice).min(chunk.count);
                ElementSpan { start, count: self.slice.min(chunk.count - start) }
            }
        }
    }

    /// Whether a rank has a slice of the chunk.
    fn owns(&self, index: u64, rank: u32) -> bool {
        self.slice(index, rank).count > 0
    }

    /// Whether a rank takes the whole result.
    fn takes(&self, call: &Call<'_>) -> bool {
        RESULT == ALL || (RESULT == ROOT && self.rank == call.root)
    }

    /// Where this rank's own input of an owner's slice lies.
    fn input(&self, call: &Call<'_>, index: u64, owner: u32) -> Range {
        let (chunk, slice) = (self.chunks.chunk(index), self.slice(index, owner));
        let start = match RESULT {
            BLOCKS => u64::from(owner) * call.count + chunk.start,
            _ => chunk.start + slice.start,
        };
        Range::new(call.input(), start, slice.count)
    }

    /// Where a rank puts its part of an owner's slice.
    fn put(&self, index: u64, rank: u32, owner: u32) -> Range {
        let slice = self.slice(index, owner);
        self.chunks.place(rank, index, slice.start, slice.count)
    }

    /// Where an owner has the result of its slice.
    fn combined(&self, call: &Call<'_>, index: u64, owner: u32) -> Range {
        let put = self.chunks.size * Self::copies(call);
        self.chunks.place(owner, index, put, self.slice(index, owner).count)
    }

    /// Where the result of an owner's slice goes.
    fn result(&self, index: u64, owner: u32) -> Range {
        let (chunk, slice) = (self.chunks.chunk(index), self.slice(index, owner));
        let start = match RESULT {
            BLOCKS => chunk.start,
            _ => chunk.start + slice.start,
        };
        Range::new(Buffer::Receive, start, slice.count)
    }

    /// Puts down this rank's part of all others' slices.
    fn put_down(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if RESULT == BLOCKS {
            for owner in others(call, self.rank) {
                out.copy(self.input(call, index, owner), self.put(index, self.rank, owner));
            }
            return;
        }
        // All lie in a row.
        let (chunk, own) = (self.chunks.chunk(index), self.slice(index, self.rank));
        let after = own.start + own.count;
        for (start, count) in [(0, own.start), (after, chunk.count - after)] {
            let input = Range::new(call.input(), chunk.start + start, count);
            out.copy(input, self.chunks.place(self.rank, index, start, count));
        }
    }

    /// Combines what all have put down of this rank's slice, block by block. Ranks begin at different blocks, so that not
    /// all of them read from the same rank at the same time.
    fn combine(&self, call: &Call<'_>, index: u64, into: Range, out: &mut Round) {
        out.await_all(Flag::Arrived, index + 1);
        let slice = ElementSpan { start: 0, count: into.count };
        let size = if call.line == 0 { slice.count } else { BLOCK_LINES * call.line };
        let blocks = slice.segments(size);
        let first = u64::from(self.rank) * blocks / u64::from(call.ranks);
        for block in (first..blocks).chain(0..first) {
            let span = slice.segment(block, size);
            let of = |range: Range| Range::new(range.buffer, range.start + span.start, span.count);
            for rank in (0..call.ranks).rev() {
                let source = match rank == self.rank {
                    true => self.input(call, index, self.rank),
                    false => self.put(index, rank, self.rank),
                };
                match rank + 1 == call.ranks {
                    true => out.copy(of(source), of(into)),
                    false => out.combine_left(of(source), of(into)),
                }
            }
        }
    }

    fn long(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let takes = self.takes(call);
        // Where nobody else takes it, the result goes where it belongs, unless there is input yet.
        let is_for_itself = RESULT == BLOCKS || (RESULT == ROOT && takes);
        let own = match is_for_itself && !call.in_place {
            true => self.result(index, self.rank),
            false => self.combined(call, index, self.rank),
        };
        // Who puts down nothing for others writes first when the last rank has, which has awaited all.
        let puts = self.rank > 0 || self.owns(0, 1);
        if index == 0 && puts {
            out.await_finished(SHARED_DEPTH);
        }
        if index >= PLACES && !takes && !self.owns(0, self.rank) {
            // Others have awaited all that read here; the root has their results of that chunk.
            out.await_flag(call.root, Flag::Arrived, index);
        }
        self.put_down(call, index, out);
        out.signal(Flag::Arrived, index + 1);
        if own.count > 0 {
            self.combine(call, index, own, out);
        }
        if RESULT == BLOCKS {
            out.copy(own, self.result(index, self.rank));
            return;
        }
        if own.count > 0 && !is_for_itself {
            out.signal(Flag::Combined, index + 1);
        }
        if takes {
            out.copy(own, self.result(index, self.rank));
            // All first, so that what is looked at comes from several at once.
            let owners = || others(call, self.rank).filter(|rank| self.owns(index, *rank));
            match owners().count() == call.ranks as usize - 1 {
                true => out.await_all(Flag::Combined, index + 1),
                false => {
                    owners().for_each(|owner| out.await_flag(owner, Flag::Combined, index + 1))
                }
            }
            for owner in owners() {
                out.copy(self.combined(call, index, owner), self.result(index, owner));
            }
        }
    }

    /// Where the one that combines a short message does it: where the result belongs, unless there is input yet.
    fn sum(&self, call: &Call<'_>, own: Range) -> Range {
        match call.in_place {
            true => Range { buffer: Buffer::Temporary, ..own },
            false => own,
        }
    }

    /// Combines what lies beside the flags of all, by the order of ranks.
    fn combine_lines(&self, call: &Call<'_>, into: Range, out: &mut Round) {
        let count = call.count;
        out.await_all(Flag::Arrived, 1);
        for rank in (0..call.ranks).rev() {
            let source = match rank == self.rank {
                true => Range::new(call.input(), 0, count),
                false => line(rank, Flag::Arrived, count),
            };
            match rank + 1 == call.ranks {
                true => out.copy(source, into),
                false => out.combine_left(source, into),
            }
        }
    }

    /// Beside the flags: one rank combines all; of two ranks each does, for itself.
    fn short(&self, call: &Call<'_>, out: &mut Round) {
        let count = call.count;
        let at = if RESULT == ROOT { call.root } else { 0 };
        let own = Range::new(Buffer::Receive, 0, count);
        let is_exchange = RESULT == ALL && is_exchanged(call.ranks);
        if self.rank != at || is_exchange {
            out.await_finished(LINE_DEPTH);
            out.copy(Range::new(call.input(), 0, count), line(self.rank, Flag::Arrived, count));
            out.signal(Flag::Arrived, 1);
        }
        if self.rank == at || is_exchange {
            // Where others look for the result it is written once: they look at the line all the time.
            let into = self.sum(call, own);
            self.combine_lines(call, into, out);
            if RESULT == ALL && !is_exchange {
                // Others read it only of rank 0, which writes when the last rank has, which has awaited all.
                out.copy(into, line(at, Flag::Combined, count));
                out.signal(Flag::Combined, 1);
            }
            out.copy(into, own);
        } else if RESULT == ALL {
            out.await_flag(at, Flag::Combined, 1);
            out.copy(line(at, Flag::Combined, count), own);
        }
    }

    /// Whether this rank knows in the end that all others have arrived, by itself or from one that has seen it.
    fn has_seen_all(&self, call: &Call<'_>) -> bool {
        match (call.count, self.is_short) {
            (0, _) => false,
            (_, true) => self.takes(call),
            _ => self.takes(call) || self.owns(0, self.rank) || self.chunks.number() > PLACES,
        }
    }
}

impl<const RESULT: u8> Program for Slices<RESULT> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let extra = |chunk| Self::slice_size(call, chunk).min(chunk);
        let chunks = Chunks::new(call, call.count, Self::copies(call), extra);
        Slices {
            rank,
            chunks,
            slice: Self::slice_size(call, chunks.size),
            is_short: RESULT != BLOCKS && call.count <= call.line,
        }
    }

    fn rounds(&self) -> u64 {
        if self.is_short { 1 } else { self.chunks.number().max(1) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if call.ranks == 1 {
            let count = call.count;
            let own = Range::new(Buffer::Receive, 0, count);
            if index == 0 {
                out.copy(Range::new(call.input(), 0, count), own);
            }
        } else if call.count > 0 {
            match self.is_short {
                true => self.short(call, out),
                false => self.long(call, index, out),
            }
        }
        if index + 1 == self.rounds() {
            out.finish(self.has_seen_all(call));
        }
    }

    fn slots(&self) -> u32 {
        0
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        if self.is_short && call.in_place { call.count } else { 0 }
    }

    fn turns(&self) -> u64 {
        1
    }

    fn shared_elements(&self) -> u64 {
        if self.is_short { 0 } else { self.chunks.shared_elements() }
    }
}
