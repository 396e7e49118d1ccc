//! Trees and chains of whole messages or of segments: broadcast, reduce, and both one after the
//! other.
//!
//! A flow of n_s segments takes what its first segment takes on the longest way, and then n_s - 1
//! times the period of the slowest rank on it. A rank that forwards to c children has the period
//! (c - 1) e(c) + max(g(m_s, c) / c, s + r), the root c e(c). One that combines c children's
//! segments and sends the result has max(c g, c (r + y) + s), the root c max(g, r + y).
//!
//! Up a tree, a rank's port serves its children's messages as they come. Of a first segment that
//! is followed exactly. Of the later ones it is followed up k-nomial and fitted trees that leaves' pass early,
//! while a rank waits for those of its greater children; not that what one child sends early may
//! hold up what another one sends.

use schedules::simulator::is_before;

use super::{
    super::{
        shape::CallShape,
        text::Text::{self, Formula},
    },
    costs::RefinedCosts,
    nomial::{combining, interior, nomial, nomial_up},
    ports::Head,
};
use crate::{
    Forms,
    parameters::{Network, PointToPointParameters},
};

/// Root: P - 1 sends per segment. (P - 2) e + M + (n_s - 1) max((P - 1) e, g, r), e = e(P - 1).
pub(super) fn bcast_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let children = shape.procs - 1;
        let each = costs.each(network, children);
        let round = f64::from(children) * each;
        (round - each + costs.message, round.max(costs.gap).max(costs.receive))
    })
}

/// Chain: (P - 1) M + (n_s - 1) max(g, s + r).
pub(super) fn bcast_pipeline(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        (f64::from(shape.procs - 1) * costs.message, forward(costs, network, shape))
    })
}

pub(super) fn bcast_pipeline_text(_: &PointToPointParameters, _: Forms, shape: &CallShape) -> Text {
    Formula(match shape.procs {
        2 => "M + (n_s - 1) max{e(1), r}",
        _ => "(P - 1) M + (n_s - 1) max{g, s + r}",
    })
}

/// The period of a chain of all ranks.
fn forward(costs: &RefinedCosts, network: &Network, shape: &CallShape) -> f64 {
    let least = costs.each(network, 1).max(costs.receive);
    if shape.procs > 2 { least.max(interior(costs, network, 1)) } else { least }
}

/// Binomial tree, largest subtree first; see [`nomial`].
pub(super) fn bcast_binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| nomial(costs, network, shape, 2))
}

/// k-nomial tree; see [`nomial`].
pub(super) fn bcast_k_nomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| nomial(costs, network, shape, shape.fan_out().max(2)))
}

/// Binary tree whose sides differ by one rank at most: D(n) = max(M + D(left),
/// e(2) + M + D(right)), where messages leave in turn.
pub(super) fn bcast_binary(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| binary(costs, network, shape.procs))
}

/// Each half of the message down its side of a binary tree, then exchanged: the tree with
/// ceil(n_s / 2) segments, and M(m / 2). Where P is even the last rank has no partner: it ends with its half, and the
/// others' tree has P - 1 ranks. The root sends it the other half, which shares the root's port with the segments, as
/// connections share a link, and makes them g(m / 2) later. Simulated, it follows them; where it is long
/// enough to wait for its receiver, it does in earnest.
pub(super) fn bcast_splitted_binary(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let half = shape.bytes() / 2.0;
    let costs = RefinedCosts::from_network(network, shape.segment_bytes().min(half));
    let other_half = RefinedCosts::from_network(network, half);
    if shape.procs == 2 {
        // The root sends both halves.
        return shape.half_segments() * costs.each(network, 1) + other_half.message;
    }
    let (fill, period) = binary(&costs, network, shape.procs);
    let later = (shape.half_segments() - 1.0) * period;
    if !shape.procs.is_multiple_of(2) {
        return fill + later + other_half.message;
    }
    let (of_others, _) = binary(&costs, network, shape.procs - 1);
    fill.max(of_others + other_half.message) + later + other_half.gap
}

