//! Folding any number of ranks onto fewer, such as a power of two.
//!
//! Of the first 2r ranks, r being how many are too many, each even one hands its
//! contribution to the odd one after it and stands aside. The others are numbered in rank order,
//! so runs of them are runs of ranks: the order of operands is kept.

use crate::{Range, Round};

/// One rank's part in the folding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fold {
    rank: u32,
    surplus: u32,
    /// log2 of the number of ranks that stay.
    pub levels: u32,
}

impl Fold {
    /// Onto the largest power of two.
    pub const fn new(ranks: u32, rank: u32) -> Self {
        Fold::onto(ranks, rank, 1 << ranks.ilog2())
    }

    /// Onto `staying` ranks, at least half of them.
    pub const fn onto(ranks: u32, rank: u32, staying: u32) -> Self {
        Fold { rank, surplus: ranks - staying, levels: staying.ilog2() }
    }

    /// The first of the ranks whose data a number stands for; they follow each other.
    pub const fn first(&self, number: u32) -> u32 {
        if number < self.surplus { 2 * number } else { number + self.surplus }
    }

    /// The rank with which this one is folded, if it is.
    pub const fn partner(&self) -> Option<u32> {
        if self.rank < 2 * self.surplus { Some(self.rank ^ 1) } else { None }
    }

    /// Number of this rank among those that stay.
    pub const fn number(&self) -> Option<u32> {
        if self.rank >= 2 * self.surplus {
            Some(self.rank - self.surplus)
        } else if self.rank % 2 == 1 {
            Some(self.rank / 2)
        } else {
            None
        }
    }

    /// The rank with a number among those that stay.
    pub const fn rank_of(&self, number: u32) -> u32 {
        if number < self.surplus { 2 * number + 1 } else { number + self.surplus }
    }

    /// The first round: this rank's contribution, in `own`, goes to whom it is folded with, who
    /// puts it left of theirs.
    pub fn fold(&self, own: Range, scratch: Range, out: &mut Round) {
        match (self.partner(), self.number()) {
            (Some(partner), None) => {
                out.send(partner, 0, own);
                out.wait(0);
            }
            (Some(partner), Some(_)) => {
                out.receive(partner, 0, scratch);
                out.wait(0);
                out.combine_left(scratch, own);
            }
            (None, _) => {}
        }
    }

    /// The last round: the result goes to whom stood aside.
    pub fn unfold(&self, result: Range, out: &mut Round) {
        match (self.partner(), self.number()) {
            (Some(partner), None) => {
                out.receive(partner, 0, result);
                out.wait(0);
            }
            (Some(partner), Some(_)) => {
                out.send(partner, 0, result);
                out.wait(0);
            }
            (None, _) => {}
        }
    }
}
