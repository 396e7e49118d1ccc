//! Groups of consecutive ranks that split into two halves, again and again, down to one rank.
//!
//! Recursive doubling and halving for any number of ranks. A half's size is the other's or one
//! more (the lower half takes it), rank i of one half is the partner of rank i of the other, and
//! the rank that is left over deals with the last rank of the upper half, which then has two
//! partners. For powers of two these are the usual partners; otherwise nobody's data goes twice,
//! unlike in schemes that first fold the surplus ranks away.

use crate::{Range, Round};

/// One rank's groups: level 0 is everybody.
#[derive(Debug, Clone, Copy)]
pub(super) struct Halves {
    ranks: u32,
    rank: u32,
}

/// One rank's group on one level, and its partners there.
#[derive(Debug, Clone, Copy)]
pub(super) struct HalvingGroup {
    /// The ranks of the group are `first..end`; the upper half begins at `middle`.
    pub first: u32,
    pub middle: u32,
    pub end: u32,
    pub rank: u32,
}

impl HalvingGroup {
    pub fn is_lower(&self) -> bool {
        self.rank < self.middle
    }

    /// From whom this rank gets the other half's data when groups are gathered, and to whom its
    /// own contribution to the other half's goes when they are reduced. None on one rank.
    pub fn source(&self) -> Option<u32> {
        let place = if self.is_lower() { self.rank - self.first } else { self.rank - self.middle };
        let upper = self.end - self.middle;
        match (self.is_lower(), upper) {
            (_, 0) => None,
            (true, _) => Some(self.middle + place.min(upper - 1)),
            (false, _) => Some(self.first + place),
        }
    }

    /// The rank left over of the lower half, if this is the rank that deals with it.
    pub fn surplus(&self) -> Option<u32> {
        let (lower, upper) = (self.middle - self.first, self.end - self.middle);
        (lower > upper && upper > 0 && self.rank == self.end - 1).then_some(self.middle - 1)
    }

    /// Whether this is the rank left over, to which nobody's data goes from the upper half but by
    /// the last rank's second message, and from which nobody reads.
    pub fn is_surplus(&self) -> bool {
        let (lower, upper) = (self.middle - self.first, self.end - self.middle);
        lower > upper && upper > 0 && self.rank == self.middle - 1
    }
}

impl Halves {
    /// A receive, and up to two sends or the other way round.
    pub const SLOTS: u32 = 3;

    pub const fn new(ranks: u32, rank: u32) -> Self {
        Halves { ranks, rank }
    }

    /// Whether this is the first of all ranks.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Number of levels with more than one rank in some group.
    pub fn levels(&self) -> u32 {
        u32::BITS - (self.ranks - 1).leading_zeros()
    }

    pub fn group(&self, level: u32) -> HalvingGroup {
        let (mut first, mut end) = (0, self.ranks);
        let split = |first: u32, end: u32| first + (end - first).div_ceil(2);
        for _ in 0..level {
            let middle = split(first, end);
            if self.rank < middle {
                end = middle;
            } else {
                first = middle;
            }
        }
        HalvingGroup { first, middle: split(first, end), end, rank: self.rank }
    }

    /// One round of an allgather: both halves hold their own data, afterwards both hold all.
    pub fn gather(
        &self,
        level: u32,
        rank_of: impl Fn(u32) -> u32,
        data: impl Fn(u32, u32) -> Range,
        out: &mut Round,
    ) {
        let group = self.group(level);
        let Some(partner) = group.source() else { return };
        let (lower, upper) = (data(group.first, group.middle), data(group.middle, group.end));
        let (own, other) = if group.is_lower() { (lower, upper) } else { (upper, lower) };
        if other.count > 0 {
            out.receive(rank_of(partner), 0, other);
        }
        let to = if group.is_surplus() { None } else { Some(partner) };
        let sends = [(1, to), (2, group.surplus())];
        let sends = || {
            let posted = |(slot, to): (u32, Option<u32>)| to.map(|to| (slot, to));
            sends.into_iter().filter_map(posted).filter(|_| own.count > 0)
        };
        sends().for_each(|(slot, to)| out.send(rank_of(to), slot, own));
        if other.count > 0 {
            out.wait(0);
        }
        sends().for_each(|(slot, _)| out.wait(slot));
    }
}
