//! Bine butterfly: short and middle messages. As recursive doubling, with nearer partners.

use records::{Algorithm, Collective};

use super::place_own;
use crate::{
    Buffer, Call, Entry, Program, Round,
    algorithms::{bine::Butterfly, reduce_scatter::Equal},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<BineAllgather>(
    Collective::Allgather,
    Algorithm::Bine,
    "runs of blocks double, between partners nearer than in recursive doubling",
)
.even();

#[derive(Debug, Clone, Copy)]
struct BineAllgather {
    butterfly: Butterfly,
    rank: u32,
}

impl Program for BineAllgather {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        BineAllgather { butterfly: Butterfly::new(call.ranks, rank), rank }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.butterfly.steps()) + 1
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        match index.checked_sub(1) {
            None => place_own(call, self.rank, out),
            Some(step) => {
                self.butterfly.gather::<Equal>(call, step as u32, Buffer::Receive, out);
            }
        }
    }

    fn slots(&self) -> u32 {
        Butterfly::SLOTS
    }
}
