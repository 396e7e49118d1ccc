//! Blocks of one rank each, handed around alone or in runs.

use super::{Costs, Forms, Network, Shape, rounds};

/// (P - 2) e(P - 1) + M.
pub(super) fn scatter_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let costs = block(network, shape);
    let others = shape.procs - 1;
    empty_or(shape, f64::from(others - 1) * costs.each(network, others) + costs.message)
}

/// Down a binomial tree, the largest subtree's blocks first; see [`scatter`].
pub(super) fn scatter_binomial(network: &Network, shape: &Shape, _: Forms) -> f64 {
    empty_or(shape, scatter(network, shape.procs, shape.bytes()))
}

/// M + (P - 2) max(g, r).
pub(super) fn gather_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let costs = block(network, shape);
    let next = costs.gap.max(costs.receive);
    empty_or(shape, costs.message + f64::from(shape.procs - 2) * next)
}

/// Up a binomial tree, the smallest subtree first: where all are whole, the sum over
/// i < lg P of M(2^i m); a part of a subtree may come before its turn.
pub(super) fn gather_binomial(network: &Network, shape: &Shape, _: Forms) -> f64 {
    fn gather(network: &Network, ranks: u32, block: f64) -> f64 {
        if ranks <= 1 {
            return 0.0;
        }
        let below = rounds(ranks) - 1;
        let run = |ranks: u32| Costs::of(network, f64::from(ranks) * block);
        let done: f64 = (0..below).map(|level| run(1 << level).message).sum();
        let last = ranks - (1 << below);
        let costs = run(last);
        let came = gather(network, last, block) + costs.message - costs.receive;
        came.max(done) + costs.receive
    }
    empty_or(shape, gather(network, shape.procs, shape.bytes()))
}

/// Parts of m / P down a binomial tree, then [`allgather_recursive_doubling`] of them.
pub(super) fn bcast_scatter_allgather(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let part = shape.bytes() / shape.procs();
    empty_or(shape, scatter(network, shape.procs, part) + doubling(network, shape.procs, part))
}

/// Parts of m / P down a binomial tree, then (P - 1) M(m / P) around a ring.
pub(super) fn bcast_scatter_allgather_ring(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let part = shape.bytes() / shape.procs();
    let hops = shape.procs() - 1.0;
    let ring = hops * Costs::of(network, part).message;
    empty_or(shape, scatter(network, shape.procs, part) + ring)
}

/// (P - 1) M.
pub(super) fn allgather_ring(network: &Network, shape: &Shape, _: Forms) -> f64 {
    empty_or(shape, (shape.procs() - 1.0) * block(network, shape).message)
}

/// M(m) + (P / 2 - 1) M(2 m).
pub(super) fn allgather_neighbor_exchange(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let pairs = Costs::of(network, 2.0 * shape.bytes());
    let rounds = shape.procs() / 2.0 - 1.0;
    empty_or(shape, block(network, shape).message + rounds * pairs.message)
}

/// Sum over i < ceil(lg P) of M(min(2^i, P - 2^i) m).
pub(super) fn allgather_bruck(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let round = |index: u32| {
        let blocks = (1 << index).min(shape.procs - (1 << index));
        Costs::of(network, f64::from(blocks) * shape.bytes()).message
    };
    empty_or(shape, (0..rounds(shape.procs)).map(round).sum())
}

/// Groups of ranks that double; see [`doubling`].
pub(super) fn allgather_recursive_doubling(network: &Network, shape: &Shape, _: Forms) -> f64 {
    empty_or(shape, doubling(network, shape.procs, shape.bytes()))
}

/// The larger halves of the groups' blocks, as in [`doubling`], combined as they come.
pub(super) fn reduce_scatter_recursive_halving(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let halves = halves(shape.procs).map(|(larger, smaller)| {
        let run = |ranks: u32| Costs::of(network, f64::from(ranks) * shape.bytes());
        let costs = run(larger);
        let second = if larger > smaller { costs.taken() } else { 0.0 };
        costs.combined() + second
    });
    empty_or(shape, halves.sum())
}

fn block(network: &Network, shape: &Shape) -> Costs {
    Costs::of(network, shape.bytes())
}

fn empty_or(shape: &Shape, seconds: f64) -> f64 {
    if shape.bytes == 0 { 0.0 } else { seconds }
}

/// From the root's start until all have their block: as for a broadcast down the tree, but that
/// the message to a subtree of n ranks has n blocks.
fn scatter(network: &Network, ranks: u32, block: f64) -> f64 {
    let run = |ranks: u32| Costs::of(network, f64::from(ranks) * block);
    let mut whole = [0.0_f64; 32];
    let below = |levels: u32, whole: &[f64; 32], mut start: f64, children: u32| {
        let mut longest = 0.0_f64;
        for level in (0..levels).rev() {
            let costs = run(1 << level);
            longest = longest.max(start + costs.message + whole[level as usize]);
            start += costs.each(network, children);
        }
        longest
    };
    for levels in 1..rounds(ranks) {
        whole[levels as usize] = below(levels, &whole, 0.0, levels);
    }
    let (mut ranks, mut before, mut longest) = (ranks, 0.0_f64, 0.0_f64);
    while ranks > 1 {
        let children = rounds(ranks);
        let first = ranks - (1 << (children - 1));
        let costs = run(first);
        let start = before + costs.each(network, children);
        longest = longest.max(below(children - 1, &whole, start, children));
        before += costs.message;
        ranks = first;
    }
    longest.max(before)
}

/// Sum over the levels of M(larger half of the group). Where a group is odd, the last rank of its
/// smaller half serves two partners, the second e(2) after the first.
fn doubling(network: &Network, ranks: u32, block: f64) -> f64 {
    let levels = halves(ranks).map(|(larger, smaller)| {
        let run = |ranks: u32| Costs::of(network, f64::from(ranks) * block);
        let least = run(larger).message;
        let costs = run(smaller);
        let second = costs.each(network, 1) + costs.message;
        if larger > smaller { least.max(second) } else { least }
    });
    levels.sum()
}

/// (larger, smaller) half of the largest group on each level on which there is one.
fn halves(ranks: u32) -> impl Iterator<Item = (u32, u32)> {
    let next = |ranks: u32| (ranks > 1).then(|| (ranks.div_ceil(2), ranks / 2));
    std::iter::successors(next(ranks), move |(larger, _)| next(*larger))
}
