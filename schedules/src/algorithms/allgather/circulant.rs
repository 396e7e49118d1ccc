//! Circulant: short and middle messages on any number of ranks, in the fewest rounds, with nothing
//! sent twice. As Bruck, but that the last message is the longest for powers of two only; otherwise
//! the messages grow evenly.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::{circulant::Turned, reduce_scatter::Equal},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<CirculantAllgather>(
    Collective::Allgather,
    Algorithm::Circulant,
    "blocks from distances that double evenly; turned into rank order at the end",
);

#[derive(Debug, Clone, Copy)]
struct CirculantAllgather {
    rank: u32,
    turned: Turned<Equal>,
}

impl Program for CirculantAllgather {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        CirculantAllgather { rank, turned: Turned::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.turned.levels()) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let levels = u64::from(self.turned.levels());
        if index == 0 {
            let own = match call.in_place {
                true => call.block(Buffer::Receive, self.rank),
                false => Range::new(Buffer::Send, 0, call.count),
            };
            out.copy(own, self.turned.at(call, 0, 1));
        } else if index <= levels {
            self.turned.gather(call, (levels - index) as u32, out);
        } else {
            self.turned.turn_back(out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.turned.whole()
    }
}
