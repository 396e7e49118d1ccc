//! Blocks of one rank each, handed around alone or in runs.

use schedules::simulator::is_before;

use super::{
    super::shape::CallShape,
    costs::{RefinedCosts, Rounds, rounds},
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

/// Nothing takes no time.
pub(super) fn empty_or(shape: &CallShape, seconds: f64) -> f64 {
    if shape.bytes == 0 { 0.0 } else { seconds }
}

/// From the root's start until all have their block: as for a broadcast down the tree, but that
/// the message to a subtree of n ranks has n blocks.
fn scatter(network: &Network, ranks: u32, block: f64) -> f64 {
    let run = |ranks: u32| RefinedCosts::from_network(network, f64::from(ranks) * block);
    let mut whole = [0.0_f64; 32];
    // Of a head whose largest subtree has `first` ranks, the others 2^level for each level below.
    let down = |first: u32, below: u32, longest: f64, whole: &[f64; 32]| {
        let sizes = std::iter::once(first).chain((0..below).rev().map(|level| 1 << level));
        let children: Vec<RefinedCosts> = sizes.map(run).collect();
        let served = served_at_once(network, &children);
        let levels = (0..below).rev().map(|level| whole[level as usize]);
        let further = std::iter::once(longest).chain(levels);
        let ends = served.iter().zip(&children).zip(further);
        let others = ends.map(|((served, costs), below)| served + costs.message + below);
        (served[0] + children[0].message, others.fold(0.0, f64::max))
    };
    for levels in 1..rounds(ranks) {
        let first = whole[levels as usize - 1];
        whole[levels as usize] = down(1 << (levels - 1), levels - 1, first, &whole).1;
    }
    let (mut ranks, mut before, mut longest) = (ranks, 0.0_f64, 0.0_f64);
    while ranks > 1 {
        let children = rounds(ranks);
        let first = ranks - (1 << (children - 1));
        let (served, others) = down(first, children - 1, 0.0, &whole);
        longest = longest.max(before + others);
        before += served;
        ranks = first;
    }
    longest.max(before)
}

/// By how much later than alone each of several messages has left that are sent at once, in this order: behind
/// those before it, and behind as much of the others as leaves together with it. What is but one frame leaves
/// in turn, before longer ones; of these the last frames leave as each has nothing else left.
pub(super) fn served_at_once(network: &Network, messages: &[RefinedCosts]) -> Vec<f64> {
    let count = messages.len() as u32;
    let each = |costs: &RefinedCosts| costs.each(network, count);
    if messages.iter().all(|costs| costs.last_frame == 1.0) {
        let before = |start: &mut f64, costs: &RefinedCosts| {
            let begin = *start;
            *start += each(costs);
            Some(begin)
        };
        return messages.iter().scan(0.0, before).collect();
    }
    let beyond = |costs: &RefinedCosts| costs.bytes * (1.0 - costs.last_frame);
    let later = |(place, costs): (usize, &RefinedCosts)| {
        let own = beyond(costs);
        let by_other = |(other_place, other): (usize, &RefinedCosts)| {
            let others = beyond(other);
            let is_before = others < own || (others == own && other_place < place);
            let together = own.min(others) / other.bytes;
            let frame = if is_before { other.last_frame } else { 0.0 };
            (together + frame) * each(other)
        };
        let others = messages.iter().enumerate().filter(|(other, _)| *other != place);
        others.map(by_other).sum()
    };
    messages.iter().enumerate().map(later).collect()
}

fn doubling(network: &Network, ranks: u32, block: f64) -> f64 {
    let mut time = Rounds::default();
    for level in 0..rounds(ranks) {
        time.exchange(&RefinedCosts::from_network(network, f64::from(1_u32 << level) * block));
    }
    time.clock
}
