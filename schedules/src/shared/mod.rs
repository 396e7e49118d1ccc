//! Algorithms of ranks that share memory: those of one node.
//!
//! Every rank has an area that it alone writes and the others read: flags, which only grow, with room for a short
//! message beside each ([`Buffer::Line`]), and [`Call::shared`] elements for longer ones
//! ([`Buffer::Shared`]).
//!
//! A collective is a *turn* of the node's ranks with their memory; one that looks at nodes may take several. Turns
//! use different parts of an area by turns, so that a rank may be ahead of others: what one writes in a turn lies
//! where it wrote [`LINE_DEPTH`] or [`SHARED_DEPTH`] turns before. Hence the one rule for all algorithms, whatever
//! came before: *who writes awaits first that all have finished the turn of that time* (`AwaitFinished`), or what
//! another tells who has awaited it. Where the ranks know it by the calls since then, nothing is looked at. As this is
//! a rule of whole turns, it is the same wherever in its part a turn's elements lie ([`TurnPlaces`]).
//!
//! Within a turn chunks lie in two places by turns. A rank says that it has put down its part of a
//! chunk ([`Flag::Arrived`]) only when it is done with the chunk before. So who has seen that of all that read
//! from it, or of one that has, may write where that one was.

mod barrier;
mod bcast;
mod reductions;
mod slots;

pub use barrier::flags_in_turn as flags_of_a_barrier;
use records::{Algorithm, Collective};

use crate::{ALL_SHARED, Buffer, Call, ElementSpan, Entry, Flag, Range};

/// Turns after which the line of a flag is used again.
pub const LINE_DEPTH: u32 = 8;
/// Turns after which shared elements are used again.
pub const SHARED_DEPTH: u32 = 2;

/// Bytes beside a flag, in its own line of the cache: what is left of 64.
pub const LINE_BYTES: usize = 48;
/// Bytes that the ranks of a node may share, of all communicators, where nobody says otherwise.
pub const DEFAULT_NODE_BYTES: u64 = 64 << 20;
/// Parts of the memory that no two ranks write to are multiples of this.
pub const PAGE_BYTES: usize = 4096;
/// What a rank writes in a turn at most: both turns' halves stay in a core's cache of 1 MiB or more.
const MAX_TURN_BYTES: usize = 512 << 10;

/// Bytes that each of so many ranks of a node may write in a turn, where they may share `node_bytes` of all
/// communicators; 0 where that is not enough.
///
/// Half is left to other communicators.
pub const fn turn_bytes(node_bytes: u64, ranks: usize) -> usize {
    let of_rank = node_bytes as usize / 2 / ranks / SHARED_DEPTH as usize;
    let whole = of_rank / PAGE_BYTES * PAGE_BYTES;
    if whole < MAX_TURN_BYTES { whole } else { MAX_TURN_BYTES }
}

/// Where the elements of turns lie in the memory that they use by turns: at up to eight places, where they are few enough.
///
/// What others have read lately lies in their caches, and comes back as slowly as it was read when it is written again.
/// After 16 turns other data have taken its place there: a bcast of 64 KiB on two ranks takes 0.55 of the time.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnPlaces {
    stride: u64,
    /// Of the turns that have one half, which place is next.
    mask: u64,
}

impl TurnPlaces {
    const MOST: u64 = 8;

    /// Of a turn that uses so many of the elements (or bytes) available in it; 0 or all: one place.
    pub const fn new(used: u64, available: u64) -> Self {
        let places = match available.checked_div(used) {
            None | Some(0) => 1,
            Some(places) if places > Self::MOST => Self::MOST,
            Some(places) => places,
        };
        // A power of two: a division takes as long as a short call.
        TurnPlaces { stride: used, mask: (1 << places.ilog2()) - 1 }
    }

    /// Behind the last element of a half that any turn uses.
    pub const fn end(&self, used: u64) -> u64 {
        self.mask * self.stride + used
    }

    /// From the first element of the half to where those of a turn lie.
    #[inline]
    pub const fn offset(self, turn: u64) -> u64 {
        ((turn / SHARED_DEPTH as u64) & self.mask) * self.stride
    }
}

/// The largest value of a flag within a turn: a word of 64 bits holds it beside the number of the turn.
pub const MAX_VALUE: u32 = (1 << 20) - 1;

/// Places for chunks within a turn.
const PLACES: u64 = 2;

/// Every algorithm of shared memory.
pub static SHARED: &[Entry] = &[
    barrier::ENTRY,
    bcast::ENTRY,
    reductions::ALLREDUCE,
    reductions::REDUCE,
    reductions::REDUCE_SCATTER_BLOCK,
    slots::ALLGATHER,
    slots::ALLTOALL,
    slots::GATHER,
    slots::SCATTER,
];

/// The algorithm of shared memory for a collective, if there is one.
pub fn shared_of_collective(collective: Collective) -> Option<&'static Entry> {
    SHARED.iter().find(|entry| entry.collective == collective)
}

/// The algorithm of shared memory for a collective, if it has that name.
pub fn find_shared(collective: Collective, algorithm: Algorithm) -> Option<&'static Entry> {
    shared_of_collective(collective).filter(|entry| entry.algorithm == algorithm)
}

