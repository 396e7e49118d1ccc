//! Two trees, each with half of the segments: an inner rank of one sends two messages and receives
//! two, one of them as a leaf of the other, for each two segments of the message.

use super::{super::shape::CallShape, costs::RefinedCosts};
use crate::{Forms, parameters::Network};

/// Of a segment, which is no longer than half of the message.
fn costs(network: &Network, shape: &CallShape) -> RefinedCosts {
    RefinedCosts::from_network(network, shape.segment_bytes().min(shape.bytes() / 2.0))
}

/// Ranks from a tree's head to its deepest leaf.
fn levels(shape: &CallShape) -> f64 {
    f64::from((shape.ranks() - 1).ilog2())
}

/// Segments of both halves after the first one. Two ranks have one link: nobody sends and receives
/// there, and each tree's segments follow the other's.
fn after_the_first(shape: &CallShape) -> f64 {
    2.0 * shape.half_segments() - 1.0
}

/// M + e(2) + floor(lg(P - 1)) (M + e(2)) + (ceil(n_s / 2) - 1) 2 max(e(2), g, s + r); on two ranks
/// M + (2 ceil(n_s / 2) - 1) max(e(1), g, r).
pub(super) fn bcast(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let costs = costs(network, shape);
    if shape.ranks() == 2 {
        let period = costs.each(network, 1).max(costs.gap).max(costs.receive);
        return costs.message + after_the_first(shape) * period;
    }
    let each = costs.each(network, 2);
    let fill = (levels(shape) + 1.0) * (costs.message + each);
    let period = 2.0 * each.max(costs.gap).max(costs.send + costs.receive);
    fill + (shape.half_segments() - 1.0) * period
}

/// M + y and floor(lg(P - 1)) (M + y + t) up, t = max(g, r + y); then
/// (ceil(n_s / 2) - 1) 2 max(t, s + r + y); on two ranks M + y + (2 ceil(n_s / 2) - 1) max(t, e(1)).
pub(super) fn reduce(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let costs = costs(network, shape);
    if shape.ranks() == 2 {
        let period = costs.taken().max(costs.each(network, 1));
        return costs.combined() + after_the_first(shape) * period;
    }
    let fill = (levels(shape) + 1.0) * (costs.combined() + costs.taken());
    let period = 2.0 * costs.taken().max(costs.send + costs.receive + costs.combine);
    fill + (shape.half_segments() - 1.0) * period
}

/// The reduction, then the broadcast.
pub(super) fn allreduce(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    reduce(network, shape, forms) + bcast(network, shape, forms)
}
