//! Flags: the ranks arrive at the first, which lets all go.

use records::{Algorithm, Collective};

use crate::{Call, Entry, Flag, Program, Round};

pub(super) const ENTRY: Entry = Entry::new::<Flags>(
    Collective::Barrier,
    Algorithm::SharedFlags,
    "each rank raises a flag in shared memory, the first awaits all and raises its own",
)
.shared();

#[derive(Debug, Clone, Copy)]
struct Flags {
    rank: u32,
}

impl Program for Flags {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        Flags { rank }
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, _call: &Call<'_>, _index: u64, out: &mut Round) {
        match self.rank {
            0 => {
                out.await_all(Flag::Arrived, 1);
                out.signal(Flag::Combined, 1);
            }
            _ => {
                out.signal(Flag::Arrived, 1);
                out.await_flag(0, Flag::Combined, 1);
            }
        }
        out.finish(true);
    }

    fn slots(&self) -> u32 {
        0
    }

    fn turns(&self) -> u64 {
        1
    }
}
