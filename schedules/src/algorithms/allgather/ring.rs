//! Ring: long messages. Every rank hands on the block that it got last.

use records::{Algorithm, Collective};

use super::place_own;
use crate::{Buffer, Call, Entry, Program, Round, topology::Ring};

pub(in super::super) const ENTRY: Entry = Entry::new::<RingAllgather>(
    Collective::Allgather,
    Algorithm::Ring,
    "every block goes around a ring",
);

#[derive(Debug, Clone, Copy)]
struct RingAllgather {
    ring: Ring,
    rank: u32,
    ranks: u32,
}

impl Program for RingAllgather {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RingAllgather { ring: Ring::new(call.ranks), rank, ranks: call.ranks }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(hop) = index.checked_sub(1) else {
            return place_own(call, self.rank, out);
        };
        let sent = call.before(self.rank, hop as u32);
        let block = |rank| call.block(Buffer::Receive, rank);
        let (from, to) = (self.ring.previous(self.rank), self.ring.next(self.rank));
        out.exchange(from, block(call.before(sent, 1)), to, block(sent));
    }

    fn slots(&self) -> u32 {
        2
    }
}
