//! What a program is made for.

use records::{Algorithm, Collective, OwnMethod, TreePace};

use crate::{Buffer, NodesOfRanks, Range};

/// A call of a collective, as one rank knows it.
///
/// Counts are elements, never bytes. `Call { root: 2, ..Call::new(8, 1000) }` is the idiom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Size of the communicator, at least 1.
    pub ranks: u32,
    /// The root; not looked at where the collective has none.
    pub root: u32,
    /// Elements: the whole vector for bcast, reduce, allreduce, scan, exscan; the block between a
    /// pair of ranks for allgather, gather, scatter, alltoall, `reduce_scatter_block`. Not looked at
    /// by barrier and where `counts` holds the blocks.
    pub count: u64,
    /// Elements per segment; 0, or what is not below the message, means one segment.
    pub segment: u64,
    /// Number of chains (k-chain), size of groups (k-ring), streams (circulant), most children (fitted
    /// trees; 0: any number) or radix (the others of a radix).
    pub fan_out: u32,
    /// What a fitted tree is made for; others don't look at it.
    pub pace: TreePace,
    /// Whether operands may change places.
    pub commutative: bool,
    /// Whether this rank's contribution lies in its receive buffer (`MPI_IN_PLACE`). For the
    /// collectives with a root it is the root's alone.
    pub in_place: bool,
    /// Blocks of a v-form, by rank: of all ranks for `reduce_scatter`, and at the root of scatterv
    /// and gatherv; elsewhere this rank's own count alone.
    pub counts: &'a [u64],
    /// Where the blocks of `counts` begin in the user's buffer; as long as `counts`.
    pub displacements: &'a [u64],
    /// The words of [`Buffer::Header`], whole, from round 1 on; empty in round 0, which brings
    /// them, and where [`Needs::header`](crate::Needs::header) is 0. Kept by whoever executes.
    pub header: &'a [u64],
    /// Which ranks are on which node; none: not known, and only what looks at nodes asks for it.
    pub nodes: Option<&'a NodesOfRanks>,
    /// What a node-aware algorithm runs between nodes and inside one; none: what it has as standard.
    /// Others don't look at them.
    pub inter: Option<Algorithm>,
    /// See [`Call::inter`].
    pub intra: Option<Algorithm>,
    /// Elements that each rank shares with the others of its node in a turn ([`Buffer::Shared`]); 0: none.
    pub shared: u64,
    /// Elements that fit beside a flag ([`Buffer::Line`]).
    pub line: u64,
}

impl Call<'_> {
    /// Root 0, one segment, fan-out 4, commutative, not in place.
    pub const fn new(ranks: u32, count: u64) -> Self {
        Call {
            ranks,
            root: 0,
            count,
            segment: 0,
            fan_out: OwnMethod::STANDARD_FAN_OUT,
            pace: TreePace::EVEN,
            commutative: true,
            in_place: false,
            counts: &[],
            displacements: &[],
            header: &[],
            nodes: None,
            inter: None,
            intra: None,
            shared: 0,
            line: 0,
        }
    }

    /// With the parameters of a method but for its segments, which are bytes there.
    #[must_use]
    pub fn with_method(self, method: &OwnMethod) -> Self {
        let inter = if method.by_node { Some(method.algorithm) } else { method.inter };
        let OwnMethod { fan_out, pace, intra, .. } = *method;
        Call { fan_out, pace, inter, intra, ..self }
    }

    /// How many elements in a row share no memory with each other, as far as MPI promises it to
    /// whoever carries out the call: as many as some rank receives. Where data is only moved, it
    /// travels as bytes, of which no two are one.
    ///
    /// Elements of a datatype may reach beyond its extent, so that more of them than MPI speaks of
    /// may overlap. `counts` must be those of all ranks.
    pub fn disjoint(&self, collective: Collective) -> u64 {
        match collective {
            Collective::ReduceScatter => self.counts.iter().copied().max().unwrap_or(0),
            _ if collective.combines() => self.count,
            _ => u64::MAX,
        }
    }

    /// Where this rank's contribution lies.
    pub(crate) const fn input(&self) -> Buffer {
        if self.in_place { Buffer::Receive } else { Buffer::Send }
    }

    /// The rank relative to the root.
    pub(crate) const fn relative(&self, rank: u32) -> u32 {
        if rank >= self.root { rank - self.root } else { rank + (self.ranks - self.root) }
    }

    /// The rank that stands `distance` (at most `ranks`) after `rank`.
    pub(crate) const fn after(&self, rank: u32, distance: u32) -> u32 {
        let room = self.ranks - rank;
        if distance < room { rank + distance } else { distance - room }
    }

    /// The rank that stands `distance` (at most `ranks`) before `rank`.
    pub(crate) const fn before(&self, rank: u32, distance: u32) -> u32 {
        if distance <= rank { rank - distance } else { rank + (self.ranks - distance) }
    }

    /// The block of `rank` where all blocks have `count` elements.
    pub(crate) const fn block(&self, buffer: Buffer, rank: u32) -> Range {
        Range::new(buffer, rank as u64 * self.count, self.count)
    }

    /// The blocks of ranks `first..first + number`.
    pub(crate) const fn blocks(&self, buffer: Buffer, first: u32, number: u32) -> Range {
        Range::new(buffer, first as u64 * self.count, number as u64 * self.count)
    }
}

