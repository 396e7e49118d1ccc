//! The limit where nodes hold several ranks, which share their node's port.
//!
//! What holds of ranks holds still, but that each has a port inside its node and one between nodes, and
//! the cheaper of the costs of both. Of nodes hold as well, with n ranks on a node, p in all, N nodes:
//!
//! | collective | bytes through a node's port, one way |
//! |---|---|
//! | barrier | - |
//! | bcast, reduce, scan, exscan | m |
//! | allreduce | 2 m (N - 1) / N |
//! | gather, scatter, block m | (p - n) m, n of the root's node |
//! | `reduce_scatter`, allgather, block m | (p - n) m or n m, whichever is more |
//! | alltoall, block m | n (p - n) m |
//!
//! Where what is inside a node is known by the [`memory`](super::memory) that its ranks share, a processor that copies is in
//! place of a port there. Two messages in pieces may be under way at once: where one such message is needed, that is
//! all that is known of the latency.
//!
//! And of the latency: a node that has heard tells another one whenever its port is free. The last
//! one to hear has ranks left that must hear, from within or through its port.

use records::{BufferContent, Collective, Layout, Point, Root};
use schedules::simulator::{Costs as _, MemoryCosts as _};

use super::{
    LeastCosts, LimitCause, NetworkLimit, combining, greatest, later_way, least_of,
    memory::LeastOfMemory, message, min_rate, port_seconds, sizes, work,
};
use crate::{parameters::Network, simulated::LevelledNetwork, spreading::spreading};

/// The limit at a point whose layout has several nodes; 0 on one process, and where nothing is sent.
pub fn limit_on_nodes(network: &LevelledNetwork, point: Point, root: Root) -> NetworkLimit {
    greatest(point, || {
        let LevelledNetwork { inside, between, .. } = network;
        let (of_rank, combined) = work(point);
        let of_node = through_a_node(point, root);
        let procs = point.procs();
        let port = node_port(network, point);
        let across = |bytes| across(between, &port, bytes);
        let knots = network.knots();
        [
            (latency(network, point), LimitCause::Latency),
            (passing(of_node, &knots, &port, across), LimitCause::Bandwidth),
            (passing_both(of_rank, network, procs), LimitCause::Bandwidth),
            (combining(inside, combined), LimitCause::Combining),
        ]
    })
}

/// Bytes that the port of some node must pass one way.
fn through_a_node(point: Point, root: Root) -> f64 {
    use BufferContent as B;
    let Point { collective, layout, .. } = point;
    let (bytes, nodes) = (point.bytes as f64, f64::from(layout.nodes()));
    let procs = u64::from(layout.procs());
    let most = |blocks: &dyn Fn(u64) -> u64| {
        let most = layout.counts().into_iter().map(|ranks| blocks(ranks.into())).max();
        most.unwrap_or(0) as f64 * bytes
    };
    match (collective.sends(), collective.receives()) {
        _ if collective == Collective::Allreduce => 2.0 * bytes * (nodes - 1.0) / nodes,
        (B::AllAtRoot, _) | (_, B::AllAtRoot) => {
            bytes * f64::from(layout.procs() - ranks_beside(layout, root))
        }
        (B::All, B::All) => most(&|ranks| ranks * (procs - ranks)),
        (B::All, _) | (_, B::All) => most(&|ranks| ranks.max(procs - ranks)),
        (_, B::Nothing) => 0.0,
        (_, B::Own | B::OwnAtRoot) => bytes,
    }
}

/// On the node of the root, which is one of them.
fn ranks_beside(layout: Layout, root: Root) -> u32 {
    let root = root.among(layout.procs());
    let node = layout.node_of(root).unwrap_or(0) as usize;
    layout.counts().get(node).copied().unwrap_or(0)
}

/// Until so many bytes have passed a port, in messages of whatever size: the last one is on its way
/// when the others have. Costs are lines between `knots`.
fn passing(
    bytes: f64,
    knots: &[u64],
    port: impl Fn(u64) -> f64,
    message: impl Fn(u64) -> f64,
) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let rate = min_rate(knots, bytes, port);
    let with_last = |size: u64| rate * (bytes - size as f64).max(0.0) + message(size);
    sizes(knots, bytes).map(with_last).fold(f64::INFINITY, f64::min)
}

