//! Flat tree (the paper's, Table 1): everybody reports to rank 0, which then releases everybody.

use records::{Algorithm, Collective};

use super::EMPTY_MESSAGE;
use crate::{Call, Entry, Program, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Linear>(
    Collective::Barrier,
    Algorithm::Linear,
    "everybody reports to rank 0 and is released by it",
);

/// Messages of rank 0 under way at once.
const WINDOW: u64 = 32;

#[derive(Debug, Clone, Copy)]
struct Linear {
    rank: u32,
    others: u64,
}

impl Linear {
    /// Rank 0's messages: first from, then to each of the others, a window ahead of the waits.
    fn centre(&self, index: u64, out: &mut Round) {
        let slot = |message: u64| (message % WINDOW) as u32;
        let (releases, message) = (index > self.others, index % (self.others + 1));
        if message == self.others {
            // Ends the fan-out; the fan-in has no open receives here.
            if releases {
                let first = self.others.saturating_sub(WINDOW);
                (first..self.others).for_each(|message| out.wait(slot(message)));
            }
        } else if releases {
            if message >= WINDOW {
                out.wait(slot(message));
            }
            out.send(message as u32 + 1, slot(message), EMPTY_MESSAGE);
        } else {
            let first = if message == 0 { 0 } else { message + WINDOW - 1 };
            for ahead in first..(message + WINDOW).min(self.others) {
                out.receive(ahead as u32 + 1, slot(ahead), EMPTY_MESSAGE);
            }
            out.wait(slot(message));
        }
    }
}

impl Program for Linear {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Linear { rank, others: u64::from(call.ranks) - 1 }
    }

    fn rounds(&self) -> u64 {
        match (self.rank, self.others) {
            (_, 0) => 0,
            (0, others) => 2 * (others + 1),
            _ => 1,
        }
    }

    fn round(&self, _call: &Call<'_>, index: u64, out: &mut Round) {
        if self.rank == 0 {
            self.centre(index, out);
        } else {
            out.exchange_nothing(0, 0);
        }
    }

    fn slots(&self) -> u32 {
        if self.rank == 0 { WINDOW as u32 } else { 2 }
    }

    fn destinations(&self) -> u32 {
        if self.rank == 0 { self.others as u32 } else { 1 }
    }
}
