//! k-nomial trees, down and up: the first segment, and the period.

use schedules::simulator::ROUNDING;

use super::{
    super::shape::CallShape,
    costs::{EachByChildren, RefinedCosts},
    ports::Head,
};
use crate::parameters::Network;

/// The period of a rank that forwards to `children`.
pub(super) fn interior(costs: &RefinedCosts, network: &Network, children: u32) -> f64 {
    let last = costs.gap_each(network, children).max(costs.send + costs.receive);
    (f64::from(children) - 1.0) * costs.each(network, children) + last
}

/// The period of a rank that combines `children`'s segments and sends the result.
pub(super) fn combining(costs: &RefinedCosts, children: u32) -> f64 {
    let children = f64::from(children);
    (children * costs.gap).max(children * (costs.receive + costs.combine) + costs.send)
}

/// Levels of a k-nomial tree of n > 1 ranks: (levels below the top one, ranks that a child of the
/// top level heads, children on the top level).
fn top_level(ranks: u32, radix: u32) -> (u32, u32, u32) {
    let below = (ranks - 1).ilog(radix);
    let weight = radix.pow(below);
    (below, weight, (ranks - 1) / weight)
}

/// Of the root of a k-nomial tree of n > 1 ranks.
fn children(ranks: u32, radix: u32) -> u32 {
    let (below, _, top) = top_level(ranks, radix);
    top + below * (radix - 1)
}

/// Down a k-nomial tree: the first segment, and the period.
pub(super) fn nomial(
    costs: &RefinedCosts,
    network: &Network,
    shape: &CallShape,
    radix: u32,
) -> (f64, f64) {
    let fill = nomial_fill(costs, network, shape.procs, radix);
    let (_, weight, top) = top_level(shape.procs, radix);
    let of_root = children(shape.procs, radix);
    let root = f64::from(of_root) * costs.each(network, of_root);
    // The first child is the one with most children, if it is a whole one.
    let first = (shape.procs - top * weight).max(if top > 1 { weight } else { 1 });
    let chain = match first {
        1 => costs.receive,
        ranks => interior(costs, network, children(ranks, radix)),
    };
    (fill, root.max(chain))
}

/// From the root's start until all have one segment. A rank with c children starts child i (from
/// 0; the largest subtree first) after i e(c), or has [served](RefinedCosts::served) it later where
/// messages leave together; so for whole subtrees of radix k and i levels
/// F(i) = max over l < i of ((k - 1) (i - l) - 1) e(c) + M + F(l), and the largest subtree may be
/// a part of one.
fn nomial_fill(costs: &RefinedCosts, network: &Network, ranks: u32, radix: u32) -> f64 {
    if ranks <= 1 {
        return 0.0;
    }
    let (below, ..) = top_level(ranks, radix);
    let mut each = EachByChildren::new(costs, network);
    let mut whole = [0.0_f64; 32];
    for levels in 1..=below {
        let children = levels * (radix - 1);
        let each = each.seconds(children);
        let last = |level: u32| costs.served(each, (radix - 1) * (levels - level) - 1, children);
        let way = |level: u32| last(level) + costs.message + whole[level as usize];
        whole[levels as usize] = (0..levels).map(way).fold(0.0, f64::max);
    }
    let (mut ranks, mut before, mut longest) = (ranks, 0.0_f64, 0.0_f64);
    while ranks > 1 {
        let (below, weight, top) = top_level(ranks, radix);
        let children = top + below * (radix - 1);
        let each = each.seconds(children);
        let way = |last: u32, level: u32| {
            before + costs.served(each, last, children) + costs.message + whole[level as usize]
        };
        if top > 1 {
            longest = longest.max(way(top - 1, below));
        }
        for level in 0..below {
            longest = longest.max(way(top + (radix - 1) * (below - level) - 1, level));
        }
        before += costs.served(each, 0, children) + costs.message;
        ranks -= top * weight;
    }
    longest.max(before)
}

/// Up a k-nomial tree in n_s segments: no sooner than the first segment and n_s - 1 periods of a leaf or of a
/// rank whose children are leaves, and no sooner than [`drained`] has it.
pub(super) fn nomial_up(costs: &RefinedCosts, ranks: u32, radix: u32, segments: f64) -> f64 {
    let leaf = costs.send.max(costs.gap);
    let lowest = if ranks > radix { combining(costs, radix - 1) } else { leaf };
    let first = nomial_drain(costs, ranks, radix) + (segments - 1.0) * lowest;
    let root = f64::from(children(ranks, radix)) * costs.taken();
    first.max(drained(costs, ranks, radix, segments, root))
}

/// Until a head has combined all segments, which takes a `period` each. What its leaves send begins to pass its
/// port at once, so that c children's take M + y + (c - 1) max(g, r + y) + (n_s - 1) periods; nor is it done
/// sooner than M + y after a child is, or that of the last of several that are done together.
fn drained(costs: &RefinedCosts, ranks: u32, radix: u32, segments: f64, period: f64) -> f64 {
    let (_, weight, top) = top_level(ranks, radix);
    let others = f64::from(children(ranks, radix) - 1);
    let own = costs.combined() + others * costs.taken() + (segments - 1.0) * period;
    let after = |ranks: u32, together: u32| match ranks {
        0 | 1 => 0.0,
        _ => {
            let period = combining(costs, children(ranks, radix));
            let child = drained(costs, ranks, radix, segments, period);
            child + costs.combined() + f64::from(together - 1) * costs.taken_at_once()
        }
    };
    let whole = if top > 1 { after(weight, top - 1) } else { after(weight / radix, radix - 1) };
    own.max(whole).max(after(ranks - top * weight, 1))
}

/// From the start until the head has combined one segment of all. The children of one level are
/// done together, each level when the head has combined the one below: a level adds
/// M + y + (k - 2) max(g, r + y), or what that is where they come [at once](RefinedCosts::taken_at_once).
/// The last child may head a part of a subtree only; what it sends passes the head's port when it comes, and so
/// may hold up the levels above.
fn nomial_drain(costs: &RefinedCosts, ranks: u32, radix: u32) -> f64 {
    if ranks <= 1 {
        return 0.0;
    }
    let (below, weight, top) = top_level(ranks, radix);
    let level = costs.combined() + f64::from(radix - 2) * costs.taken_at_once();
    let levels = if top > 1 { below + 1 } else { below };
    let children = |index: u32| if index == below { top - 1 } else { radix - 1 };
    let last = nomial_drain(costs, ranks - top * weight, radix);
    // Levels that come before the last child or with it; none of them is held up.
    let earlier = levels.min((last * (1.0 + ROUNDING) / level) as u32 + 1);
    let mut head = Head { clock: f64::from(earlier) * level, port: 0.0 };
    if let Some(index) = earlier.checked_sub(1) {
        let missing = radix - 1 - children(index);
        head.clock -= f64::from(missing) * costs.taken_at_once();
        head.port = f64::from(index) * level + f64::from(children(index)) * costs.gap;
    }
    let passes = head.pass(last, costs.gap);
    for index in earlier..levels {
        head.take(costs, f64::from(index) * level, children(index));
    }
    head.wait(costs, passes);
    head.clock
}