/// A run of elements without a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementSpan {
    /// First element.
    pub start: u64,
    pub count: u64,
}

impl ElementSpan {
    /// The span in a buffer.
    pub const fn in_buffer(self, buffer: Buffer) -> Range {
        Range::new(buffer, self.start, self.count)
    }

    /// Part `index` of `parts` parts, whose sizes differ by one at most, the larger ones first.
    pub const fn part(self, index: u64, parts: u64) -> ElementSpan {
        let (size, larger) = (self.count / parts, self.count % parts);
        let before = index * size + if index < larger { index } else { larger };
        ElementSpan { start: self.start + before, count: size + (index < larger) as u64 }
    }

    /// The two halves, the larger one first.
    pub const fn halves(self) -> (ElementSpan, ElementSpan) {
        (self.part(0, 2), self.part(1, 2))
    }

    /// Number of segments of `segment` elements (0: one segment of all); none if it is empty.
    pub const fn segments(self, segment: u64) -> u64 {
        if segment == 0 || segment >= self.count {
            (self.count > 0) as u64
        } else {
            self.count.div_ceil(segment)
        }
    }

    /// Segment `index` of [`ElementSpan::segments`].
    pub const fn segment(self, index: u64, segment: u64) -> ElementSpan {
        if segment == 0 || segment >= self.count {
            return self;
        }
        let before = index * segment;
        let left = self.count - before;
        ElementSpan {
            start: self.start + before,
            count: if left < segment { left } else { segment },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_and_segments_tile(start in 0_u64..9, count in 0_u64..99, pieces in 1_u64..20) {
            let span = ElementSpan { start, count };
            let mut at = start;
            for index in 0..pieces {
                let part = span.part(index, pieces);
                prop_assert_eq!(part.start, at);
                prop_assert!(part.count.abs_diff(count / pieces) <= 1);
                at += part.count;
            }
            prop_assert_eq!(at, start + count);
            at = start;
            for index in 0..span.segments(pieces) {
                let segment = span.segment(index, pieces);
                prop_assert_eq!(segment.start, at);
                prop_assert!(segment.count >= 1 && segment.count <= pieces);
                at += segment.count;
            }
            prop_assert_eq!(at, start + count);
        }

        #[test]
        fn neighbours_are_each_others(ranks in 1_u32..50, rank in 0_u32..50, distance in 0_u32..50) {
            let call = Call::new(ranks, 0);
            let (rank, distance) = (rank % ranks, distance % (ranks + 1));
            prop_assert_eq!(call.after(rank, distance), (rank + distance) % ranks);
            prop_assert_eq!(call.before(call.after(rank, distance), distance), rank);
        }
    }
}
