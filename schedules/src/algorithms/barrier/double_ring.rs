//! Double ring (the paper's, Table 1): a signal goes around the ring twice, from rank 0. It has
//! been everywhere after the first time, and tells so the second time.

use records::{Algorithm, Collective};

use super::EMPTY_MESSAGE;
use crate::{Call, Entry, Program, Round, topology::Ring};

pub(in super::super) const ENTRY: Entry = Entry::new::<DoubleRing>(
    Collective::Barrier,
    Algorithm::DoubleRing,
    "a signal goes around the ring twice",
);

#[derive(Debug, Clone, Copy)]
struct DoubleRing {
    ring: Ring,
    rank: u32,
    ranks: u32,
}

impl Program for DoubleRing {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        DoubleRing { ring: Ring::new(call.ranks), rank, ranks: call.ranks }
    }

    fn rounds(&self) -> u64 {
        if self.ranks == 1 { 0 } else { 2 }
    }

    fn round(&self, _call: &Call<'_>, _index: u64, out: &mut Round) {
        out.receive(self.ring.previous(self.rank), 0, EMPTY_MESSAGE);
        if self.rank != 0 {
            out.wait(0);
        }
        out.send(self.ring.next(self.rank), 1, EMPTY_MESSAGE);
        if self.rank == 0 {
            out.wait(0);
        }
        out.wait(1);
    }

    fn slots(&self) -> u32 {
        2
    }
}
