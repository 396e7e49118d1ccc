//! Flat tree with synchronisation: a rank says when its receive is posted, and the root serves one
//! after the other, so that no message comes unexpected and one at a time is under way.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::blocks::{block, own_block},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Synchronised>(
    Collective::Scatterv,
    Algorithm::LinearSynchronised,
    "the root sends each rank its block when it has said that it waits, one after the other",
);

#[derive(Debug, Clone, Copy)]
struct Synchronised {
    rank: u32,
    root: u32,
    others: u64,
}

impl Program for Synchronised {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Synchronised { rank, root: call.root, others: u64::from(call.ranks) - 1 }
    }

    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let nothing = Range::new(Buffer::Receive, 0, 0);
        let own = own_block(true, call, Buffer::Receive, self.rank);
        if self.rank != self.root {
            if own.count > 0 {
                out.receive(self.root, 0, own);
                out.send(self.root, 1, nothing);
                out.wait(1);
                out.wait(0);
            }
        } else if index < self.others {
            let to = call.after(self.root, index as u32 + 1);
            let block = block(true, call, Buffer::Send, to);
            if block.count > 0 {
                out.receive(to, 0, nothing);
                out.wait(0);
                out.send(to, 0, block);
                out.wait(0);
            }
        } else if !call.in_place {
            out.copy(block(true, call, Buffer::Send, self.root), own);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn destinations(&self) -> u32 {
        if self.rank == self.root { self.others as u32 } else { 1 }
    }
}
