//! Rounds in which ranks exchange messages: a round takes what its message takes, M, since the
//! port is free again by then (g <= M).

use super::{
    super::{
        shape::CallShape,
        text::Text::{self, Formula},
    },
    costs::{RefinedCosts, Rounds, folded, rounds},
};
use crate::{
    Forms,
    parameters::{Network, PointToPointParameters},
};

/// Reports to rank 0 as in a gather, releases as in a linear broadcast:
/// 2 M + (P - 2) (max(g, r) + e(P - 1)).
pub(super) fn barrier_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let costs = RefinedCosts::from_network(network, 0.0);
    let others = shape.procs - 1;
    2.0 * costs.message + f64::from(others - 1) * (costs.taken() + costs.each(network, others))
}

/// Twice around: 2 P M.
pub(super) fn barrier_double_ring(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    2.0 * shape.procs() * RefinedCosts::from_network(network, 0.0).message
}

/// lg P rounds of M where P is a power of two; see [`doubling`].
pub(super) fn barrier_recursive_doubling(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    doubling(&RefinedCosts::from_network(network, 0.0), shape.procs)
}

/// ceil(lg P) M.
pub(super) fn barrier_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    shape.rounds() * RefinedCosts::from_network(network, 0.0).message
}

/// lg P rounds of M + y where P is a power of two; see [`doubling`].
pub(super) fn allreduce_recursive_doubling(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| doubling(costs, shape.procs))
}

/// Exchanges with the ranks whose number differs in one bit: l = lg P rounds of C = M + y.
///
/// Where P exceeds 2^l by f > 0, f pairs put theirs together first, and f ranks hear of the result
/// last. What a pair has is late by C, so some rank is done after (l + 1) C. That is the time of
/// the pairs, too, as far as they hear from each other, which they do in b = ceil(lg f) rounds; in
/// the other rounds what they wait for is there already, and they are busy for max(g, s + r + y).
fn doubling(costs: &RefinedCosts, ranks: u32) -> f64 {
    let ((levels, surplus), round) = (folded(ranks), costs.combined());
    let all = f64::from(levels);
    if surplus == 0 {
        return all * round;
    }
    let late = f64::from(rounds(surplus));
    let busy = costs.gap.max(costs.send + costs.receive + costs.combine);
    let pairs = (all * round).max((1.0 + late) * round + (all - late) * busy);
    ((all + 1.0) * round).max(pairs + costs.message)
}

/// Rounds of m / 2^i, i = 1 .. floor(lg P), that come and are combined, then the same backwards
/// (doubling, or gathering for a reduction to one root) without combining: where no port is in the
/// way the sum of 2 M(m / 2^i) + y(m / 2^i). Where P is no power of two, M + y before and M after; it
/// isn't followed what messages of ranks that wait for none of that hold up.
pub(super) fn rabenseifner(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let (levels, surplus) = folded(shape.procs);
        let part =
            |level| RefinedCosts::from_network(network, shape.bytes() / f64::from(1_u32 << level));
        let mut time = Rounds::default();
        if surplus > 0 {
            time.combine(costs);
        }
        (1..=levels).for_each(|level| time.combine(&part(level)));
        (1..=levels).rev().for_each(|level| time.exchange(&part(level)));
        if surplus > 0 {
            time.exchange(costs);
        }
        time.clock
    })
}

/// (P - 1) hops of M + y, once per segment of a part of m / P, then (P - 1) M(m / P).
pub(super) fn allreduce_ring(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |_| {
        let part = shape.bytes() / shape.procs();
        let phases = (part / shape.segment_bytes()).ceil().max(1.0);
        let piece = RefinedCosts::from_network(network, part / phases);
        let hops = shape.procs() - 1.0;
        hops * (phases * piece.combined() + RefinedCosts::from_network(network, part).message)
    })
}

/// One rank after the other sends to all others, in rounds by segment, e = e(P - 1):
/// P (M - e) + (P - 1) (n_s P + 1 - P / 2) e. The paper's algorithm.
pub(super) fn alltoall_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let (p, costs) = (shape.procs(), RefinedCosts::of_segment(network, shape));
    let mut each = costs.each(network, shape.procs - 1);
    if shape.procs == 2 {
        each = each.max(costs.receive);
    }
    let sends = (p - 1.0) * (shape.segments() * p + 1.0 - p / 2.0);
    p * (costs.message - each) + sends * each
}

