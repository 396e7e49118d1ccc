//! Trees that are made for the network: the last rank hears as soon as it can.

use records::{Collective, TreePace};
use schedules::simulator::MemoryCosts as _;

use super::{super::shape::CallShape, costs::RefinedCosts, nomial, trees};
use crate::{Forms, parameters::Network, simulated::memory_of, spreading::spreading};

/// What the messages of a tree take, and what shape that gives it, in seconds.
struct TreeFit {
    gap: f64,
    trip: f64,
    /// From the start until all have one segment.
    fill: f64,
    /// Children of the root, which has most.
    children: u32,
    /// Children of its first child, which has most of all others.
    below: u32,
    most: u32,
    ranks: u32,
}

impl TreeFit {
    fn new(shape: &CallShape, trip: f64, gap: impl Fn(u32) -> f64) -> Self {
        let (most, ranks) = (shape.fan_out(), shape.ranks());
        let fitted = |gap: f64| {
            let fill = spreading(ranks, gap, trip, most);
            let tree = TreeFit { gap, trip, fill, children: 0, below: 0, most, ranks };
            TreeFit { children: tree.sends(0), below: tree.sends(1), ..tree }
        };
        // How soon sends follow each other may depend on how many there are to be.
        let first = gap(most.max(1));
        let fit = fitted(first);
        match gap(fit.children) {
            same if same == first => fit,
            other => TreeFit { children: fit.children, below: fit.below, ..fitted(other) },
        }
    }

    /// To how many others who hears after so many trips sends, which it does until the last rank hears.
    fn sends(&self, trips: u32) -> u32 {
        let most = if self.most == 0 { u32::MAX } else { self.most };
        let others = self.ranks.saturating_sub(trips + 1);
        let left = self.fill - (f64::from(trips) + 1.0) * self.trip;
        let sends = left / self.gap.max(f64::MIN_POSITIVE) + ROUNDING;
        if sends < 0.0 { 0 } else { (sends as u32).saturating_add(1).min(most).min(others) }
    }

    /// Until the last of the first children has one segment, each the first of its parent, where messages that are
    /// sent at once leave together.
    fn by_frames(&self, costs: &RefinedCosts) -> f64 {
        let sends = (0..).map(|trips| self.sends(trips)).take_while(|children| *children > 0);
        sends.map(|children| costs.served(self.gap, 0, children) + costs.message).sum()
    }
}

/// Of a send, by the gaps.
const ROUNDING: f64 = 1e-9;

fn down(network: &Network, shape: &CallShape) -> TreeFit {
    let costs = RefinedCosts::of_segment(network, shape);
    TreeFit::new(shape, costs.message, |children| costs.each(network, children))
}

/// Read backwards a reduction is a broadcast, in which the receiver has the sender's part.
fn up(network: &Network, shape: &CallShape) -> TreeFit {
    let costs = RefinedCosts::of_segment(network, shape);
    TreeFit::new(shape, costs.combined(), |_| costs.taken())
}

/// What the tree for a call is made for.
pub(crate) fn pace(network: &Network, shape: &CallShape, collective: Collective) -> TreePace {
    let memory = memory_of(network, shape.ranks());
    if let Some(memory) = memory {
        let bytes = match shape.segment() {
            0 => shape.whole_bytes(),
            segment => segment.min(shape.whole_bytes()),
        };
        return match collective {
            Collective::Reduce => {
                let combine = memory.combine(bytes, 1.0);
                TreePace::of_seconds(memory.trip(bytes) + combine, memory.receive(bytes) + combine)
            }
            _ => TreePace::of_seconds(memory.trip(bytes), memory.send(bytes)),
        };
    }
    let fit = match collective {
        Collective::Reduce => up(network, shape),
        _ => down(network, shape),
    };
    TreePace::of_seconds(fit.trip, fit.gap)
}

/// Karp's tree with trips of M and gaps of e, then a segment per round of the root.
pub(super) fn bcast(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let fit = down(network, shape);
    trees::flow(network, shape, |costs| {
        let root = f64::from(fit.children) * costs.each(network, fit.children);
        let others = match fit.below {
            0 => costs.receive,
            children => nomial::interior(costs, network, children),
        };
        let fill =
            if costs.last_frame < 1.0 { fit.by_frames(costs).max(fit.fill) } else { fit.fill };
        (fill, root.max(others))
    })
}

/// Reduce: `bcast` backwards, with trips of M + y and gaps of max(g, r + y): no sooner than the first segment and n_s - 1
/// periods of a leaf, nor than the root or its first child, which have most children, have combined what these
/// send. Leaves' segments begin to pass a port at once.
pub(super) fn reduce(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    if shape.bytes == 0 {
        return 0.0;
    }
    let fit = up(network, shape);
    let costs = RefinedCosts::of_segment(network, shape);
    let later = shape.segments() - 1.0;
    let first = |trips: f64, children: u32| trips * fit.trip + f64::from(children - 1) * fit.gap;
    let leaf = fit.fill + later * costs.each(network, 1);
    let root = first(1.0, fit.children) + later * f64::from(fit.children) * costs.taken();
    let below = match fit.below {
        0 => 0.0,
        // Where the fan-out ends it, others that have as many children hear later.
        children => {
            let first = if children == fit.most { fit.fill } else { first(2.0, children) };
            first + later * nomial::combining(&costs, children)
        }
    };
    leaf.max(root).max(below)
}
