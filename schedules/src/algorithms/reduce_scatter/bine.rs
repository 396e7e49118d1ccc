//! Bine butterfly: short and middle messages. As recursive halving, with nearer partners.

use std::marker::PhantomData;

use super::BlockDivision;
use crate::{Buffer, Call, Program, Range, Round, algorithms::bine::Butterfly};

#[derive(Debug, Clone, Copy)]
pub(super) struct BineReduceScatter<B> {
    butterfly: Butterfly,
    rank: u32,
    whole: u64,
    blocks: PhantomData<B>,
}

impl<B: BlockDivision> Program for BineReduceScatter<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let (butterfly, whole) = (Butterfly::new(call.ranks, rank), B::whole(call).count);
        BineReduceScatter { butterfly, rank, whole, blocks: PhantomData }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.butterfly.steps()) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let (steps, whole) = (u64::from(self.butterfly.steps()), B::whole(call));
        if index == 0 {
            out.copy(whole.in_buffer(call.input()), whole.in_buffer(Buffer::Temporary));
        } else if index <= steps {
            let places = (Buffer::Temporary, self.whole);
            self.butterfly.reduce::<B>(call, (steps - index) as u32, places, out);
        } else {
            let own = B::span(call, self.rank, self.rank + 1);
            out.copy(own.in_buffer(Buffer::Temporary), Range::new(Buffer::Receive, 0, own.count));
        }
    }

    fn slots(&self) -> u32 {
        Butterfly::SLOTS
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.whole + self.butterfly.incoming::<B>(call)
    }
}
