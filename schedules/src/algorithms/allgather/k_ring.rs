//! Ring of rings: long messages, on nodes of several ranks. Blocks go around among the ranks of a
//! group; each rank then hands the one that it got last to the same place in the next group (Wilkins
//! et al., "Generalized Collective Algorithms for the Exascale Era", CLUSTER 2023). A ring's rounds, but
//! only one message in so many leaves the group.
//!
//! Groups have the fan-out as their size, or the largest below it that divides the number of ranks.

use records::{Algorithm, Collective};

use super::place_own;
use crate::{Buffer, Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<KRing>(
    Collective::Allgather,
    Algorithm::KRing,
    "around rings of fan-out ranks, and from ring to ring",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct KRing {
    rank: u32,
    ranks: u32,
    size: u32,
}

impl KRing {
    /// The rank at a place of a group, both cyclic.
    fn at(&self, group: u32, place: u32) -> u32 {
        group % (self.ranks / self.size) * self.size + place % self.size
    }

    /// Whose block a rank gets in a hop, from 1 on; before, its own.
    fn held(&self, rank: u32, hop: u32) -> u32 {
        let (group, place) = (rank / self.size, rank % self.size);
        let (groups, inside) = (hop / self.size, hop % self.size);
        self.at(group + self.ranks / self.size - groups, place + groups + self.size - inside)
    }
}

impl Program for KRing {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let divides = |size: &u32| call.ranks.is_multiple_of(*size);
        let size = (1..=call.fan_out.min(call.ranks)).rev().find(divides).unwrap_or(1);
        KRing { rank, ranks: call.ranks, size }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let hop = index as u32;
        if hop == 0 {
            return place_own(call, self.rank, out);
        }
        let (group, place) = (self.rank / self.size, self.rank % self.size);
        let (from, to) = match hop.is_multiple_of(self.size) {
            true => (self.at(group + self.ranks / self.size - 1, place), self.at(group + 1, place)),
            false => (self.at(group, place + self.size - 1), self.at(group, place + 1)),
        };
        let block = |rank| call.block(Buffer::Receive, rank);
        out.exchange(
            from,
            block(self.held(self.rank, hop)),
            to,
            block(self.held(self.rank, hop - 1)),
        );
    }

    fn slots(&self) -> u32 {
        2
    }
}