/// Up to 4 chains, longer ones first: the last of the longest, or the last of all.
pub(super) fn bcast_k_chain(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let Chains { chains, length, longest } = Chains::from_shape(shape);
        let each = costs.each(network, chains);
        let way = |index: u32, length: u32| {
            costs.served(each, index, chains) + f64::from(length) * costs.message
        };
        let fill = way(longest - 1, length);
        let fill = if longest < chains { fill.max(way(chains - 1, length - 1)) } else { fill };
        let root = f64::from(chains) * each;
        let chain = if length > 1 { interior(costs, network, 1) } else { costs.receive };
        (fill, root.max(chain))
    })
}

/// Root: takes in P - 1 messages per segment. M + y + (n_s (P - 1) - 1) max(g, r + y).
pub(super) fn reduce_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let others = f64::from(shape.procs - 1);
        let fill = costs.combined() + (others - 1.0) * costs.taken_at_once();
        (fill, (others * costs.taken()).max(costs.each(network, 1)))
    })
}

/// Chain: (P - 1) (M + y) + (n_s - 1) max(g, r + y + s).
pub(super) fn reduce_pipeline(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let period = if shape.procs > 2 { combining(costs, 1) } else { 0.0 };
        let ends = costs.taken().max(costs.each(network, 1));
        (f64::from(shape.procs - 1) * costs.combined(), period.max(ends))
    })
}

pub(super) fn reduce_pipeline_text(
    _: &PointToPointParameters,
    _: Forms,
    shape: &CallShape,
) -> Text {
    Formula(match shape.procs {
        2 => "M + y + (n_s - 1) max{g, r + y, e(1)}",
        _ => "(P - 1)(M + y) + (n_s - 1) max{g, r + y + s}",
    })
}

/// Binomial tree, smallest subtree first; see [`nomial_up`].
pub(super) fn reduce_binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    up_nomial(network, shape, 2)
}

/// k-nomial tree; see [`nomial_up`].
pub(super) fn reduce_k_nomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    up_nomial(network, shape, shape.fan_out().max(2))
}

fn up_nomial(network: &Network, shape: &CallShape, radix: u32) -> f64 {
    let costs = RefinedCosts::of_segment(network, shape);
    if shape.bytes == 0 { 0.0 } else { nomial_up(&costs, shape.procs, radix, shape.segments()) }
}

/// Binary tree whose sides differ by one rank at most; see [`binary_up`].
pub(super) fn reduce_binary(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let root = if shape.procs > 2 { 2.0 } else { 1.0 } * costs.taken();
        let below = match (shape.procs - 1).div_ceil(2) {
            1 => costs.each(network, 1),
            2 => combining(costs, 1),
            _ => combining(costs, 2),
        };
        (binary_up(costs, shape.procs), root.max(below))
    })
}

/// A binary tree of all other ranks, headed by the middle one, under the root.
pub(super) fn reduce_in_order_binary(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let below = match shape.procs - 1 {
            1 => costs.each(network, 1),
            2 => combining(costs, 1),
            _ => combining(costs, 2),
        };
        (binary_up(costs, shape.procs - 1) + costs.combined(), below.max(costs.taken()))
    })
}

/// Up to 4 chains, longer ones first: the shorter ones' messages come first, and are taken in
/// last.
pub(super) fn reduce_k_chain(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    flow(network, shape, |costs| {
        let Chains { chains, length, longest } = Chains::from_shape(shape);
        let shorter = f64::from(chains - longest);
        let sent = f64::from(length - 1) * costs.combined();
        let port =
            if longest < chains { sent - costs.combined() + shorter * costs.gap } else { 0.0 };
        let mut root = Head { clock: 0.0, port };
        root.take(costs, sent, longest);
        let fill = root.clock + shorter * (costs.receive + costs.combine);
        let root = f64::from(chains) * costs.taken();
        let chain = if length > 1 { combining(costs, 1) } else { costs.each(network, 1) };
        (fill, root.max(chain))
    })
}

