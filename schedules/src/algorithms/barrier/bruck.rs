//! Dissemination (Bruck; the paper's, Table 1): in step k everybody signals the rank 2^k after it, or
//! those 1, 2, ... times the radix^k after it. Any number of ranks takes the steps of the next power.

use records::{Algorithm, Collective};

use super::EMPTY_MESSAGE;
use crate::{
    Call, Entry, Program, Round,
    algorithms::radix::{digits, radix, weight},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Dissemination<2>>(
    Collective::Barrier,
    Algorithm::Bruck,
    "signals at doubling distances around a ring (dissemination)",
);

pub(in super::super) const OF_RADIX: Entry = Entry::new::<Dissemination<0>>(
    Collective::Barrier,
    Algorithm::KBruck,
    "fan-out - 1 signals at once, at distances that grow fan-out times (dissemination)",
)
.fanned();

#[derive(Debug, Clone, Copy)]
struct Dissemination<const RADIX: u32> {
    rank: u32,
    ranks: u32,
    radix: u32,
}

impl<const RADIX: u32> Program for Dissemination<RADIX> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Dissemination { rank, ranks: call.ranks, radix: radix::<RADIX>(call) }
    }

    fn rounds(&self) -> u64 {
        u64::from(digits(self.ranks, self.radix))
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let weight = weight(self.radix, index as u32);
        let distances = (1..self.radix).map(|times| u64::from(times) * weight);
        let distances = distances.take_while(|&distance| distance < u64::from(self.ranks));
        let distances = (0..).zip(distances.map(|distance| distance as u32));
        let come = distances
            .clone()
            .map(|(slot, distance)| (call.before(self.rank, distance), slot, EMPTY_MESSAGE));
        let go = distances.map(|(slot, distance)| {
            (call.after(self.rank, distance), self.radix - 1 + slot, EMPTY_MESSAGE)
        });
        out.exchange_all(come, go);
    }

    fn slots(&self) -> u32 {
        2 * (self.radix - 1)
    }

    fn destinations(&self) -> u32 {
        self.radix - 1
    }
}
