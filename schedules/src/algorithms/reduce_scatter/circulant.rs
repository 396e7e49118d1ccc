//! Circulant: short and middle messages on any number of ranks, in the fewest rounds, with nothing
//! sent twice. What is bound for the further half of the ranks goes that far ahead, combined; then
//! half of what is left.

use super::BlockDivision;
use crate::{Buffer, Call, Program, Range, Round, algorithms::circulant::Turned};

#[derive(Debug, Clone, Copy)]
pub(super) struct CirculantReduceScatter<B> {
    turned: Turned<B>,
}

impl<B: BlockDivision> Program for CirculantReduceScatter<B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        CirculantReduceScatter { turned: Turned::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        u64::from(self.turned.levels()) + 2
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        match index.checked_sub(1).map(|level| level as u32) {
            None => self.turned.turn(call.input(), out),
            Some(level) if level < self.turned.levels() => self.turned.reduce(call, level, out),
            Some(_) => {
                let own = self.turned.at(call, 0, 1);
                out.copy(own, Range::new(Buffer::Receive, 0, own.count));
            }
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.turned.whole() + self.turned.incoming(call)
    }
}
