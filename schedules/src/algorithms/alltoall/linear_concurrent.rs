//! Everything at once: all receives and all sends are posted, nearest ranks first, and then waited
//! for. The basic linear alltoall of MPI libraries; not what the paper calls linear.

use records::{Algorithm, Collective};

use super::{begin, input, temporary};
use crate::{Buffer, Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Concurrent>(
    Collective::Alltoall,
    Algorithm::LinearConcurrent,
    "all messages posted at once",
);

#[derive(Debug, Clone, Copy)]
struct Concurrent {
    rank: u32,
    others: u32,
    temporary: u64,
    empty: bool,
}

impl Program for Concurrent {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let temporary = temporary(call);
        Concurrent { rank, others: call.ranks - 1, temporary, empty: call.count == 0 }
    }

    fn rounds(&self) -> u64 {
        if self.empty { 0 } else { 1 + 4 * u64::from(self.others) }
    }

    /// A round per message and kind: receives, sends, waits for the former and for the latter.
    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(index) = index.checked_sub(1) else { return begin(call, self.rank, out) };
        let others = u64::from(self.others);
        let message = (index % others) as u32;
        let (from, to) = (call.before(self.rank, message + 1), call.after(self.rank, message + 1));
        match index / others {
            0 => out.receive(from, message, call.block(Buffer::Receive, from)),
            1 => out.send(to, self.others + message, call.block(input(call), to)),
            2 => out.wait(message),
            _ => out.wait(self.others + message),
        }
    }

    fn slots(&self) -> u32 {
        2 * self.others
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }

    fn destinations(&self) -> u32 {
        self.others
    }
}
