//! Slots: who has data puts them down, and who wants them takes them from there.

use records::{Algorithm, Collective};

use super::{Chunks, LINE_DEPTH, SHARED_DEPTH, line, others};
use crate::{Buffer, Call, Entry, Flag, Program, Range, Round};

/// Elements of little, in lines: some KiB.
const LITTLE_LINES: u64 = 64;

const fn entry<const COLLECTIVE: usize>(description: &'static str) -> Entry {
    Entry::new::<Slots<COLLECTIVE>>(
        Collective::ALL[COLLECTIVE],
        Algorithm::SharedSlots,
        description,
    )
    .shared()
}

const GATHER_INDEX: usize = Collective::Gather as usize;
const SCATTER_INDEX: usize = Collective::Scatter as usize;
const ALLGATHER_INDEX: usize = Collective::Allgather as usize;
const ALLTOALL_INDEX: usize = Collective::Alltoall as usize;

pub(super) const GATHER: Entry = entry::<GATHER_INDEX>(
    "each rank puts its block into shared memory, from where the root takes it",
);
pub(super) const SCATTER: Entry = entry::<SCATTER_INDEX>(
    "the root puts all blocks into shared memory, from where each rank takes its own",
);
pub(super) const ALLGATHER: Entry = entry::<ALLGATHER_INDEX>(
    "each rank puts its block into shared memory, from where all others take it",
);
pub(super) const ALLTOALL: Entry = entry::<ALLTOALL_INDEX>(
    "each rank puts its blocks into shared memory, from where each other takes its own",
);

#[derive(Debug, Clone, Copy)]
struct Slots<const COLLECTIVE: usize> {
    rank: u32,
    chunks: Chunks,
    is_short: bool,
}

impl<const COLLECTIVE: usize> Slots<COLLECTIVE> {
    const COLLECTIVE: Collective = Collective::ALL[COLLECTIVE];

    /// Whether a rank puts down a block for each other, not one for all.
    const fn has_block_for_each() -> bool {
        matches!(Self::COLLECTIVE, Collective::Scatter | Collective::Alltoall)
    }

    /// Whether a rank has something for others.
    fn gives(&self, call: &Call<'_>, rank: u32) -> bool {
        match Self::COLLECTIVE {
            Collective::Gather => rank != call.root,
            Collective::Scatter => rank == call.root,
            _ => true,
        }
    }

    /// Whether a rank wants something of others.
    fn takes(&self, call: &Call<'_>, rank: u32) -> bool {
        match Self::COLLECTIVE {
            Collective::Gather => rank == call.root,
            Collective::Scatter => rank != call.root,
            _ => true,
        }
    }

    /// This rank's part of a chunk for another rank.
    fn given(&self, call: &Call<'_>, index: u64, to: u32) -> Range {
        let chunk = self.chunks.chunk(index);
        let block = match (Self::COLLECTIVE, call.in_place) {
            // In place, the root of a scatter has its blocks where others have theirs to send.
            (Collective::Scatter, _) => call.block(Buffer::Send, to),
            (Collective::Alltoall, _) => call.block(call.input(), to),
            (_, true) => call.block(Buffer::Receive, self.rank),
            (_, false) => call.block(Buffer::Send, 0),
        };
        Range { start: block.start + chunk.start, count: chunk.count, ..block }
    }

    /// Where the part of a chunk goes that comes from another rank.
    fn taken(&self, call: &Call<'_>, index: u64, from: u32) -> Range {
        let chunk = self.chunks.chunk(index);
        let block = match Self::COLLECTIVE {
            Collective::Scatter => call.block(Buffer::Receive, 0),
            _ => call.block(Buffer::Receive, from),
        };
        Range { start: block.start + chunk.start, count: chunk.count, ..block }
    }

    /// Where one rank puts down its part of a chunk for another.
    fn slot(&self, index: u64, from: u32, to: u32) -> Range {
        let count = self.chunks.chunk(index).count;
        match self.is_short {
            true => line(from, Flag::Arrived, count),
            false => {
                let offset = match Self::has_block_for_each() {
                    true => u64::from(to) * self.chunks.size,
                    false => 0,
                };
                self.chunks.place(from, index, offset, count)
            }
        }
    }

