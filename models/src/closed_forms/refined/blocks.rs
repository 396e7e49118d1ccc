//! Blocks of one rank each, handed around alone or in runs.

use super::{
    super::shape::CallShape,
    costs::{RefinedCosts, Rounds, rounds},
    ports::is_before,
};
use crate::{Forms, parameters::Network};

/// (P - 2) e(P - 1) + M.
pub(super) fn scatter_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = block(network, shape);
    let others = shape.procs - 1;
    empty_or(shape, f64::from(others - 1) * costs.each(network, others) + costs.message)
}

/// Down a binomial tree, the largest subtree's blocks first; see [`scatter`].
pub(super) fn scatter_binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    empty_or(shape, scatter(network, shape.procs, shape.bytes()))
}

/// M + (P - 2) max(g, r).
pub(super) fn gather_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = block(network, shape);
    let next = costs.gap.max(costs.receive);
    empty_or(shape, costs.message + f64::from(shape.procs - 2) * next)
}

/// Up a binomial tree, the smallest subtree first: where all are whole, the sum over
/// i < lg P of M(2^i m); see [`gather`].
pub(super) fn gather_binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let mut whole = Vec::new();
    let mut done = 0.0;
    for level in 0..rounds(shape.procs) - 1 {
        let costs = RefinedCosts::from_network(network, f64::from(1_u32 << level) * shape.bytes());
        whole.push((costs, done));
        done += costs.message;
    }
    gather(network, &whole, shape.procs, shape.bytes())
}

/// From the start until the head has the blocks of all, where `whole` are the messages of whole
/// subtrees and when these are sent. The last child may head a part of a subtree only; what it
/// sends passes the head's port when it comes, and so may hold up others.
fn gather(network: &Network, whole: &[(RefinedCosts, f64)], ranks: u32, block: f64) -> f64 {
    if ranks <= 1 {
        return 0.0;
    }
    let whole = &whole[..rounds(ranks) as usize - 1];
    let last = ranks - (1 << whole.len());
    let costs = RefinedCosts::from_network(network, f64::from(last) * block);
    let left = gather(network, whole, last, block) + costs.send;
    let (mut clock, mut port, mut passed) = (0.0_f64, 0.0_f64, None);
    let mut pass = |left: f64, gap: f64| {
        let passes = left.max(port);
        port = passes + gap;
        passes
    };
    for (other, sent) in whole {
        let other_left = sent + other.send;
        if passed.is_none() && is_before(left, other_left) {
            passed = Some(pass(left, costs.gap));
        }
        let passes = pass(other_left, other.gap);
        clock = clock.max(passes + other.message - other.send - other.receive) + other.receive;
    }
    let passes = passed.unwrap_or_else(|| pass(left, costs.gap));
    clock.max(passes + costs.message - costs.send - costs.receive) + costs.receive
}

/// Parts of m / P down a binomial tree, then [`allgather_recursive_doubling`] of them.
pub(super) fn bcast_scatter_allgather(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let part = shape.bytes() / shape.procs();
    empty_or(shape, scatter(network, shape.procs, part) + doubling(network, shape.procs, part))
}

/// Parts of m / P down a binomial tree, then (P - 1) M(m / P) around a ring.
pub(super) fn bcast_scatter_allgather_ring(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let part = shape.bytes() / shape.procs();
    let hops = shape.procs() - 1.0;
    let ring = hops * RefinedCosts::from_network(network, part).message;
    empty_or(shape, scatter(network, shape.procs, part) + ring)
}

/// (P - 1) M.
pub(super) fn allgather_ring(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    empty_or(shape, (shape.procs() - 1.0) * block(network, shape).message)
}

/// M(m) + (P / 2 - 1) M(2 m).
pub(super) fn allgather_neighbor_exchange(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let pairs = RefinedCosts::from_network(network, 2.0 * shape.bytes());
    let rounds = shape.procs() / 2.0 - 1.0;
    empty_or(shape, block(network, shape).message + rounds * pairs.message)
}

/// Sum over i < ceil(lg P) of M(min(2^i, P - 2^i) m).
pub(super) fn allgather_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let mut time = Rounds::default();
    for index in 0..rounds(shape.procs) {
        let blocks = (1 << index).min(shape.procs - (1 << index));
        time.exchange(&RefinedCosts::from_network(network, f64::from(blocks) * shape.bytes()));
    }
    empty_or(shape, time.clock)
}

/// Sum over i < lg P of M(2^i m), for powers of two.
pub(super) fn allgather_recursive_doubling(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    empty_or(shape, doubling(network, shape.procs, shape.bytes()))
}

/// Rounds of 2^i blocks, i from lg P - 1 to 0, combined as they come, for powers of two.
pub(super) fn reduce_scatter_recursive_halving(
    network: &Network,
    shape: &CallShape,
    _: Forms,
) -> f64 {
    let mut time = Rounds::default();
    for level in (0..rounds(shape.procs)).rev() {
        time.combine(&RefinedCosts::from_network(
            network,
            f64::from(1_u32 << level) * shape.bytes(),
        ));
    }
    empty_or(shape, time.clock)
}

fn block(network: &Network, shape: &CallShape) -> RefinedCosts {
    RefinedCosts::from_network(network, shape.bytes())
}

fn empty_or(shape: &CallShape, seconds: f64) -> f64 {
    if shape.bytes == 0 { 0.0 } else { seconds }
}

/// From the root's start until all have their block: as for a broadcast down the tree, but that
/// the message to a subtree of n ranks has n blocks.
fn scatter(network: &Network, ranks: u32, block: f64) -> f64 {
    let run = |ranks: u32| RefinedCosts::from_network(network, f64::from(ranks) * block);
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

fn doubling(network: &Network, ranks: u32, block: f64) -> f64 {
    let mut time = Rounds::default();
    for level in 0..rounds(ranks) {
        time.exchange(&RefinedCosts::from_network(network, f64::from(1_u32 << level) * block));
    }
    time.clock
}