/// Until so many bytes have passed the two ports of a rank together, of which one is inside its node and one
/// between nodes. While the last message is on its way through one, the other may go on.
fn passing_both(bytes: f64, network: &LevelledNetwork, procs: u32) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let LevelledNetwork { inside, between, .. } = network;
    let mut knots = network.knots();
    knots.extend(inside.memory.iter().flat_map(|memory| memory.knots()));
    knots.sort_unstable();
    let inside_busy = |size: u64| match &inside.memory {
        Some(memory) => memory.send(size).min(memory.receive(size)),
        None => port_seconds(inside, size, procs),
    };
    let inside_message = |size: u64| match &inside.memory {
        Some(memory) => memory.trip(size),
        None => message(inside, size),
    };
    let rates = [
        min_rate(&knots, bytes, inside_busy),
        min_rate(&knots, bytes, |size| port_seconds(between, size, procs)),
    ];
    if rates.contains(&0.0) {
        return 0.0;
    }
    let both = 1.0 / (1.0 / rates[0] + 1.0 / rates[1]);
    let with_last = |size: u64| {
        let last =
            (both / rates[0] * inside_message(size)).min(both / rates[1] * message(between, size));
        both * (bytes - size as f64).max(0.0) + last
    };
    sizes(&knots, bytes).map(with_last).fold(f64::INFINITY, f64::min)
}

/// Seconds for which a message keeps a node's port busy at least, with however many others.
fn node_port(network: &LevelledNetwork, point: Point) -> impl Fn(u64) -> f64 + '_ {
    let (procs, between) = (point.procs(), &network.between);
    let has_lone_rank = point.layout.counts().contains(&1);
    move |bytes| {
        let of_rank = port_seconds(between, bytes, procs);
        let of_node = network.shared_port().gap(bytes, 1);
        // To several at once a port may be quicker; a rank alone has the port for its own.
        let shared = of_node * (of_rank / between.gap(bytes, 1)).min(1.0);
        if has_lone_rank { shared.min(of_rank) } else { shared }
    }
}

/// From when a message can have the node's port for itself until it is there. Where one pair can't
/// fill the port, the message may have begun before: all of it but that part of its gap is left.
fn across(between: &Network, port: impl Fn(u64) -> f64, bytes: u64) -> f64 {
    let begun = (between.gap(bytes, 1) - port(bytes)).max(0.0);
    (message(between, bytes) - begun).max(0.0)
}

/// Until everybody has heard of the least that there can be, by messages of any size.
fn latency(network: &LevelledNetwork, point: Point) -> f64 {
    let between = LeastCosts::new(&network.between, point);
    let memory = network.inside.memory.as_ref().map(|memory| LeastOfMemory::new(memory, point));
    let (inside, in_pieces) = match memory {
        Some(LeastOfMemory { send, receive, trip, in_pieces }) => {
            (LeastCosts { send, receive, gap: 0.0, trip }, in_pieces)
        }
        None => (LeastCosts::new(&network.inside, point), f64::INFINITY),
    };
    let port_of = node_port(network, point);
    let knots = network.knots();
    // As with the bytes: several that are alone longer in their own ports may be so at once.
    let across = least_of(&knots, point, |bytes| across(&network.between, &port_of, bytes));
    let port = least_of(&knots, point, &port_of);
    let layout = point.layout;
    let fewest = layout.counts().into_iter().min().unwrap_or(1);
    // Those outside who tell the rest of a node are as one more rank that has heard with its first:
    // of what both spread from, half is to be reached by each.
    let half = fewest / 2 + 1;
    let spread = |overheads: [f64; 2]| {
        let trip = inside.trip.min(between.trip);
        // A rank sends by two ports, but has one processor.
        let of_ranks = spreading(layout.procs(), overheads[0].min(overheads[1]), trip, 0);
        let of_nodes = spreading(layout.nodes(), port, across, 0);
        let gap = inside.gap.max(overheads[0]);
        let in_the_last = spreading(half, gap.min(port), inside.trip.min(port), 0);
        of_ranks.max(of_nodes + in_the_last)
    };
    let out = spread([inside.send, between.send]);
    let back = spread([inside.receive, between.receive]);
    later_way(point.collective, out, back).min(in_pieces)
}
