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

/// M + (q - 1) max(M, k t) + (n_s - 1) t, q = ceil(lg P), of k streams: t = max(b, (b + M / k) / 2), with b =
/// max(e(q), g, s + r).
pub(super) fn bcast(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = RefinedCosts::of_segment(network, shape);
    let period = costs.each(network, rounds(shape.ranks())).max(costs.gap);
    flow(shape, costs.message, period.max(costs.send + costs.receive))
}

/// As the broadcast's, with M + y for M and s + r + y for s + r.
pub(super) fn reduce(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = RefinedCosts::of_segment(network, shape);
    let period = costs.each(network, rounds(shape.ranks())).max(costs.gap);
    flow(shape, costs.combined(), period.max(costs.send + costs.receive + costs.combine))
}

/// A block takes q ways of a `message`, and a round takes a rank for `busy` at least. But in every
/// other round or so a rank waits for what another one got in the round before, and that one for a
/// third, in circles. Half of a circle's rounds take a message then, or as much less of one as there
/// are streams that take turns, the other half the port. A block goes on when it is its stream's turn. Of
/// more streams than segments, which are no candidates, the time is too long.
fn flow(shape: &CallShape, message: f64, busy: f64) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let streams = f64::from(shape.fan_out());
    // Two ranks wait for nobody else.
    let in_circles = if shape.ranks() > 2 { (busy + message / streams) / 2.0 } else { busy };
    let round = busy.max(in_circles);
    let way = message.max(streams * round);
    message + (shape.rounds() - 1.0) * way + (shape.segments() - 1.0) * round
}
