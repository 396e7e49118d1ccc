//! Bine butterfly: short messages. As Bruck, but between nearer partners: the blocks take the ways that
//! contributions take in the butterfly's reduce-scatter, kept apart (De Sensi et al., "Bine Trees",
//! SC'25, arXiv 2508.17311), half of them in each step where the number of ranks is a power of two.
//!
//! A rank holds blocks for a run of ranks, cyclically, which halves in each step. They stand in the
//! order of whom they are for, so that what goes is one piece; what comes is put between what stays.
//! Counted upwards from even ranks and downwards from odd ones, all ranks do the same.

use std::{cell::RefCell, rc::Rc};

use records::{Algorithm, Collective};

use crate::{Buffer, Call, Entry, Program, Range, Round, topology::bine_peer};

pub(in super::super) const ENTRY: Entry = Entry::new::<BineAlltoall>(
    Collective::Alltoall,
    Algorithm::Bine,
    "blocks for halving runs of ranks go to partners that are nearer than Bruck's",
)
.even();

/// So many blocks from a place on.
#[derive(Debug, Clone, Copy, Default)]
struct BlockPiece {
    place: u32,
    number: u32,
}

/// What all ranks do in a step.
#[derive(Debug)]
struct BineStep {
    /// Of which step of an allgather this is the reverse.
    number: u32,
    /// Of the blocks held.
    goes: BlockPiece,
    /// For each rank of whom blocks are held then: what stays, and what comes of what comes in.
    stays: Vec<[BlockPiece; 2]>,
}

/// What all ranks do.
#[derive(Debug)]
struct BinePlan {
    ranks: u32,
    /// How far away the first rank is for whom blocks are held at first.
    first: u32,
    steps: Vec<BineStep>,
    /// How far away the ranks are whose blocks are held at last, in their order.
    sources: Vec<u32>,
}

/// The blocks that are for one rank, while a plan is made: how far away those are who sent them.
type Sources = Vec<i64>;

impl BinePlan {
    fn new(ranks: u32) -> Self {
        let count = u32::BITS - (ranks - 1).leading_zeros();
        // The runs of an allgather: first rank, and length.
        let mut runs = vec![(0_i64, 1_u32)];
        for step in 0..count {
            let (first, held) = runs[step as usize];
            let more = held.min(ranks - held);
            let below = if step.is_multiple_of(2) { 0 } else { i64::from(more) };
            runs.push((first - below, held + more));
        }
        let modulus = i64::from(ranks);
        let first = runs[count as usize].0.rem_euclid(modulus) as u32;
        let mut held: Vec<Sources> = vec![vec![0]; ranks as usize];
        let mut steps = Vec::new();
        for number in (0..count).rev() {
            let (before, after) = (runs[number as usize + 1], runs[number as usize]);
            let (step, next) = BineStep::new(ranks, number, &held, (before, after));
            steps.push(step);
            held = next;
        }
        let sources = held.remove(0);
        let sources = sources.into_iter().map(|far| far.rem_euclid(modulus) as u32).collect();
        BinePlan { ranks, first, steps, sources }
    }

    fn kept(ranks: u32) -> Rc<BinePlan> {
        KEPT.with_borrow_mut(|kept| {
            if let Some(plan) = kept.iter().find(|plan| plan.ranks == ranks) {
                return Rc::clone(plan);
            }
            kept.truncate(KEPT_AT_ONCE - 1);
            let plan = Rc::new(BinePlan::new(ranks));
            kept.insert(0, Rc::clone(&plan));
            plan
        })
    }

    /// Most blocks that come in a step.
    fn most(&self) -> u32 {
        self.steps.iter().map(|step| step.goes.number).max().unwrap_or(0)
    }
}

thread_local! {
    /// The last plans that were asked for, rank by rank: one takes O(p log p).
    static KEPT: RefCell<Vec<Rc<BinePlan>>> = const { RefCell::new(Vec::new()) };
}

/// Groups of ranks take turns where collectives are composed of others.
const KEPT_AT_ONCE: usize = 4;