/// What it takes to predict or draw an algorithm of shared memory, and what to do instead; none for others.
///
/// It speaks of that one of the collectives which has the algorithm, or of the first.
pub fn why_not_modelled(collectives: &[Collective], algorithm: Algorithm) -> Option<String> {
    let has_it = |one: &&Collective| find_shared(**one, algorithm).is_some();
    let collective = *collectives.iter().find(has_it).or(collectives.first())?;
    let described = match shared_of_collective(collective) {
        _ if !algorithm.shares_memory() => return None,
        Some(entry) if entry.algorithm == algorithm => format!(
            "{collective} {algorithm} goes through memory that the ranks of a node share. Models refined and \
             simulated predict it, and `draw` draws it, where the calibration has `memory.shared`. `colibri verify \
             --methods own` and `colibri bench {collective} --method own:{algorithm}` measure it"
        ),
        Some(entry) => format!(
            "{collective} has no algorithm '{algorithm}'; its algorithm of shared memory is '{}'",
            entry.name
        ),
        None => {
            format!("{collective} has no algorithm '{algorithm}', nor any other of shared memory")
        }
    };
    Some(described)
}

/// The least [`Call::shared`] among so many ranks of a node: an element for each rank in each place.
pub const fn min_elements(ranks: u32) -> u64 {
    PLACES * (ranks as u64 + 1)
}

/// The largest message that these many values of flags are enough for, among so many ranks: each chunk takes one.
pub(crate) const fn max_elements(shared: u64, ranks: u32) -> u64 {
    let chunk = shared / min_elements(ranks);
    chunk.saturating_mul(MAX_VALUE as u64 / 2)
}

/// The segments asked for, or larger ones where these would be too many.
fn segment(call: &Call<'_>, count: u64) -> u64 {
    call.segment.max(count / (u64::from(MAX_VALUE) / 2))
}

/// What a rank lays down in a turn, chunk by chunk.
#[derive(Debug, Clone, Copy)]
struct Chunks {
    /// All of them together.
    span: ElementSpan,
    /// Elements of each but the last.
    size: u64,
    /// Elements of a place.
    place: u64,
    /// How many of these a chunk takes.
    used: u64,
}

impl Chunks {
    /// Of `count` elements, of each of which `copies` are laid down, beside `extra` elements for every chunk.
    ///
    /// A chunk has at most [`Call::segment`] elements; without these, as many as its place holds: the fewer
    /// chunks, the less is awaited.
    fn new(call: &Call<'_>, count: u64, copies: u64, extra: impl Fn(u64) -> u64) -> Self {
        let place = call.shared / PLACES;
        let mut most = (place / copies).max(1);
        while most > 1 && most * copies + extra(most) > place {
            most -= extra(most).div_ceil(copies).clamp(1, most - 1);
        }
        let size = if call.segment > 0 { segment(call, count).min(most) } else { most };
        // Chunks of about one size.
        let size = count.div_ceil(count.div_ceil(size).max(1)).max(1);
        let used = size * copies + extra(size);
        Chunks { span: ElementSpan { start: 0, count }, size, place, used }
    }

    /// One of all elements, which lies beside a flag.
    fn one(count: u64) -> Self {
        Chunks { span: ElementSpan { start: 0, count }, size: count.max(1), place: 0, used: 0 }
    }

    fn number(&self) -> u64 {
        self.span.segments(self.size)
    }

    /// Which elements the chunk has.
    fn chunk(&self, index: u64) -> ElementSpan {
        self.span.segment(index, self.size)
    }

    /// See [`Program::shared_elements`](crate::Program::shared_elements).
    fn shared_elements(&self) -> u64 {
        if self.number() > 1 { ALL_SHARED } else { self.used }
    }

    /// `count` elements from `offset` on in the place of a chunk.
    fn place(&self, owner: u32, index: u64, offset: u64, count: u64) -> Range {
        let start = (index % PLACES) * self.place + offset;
        Range::new(Buffer::Shared { owner, turn: 0 }, start, count)
    }
}

/// Beside a flag.
fn line(owner: u32, flag: Flag, count: u64) -> Range {
    Range::new(Buffer::Line { owner, flag, turn: 0 }, 0, count)
}

/// The ranks of a call from the one after `rank` on, that one left out: each begins with another.
fn others(call: &Call<'_>, rank: u32) -> impl Iterator<Item = u32> {
    (1..call.ranks).map(move |distance| call.after(rank, distance))
}

/// Whether every rank looks at what the others have put beside a flag, in place of one that tells the others: of two
/// ranks each then waits one way of a flag where it would wait two.
const fn is_exchanged(ranks: u32) -> bool {
    ranks == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Round, Step};

    /// However long a message and short its segments, flags have values for all chunks; beyond that it is refused.
    #[test]
    fn flags_have_a_value_for_every_chunk() {
        for entry in SHARED {
            let most = max_elements(1 << 16, 4);
            let call = Call { segment: 1, shared: 1 << 16, line: 48, ..Call::new(4, most) };
            assert_eq!(entry.check(&call), Ok(()), "{entry:?}");
            let mut round = Round::default();
            let rounds = entry.needs(&call, 1).rounds;
            assert!(rounds <= u64::from(MAX_VALUE), "{entry:?}: {rounds}");
            entry.round(&call, 1, rounds - 1, &mut round);
            let values = round.steps().iter().filter_map(|step| match *step {
                Step::Signal { value, .. } | Step::Await { value, .. } => Some(value),
                Step::AwaitAll { value, .. } => Some(value),
                _ => None,
            });
            let largest = values.max().unwrap_or_default();
            assert!(u64::from(largest) <= rounds.max(1), "{entry:?}: {largest} of {rounds}");
            if entry.collective != Collective::Barrier {
                let longer = Call { count: most + 1, ..call };
                let problem = entry.check(&longer).unwrap_err().to_string();
                assert!(problem.contains("at most"), "{problem}");
            }
        }
    }
}
