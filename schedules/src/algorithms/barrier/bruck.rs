//! Dissemination (Bruck; the paper's, Table 1): in step k everybody signals the rank 2^k after it.
//! Any number of ranks takes the steps of the next power of two.

use records::{Algorithm, Collective};

use crate::{Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Dissemination>(
    Collective::Barrier,
    Algorithm::Bruck,
    "signals at doubling distances around a ring (dissemination)",
);

#[derive(Debug, Clone, Copy)]
struct Dissemination {
    rank: u32,
    steps: u32,
}

impl Program for Dissemination {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Dissemination { rank, steps: u32::BITS - (call.ranks - 1).leading_zeros() }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.steps)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let distance = 1 << index;
        out.exchange_nothing(call.before(self.rank, distance), call.after(self.rank, distance));
    }

    fn slots(&self) -> u32 {
        2
    }
}