impl BineStep {
    /// Of runs that are so long before and after; and what is held then.
    fn new(
        ranks: u32,
        number: u32,
        held: &[Sources],
        (before, after): ((i64, u32), (i64, u32)),
    ) -> (Self, Vec<Sources>) {
        let mut places = vec![0];
        places.extend(held.iter().scan(0, |end, sources| {
            *end += sources.len() as u32;
            Some(*end)
        }));
        let piece = |first: usize, end: usize| BlockPiece {
            place: places[first],
            number: places[end] - places[first],
        };
        let own = (after.0 - before.0) as usize..(after.0 - before.0) as usize + after.1 as usize;
        let gone = if own.start > 0 { 0..own.start } else { own.end..held.len() };
        let goes = piece(gone.start, gone.end);
        let mut stays: Vec<[BlockPiece; 2]> =
            own.clone().map(|place| [piece(place, place + 1), BlockPiece::default()]).collect();
        let mut next: Vec<Sources> = held[own].to_vec();
        // The partner counts in the other direction.
        let partner = i64::from(bine_peer(ranks, 0, number));
        for place in gone {
            let far = partner - (before.0 + place as i64);
            let of = (far - after.0).rem_euclid(i64::from(ranks)) as usize;
            let comes = piece(place, place + 1);
            stays[of][1] = BlockPiece { place: comes.place - goes.place, ..comes };
            next[of].extend(held[place].iter().map(|source| partner - source));
        }
        (BineStep { number, goes, stays }, next)
    }
}

#[derive(Debug, Clone, Copy)]
struct BineAlltoall {
    rank: u32,
    ranks: u32,
    steps: u32,
    count: u64,
}

impl BineAlltoall {
    /// The rank that is so far away.
    fn far(&self, call: &Call<'_>, distance: u32) -> u32 {
        match self.rank.is_multiple_of(2) {
            true => call.after(self.rank, distance),
            false => call.before(self.rank, distance),
        }
    }

    /// Blocks as they are held before a step, in two places by turns; what comes is behind both.
    fn blocks(&self, area: u32, piece: BlockPiece) -> Range {
        let place = u64::from(area) * u64::from(self.ranks) + u64::from(piece.place);
        Range::new(Buffer::Temporary, place * self.count, u64::from(piece.number) * self.count)
    }

    /// Puts what came between what stays.
    fn merge(&self, step: &BineStep, from: u32, out: &mut Round) {
        let mut place = 0;
        let mut copy = |area, piece: BlockPiece| {
            let into = BlockPiece { place, number: piece.number };
            out.copy(self.blocks(area, piece), self.blocks(1 - from, into));
            place += piece.number;
        };
        for [stays, comes] in &step.stays {
            copy(from, *stays);
            copy(2, *comes);
        }
    }
}

impl Program for BineAlltoall {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let steps = u32::BITS - (call.ranks - 1).leading_zeros();
        BineAlltoall { rank, ranks: call.ranks, steps, count: call.count }
    }

    fn rounds(&self) -> u64 {
        // Into the order; exchange and put together in each step; out of it.
        if self.count == 0 { 0 } else { 2 + 2 * u64::from(self.steps) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let plan = BinePlan::kept(self.ranks);
        let one = |place| BlockPiece { place, number: 1 };
        let at = (index.saturating_sub(1) / 2) as u32;
        if index == 0 {
            for place in 0..self.ranks {
                let to = self.far(call, (plan.first + place) % self.ranks);
                out.copy(call.block(call.input(), to), self.blocks(0, one(place)));
            }
        } else if at == self.steps {
            for (place, far) in (0..).zip(&plan.sources) {
                let from = self.far(call, *far);
                out.copy(self.blocks(at % 2, one(place)), call.block(Buffer::Receive, from));
            }
        } else {
            let step = &plan.steps[at as usize];
            if index.is_multiple_of(2) {
                return self.merge(step, at % 2, out);
            }
            let partner = bine_peer(self.ranks, self.rank, step.number);
            let comes = BlockPiece { place: 0, number: step.goes.number };
            out.exchange(partner, self.blocks(2, comes), partner, self.blocks(at % 2, step.goes));
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        (2 * u64::from(self.ranks) + u64::from(BinePlan::kept(self.ranks).most())) * self.count
    }
}
