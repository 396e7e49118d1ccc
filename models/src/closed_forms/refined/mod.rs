//! Refined closed forms: what the algorithms in use do, message by message.
//!
//! They are derived from our schedules, which are those of the MPI libraries: sends are posted and
//! not waited for one by one, a rank with k children starts one per g(m, k) / k, the child with
//! the largest subtree comes first, and the next segment's receive is posted before this one is
//! forwarded. Where the paper has a bound for trees that are not full, these follow the tree as it
//! is, in O(log P) to O(log^2 P) steps. The simulator is their referee.
//!
//! # Symbols
//! Of messages of one size, from PLogP (LogGP: os = or = o, g = g + (m - 1) G, L + 2 o - g as L;
//! Hockney: a send that blocks, os = g = alpha + beta m, or = 0): M = max(L + g, os + or) from the
//! start of the send to the end of the receive, s = os, r = or, e(k) = max(os, g(m, k) / k) between
//! the starts of two sends of a rank that keeps sending to k others, y = gamma(m) m. Where half a round
//! trip was seen to be longer than L + g, M is that.
//!
//! # Frames
//! Where a calibration has the frames by which a port serves messages that leave at once, the i-th of k is
//! e (k - 1) (1 - phi) + i phi e later than alone, phi the last frame's part of it. That is followed down
//! trees and chains and in scatters; of messages that come at once, where all come at the same time. What
//! has ranks out of step, or sends on while more comes, is simulated there, but for the search of the best
//! segment and calls in one piece, which know messages in turn.
//!
//! # At the edges
//! As the paper's forms: the last segment counts as a whole one. Parts of a message (m / P) are
//! not rounded. An empty message costs nothing but in a barrier, since nothing is sent. k-chain
//! has 4 chains and k-nomial radix 4, if no other fan-out is given. The root is rank 0.
//!
//! What has no form here is simulated: algorithms that are not listed, and those that are listed
//! for powers of two where P is none.

mod blocks;
mod circulant;
mod costs;
mod exchange;
mod fitted;
mod nomial;
mod ports;
mod radix;
mod texts;
mod trees;
mod two_trees;

use records::{Algorithm as A, Collective};

use super::{
    form::ClosedForm,
    text::{Texts::ByCase, formula, words},
};
use texts::{CONCURRENT, DOWN, EXCHANGES, HALVES, TWO_DOWN, TWO_UP, UP, UP_THROUGH_PORTS};

pub(super) use costs::symbol;
pub(crate) use fitted::pace;

/// The form of an algorithm that holds for so many processes.
pub(crate) fn form(
    collective: Collective,
    algorithm: A,
    procs: u32,
) -> Option<&'static ClosedForm> {
    forms(collective).iter().find(|form| form.algorithm == algorithm && form.holds(procs))
}

/// The refined forms of a collective; empty where it has none.
pub fn forms(collective: Collective) -> &'static [ClosedForm] {
    match collective {
        Collective::Barrier => BARRIER,
        Collective::Bcast => BCAST,
        Collective::Reduce => REDUCE,
        Collective::Allreduce => ALLREDUCE,
        Collective::Allgather => ALLGATHER,
        Collective::Alltoall => ALLTOALL,
        Collective::Gather => GATHER,
        Collective::Gatherv => GATHERV,
        Collective::Scatter => SCATTER,
        Collective::Scatterv => SCATTERV,
        Collective::ReduceScatter | Collective::ReduceScatterBlock => REDUCE_SCATTER,
        Collective::Scan => SCAN,
        Collective::Exscan => EXSCAN,
        _ => &[],
    }
}

const BARRIER: &[ClosedForm] = &[
    ClosedForm::unsegmented(
        A::Linear,
        exchange::barrier_linear,
        formula("2 M + (P - 2)(max{g, r} + e(P - 1))"),
    ),
    ClosedForm::unsegmented(A::DoubleRing, exchange::barrier_double_ring, formula("2 P M")),
    ClosedForm::unsegmented(A::RecursiveDoubling, exchange::barrier_recursive_doubling, EXCHANGES),
    ClosedForm::unsegmented(A::Bruck, exchange::barrier_bruck, formula("ceil(lg P) M")),
    ClosedForm::unsegmented(
        A::KBruck,
        radix::barrier_bruck,
        words("ceil(log_k P) rounds, in each k - 1 messages e(k - 1) apart"),
    ),
];

