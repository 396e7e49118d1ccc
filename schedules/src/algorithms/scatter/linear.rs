//! Flat tree: the root sends each rank its block; equal blocks, or (scatterv) counts of their own,
//! of which every rank knows its own, so that no header is needed.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::blocks::{block, own_block},
};

pub(in super::super) const ENTRY: Entry = Entry::of::<Linear<false>>(
    Collective::Scatter,
    Algorithm::Linear,
    "the root sends each rank its block",
);

pub(in super::super) const VECTOR: Entry = Entry::of::<Linear<true>>(
    Collective::Scatterv,
    Algorithm::Linear,
    "the root sends each rank its block",
);

/// Sends under way at once.
const WINDOW: u64 = 32;

#[derive(Debug, Clone, Copy)]
struct Linear<const VECTOR: bool> {
    rank: u32,
    root: u32,
    others: u64,
}

impl<const VECTOR: bool> Program for Linear<VECTOR> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Linear { rank, root: call.root, others: u64::from(call.ranks) - 1 }
    }

    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let slot = |message: u64| (message % WINDOW) as u32;
        let to = |message: u64| call.after(self.root, message as u32 + 1);
        let block = |rank| block::<VECTOR>(call, Buffer::Send, rank);
        let wait = |message, out: &mut Round| {
            if block(to(message)).count > 0 {
                out.wait(slot(message));
            }
        };
        if self.rank != self.root {
            let own = own_block::<VECTOR>(call, Buffer::Receive, self.rank);
            if own.count > 0 {
                out.receive(self.root, 0, own);
                out.wait(0);
            }
        } else if index < self.others {
            if index >= WINDOW {
                wait(index - WINDOW, out);
            }
            if block(to(index)).count > 0 {
                out.send(to(index), slot(index), block(to(index)));
            }
        } else {
            if !call.in_place {
                let own = block(self.root);
                out.copy(own, Range { buffer: Buffer::Receive, start: 0, ..own });
            }
            let first = self.others.saturating_sub(WINDOW);
            (first..self.others).for_each(|message| wait(message, out));
        }
    }

    fn slots(&self) -> u32 {
        if self.rank == self.root { WINDOW as u32 } else { 1 }
    }

    fn destinations(&self) -> u32 {
        if self.rank == self.root { self.others as u32 } else { 1 }
    }
}
