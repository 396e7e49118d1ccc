//! Flat tree: every rank sends its block to the root, which has receives posted ahead; equal
//! blocks, or (gatherv) counts of their own, of which every rank knows its own, so that no header is
//! needed.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Round,
    algorithms::blocks::{block, own_block},
};

pub(in super::super) const ENTRY: Entry = Entry::of::<Linear<false>>(
    Collective::Gather,
    Algorithm::Linear,
    "every rank sends its block to the root",
);

pub(in super::super) const VECTOR: Entry = Entry::of::<Linear<true>>(
    Collective::Gatherv,
    Algorithm::Linear,
    "every rank sends its block to the root",
);

/// Receives under way at once.
const WINDOW: u64 = 32;

#[derive(Debug, Clone, Copy)]
struct Linear<const VECTOR: bool> {
    rank: u32,
    root: u32,
    others: u64,
}

impl<const VECTOR: bool> Linear<VECTOR> {
    fn collect(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let slot = |message: u64| (message % WINDOW) as u32;
        let first = if index == 0 { 0 } else { index + WINDOW - 1 };
        for ahead in first..(index + WINDOW).min(self.others) {
            let from = call.after(self.root, ahead as u32 + 1);
            let block = block::<VECTOR>(call, Buffer::Receive, from);
            if block.count > 0 {
                out.receive(from, slot(ahead), block);
            }
        }
        let from = call.after(self.root, index as u32 + 1);
        if block::<VECTOR>(call, Buffer::Receive, from).count > 0 {
            out.wait(slot(index));
        }
    }
}

impl<const VECTOR: bool> Program for Linear<VECTOR> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Linear { rank, root: call.root, others: u64::from(call.ranks) - 1 }
    }

    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let own = own_block::<VECTOR>(call, Buffer::Send, self.rank);
        if self.rank != self.root {
            if own.count > 0 {
                out.send(self.root, 0, own);
                out.wait(0);
            }
        } else if index < self.others {
            self.collect(call, index, out);
        } else if !call.in_place {
            out.copy(own, block::<VECTOR>(call, Buffer::Receive, self.root));
        }
    }

    fn slots(&self) -> u32 {
        if self.rank == self.root { WINDOW as u32 } else { 1 }
    }
}