pub(super) fn alltoall_linear_text(
    _: &PointToPointParameters,
    _: Forms,
    shape: &CallShape,
) -> Text {
    Formula(match shape.procs {
        2 => "2 (M - max{e(1), r}) + 2 n_s max{e(1), r}",
        _ => "P (M - e(P - 1)) + (P - 1)(n_s P + 1 - P / 2) e(P - 1)",
    })
}

/// All P - 1 sends posted, then all receives taken in: messages pass the incoming port as they
/// come, every max(e, g), and the processor takes in n = P - 1 of them after its sends.
pub(super) fn alltoall_linear_concurrent(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let others = f64::from(shape.procs - 1);
        let each = costs.each(network, shape.procs - 1);
        let sent = (others - 1.0) * each + costs.send;
        let last = costs.message + (others - 1.0) * each.max(costs.gap);
        let first = costs.message + (others - 1.0) * costs.receive;
        (sent + others * costs.receive).max(last).max(first)
    })
}

/// (P - 2) max(M, e(P - 1)) + M: each round goes to another rank.
pub(super) fn alltoall_pairwise(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let each = costs.each(network, shape.procs - 1);
        (shape.procs() - 2.0) * costs.message.max(each) + costs.message
    })
}

/// Sum over i < ceil(lg P) of M(b_i m), b_i being how many of the numbers below P have bit i.
pub(super) fn alltoall_bruck(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |_| {
        let with_bit = |bit: u32| {
            let (pairs, left) = (shape.procs / (2 * bit), shape.procs % (2 * bit));
            f64::from(pairs * bit + left.saturating_sub(bit))
        };
        let mut time = Rounds::default();
        for index in 0..rounds(shape.procs) {
            time.exchange(&RefinedCosts::from_network(
                network,
                with_bit(1 << index) * shape.bytes(),
            ));
        }
        time.clock
    })
}

/// (P - 2) max(M + y, e(P - 1)) + M + y: each round goes to another rank.
pub(super) fn reduce_scatter_pairwise(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let each = costs.each(network, shape.procs - 1);
        (shape.procs() - 2.0) * costs.combined().max(each) + costs.combined()
    })
}

/// (P - 1) (M + y).
pub(super) fn reduce_scatter_ring(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| (shape.procs() - 1.0) * costs.combined())
}

/// A chain that keeps what passes: (P - 1) (M + y) + (n_s - 1) max(g, r + y + s).
pub(super) fn scan_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    chain(network, shape, shape.procs() - 1.0)
}

/// As a scan, but that the last rank combines nothing.
pub(super) fn exscan_linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    chain(network, shape, shape.procs() - 2.0)
}

pub(super) fn scan_linear_text(_: &PointToPointParameters, _: Forms, shape: &CallShape) -> Text {
    Formula(match shape.procs {
        2 => "M + y + (n_s - 1) max{e(1), r + y}",
        _ => "(P - 1)(M + y) + (n_s - 1) max{e(1), r + y + s}",
    })
}

pub(super) fn exscan_linear_text(_: &PointToPointParameters, _: Forms, shape: &CallShape) -> Text {
    Formula(match shape.procs {
        2 => "M + (n_s - 1) max{e(1), r}",
        _ => "(P - 1) M + (P - 2) y + (n_s - 1) max{e(1), r + y + s}",
    })
}

fn chain(network: &Network, shape: &CallShape, combinations: f64) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let costs = RefinedCosts::of_segment(network, shape);
    let least = costs.each(network, 1);
    let busy = match shape.procs {
        2 => costs.receive + combinations * costs.combine,
        _ => costs.receive + costs.combine + costs.send,
    };
    (shape.procs() - 1.0) * costs.message
        + combinations * costs.combine
        + (shape.segments() - 1.0) * least.max(busy)
}

/// ceil(lg P) rounds of M + 2 y: a rank that hears from a lower one combines prefix and total; the
/// last total is nobody's.
pub(super) fn scan_recursive_doubling(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        shape.rounds() * (costs.combined() + costs.combine) - costs.combine
    })
}

/// As a scan, but that the first prefix is only kept.
pub(super) fn exscan_recursive_doubling(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        shape.rounds() * (costs.combined() + costs.combine) - 2.0 * costs.combine
    })
}

/// Of a whole message; nothing where it is empty.
fn whole(network: &Network, shape: &CallShape, seconds: impl Fn(&RefinedCosts) -> f64) -> f64 {
    if shape.bytes == 0 {
        0.0
    } else {
        seconds(&RefinedCosts::from_network(network, shape.bytes()))
    }
}
