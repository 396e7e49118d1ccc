//! Recursive doubling (the paper's, Table 1): in step k two ranks whose numbers differ in bit k
//! signal each other; ranks beyond a power of two report first and are released last.

use records::{Algorithm, Collective};

use super::EMPTY_MESSAGE;
use crate::{Call, Entry, Program, Round, algorithms::fold::Fold};

pub(in super::super) const ENTRY: Entry = Entry::new::<RecursiveDoubling>(
    Collective::Barrier,
    Algorithm::RecursiveDoubling,
    "pairs signal each other at doubling distances",
);

#[derive(Debug, Clone, Copy)]
struct RecursiveDoubling(Fold);

impl Program for RecursiveDoubling {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        RecursiveDoubling(Fold::new(call.ranks, rank))
    }

    fn rounds(&self) -> u64 {
        u64::from(self.0.levels) + 2
    }

    fn round(&self, _call: &Call<'_>, index: u64, out: &mut Round) {
        if index == 0 {
            self.0.fold(EMPTY_MESSAGE, EMPTY_MESSAGE, out);
        } else if index > u64::from(self.0.levels) {
            self.0.unfold(EMPTY_MESSAGE, out);
        } else if let Some(number) = self.0.number() {
            let partner = self.0.rank_of(number ^ (1 << (index - 1)));
            out.exchange_nothing(partner, partner);
        }
    }

    fn slots(&self) -> u32 {
        2
    }
}