    fn put(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == 0 {
            out.await_finished(if self.is_short { LINE_DEPTH } else { SHARED_DEPTH });
        }
        // Elsewhere all take from all, and by having taken they know that others have.
        let is_rooted = Self::COLLECTIVE.is_rooted();
        if is_rooted && let Some(before) = index.checked_sub(super::PLACES) {
            match Self::COLLECTIVE {
                Collective::Gather => out.await_flag(call.root, Flag::Taken, before + 1),
                _ => out.await_all(Flag::Taken, before + 1),
            }
        }
        match Self::has_block_for_each() {
            true => others(call, self.rank).for_each(|to| {
                out.copy(self.given(call, index, to), self.slot(index, self.rank, to));
            }),
            false => {
                out.copy(
                    self.given(call, index, self.rank),
                    self.slot(index, self.rank, self.rank),
                );
            }
        }
        out.signal(Flag::Arrived, index + 1);
    }

    fn take(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        // What is little comes from several at once; of what is much, each as soon as it is there.
        let is_little = call.count <= LITTLE_LINES * call.line;
        let awaits_all_at_once = is_little && Self::COLLECTIVE != Collective::Scatter;
        if awaits_all_at_once {
            out.await_all(Flag::Arrived, index + 1);
        }
        for from in others(call, self.rank).filter(|from| self.gives(call, *from)) {
            if !awaits_all_at_once {
                out.await_flag(from, Flag::Arrived, index + 1);
            }
            out.copy(self.slot(index, from, self.rank), self.taken(call, index, from));
        }
        let is_awaited = index + super::PLACES < self.chunks.number();
        if Self::COLLECTIVE.is_rooted() && is_awaited {
            out.signal(Flag::Taken, index + 1);
        }
    }

    /// Whether this rank knows in the end that all others have begun: it has awaited them, or the root that has.
    fn has_seen_all(&self, call: &Call<'_>) -> bool {
        let waits_for_takers = self.chunks.number() > super::PLACES;
        match Self::COLLECTIVE {
            Collective::Gather => waits_for_takers || self.rank == call.root,
            Collective::Scatter => waits_for_takers || (call.ranks == 2 && self.rank != call.root),
            _ => true,
        }
    }

    /// The block that a rank has of itself.
    fn keep(&self, call: &Call<'_>, out: &mut Round) {
        let is_at_both = match Self::COLLECTIVE {
            Collective::Gather | Collective::Scatter => self.rank == call.root,
            _ => true,
        };
        if !is_at_both || call.in_place {
            return;
        }
        let (from, into) = match Self::COLLECTIVE {
            Collective::Gather | Collective::Allgather => {
                (call.block(Buffer::Send, 0), call.block(Buffer::Receive, self.rank))
            }
            Collective::Scatter => {
                (call.block(Buffer::Send, self.rank), call.block(Buffer::Receive, 0))
            }
            _ => (call.block(Buffer::Send, self.rank), call.block(Buffer::Receive, self.rank)),
        };
        out.copy(from, into);
    }
}

impl<const COLLECTIVE: usize> Program for Slots<COLLECTIVE> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let each = Self::has_block_for_each();
        let copies = if each { u64::from(call.ranks) } else { 1 };
        let is_short = !each && call.count <= call.line;
        let chunks = match is_short {
            true => Chunks::one(call.count),
            false => Chunks::new(call, call.count, copies, |_| 0),
        };
        Slots { rank, chunks, is_short }
    }

    fn rounds(&self) -> u64 {
        self.chunks.number().max(1)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if call.count > 0 {
            if call.ranks > 1 && self.gives(call, self.rank) {
                self.put(call, index, out);
            }
            if index == 0 {
                self.keep(call, out);
            }
            if call.ranks > 1 && self.takes(call, self.rank) {
                self.take(call, index, out);
            }
        }
        if index + 1 == self.rounds() {
            out.finish(call.count > 0 && self.has_seen_all(call));
        }
    }

    fn slots(&self) -> u32 {
        0
    }

    fn turns(&self) -> u64 {
        1
    }

    fn shared_elements(&self) -> u64 {
        self.chunks.shared_elements()
    }
}