const BCAST: &[ClosedForm] = &[
    ClosedForm::flow(
        A::Linear,
        trees::bcast_linear,
        formula("(P - 2) e(P - 1) + M + (n_s - 1) max{(P - 1) e(P - 1), g, r}"),
    ),
    ClosedForm::flow(A::Pipeline, trees::bcast_pipeline, ByCase(trees::bcast_pipeline_text)),
    ClosedForm::flow(A::Binomial, trees::bcast_binomial, DOWN),
    ClosedForm::flow(A::Binary, trees::bcast_binary, DOWN),
    ClosedForm::flow_of_halves(
        A::SplittedBinary,
        trees::bcast_splitted_binary,
        words(
            "each half down its side of the tree, whose second child gets its segment e(2) later, then M(m / 2); where \
             P is even one rank has the other half from the root, g(m / 2) at its port",
        ),
    ),
    ClosedForm::flow(
        A::KChain,
        trees::bcast_k_chain,
        words(
            "the last rank of the longest chain, or of the chain served last; a segment per round of the root",
        ),
    ),
    ClosedForm::flow(A::KNomial, trees::bcast_k_nomial, DOWN),
    ClosedForm::unsegmented(
        A::ScatterAllgather,
        blocks::bcast_scatter_allgather,
        words("parts of m / P down a binomial tree, then lg P rounds of M(2^i m / P)"),
    )
    .of_powers_of_two(),
    ClosedForm::unsegmented(
        A::ScatterAllgatherRing,
        blocks::bcast_scatter_allgather_ring,
        words("parts of m / P down a binomial tree, then (P - 1) M(m / P) around a ring"),
    ),
    ClosedForm::flow(A::Bine, trees::bcast_binomial, DOWN),
    ClosedForm::flow(
        A::Circulant,
        circulant::bcast,
        words(
            "M + (q - 1) max{M, k t}, q = ceil(lg P), of k streams; then a segment per t = max{b, (b + M / k) / 2}, \
             b = max{e(q), g, s + r}",
        ),
    ),
    ClosedForm::flow_of_halves(A::TwoTrees, two_trees::bcast, TWO_DOWN),
    ClosedForm::flow(
        A::Fitted,
        fitted::bcast,
        words(
            "until the last of P ranks hears if all who have heard send on every e, and M later that one \
             has; a segment per round of the root",
        ),
    ),
];

const REDUCE: &[ClosedForm] = &[
    ClosedForm::flow(
        A::Linear,
        trees::reduce_linear,
        formula("M + y + (P - 2) max{g, r + y} + (n_s - 1) max{(P - 1) max{g, r + y}, e(1)}"),
    ),
    ClosedForm::flow(A::Pipeline, trees::reduce_pipeline, ByCase(trees::reduce_pipeline_text)),
    ClosedForm::segmented(A::Binomial, trees::reduce_binomial, UP_THROUGH_PORTS),
    ClosedForm::flow(A::Binary, trees::reduce_binary, UP),
    ClosedForm::flow(A::InOrderBinary, trees::reduce_in_order_binary, UP),
    ClosedForm::flow(
        A::KChain,
        trees::reduce_k_chain,
        words(
            "the longest chains arrive together, the others before; a segment per round of the root",
        ),
    ),
    ClosedForm::segmented(A::KNomial, trees::reduce_k_nomial, UP_THROUGH_PORTS),
    ClosedForm::unsegmented(A::Rabenseifner, exchange::rabenseifner, HALVES),
    ClosedForm::segmented(A::Bine, trees::reduce_binomial, UP_THROUGH_PORTS),
    ClosedForm::flow(
        A::Circulant,
        circulant::reduce,
        words(
            "with M' = M + y, M' + (q - 1) max{M', k t}, q = ceil(lg P), of k streams; then a segment per \
             t = max{b, (b + M' / k) / 2}, b = max{e(q), g, s + r + y}",
        ),
    ),
    ClosedForm::flow_of_halves(A::TwoTrees, two_trees::reduce, TWO_UP),
    ClosedForm::segmented(
        A::Fitted,
        fitted::reduce,
        words(
            "the fitted broadcast backwards: a message combined every max{g, r + y}, M + y after it is \
             sent; no sooner than n_s messages of each child have passed the root's port or its first child's",
        ),
    ),
];