/// [`reduce_linear`], then [`bcast_linear`]: rank 0 has all before it sends.
pub(super) fn allreduce_linear(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    reduce_linear(network, shape, forms) + bcast_linear(network, shape, forms)
}

/// [`reduce_binomial`], then [`bcast_binomial`].
pub(super) fn allreduce_binomial(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    reduce_binomial(network, shape, forms) + bcast_binomial(network, shape, forms)
}

/// A flow of segments, from what its first segment takes and its period.
pub(super) fn flow(
    network: &Network,
    shape: &CallShape,
    fill_and_period: impl Fn(&RefinedCosts) -> (f64, f64),
) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let (fill, period) = fill_and_period(&RefinedCosts::of_segment(network, shape));
    fill + (shape.segments() - 1.0) * period
}

struct Chains {
    chains: u32,
    length: u32,
    /// How many of the chains have that length.
    longest: u32,
}

impl Chains {
    fn from_shape(shape: &CallShape) -> Self {
        let others = shape.procs - 1;
        let chains = shape.fan_out().clamp(1, others);
        let longest = if others.is_multiple_of(chains) { chains } else { others % chains };
        Chains { chains, length: others.div_ceil(chains), longest }
    }
}

/// Down a binary tree: the first segment, and the period.
fn binary(costs: &RefinedCosts, network: &Network, procs: u32) -> (f64, f64) {
    let each = costs.each(network, 2);
    let [first, second] = [0, 1].map(|child| costs.served(each, child, 2));
    let fill = balanced(procs, |left, right| match right {
        Some(right) => (first + costs.message + left).max(second + costs.message + right),
        None => costs.message + left,
    });
    let root = if procs > 2 { 2.0 * each } else { costs.each(network, 1) };
    let below = match (procs - 1).div_ceil(2) {
        1 => costs.receive,
        2 => interior(costs, network, 1),
        _ => interior(costs, network, 2),
    };
    (fill, root.max(below))
}

/// From the start until the head has combined one segment of all: of two messages the earlier one
/// passes the port first, the first child's is taken in first.
fn binary_up(costs: &RefinedCosts, ranks: u32) -> f64 {
    balanced(ranks, |left, right| {
        let mut head = Head { clock: 0.0, port: 0.0 };
        let Some(right) = right else {
            head.take(costs, left, 1);
            return head.clock;
        };
        if costs.last_frame < 1.0 && !is_before(left, right) && !is_before(right, left) {
            head.take(costs, left, 2);
            return head.clock;
        }
        let (first, second);
        if is_before(right, left) {
            second = head.pass(right, costs.gap);
            first = head.pass(left, costs.gap);
        } else {
            first = head.pass(left, costs.gap);
            second = head.pass(right, costs.gap);
        }
        head.wait(costs, first);
        head.wait(costs, second);
        head.clock
    })
}

/// A quantity of a binary tree of n ranks whose sides have ceil((n - 1) / 2) and
/// floor((n - 1) / 2) ranks, from those of its sides; 0 for one rank.
fn balanced(ranks: u32, combine: impl Fn(f64, Option<f64>) -> f64) -> f64 {
    /// Of n - 1 (none for an empty tree) and of n ranks.
    fn pair(ranks: u32, combine: &impl Fn(f64, Option<f64>) -> f64) -> (Option<f64>, f64) {
        if ranks <= 1 {
            return (None, 0.0);
        }
        let (less, half) = pair(ranks / 2, combine);
        let odd = |side| combine(side, Some(side));
        match (ranks % 2, less) {
            (0, None) => (Some(half), combine(half, None)),
            (0, Some(less)) => (Some(odd(less)), combine(half, Some(less))),
            _ => (Some(combine(half, less)), odd(half)),
        }
    }
    pair(ranks, &combine).1
}
