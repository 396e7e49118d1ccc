//! Bine butterfly: middle and long messages. Reduce-scatter, then allgather, of as many parts as
//! there are ranks; nothing but what comes in needs scratch memory.

use records::{Algorithm, Collective};

use super::circulant::VectorParts;
use crate::{Buffer, Call, ElementSpan, Entry, Program, Round, algorithms::bine::Butterfly};

pub(in super::super) const ENTRY: Entry = Entry::new::<BineAllreduce>(
    Collective::Allreduce,
    Algorithm::Bine,
    "reduce-scatter, then allgather, between partners nearer than in recursive halving",
)
.commutative()
.even();

#[derive(Debug, Clone, Copy)]
struct BineAllreduce {
    butterfly: Butterfly,
    whole: ElementSpan,
}

impl Program for BineAllreduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        BineAllreduce { butterfly: Butterfly::new(call.ranks, rank), whole }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { 2 * u64::from(self.butterfly.steps()) + 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let steps = u64::from(self.butterfly.steps());
        if index == 0 {
            out.copy(self.whole.in_buffer(call.input()), self.whole.in_buffer(Buffer::Receive));
        } else if index <= steps {
            let places = (Buffer::Receive, 0);
            self.butterfly.reduce::<VectorParts>(call, (steps - index) as u32, places, out);
        } else {
            let step = (index - steps) as u32 - 1;
            self.butterfly.gather::<VectorParts>(call, step, Buffer::Receive, out);
        }
    }

    fn slots(&self) -> u32 {
        Butterfly::SLOTS
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.butterfly.incoming::<VectorParts>(call)
    }
}