const ALLREDUCE: &[ClosedForm] = &[
    ClosedForm::flow(
        A::Linear,
        trees::allreduce_linear,
        words("the linear reduction, then the linear broadcast"),
    ),
    ClosedForm::segmented(
        A::Binomial,
        trees::allreduce_binomial,
        words("the binomial reduction, then the binomial broadcast"),
    ),
    ClosedForm::unsegmented(
        A::RecursiveDoubling,
        exchange::allreduce_recursive_doubling,
        EXCHANGES,
    ),
    ClosedForm::unsegmented(
        A::Ring,
        exchange::allreduce_ring,
        formula("(P - 1)(M(m / P) + y(m / P)) + (P - 1) M(m / P)"),
    ),
    ClosedForm::segmented(
        A::SegmentedRing,
        exchange::allreduce_ring,
        words("(P - 1) hops of M + y per segment of a part of m / P, then (P - 1) M(m / P)"),
    ),
    ClosedForm::unsegmented(A::Rabenseifner, exchange::rabenseifner, HALVES),
    ClosedForm::unsegmented(
        A::Circulant,
        circulant::allreduce,
        words(
            "ceil(lg P) rounds of M + y of m / 2, m / 4, ... in whole parts of m / P, and as many of M \
             back",
        ),
    ),
    ClosedForm::flow_of_halves(
        A::TwoTrees,
        two_trees::allreduce,
        words("the reduction on two trees, then the broadcast on them"),
    ),
    ClosedForm::unsegmented(
        A::RecursiveMultiplying,
        radix::allreduce_multiplying,
        words(
            "log_k P rounds of k - 1 messages and combinations of m; where P is no k^i f, M + y before \
             and M after",
        ),
    ),
];

const ALLGATHER: &[ClosedForm] = &[
    ClosedForm::unsegmented(A::Ring, blocks::allgather_ring, formula("(P - 1) M")),
    ClosedForm::unsegmented(
        A::NeighborExchange,
        blocks::allgather_neighbor_exchange,
        formula("M + (P / 2 - 1) M(2 m)"),
    ),
    ClosedForm::unsegmented(
        A::Bruck,
        blocks::allgather_bruck,
        words("ceil(lg P) rounds of M(min{2^i, P - 2^i} m)"),
    ),
    ClosedForm::unsegmented(
        A::RecursiveDoubling,
        blocks::allgather_recursive_doubling,
        words("lg P rounds of M(2^i m)"),
    )
    .of_powers_of_two(),
    ClosedForm::unsegmented(
        A::Circulant,
        circulant::allgather,
        words("ceil(lg P) rounds of M(b m), b such that ceil(P / 2^i) blocks are held"),
    ),
    ClosedForm::unsegmented(
        A::KBruck,
        radix::allgather_bruck,
        words("ceil(log_k P) rounds, in each k - 1 messages of up to k^i blocks e(k - 1) apart"),
    ),
    ClosedForm::unsegmented(
        A::RecursiveMultiplying,
        radix::allgather_multiplying,
        words(
            "log_k P rounds of k - 1 messages of k^i blocks; where P is no k^i f, M before and M(P m) \
             after",
        ),
    ),
    ClosedForm::unsegmented(A::KRing, blocks::allgather_ring, formula("(P - 1) M")),
    ClosedForm::unsegmented(
        A::Sparbit,
        radix::allgather_sparbit,
        words("ceil(lg P) rounds of M(b m), b = ceil(P / 2^i) - ceil(P / 2^(i + 1))"),
    ),
];

const ALLTOALL: &[ClosedForm] = &[
    ClosedForm::segmented(
        A::Linear,
        exchange::alltoall_linear,
        ByCase(exchange::alltoall_linear_text),
    ),
    ClosedForm::unsegmented(
        A::Pairwise,
        exchange::alltoall_pairwise,
        formula("(P - 2) max{M, e(P - 1)} + M"),
    ),
    ClosedForm::unsegmented(
        A::Bruck,
        exchange::alltoall_bruck,
        words("ceil(lg P) rounds of M(b m), b being how many of the numbers below P have bit i"),
    ),
    ClosedForm::unsegmented(
        A::KBruck,
        radix::alltoall_bruck,
        words(
            "ceil(log_k P) rounds, in each k - 1 messages of M(b m), b being how many of the numbers \
             below P have a digit",
        ),
    ),
    ClosedForm::unsegmented(
        A::Bine,
        radix::alltoall_bine,
        words("ceil(lg P) rounds of M(P m / 2); the first of the blocks beyond a power of two"),
    ),
    // The linear algorithm of the MPI libraries.
    ClosedForm::unsegmented(A::LinearConcurrent, exchange::alltoall_linear_concurrent, CONCURRENT),
];

