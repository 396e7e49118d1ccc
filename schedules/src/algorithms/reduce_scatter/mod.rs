//! Reduce-scatter: all contributions combined, block r of the result to rank r. The blocks are
//! equal (`reduce_scatter_block`) or have counts of their own (`reduce_scatter`).

mod bine;
pub(super) mod block;
mod circulant;
mod pairwise;
mod recursive_halving;
mod recursive_multiplying;
mod ring;
pub(super) mod vector;

use crate::{Call, ElementSpan, Round};

/// How the vector falls into blocks.
pub(super) trait BlockDivision {
    /// The blocks of the ranks `first..end`, of which there is at least one.
    fn span(call: &Call<'_>, first: u32, end: u32) -> ElementSpan;

    /// All of the vector.
    fn whole(call: &Call<'_>) -> ElementSpan {
        Self::span(call, 0, call.ranks)
    }

    /// Elements of the largest block. `scratch` is the round that the program's rounds are made in.
    fn largest(call: &Call<'_>, scratch: &mut Round) -> u64;
}

/// Equal blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Equal;

impl BlockDivision for Equal {
    fn span(call: &Call<'_>, first: u32, end: u32) -> ElementSpan {
        ElementSpan {
            start: u64::from(first) * call.count,
            count: u64::from(end - first) * call.count,
        }
    }

    fn largest(call: &Call<'_>, _scratch: &mut Round) -> u64 {
        call.count
    }
}

/// Blocks with counts of their own, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnCounts;

impl BlockDivision for OwnCounts {
    fn span(call: &Call<'_>, first: u32, end: u32) -> ElementSpan {
        let (first, last) = (first as usize, end as usize - 1);
        let start = call.displacements[first];
        ElementSpan { start, count: call.displacements[last] + call.counts[last] - start }
    }

    fn largest(call: &Call<'_>, scratch: &mut Round) -> u64 {
        scratch.largest_count(call.counts)
    }
}
