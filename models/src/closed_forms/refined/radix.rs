//! Algorithms of a radix k, the fan-out: in a step a rank exchanges messages with k - 1 others at once.

use super::{
    super::shape::CallShape,
    blocks::{empty_or, served_at_once},
    costs::{RefinedCosts, Rounds, rounds},
    ports::Head,
};
use crate::{Forms, parameters::Network};

/// Messages of blocks in a round, each of so many.
fn round(network: &Network, time: &mut Rounds, block: f64, numbers: &[u32]) {
    let costs = |number: &u32| RefinedCosts::from_network(network, f64::from(*number) * block);
    time.exchange_all(network, &numbers.iter().map(costs).collect::<Vec<_>>());
}

/// The radix of a call; a larger one than there are ranks is as good as their number.
fn radix(shape: &CallShape) -> u32 {
    shape.fan_out().clamp(2, shape.ranks().max(2))
}

/// The weights of the digits of the numbers below P.
fn weights(ranks: u32, radix: u32) -> impl Iterator<Item = u32> {
    let weights = std::iter::successors(Some(1_u64), move |weight| Some(weight * u64::from(radix)));
    weights.take_while(move |weight| *weight < u64::from(ranks)).map(|weight| weight as u32)
}

/// How far the messages of a digit go.
fn distances(ranks: u32, radix: u32, weight: u32) -> impl Iterator<Item = u32> {
    let distances = (1..radix).map(move |times| u64::from(times) * u64::from(weight));
    distances.take_while(move |far| *far < u64::from(ranks)).map(|far| far as u32)
}

/// ceil(log_k P) rounds of k - 1 messages.
pub(super) fn barrier_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (ranks, radix, mut time) = (shape.ranks(), radix(shape), Rounds::default());
    for weight in weights(ranks, radix) {
        let numbers: Vec<u32> = distances(ranks, radix, weight).map(|_| 0).collect();
        round(network, &mut time, 0.0, &numbers);
    }
    time.clock
}

/// ceil(log_k P) rounds of k - 1 messages of min(k^i, P - j k^i) blocks.
pub(super) fn allgather_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (ranks, radix, mut time) = (shape.ranks(), radix(shape), Rounds::default());
    for weight in weights(ranks, radix) {
        let number = |far: u32| weight.min(ranks - far);
        let numbers: Vec<u32> = distances(ranks, radix, weight).map(number).collect();
        round(network, &mut time, shape.bytes(), &numbers);
    }
    empty_or(shape, time.clock)
}

/// ceil(log_k P) rounds of k - 1 messages, of as many blocks as numbers below P have a digit.
pub(super) fn alltoall_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (ranks, radix, mut time) = (shape.ranks(), radix(shape), Rounds::default());
    for weight in weights(ranks, radix) {
        let all = u64::from(weight) * u64::from(radix);
        let (full, left) = (u64::from(ranks) / all, u64::from(ranks) % all);
        let number = |far: u32| {
            let rest = left.saturating_sub(u64::from(far)).min(u64::from(weight));
            (full * u64::from(weight) + rest) as u32
        };
        let numbers: Vec<u32> = distances(ranks, radix, weight).map(number).collect();
        round(network, &mut time, shape.bytes(), &numbers);
    }
    empty_or(shape, time.clock)
}

/// Bine's: half of the blocks in each round but the first, which has those beyond the largest power of
/// two below P.
pub(super) fn alltoall_bine(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let mut time = Rounds::default();
    for index in (0..rounds(shape.ranks())).rev() {
        let first = index + 1 == rounds(shape.ranks());
        let number = if first { shape.ranks() - (1 << index) } else { shape.ranks() / 2 };
        round(network, &mut time, shape.bytes(), &[number]);
    }
    empty_or(shape, time.clock)
}

/// As Bruck's, the far messages first: ceil(P / d) - ceil(P / 2 d) blocks at d = 2^i.
pub(super) fn allgather_sparbit(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let mut time = Rounds::default();
    for index in (0..rounds(shape.ranks())).rev() {
        let far = 1_u32 << index;
        let number = shape.ranks().div_ceil(far) - shape.ranks().div_ceil(2 * far);
        round(network, &mut time, shape.bytes(), &[number]);
    }
    empty_or(shape, time.clock)
}

/// The digits of recursive multiplying, lowest first: weight and how many values. And whether some ranks
/// are folded away.
fn multiplied(shape: &CallShape) -> (Vec<(u32, u32)>, bool) {
    let (radix, mut weight, mut digits) = (radix(shape), 1, Vec::new());
    while weight <= shape.ranks() / radix {
        digits.push((weight, radix));
        weight *= radix;
    }
    let factor = shape.ranks() / weight;
    if factor > 1 {
        digits.push((weight, factor));
    }
    (digits, factor * weight < shape.ranks())
}

