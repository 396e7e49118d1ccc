//! Rounds in which ranks exchange messages: a round takes what its message takes, M, since the
//! port is free again by then (g <= M).

use super::{Costs, Forms, Network, Shape, folded, rounds};

/// Reports to rank 0 as in a gather, releases as in a linear broadcast:
/// 2 M + (P - 2) (max(g, r) + e(P - 1)).
pub(super) fn barrier_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    let costs = Costs::of(network, 0.0);
    let others = shape.procs - 1;
    2.0 * costs.message + f64::from(others - 1) * (costs.taken() + costs.each(network, others))
}

/// Twice around: 2 P M.
pub(super) fn barrier_double_ring(network: &Network, shape: &Shape, _: Forms) -> f64 {
    2.0 * shape.procs() * Costs::of(network, 0.0).message
}

/// lg P rounds, or floor(lg P) + 2 where P is no power of two, of M.
pub(super) fn barrier_recursive_doubling(network: &Network, shape: &Shape, _: Forms) -> f64 {
    shape.doubling_rounds() * Costs::of(network, 0.0).message
}

/// ceil(lg P) M.
pub(super) fn barrier_bruck(network: &Network, shape: &Shape, _: Forms) -> f64 {
    shape.rounds() * Costs::of(network, 0.0).message
}

/// floor(lg P) (M + y); where P is no power of two, M + y before and M after that.
pub(super) fn allreduce_recursive_doubling(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let (levels, folds) = folded(shape.procs);
        let fold = if folds { costs.combined() + costs.message } else { 0.0 };
        f64::from(levels) * costs.combined() + fold
    })
}

/// Sum over i = 1 .. floor(lg P) of 2 M(m / 2^i) + y(m / 2^i): halving, then doubling (gathering,
/// for a reduction to one root); where P is no power of two, M + y before and M after that.
pub(super) fn rabenseifner(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let (levels, folds) = folded(shape.procs);
        let fold = if folds { costs.combined() + costs.message } else { 0.0 };
        let halves = (1..=levels).map(|level| {
            let part = Costs::of(network, shape.bytes() / f64::from(1_u32 << level));
            part.combined() + part.message
        });
        fold + halves.sum::<f64>()
    })
}

/// (P - 1) hops of M + y, once per segment of a part of m / P, then (P - 1) M(m / P).
pub(super) fn allreduce_ring(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |_| {
        let part = shape.bytes() / shape.procs();
        let phases = (part / shape.segment_bytes()).ceil().max(1.0);
        let piece = Costs::of(network, part / phases);
        let hops = shape.procs() - 1.0;
        hops * (phases * piece.combined() + Costs::of(network, part).message)
    })
}

/// One rank after the other sends to all others, in rounds by segment, e = e(P - 1):
/// P (M - e) + (P - 1) (n_s P + 1 - P / 2) e. The paper's algorithm.
pub(super) fn alltoall_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let (p, costs) = (shape.procs(), Costs::of_segment(network, shape));
    let each = costs.each(network, shape.procs - 1);
    let sends = (p - 1.0) * (shape.segments() * p + 1.0 - p / 2.0);
    p * (costs.message - each) + sends * each
}

/// All P - 1 sends posted, then all receives taken in: messages pass the incoming port as they
/// come, every max(e, g), and the processor takes in n = P - 1 of them after its sends.
pub(super) fn alltoall_linear_concurrent(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        let others = f64::from(shape.procs - 1);
        let each = costs.each(network, shape.procs - 1);
        let sent = (others - 1.0) * each + costs.send;
        let last = costs.message + (others - 1.0) * each.max(costs.gap);
        let first = costs.message + (others - 1.0) * costs.receive;
        (sent + others * costs.receive).max(last).max(first)
    })
}

/// (P - 1) M.
pub(super) fn alltoall_pairwise(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| (shape.procs() - 1.0) * costs.message)
}

/// Sum over i < ceil(lg P) of M(b_i m), b_i being how many of the numbers below P have bit i.
pub(super) fn alltoall_bruck(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |_| {
        let with_bit = |bit: u32| {
            let (pairs, left) = (shape.procs / (2 * bit), shape.procs % (2 * bit));
            f64::from(pairs * bit + left.saturating_sub(bit))
        };
        let round = |index: u32| Costs::of(network, with_bit(1 << index) * shape.bytes()).message;
        (0..rounds(shape.procs)).map(round).sum()
    })
}

/// (P - 1) (M + y), around a ring or in pairs.
pub(super) fn reduce_scatter_ring(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| (shape.procs() - 1.0) * costs.combined())
}

/// A chain that keeps what passes: (P - 1) (M + y) + (n_s - 1) max(g, r + y + s).
pub(super) fn scan_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    chain(network, shape, shape.procs() - 1.0)
}

/// As a scan, but that the last rank combines nothing.
pub(super) fn exscan_linear(network: &Network, shape: &Shape, _: Forms) -> f64 {
    chain(network, shape, shape.procs() - 2.0)
}

fn chain(network: &Network, shape: &Shape, combinations: f64) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let costs = Costs::of_segment(network, shape);
    let least = costs.each(network, 1);
    let busy = match shape.procs {
        2 => costs.receive + combinations * costs.combine,
        _ => costs.receive + costs.combine + costs.send,
    };
    (shape.procs() - 1.0) * costs.message
        + combinations * costs.combine
        + (shape.segments() - 1.0) * least.max(busy)
}

/// ceil(lg P) rounds of M + 2 y: a rank that hears from a lower one combines prefix and total.
pub(super) fn scan_recursive_doubling(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| shape.rounds() * (costs.combined() + costs.combine))
}

/// As a scan, but that the first prefix is only kept.
pub(super) fn exscan_recursive_doubling(network: &Network, shape: &Shape, _: Forms) -> f64 {
    whole(network, shape, |costs| {
        shape.rounds() * (costs.combined() + costs.combine) - costs.combine
    })
}

/// Of a whole message; nothing where it is empty.
fn whole(network: &Network, shape: &Shape, seconds: impl Fn(&Costs) -> f64) -> f64 {
    if shape.bytes == 0 { 0.0 } else { seconds(&Costs::of(network, shape.bytes())) }
}
