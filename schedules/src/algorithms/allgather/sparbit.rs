//! Sparbit: short and middle messages, any number of ranks. As Bruck, but that the far partners come
//! first, while messages are short, and the long ones go to near ranks (Loch, Koslovski, "Sparbit: a
//! new logarithmic-cost and data locality-aware MPI Allgather algorithm", arXiv 2109.08751).
//!
//! The paper sends blocks from and to where they belong, scattered; here they stand in the order in
//! which they come until the end, so that a message is one piece, or two.

use std::{cell::RefCell, rc::Rc};

use records::{Algorithm, Collective};

use crate::{Buffer, Call, Entry, Program, Range, Round, algorithms::radix::digits};

pub(in super::super) const ENTRY: Entry = Entry::new::<Sparbit>(
    Collective::Allgather,
    Algorithm::Sparbit,
    "all blocks so far go to halving distances, the near ranks last",
);

#[derive(Debug, Clone, Copy)]
struct Sparbit {
    rank: u32,
    ranks: u32,
    steps: u32,
    /// One block for each rank.
    temporary: u64,
}

thread_local! {
    /// The last order that was asked for, rank by rank, and of how many ranks.
    static KEPT: RefCell<(u32, Rc<[u32]>)> = RefCell::new((0, Rc::new([])));
}

impl Sparbit {
    /// How far the ranks are behind whose blocks a rank has, in the order in which these come.
    fn order(&self) -> Rc<[u32]> {
        KEPT.with_borrow_mut(|(ranks, order)| {
            if *ranks != self.ranks {
                (*ranks, *order) = (self.ranks, self.found().into());
            }
            Rc::clone(order)
        })
    }

    fn found(&self) -> Vec<u32> {
        let mut order = vec![0];
        for distance in (0..self.steps).map(|step| self.distance(step)) {
            for place in 0..order.len() {
                let behind = order[place] + distance;
                if behind < self.ranks {
                    order.push(behind);
                }
            }
        }
        order
    }

    fn distance(&self, step: u32) -> u32 {
        1 << (self.steps - 1 - step)
    }

    /// A step: all blocks go, but for one that the receiver has, if some distance is too far.
    fn step(&self, call: &Call<'_>, step: u32, out: &mut Round) {
        let (order, distance) = (self.order(), self.distance(step));
        // All that are a multiple of twice the distance behind.
        let number = self.ranks.div_ceil(2 * distance);
        let held = &order[..number as usize];
        let kept = held.iter().position(|behind| behind + distance >= self.ranks);
        let kept = kept.map_or(number, |kept| kept as u32);
        let pieces = [(0, kept), (kept + 1, number)].into_iter().zip(0_u32..);
        let pieces = pieces.filter(|((first, end), _)| first < end && call.count > 0);
        let (from, to) = (call.before(self.rank, distance), call.after(self.rank, distance));
        let blocks = |first, number| call.blocks(Buffer::Temporary, first, number);
        let come = pieces
            .clone()
            .map(|((first, end), slot)| (from, slot, blocks(number + first - slot, end - first)));
        let go = pieces.map(|((first, end), slot)| (to, 2 + slot, blocks(first, end - first)));
        out.exchange_all(come, go);
    }
}

impl Program for Sparbit {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let temporary = u64::from(call.ranks) * call.count;
        Sparbit { rank, ranks: call.ranks, steps: digits(call.ranks, 2), temporary }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.steps) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let blocks = |first, number| call.blocks(Buffer::Temporary, first, number);
        if index == 0 {
            let own = match call.in_place {
                true => call.block(Buffer::Receive, self.rank),
                false => Range::new(Buffer::Send, 0, call.count),
            };
            out.copy(own, blocks(0, 1));
        } else if index <= u64::from(self.steps) {
            self.step(call, index as u32 - 1, out);
        } else {
            for (place, behind) in (0..).zip(self.order().iter()) {
                let owner = call.before(self.rank, *behind);
                out.copy(blocks(place, 1), call.block(Buffer::Receive, owner));
            }
        }
    }

    fn slots(&self) -> u32 {
        4
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }
}
