//! Which rank goes on next.

use std::collections::VecDeque;

/// In which order ranks go on that can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The one that could first, as far as it can; at the beginning by rank.
    Ranks,
    /// The one that could last, as far as it can: the last rank is far ahead.
    Reversed,
    /// Any, for any number of steps: the same for the same number.
    Random(u64),
}

/// The ranks that can go on.
pub(super) struct Ready {
    ranks: VecDeque<u32>,
    order: Order,
}

impl Ready {
    pub fn new(ranks: u32, order: Order) -> Self {
        Ready { ranks: (0..ranks).collect(), order }
    }

    pub fn push(&mut self, rank: u32) {
        self.ranks.push_back(rank);
    }

    pub fn pop(&mut self) -> Option<u32> {
        match self.order {
            Order::Ranks => self.ranks.pop_front(),
            Order::Reversed => self.ranks.pop_back(),
            Order::Random(_) if self.ranks.is_empty() => None,
            Order::Random(_) => {
                let chosen = self.random() as usize % self.ranks.len();
                self.ranks.swap_remove_back(chosen)
            }
        }
    }

    /// Whether the rank that goes on is held up by others.
    pub fn interrupts(&mut self) -> bool {
        matches!(self.order, Order::Random(_)) && self.random().is_multiple_of(4)
    }

    /// By Knuth's linear congruence.
    fn random(&mut self) -> u64 {
        let Order::Random(state) = &mut self.order else { return 0 };
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }
}
