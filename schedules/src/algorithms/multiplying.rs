//! Recursive multiplying: recursive doubling with a radix k (Wilkins et al., "Generalized Collective
//! Algorithms for the Exascale Era", CLUSTER 2023). In a step the ranks whose numbers differ in one
//! digit to the base k exchange what they have, all with all.
//!
//! Of p ranks, f k^n take part, k^n being the largest power that is not above p and f the largest
//! factor; the last digit has f values. The others are folded onto those before.

use std::ops::Range as Numbers;

use crate::{
    Call,
    algorithms::{fold::Fold, radix::radix},
};

/// One rank's steps; they are counted from the lowest digit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Multiplying {
    pub fold: Fold,
    radix: u32,
    /// The ranks that take part.
    staying: u32,
    pub steps: u32,
}

/// The ranks with which one exchanges in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct DigitGroup {
    fold: Fold,
    /// The number whose digit is 0, and this rank's digit.
    base: u32,
    pub digit: u32,
    weight: u32,
    /// How many values the digit has.
    pub size: u32,
}

impl DigitGroup {
    /// Of one of the others: its place among them, its digit, and its rank.
    fn other(&self, digit: u32) -> (u32, u32, u32) {
        let place = digit - u32::from(digit > self.digit);
        (place, digit, self.fold.rank_of(self.base + digit * self.weight))
    }

    /// The others in the order in which they are sent to: each hears from one rank at a time.
    pub fn destinations(self) -> impl Iterator<Item = (u32, u32, u32)> + Clone {
        (1..self.size).map(move |far| self.other((self.digit + far) % self.size))
    }

    /// The others in the order in which they are heard from.
    pub fn sources(self) -> impl Iterator<Item = (u32, u32, u32)> + Clone {
        (1..self.size).map(move |far| self.other((self.digit + self.size - far) % self.size))
    }

    /// The ranks whose data the numbers stand for that have a digit, and any lower digits.
    pub fn ranks_of(&self, digit: u32) -> Numbers<u32> {
        let below = self.base - self.base % self.weight;
        let first = below + digit * self.weight;
        self.fold.first(first)..self.fold.first(first + self.weight)
    }
}

impl Multiplying {
    pub fn new(call: &Call<'_>, rank: u32) -> Self {
        let radix = radix::<0>(call);
        let (mut power, mut steps) = (1, 0);
        while power <= call.ranks / radix {
            power *= radix;
            steps += 1;
        }
        let factor = call.ranks / power;
        let staying = factor * power;
        let steps = steps + u32::from(factor > 1);
        Multiplying { fold: Fold::onto(call.ranks, rank, staying), radix, staying, steps }
    }

    /// Most ranks with which one exchanges in a step.
    pub fn most(&self) -> u32 {
        self.radix - 1
    }

    /// Slots of the messages that come in, then of those that go out.
    pub fn slots(&self) -> u32 {
        2 * self.most()
    }

    /// This rank's group in a step; none where it is folded away.
    pub fn group(&self, step: u32) -> Option<DigitGroup> {
        let number = self.fold.number()?;
        let weight = self.radix.pow(step);
        let size = self.radix.min(self.staying / weight);
        let digit = number / weight % size;
        Some(DigitGroup { fold: self.fold, base: number - digit * weight, digit, weight, size })
    }
}
