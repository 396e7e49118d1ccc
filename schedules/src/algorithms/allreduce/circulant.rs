//! Circulant: middle messages on any number of ranks. Reduce-scatter of as many parts as there are
//! ranks, then their allgather, each in the fewest rounds: unlike in schemes that fold the ranks
//! beyond a power of two away, nobody sends the whole vector.

use records::{Algorithm, Collective};

use crate::{
    Call, ElementSpan, Entry, Program, Round,
    algorithms::{circulant::Turned, reduce_scatter::BlockDivision},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<CirculantAllreduce>(
    Collective::Allreduce,
    Algorithm::Circulant,
    "reduce-scatter, then allgather, each to half of the ranks ahead in turn",
)
.commutative();

/// The vector in as many parts as there are ranks. Where these cannot be alike, longer ones lie everywhere
/// among the others: half of the ranks have half of the vector even if it has fewer elements than there are
/// ranks.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct VectorParts;

impl BlockDivision for VectorParts {
    fn span(call: &Call<'_>, first: u32, end: u32) -> ElementSpan {
        let start_of = |rank: u32| u64::from(rank) * call.count / u64::from(call.ranks);
        ElementSpan { start: start_of(first), count: start_of(end) - start_of(first) }
    }

    fn largest(call: &Call<'_>, _scratch: &mut Round) -> u64 {
        call.count.div_ceil(call.ranks.into())
    }
}

#[derive(Debug, Clone, Copy)]
struct CirculantAllreduce {
    turned: Turned<VectorParts>,
}

impl Program for CirculantAllreduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        CirculantAllreduce { turned: Turned::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        if self.turned.whole() == 0 { 0 } else { 2 * u64::from(self.turned.levels()) + 2 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let levels = u64::from(self.turned.levels());
        if index == 0 {
            self.turned.turn(call.input(), out);
        } else if index <= levels {
            self.turned.reduce(call, index as u32 - 1, out);
        } else if index <= 2 * levels {
            self.turned.gather(call, (2 * levels - index) as u32, out);
        } else {
            self.turned.turn_back(out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.turned.whole() + self.turned.incoming(call)
    }
}
