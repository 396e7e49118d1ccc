//! Circulant graphs: in a round every rank sends one message and receives one.

use super::{
    super::shape::CallShape,
    costs::{RefinedCosts, Rounds, rounds},
};
use crate::{Forms, parameters::Network};

/// Blocks of each message, the first level of a reduce-scatter first: P / 2, P / 4, ..., the rounding
/// such that ceil(P / 2^i) are left.
fn halvings(ranks: u32) -> impl DoubleEndedIterator<Item = u32> {
    let held = move |level: u32| u64::from(ranks).div_ceil(1 << level) as u32;
    (0..rounds(ranks)).map(move |level| held(level) - held(level + 1))
}

fn blocks(network: &Network, number: u32, block: f64) -> RefinedCosts {
    RefinedCosts::from_network(network, f64::from(number) * block)
}

/// The sum of M over the messages.
pub(super) fn allgather(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let mut time = Rounds::default();
    for number in halvings(shape.ranks()).rev() {
        time.exchange(&blocks(network, number, shape.bytes()));
    }
    time.clock
}

/// The sum of M + y over the messages.
pub(super) fn reduce_scatter(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let mut time = Rounds::default();
    for number in halvings(shape.ranks()) {
        time.combine(&blocks(network, number, shape.bytes()));
    }
    time.clock
}

/// Reduce-scatter, then allgather, of parts of m / P.
pub(super) fn allreduce(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let (mut time, part) = (Rounds::default(), shape.bytes() / shape.procs());
    for number in halvings(shape.ranks()) {
        time.combine(&blocks(network, number, part));
    }
    for number in halvings(shape.ranks()).rev() {
        time.exchange(&blocks(network, number, part));
    }
    time.clock
}

/// q M + (n_s - 1) max(e(q), g, s + r), q = ceil(lg P).
pub(super) fn bcast(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = RefinedCosts::of_segment(network, shape);
    let period = costs.each(network, rounds(shape.ranks())).max(costs.gap);
    let fill = shape.rounds() * costs.message;
    flow(shape, fill, period.max(costs.send + costs.receive))
}

/// q (M + y) + (n_s - 1) max(e(q), g, s + r + y).
pub(super) fn reduce(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = RefinedCosts::of_segment(network, shape);
    let period = costs.each(network, rounds(shape.ranks())).max(costs.gap);
    let fill = shape.rounds() * costs.combined();
    flow(shape, fill, period.max(costs.send + costs.receive + costs.combine))
}

fn flow(shape: &CallShape, fill: f64, period: f64) -> f64 {
    if shape.bytes == 0 { 0.0 } else { fill + (shape.segments() - 1.0) * period }
}
