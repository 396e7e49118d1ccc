//! Pairwise exchange (the paper's, Table 4): in step i everybody sends to the rank i after it and
//! receives from the one i before it. One message each way at a time; not segmented.

use records::{Algorithm, Collective};

use super::{begin, input, temporary};
use crate::{Buffer, Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Pairwise>(
    Collective::Alltoall,
    Algorithm::Pairwise,
    "in step i, send i ranks ahead and receive from i ranks behind",
);

#[derive(Debug, Clone, Copy)]
struct Pairwise {
    rank: u32,
    ranks: u32,
    temporary: u64,
}

impl Program for Pairwise {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Pairwise { rank, ranks: call.ranks, temporary: temporary(call) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.ranks)
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == 0 {
            return begin(call, self.rank, out);
        }
        let distance = index as u32;
        let (from, to) = (call.before(self.rank, distance), call.after(self.rank, distance));
        out.exchange(from, call.block(Buffer::Receive, from), to, call.block(input(call), to));
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }

    fn destinations(&self) -> u32 {
        self.ranks - 1
    }
}
