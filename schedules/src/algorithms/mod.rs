//! The algorithms: one folder per collective, one file per algorithm, one line here for each.
//!
//! What several of them share stands beside them: segmented trees (`bcast/tree.rs`,
//! `reduce/tree.rs`), folding onto a power of two (`fold.rs`), groups that split into unequal
//! halves (`halves.rs`), circulant graphs (`circulant/`), Bine butterflies
//! (`bine.rs`), flat trees (`flat.rs`), trees for unequal blocks (`irregular.rs`), blocks of subtrees
//! (`subtrees.rs`), digits to a radix (`radix.rs`, `multiplying.rs`).

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod bine;
mod blocks;
mod circulant;
mod flat;
mod fold;
mod gather;
mod grouping;
mod halves;
mod irregular;
mod multiplying;
mod radix;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod subtrees;

use records::Collective;

pub(crate) use self::{bcast::two_trees::HalvesDown, reduce::two_trees::HalvesUp};
use crate::Entry;

/// Every algorithm of messages that does not look at nodes; the plain one of several forms comes first.
pub static ENTRIES: &[Entry] = &[
    allgather::bine::ENTRY,
    allgather::bruck::ENTRY,
    allgather::bruck::OF_RADIX,
    allgather::circulant::ENTRY,
    allgather::neighbor_exchange::ENTRY,
    allgather::recursive_doubling::ENTRY,
    allgather::recursive_multiplying::ENTRY,
    allgather::ring::ENTRY,
    allgather::k_ring::ENTRY,
    allgather::sparbit::ENTRY,
    allreduce::bine::ENTRY,
    allreduce::binomial::ENTRY,
    allreduce::circulant::ENTRY,
    allreduce::linear::ENTRY,
    allreduce::rabenseifner::ENTRY,
    allreduce::recursive_doubling::ENTRY,
    allreduce::recursive_multiplying::ENTRY,
    allreduce::ring::ENTRY,
    allreduce::ring::SEGMENTED,
    allreduce::two_trees::ENTRY,
    alltoall::bruck::ENTRY,
    alltoall::bine::ENTRY,
    alltoall::bruck::OF_RADIX,
    alltoall::linear::ENTRY,
    alltoall::linear_concurrent::ENTRY,
    alltoall::pairwise::ENTRY,
    barrier::bruck::ENTRY,
    barrier::bruck::OF_RADIX,
    barrier::double_ring::ENTRY,
    barrier::linear::ENTRY,
    barrier::recursive_doubling::ENTRY,
    bcast::binary::ENTRY,
    bcast::bine::ENTRY,
    bcast::binomial::ENTRY,
    bcast::circulant::ENTRY,
    bcast::fitted::ENTRY,
    bcast::k_chain::ENTRY,
    bcast::k_nomial::ENTRY,
    bcast::linear::ENTRY,
    bcast::pipeline::ENTRY,
    bcast::scatter_allgather::ENTRY,
    bcast::scatter_allgather_ring::ENTRY,
    bcast::splitted_binary::ENTRY,
    bcast::two_trees::ENTRY,
    gather::trees::BINOMIAL,
    gather::trees::BINE,
    gather::trees::K_NOMIAL,
    gather::linear::ENTRY,
    gather::linear::BLOCKING,
    gather::linear::READY,
    gather::irregular::BINOMIAL,
    gather::irregular::ASCENDING,
    gather::irregular::DESCENDING,
    gather::irregular::TRAFF,
    gather::linear::VECTOR,
    gather::linear::VECTOR_BLOCKING,
    gather::linear::VECTOR_READY,
    gather::linear::ASCENDING,
    gather::linear::DESCENDING,
    gather::synchronised::ENTRY,
    reduce::binary::ENTRY,
    reduce::bine::ENTRY,
    reduce::binomial::ENTRY,
    reduce::circulant::ENTRY,
    reduce::fitted::ENTRY,
    reduce::in_order_binary::ENTRY,
    reduce::k_chain::ENTRY,
    reduce::k_nomial::ENTRY,
    reduce::linear::ENTRY,
    reduce::pipeline::ENTRY,
    reduce::rabenseifner::ENTRY,
    reduce::two_trees::ENTRY,
    reduce_scatter::block::BINE,
    reduce_scatter::block::CIRCULANT,
    reduce_scatter::block::PAIRWISE,
    reduce_scatter::block::RECURSIVE_HALVING,
    reduce_scatter::block::RECURSIVE_MULTIPLYING,
    reduce_scatter::block::RING,
    reduce_scatter::vector::BINE,
    reduce_scatter::vector::CIRCULANT,
    reduce_scatter::vector::PAIRWISE,
    reduce_scatter::vector::RECURSIVE_HALVING,
    reduce_scatter::vector::RECURSIVE_MULTIPLYING,
    reduce_scatter::vector::RING,
    scan::exclusive::LINEAR,
    scan::exclusive::RECURSIVE_DOUBLING,
    scan::inclusive::LINEAR,
    scan::inclusive::RECURSIVE_DOUBLING,
    scan::inclusive::TWO_TREES,
    scatter::trees::BINOMIAL,
    scatter::trees::BINE,
    scatter::trees::K_NOMIAL,
    scatter::linear::ENTRY,
    scatter::linear::BLOCKING,
    scatter::linear::READY,
    scatter::irregular::BINOMIAL,
    scatter::irregular::ASCENDING,
    scatter::irregular::DESCENDING,
    scatter::irregular::TRAFF,
    scatter::linear::VECTOR,
    scatter::linear::VECTOR_BLOCKING,
    scatter::linear::VECTOR_READY,
    scatter::linear::ASCENDING,
    scatter::linear::DESCENDING,
    scatter::synchronised::ENTRY,
];

/// Algorithms of MPI libraries whose ranks stand at other places than in ours of that name, each by a
/// name of its own: a library's method is predicted by these, and nothing else takes them.
pub static VARIANTS: &[(&str, Entry)] = &[
    ("binomial-doubling", bcast::binomial::DOUBLING),
    ("in-order-binary-from-the-last", reduce::in_order_binary::FROM_THE_LAST),
];

/// What serves any call of a collective where nothing else is asked for: the first choice of phases
/// of node-aware algorithms, which are of these collectives alone.
pub(crate) fn standard(collective: Collective) -> &'static Entry {
    match collective {
        Collective::Bcast => &bcast::binomial::ENTRY,
        Collective::Reduce => &reduce::binomial::ENTRY,
        Collective::Allreduce => &allreduce::recursive_doubling::ENTRY,
        Collective::Allgather => &allgather::bruck::ENTRY,
        Collective::Gather => &gather::trees::BINOMIAL,
        Collective::Scatter => &scatter::trees::BINOMIAL,
        Collective::Alltoall => &alltoall::pairwise::ENTRY,
        Collective::ReduceScatterBlock => &reduce_scatter::block::RECURSIVE_HALVING,
        _ => &barrier::bruck::ENTRY,
    }
}
