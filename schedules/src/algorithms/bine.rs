//! The Bine butterfly: recursive doubling whose partners are nearer to each other (De Sensi et al.,
//! "Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality", SC'25, arXiv
//! 2508.17311), for any even number of ranks.
//!
//! In an allgather every rank holds a run of blocks, cyclically, which grows on the one side or the
//! other by what its partner of the step holds there. Blocks stay where they belong, so that a
//! message is one piece of memory, or two where the run passes the last rank.

use crate::{
    Buffer, Call, Range, Round, algorithms::reduce_scatter::BlockDivision, topology::bine_peer,
};

/// One rank's steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Butterfly {
    ranks: u32,
    rank: u32,
}

/// Blocks, as runs that don't pass the last rank: first and end of each, the second one often empty.
type Runs = [(u32, u32); 2];

impl Butterfly {
    /// Two pieces out, two in.
    pub const SLOTS: u32 = 4;

    pub const fn new(ranks: u32, rank: u32) -> Self {
        Butterfly { ranks, rank }
    }

    /// Number of steps.
    pub const fn steps(&self) -> u32 {
        u32::BITS - (self.ranks - 1).leading_zeros()
    }

    /// The blocks that a rank gets in a step of the allgather. Before it, it holds 2^step: its own, and in each step as
    /// many more as it had, which lie below in every second step, from the second on for even ranks.
    fn gained(&self, rank: u32, step: u32) -> Runs {
        let ranks = u64::from(self.ranks);
        let held = 1 << step;
        let more = held.min(ranks - held);
        let steps_below = if rank.is_multiple_of(2) { 0xAAAA_AAAA } else { 0x5555_5555 };
        let first = (u64::from(rank) + ranks - (steps_below & (held - 1))) % ranks;
        let is_below = steps_below & held > 0;
        let begin = if is_below { first + ranks - more } else { first + held } % ranks;
        let end = begin + more;
        let within = (begin as u32, end.min(ranks) as u32);
        [within, (0, end.saturating_sub(ranks) as u32)]
    }

    /// With whom, what comes, and what goes in a step of the allgather.
    fn step(&self, step: u32) -> (u32, Runs, Runs) {
        let peer = bine_peer(self.ranks, self.rank, step);
        (peer, self.gained(self.rank, step), self.gained(peer, step))
    }

    /// A step of the allgather, in place.
    pub fn gather<B: BlockDivision>(
        &self,
        call: &Call<'_>,
        step: u32,
        buffer: Buffer,
        out: &mut Round,
    ) {
        let (peer, come, go) = self.step(step);
        let ranges = |runs: Runs| runs.map(|run| range::<B>(call, buffer, run));
        exchange(peer, ranges(come), ranges(go), out);
    }

    /// A step of the reduce-scatter, the last one first: the same messages the other way round, and
    /// what comes, into scratch memory from `scratch` on, is combined.
    pub fn reduce<B: BlockDivision>(
        &self,
        call: &Call<'_>,
        step: u32,
        (buffer, scratch): (Buffer, u64),
        out: &mut Round,
    ) {
        let (peer, go, come) = self.step(step);
        let ranges = |runs: Runs| runs.map(|run| range::<B>(call, buffer, run));
        let [first, second] = ranges(come);
        let arrivals = [
            Range::new(Buffer::Temporary, scratch, first.count),
            Range::new(Buffer::Temporary, scratch + first.count, second.count),
        ];
        exchange(peer, arrivals, ranges(go), out);
        out.combine_left(arrivals[0], first);
        out.combine_left(arrivals[1], second);
    }

    /// The most elements that come in a step of the reduce-scatter.
    pub fn incoming<B: BlockDivision>(&self, call: &Call<'_>) -> u64 {
        let of_step = |step| {
            let (_, _, come) = self.step(step);
            come.map(|run| range::<B>(call, Buffer::Temporary, run).count).iter().sum()
        };
        (0..self.steps()).map(of_step).max().unwrap_or(0)
    }
}

fn range<B: BlockDivision>(call: &Call<'_>, buffer: Buffer, (first, end): (u32, u32)) -> Range {
    match first < end {
        true => B::span(call, first, end).in_buffer(buffer),
        false => Range::new(buffer, 0, 0),
    }
}

/// Pieces without elements make no messages.
fn exchange(peer: u32, come: [Range; 2], go: [Range; 2], out: &mut Round) {
    let pieces = || come.into_iter().zip([0, 1]).filter(|(piece, _)| piece.count > 0);
    let sent = || go.into_iter().zip([2, 3]).filter(|(piece, _)| piece.count > 0);
    pieces().for_each(|(piece, slot)| out.receive(peer, slot, piece));
    sent().for_each(|(piece, slot)| out.send(peer, slot, piece));
    pieces().for_each(|(_, slot)| out.wait(slot));
    sent().for_each(|(_, slot)| out.wait(slot));
}