const GATHER: &[ClosedForm] = &[
    ClosedForm::unsegmented(A::Linear, blocks::gather_linear, formula("M + (P - 2) max{g, r}")),
    ClosedForm::unsegmented(
        A::Binomial,
        blocks::gather_binomial,
        words("up a binomial tree, the smallest subtree first, of n blocks from n ranks"),
    ),
    ClosedForm::unsegmented(A::Bine, blocks::gather_binomial, words("as up a binomial tree")),
    ClosedForm::unsegmented(
        A::KNomial,
        radix::gather_k_nomial,
        words("up a k-nomial tree, the smallest subtree first, of n blocks from n ranks"),
    ),
];

/// Of blocks that are all alike.
const GATHERV: &[ClosedForm] =
    &[ClosedForm::unsegmented(A::Linear, blocks::gather_linear, formula("M + (P - 2) max{g, r}"))];

const SCATTERV: &[ClosedForm] =
    &[ClosedForm::unsegmented(A::Linear, blocks::scatter_linear, formula("(P - 2) e(P - 1) + M"))];

const SCATTER: &[ClosedForm] = &[
    ClosedForm::unsegmented(A::Linear, blocks::scatter_linear, formula("(P - 2) e(P - 1) + M")),
    ClosedForm::unsegmented(
        A::Binomial,
        blocks::scatter_binomial,
        words("down a binomial tree, the largest subtree first, n blocks to n ranks"),
    ),
    ClosedForm::unsegmented(A::Bine, blocks::scatter_binomial, words("as down a binomial tree")),
    ClosedForm::unsegmented(
        A::KNomial,
        radix::scatter_k_nomial,
        words("down a k-nomial tree, the largest subtree first, n blocks to n ranks"),
    ),
];

const REDUCE_SCATTER: &[ClosedForm] = &[
    ClosedForm::unsegmented(
        A::Pairwise,
        exchange::reduce_scatter_pairwise,
        formula("(P - 2) max{M + y, e(P - 1)} + M + y"),
    ),
    ClosedForm::unsegmented(A::Ring, exchange::reduce_scatter_ring, formula("(P - 1)(M + y)")),
    ClosedForm::unsegmented(
        A::RecursiveHalving,
        blocks::reduce_scatter_recursive_halving,
        words("lg P rounds of M(2^i m) + y(2^i m), the largest first"),
    )
    .of_powers_of_two(),
    ClosedForm::unsegmented(
        A::Circulant,
        circulant::reduce_scatter,
        words("ceil(lg P) rounds of M(b m) + y(b m), ceil(P / 2^i) blocks left after each"),
    ),
    ClosedForm::unsegmented(
        A::RecursiveMultiplying,
        radix::reduce_scatter_multiplying,
        words(
            "log_k P rounds of k - 1 messages and combinations of k^i blocks, the largest first; where P \
             is no k^i f, M + y of all before and M after",
        ),
    ),
];

const SCAN: &[ClosedForm] = &[
    ClosedForm::flow(A::Linear, exchange::scan_linear, ByCase(exchange::scan_linear_text)),
    ClosedForm::unsegmented(
        A::RecursiveDoubling,
        exchange::scan_recursive_doubling,
        formula("ceil(lg P)(M + 2 y) - y"),
    )
    .of_powers_of_two(),
];

const EXSCAN: &[ClosedForm] = &[
    ClosedForm::flow(A::Linear, exchange::exscan_linear, ByCase(exchange::exscan_linear_text)),
    ClosedForm::unsegmented(
        A::RecursiveDoubling,
        exchange::exscan_recursive_doubling,
        formula("ceil(lg P)(M + 2 y) - 2 y"),
    )
    .of_powers_of_two(),
];
