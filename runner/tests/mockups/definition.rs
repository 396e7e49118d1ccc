//! What collectives give by MPI's definition, from everybody's data and without a library.

use std::ops::RangeInclusive;

use records::Collective;

use super::cases::Case;

/// A value in two parts, each in the first of its bytes; how many they are, a kind says.
pub type Datum = [[u8; 8]; 2];

/// What an operation makes of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Of 32-bit numbers.
    Sum,
    SumOfDoubles,
    /// The greater double; of two equal ones that with the smaller index.
    MaxLoc,
    /// `x -> a x + b`, one after the other: associative, not commutative.
    Compose,
    /// Sum of the first and product of the second parts: commutative.
    AddMultiply,
}

impl Combine {
    pub fn name(self) -> &'static str {
        match self {
            Combine::Sum => "sum",
            Combine::SumOfDoubles => "sum of doubles",
            Combine::MaxLoc => "maxloc",
            Combine::Compose => "compose",
            Combine::AddMultiply => "add_multiply",
        }
    }

    pub fn is_commutative(self) -> bool {
        self != Combine::Compose
    }

    fn of(self, left: Datum, right: Datum) -> Datum {
        let numbers = |datum: Datum| datum.map(|part| u64::from_le_bytes(part) as u32);
        let double = |datum: Datum| f64::from_le_bytes(datum[0]);
        let datum = |parts: [u32; 2]| parts.map(|part| u64::from(part).to_le_bytes());
        match self {
            Combine::Sum => datum([numbers(left)[0].wrapping_add(numbers(right)[0]), 0]),
            Combine::SumOfDoubles => [(double(left) + double(right)).to_le_bytes(), [0; 8]],
            Combine::MaxLoc => {
                let index = |datum: Datum| numbers(datum)[1] as i32;
                let is_left = match double(left).total_cmp(&double(right)) {
                    std::cmp::Ordering::Equal => index(left) < index(right),
                    order => order.is_gt(),
                };
                if is_left { left } else { right }
            }
            Combine::Compose => datum(composed(numbers(left), numbers(right))),
            Combine::AddMultiply => datum(added_multiplied(numbers(left), numbers(right))),
        }
    }
}

pub fn composed([a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

pub fn added_multiplied([a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
    [a.wrapping_add(c), b.wrapping_mul(d)]
}

impl Case {
    /// What a rank's receive buffer begins with after the call; nothing where MPI leaves it as it
    /// was.
    pub fn defined(&self, rank: usize, size: usize) -> Vec<Datum> {
        let (n, all) = (self.count, 0..=size - 1);
        let blocks = (0..size).flat_map(|from| (0..n).map(move |index| (from, index)));
        let own = match self.collective {
            Collective::ReduceScatterBlock => rank * n..(rank + 1) * n,
            Collective::ReduceScatter => {
                let parts: Vec<usize> = self.parts(size).iter().map(|n| *n as usize).collect();
                let start: usize = parts[..rank].iter().sum();
                start..start + parts[rank]
            }
            _ => 0..n,
        };
        let is_left_alone = match self.collective {
            Collective::Gather | Collective::Reduce => rank != self.root,
            Collective::Scatter => self.is_in_place(rank),
            _ => false,
        };
        match self.collective {
            _ if is_left_alone => Vec::new(),
            Collective::Allgather | Collective::Gather => {
                blocks.map(|(from, index)| self.operand(from, index, from * n + index)).collect()
            }
            Collective::Alltoall => {
                let place = |index| rank * n + index;
                blocks.map(|(from, i)| self.operand(from, place(i), place(i))).collect()
            }
            Collective::Bcast => own.map(|index| self.received_by(self.root, index)).collect(),
            Collective::Scatter => {
                own.map(|index| self.sent_by(self.root, rank * n + index)).collect()
            }
            Collective::Scan => own.map(|index| self.combined(0..=rank, index)).collect(),
            _ => own.map(|index| self.combined(all.clone(), index)).collect(),
        }
    }

    /// What a rank contributes: from its send buffer, or in place.
    fn operand(&self, rank: usize, sent: usize, received: usize) -> Datum {
        match self.is_in_place(rank) {
            true => self.received_by(rank, received),
            false => self.sent_by(rank, sent),
        }
    }

    /// In the order of the ranks, which an operation that is not commutative demands.
    fn combined(&self, ranks: RangeInclusive<usize>, index: usize) -> Datum {
        let combine = self.operation.unwrap().combine;
        let operands = ranks.map(|rank| self.operand(rank, index, index));
        operands.reduce(|left, right| combine.of(left, right)).unwrap()
    }
}
