//! Cells: the root puts the message down piece by piece, and all others take each piece as it comes.

use records::{Algorithm, Collective};

use super::{LINE_DEPTH, SHARED_DEPTH, line, segment};
use crate::{Buffer, Call, ElementSpan, Entry, Flag, Program, Range, Round};

pub(super) const ENTRY: Entry = Entry::new::<Cells>(
    Collective::Bcast,
    Algorithm::SharedCells,
    "the root puts segments into shared memory, from where all others take them",
)
.shared()
.segmented();

#[derive(Debug, Clone, Copy)]
struct Cells {
    rank: u32,
    whole: ElementSpan,
    /// Elements of a cell.
    size: u64,
    /// How many there are: one is written anew when all have taken what it held.
    ring: u64,
    is_short: bool,
}

impl Cells {
    fn number(&self) -> u64 {
        if self.is_short { 1 } else { self.whole.segments(self.size) }
    }

    fn cell(&self, call: &Call<'_>, index: u64) -> (Range, Range) {
        let span = self.whole.segment(index, self.size);
        let buffer = Buffer::Shared { owner: call.root, turn: 0 };
        let cell = Range::new(buffer, (index % self.ring) * self.size, span.count);
        (span.in_buffer(Buffer::Receive), cell)
    }

    /// Whether this rank knows in the end that all others have begun.
    fn has_seen_all(&self, call: &Call<'_>) -> bool {
        let waits_for_takers = !self.is_short && self.number() > self.ring;
        waits_for_takers || (call.ranks == 2 && self.rank != call.root && call.count > 0)
    }

    fn short(&self, call: &Call<'_>, out: &mut Round) {
        let (own, line) = (
            self.whole.in_buffer(Buffer::Receive),
            line(call.root, Flag::Arrived, self.whole.count),
        );
        if self.rank == call.root {
            out.await_finished(LINE_DEPTH);
            out.copy(own, line);
            out.signal(Flag::Arrived, 1);
        } else {
            out.await_flag(call.root, Flag::Arrived, 1);
            out.copy(line, own);
        }
    }

    fn put(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let (own, cell) = self.cell(call, index);
        if index == 0 {
            out.await_finished(SHARED_DEPTH);
        }
        if let Some(before) = index.checked_sub(self.ring) {
            out.await_all(Flag::Taken, before + 1);
        }
        out.copy(own, cell);
        out.signal(Flag::Arrived, index + 1);
    }

    fn take(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let (own, cell) = self.cell(call, index);
        out.await_flag(call.root, Flag::Arrived, index + 1);
        out.copy(cell, own);
        if index + self.ring < self.number() {
            out.signal(Flag::Taken, index + 1);
        }
    }
}

impl Program for Cells {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let count = call.count;
        // Half of the message, so that others take what is there while the root puts down more; but cells neither so
        // small that flags cost more than the data, nor so large that there are no four of them.
        let usual = count.div_ceil(2).clamp((call.shared / 64).max(1), (call.shared / 4).max(1));
        let size = match call.segment {
            0 => usual,
            _ => segment(call, count).min(call.shared.max(1)),
        };
        Cells {
            rank,
            whole: ElementSpan { start: 0, count },
            size,
            ring: (call.shared / size).max(1),
            is_short: count <= call.line,
        }
    }

    fn rounds(&self) -> u64 {
        self.number().max(1)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if call.ranks > 1 && call.count > 0 {
            match (self.is_short, self.rank == call.root) {
                (true, _) => self.short(call, out),
                (false, true) => self.put(call, index, out),
                (false, false) => self.take(call, index, out),
            }
        }
        if index + 1 == self.rounds() {
            out.finish(self.has_seen_all(call));
        }
    }

    fn slots(&self) -> u32 {
        0
    }

    fn turns(&self) -> u64 {
        1
    }

    fn shared_elements(&self) -> u64 {
        if self.is_short { 0 } else { self.number().min(self.ring) * self.size }
    }
}