/// Rounds of k - 1 messages of the vector; where ranks are folded away, M + y before and M after.
pub(super) fn allreduce_multiplying(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (digits, folded) = multiplied(shape);
    let (mut time, whole) = (Rounds::default(), RefinedCosts::from_network(network, shape.bytes()));
    if folded {
        time.combine(&whole);
    }
    for (_, size) in digits {
        time.exchange_all(network, &vec![whole; size as usize - 1]);
        time.clock += f64::from(size - 1) * whole.combine;
    }
    if folded {
        time.exchange(&whole);
    }
    empty_or(shape, time.clock)
}

/// Rounds of k - 1 messages of k^i blocks; where ranks are folded away, M(m) before and M(P m) after.
pub(super) fn allgather_multiplying(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (digits, folded) = multiplied(shape);
    let mut time = Rounds::default();
    // The first ranks stand for two each.
    let doubled = if folded { 2 } else { 1 };
    if folded {
        round(network, &mut time, shape.bytes(), &[1]);
    }
    for (weight, size) in digits {
        let number = (doubled * weight).min(shape.ranks());
        round(network, &mut time, shape.bytes(), &vec![number; size as usize - 1]);
    }
    if folded {
        round(network, &mut time, shape.bytes(), &[shape.ranks()]);
    }
    empty_or(shape, time.clock)
}

/// Reduce-scatter: `allgather_multiplying` backwards, and combined.
pub(super) fn reduce_scatter_multiplying(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (digits, folded) = multiplied(shape);
    let mut time = Rounds::default();
    let blocks =
        |number: u32| RefinedCosts::from_network(network, f64::from(number) * shape.bytes());
    if folded {
        time.combine(&blocks(shape.ranks()));
    }
    let doubled = if folded { 2 } else { 1 };
    for (weight, size) in digits.into_iter().rev() {
        let costs = blocks((doubled * weight).min(shape.ranks()));
        time.exchange_all(network, &vec![costs; size as usize - 1]);
        time.clock += f64::from(size - 1) * costs.combine;
    }
    if folded {
        time.exchange(&blocks(1));
    }
    empty_or(shape, time.clock)
}

/// The ranks below the children of a k-nomial tree's head, in ascending order.
fn subtrees(ranks: u32, radix: u32) -> Vec<u32> {
    let below =
        |weight: u32| distances(ranks, radix, weight).map(move |far| weight.min(ranks - far));
    weights(ranks, radix).flat_map(below).collect()
}

/// Times of whole subtrees and parts of one, each found once.
#[derive(Default)]
struct KnownTimes(Vec<(u32, f64)>);

impl KnownTimes {
    fn find_or(&mut self, ranks: u32, find: impl FnOnce(&mut Self) -> f64) -> f64 {
        if ranks <= 1 {
            return 0.0;
        }
        if let Some((_, seconds)) = self.0.iter().find(|(of, _)| *of == ranks) {
            return *seconds;
        }
        let seconds = find(self);
        self.0.push((ranks, seconds));
        seconds
    }
}

/// Down a k-nomial tree, the largest subtree's blocks first.
pub(super) fn scatter_k_nomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    fn down(network: &Network, shape: &CallShape, ranks: u32, known: &mut KnownTimes) -> f64 {
        known.find_or(ranks, |known| {
            let mut children = subtrees(ranks, radix(shape));
            children.reverse();
            let run = |number: &u32| f64::from(*number) * shape.bytes();
            let costs = |number| RefinedCosts::from_network(network, run(number));
            let messages: Vec<RefinedCosts> = children.iter().map(costs).collect();
            let served = served_at_once(network, &messages);
            let ends = served.iter().zip(&messages).zip(&children);
            let end = |((served, costs), number): ((&f64, &RefinedCosts), &u32)| {
                served + costs.message + down(network, shape, *number, known)
            };
            ends.map(end).fold(0.0, f64::max)
        })
    }
    empty_or(shape, down(network, shape, shape.ranks(), &mut KnownTimes::default()))
}

/// Up a k-nomial tree, the smallest subtree first; messages pass the port as they come.
pub(super) fn gather_k_nomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    fn up(network: &Network, shape: &CallShape, ranks: u32, known: &mut KnownTimes) -> f64 {
        known.find_or(ranks, |known| {
            let child = |number: u32| {
                let costs = RefinedCosts::from_network(network, f64::from(number) * shape.bytes());
                // Nothing is combined.
                (up(network, shape, number, known), RefinedCosts { combine: 0.0, ..costs })
            };
            let children: Vec<_> = subtrees(ranks, radix(shape)).into_iter().map(child).collect();
            let mut order: Vec<usize> = (0..children.len()).collect();
            let left = |child: &usize| children[*child].0 + children[*child].1.send;
            order.sort_by(|a, b| left(a).total_cmp(&left(b)));
            let (mut head, mut passes) = (Head { clock: 0.0, port: 0.0 }, vec![0.0; order.len()]);
            for child in order {
                let costs = &children[child].1;
                passes[child] = head.pass(left(&child), costs.gap) - costs.send;
            }
            let arrivals = children.iter().zip(&passes);
            arrivals.for_each(|((_, costs), passes)| head.wait(costs, *passes));
            head.clock
        })
    }
    empty_or(shape, up(network, shape, shape.ranks(), &mut KnownTimes::default()))
}
