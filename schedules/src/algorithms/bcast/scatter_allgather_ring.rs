//! Scatter, then allgather around a ring: the longest messages, all of which go to neighbours.

use records::{Algorithm, Collective};

use super::scatter_allgather::{ScatterParts, parts};
use crate::{Call, Entry, Program, Round, Sequence, topology::Ring};

pub(in super::super) const ENTRY: Entry = Entry::new::<Sequence<ScatterParts, RingParts>>(
    Collective::Bcast,
    Algorithm::ScatterAllgatherRing,
    "parts down a binomial tree, then allgather around a ring",
);

#[derive(Debug, Clone, Copy)]
struct RingParts {
    ring: Ring,
    rank: u32,
    relative: u32,
    ranks: u32,
}

impl Program for RingParts {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let relative = call.relative(rank);
        RingParts { ring: Ring::new(call.ranks), rank, relative, ranks: call.ranks }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks) - 1
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let sent = call.before(self.relative, index as u32);
        let received = call.before(sent, 1);
        let part = |part| parts(call, part, part + 1);
        let (from, to) = (self.ring.previous(self.rank), self.ring.next(self.rank));
        out.exchange(from, part(received), to, part(sent));
        // The root has it, and what it sends may be read-only.
        if self.relative == 0 {
            out.receive_aside();
        }
    }

    fn temporary(&self, call: &Call<'_>, _: &mut Round) -> u64 {
        if self.relative == 0 { call.count.div_ceil(self.ranks.into()) } else { 0 }
    }

    fn slots(&self) -> u32 {
        2
    }
}
