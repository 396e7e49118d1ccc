//! The limit of messages between ranks of one node, whose processors copy them through the memory that they share.
//!
//! Ports have no part in it. What holds, with p ranks and m bytes:
//!
//! - *latency*: as between nodes, but that a processor is busy in place of a port. Two messages that both go in
//!   pieces may be under way at once: where one such message is needed, that is all that is known.
//! - *bandwidth*: some rank's processor must copy in, or copy out, what elsewhere a port must pass.
//! - *memory*: all processors together must copy in and out, at the best number of busy ranks:
//!
//! | collective | bytes sent, and as many received |
//! |---|---|
//! | barrier | - |
//! | bcast, reduce, scan, exscan | m (p - 1) |
//! | allreduce | 2 m (p - 1) |
//! | gather, scatter, block m | m (p - 1) |
//! | `reduce_scatter`, allgather, alltoall, block m | m p (p - 1) |
//!
//! Where ranks share caches, messages within these may be under way on all of them at once, at nobody's cost.
//!
//! The simulator slows copies down by numbers of busy ranks that are up to 3 % old, and can be so much quicker.

use records::{BufferContent, Collective, Point};
use schedules::simulator::MemoryCosts as _;

use super::{LimitCause, NetworkLimit, combining, directions, greatest, later_way, sizes, work};
use crate::{
    parameters::{Network, NodeMemory},
    spreading::spreading,
};

/// The limit at a point whose ranks share this memory; 0 on one process, and where nothing is sent.
pub(super) fn limit_in_memory(
    network: &Network,
    memory: &NodeMemory,
    point: Point,
) -> NetworkLimit {
    greatest(point, || {
        let (of_rank, combined) = work(point);
        [
            (latency(memory, point), LimitCause::Latency),
            (of_one_processor(memory, point, of_rank), LimitCause::Bandwidth),
            (of_all_processors(memory, point), LimitCause::Memory),
            (combining(network, combined), LimitCause::Combining),
        ]
    })
}

/// Bytes that all ranks together must send at least.
fn sent(point: Point) -> f64 {
    use BufferContent as B;
    let Point { collective, bytes, .. } = point;
    let (procs, bytes) = (f64::from(point.procs()), bytes as f64);
    let once = bytes * (procs - 1.0);
    match (collective.sends(), collective.receives()) {
        // One-way gossip of each element.
        _ if collective == Collective::Allreduce => 2.0 * once,
        (_, B::Nothing) => 0.0,
        (B::All, _) | (_, B::All) => once * procs,
        _ => once,
    }
}

/// The least of the costs, in seconds, of messages of any size that says something.
pub(super) struct LeastOfMemory {
    pub send: f64,
    pub receive: f64,
    pub trip: f64,
    /// The trip of those that may go in pieces.
    pub in_pieces: f64,
}

impl LeastOfMemory {
    pub fn new(memory: &NodeMemory, point: Point) -> Self {
        let smallest = u64::from(point.collective != Collective::Barrier);
        let mut knots: Vec<u64> = memory.knots().filter(|bytes| *bytes > smallest).collect();
        knots.insert(0, smallest);
        let is_whole =
            |bytes: u64| memory.send(bytes) + memory.receive(bytes) <= memory.trip(bytes);
        // Between two sizes, and beyond the last, a message is whole only where it is so at the lower or the upper one.
        let pieces = knots.iter().enumerate().filter(|(index, bytes)| {
            !is_whole(**bytes) || knots.get(index + 1).is_some_and(|next| !is_whole(*next))
        });
        let in_pieces = pieces.map(|(_, bytes)| memory.trip(*bytes)).fold(f64::INFINITY, f64::min);
        let least =
            |of: &dyn Fn(u64) -> f64| knots.iter().copied().map(of).fold(f64::INFINITY, f64::min);
        LeastOfMemory {
            send: least(&|bytes| memory.send(bytes)),
            receive: least(&|bytes| memory.receive(bytes)),
            trip: least(&|bytes| memory.trip(bytes)),
            in_pieces,
        }
    }
}

/// Until everybody has heard of the least that there can be.
fn latency(memory: &NodeMemory, point: Point) -> f64 {
    let LeastOfMemory { send, receive, trip, in_pieces } = LeastOfMemory::new(memory, point);
    let spread = |busy| spreading(point.procs(), busy, trip, 0);
    later_way(point.collective, spread(send), spread(receive)).min(in_pieces)
}

/// Until some rank's processor has copied in, or out, so many bytes, in messages of whatever size.
fn of_one_processor(memory: &NodeMemory, point: Point, bytes: f64) -> f64 {
    let all: Vec<u64> = memory.knots().collect();
    let rate = |of: &dyn Fn(u64) -> f64| super::min_rate(&all, bytes, of);
    if bytes <= 0.0 {
        return 0.0;
    }
    let (inwards, outwards) = (rate(&|size| memory.send(size)), rate(&|size| memory.receive(size)));
    // Of a gathering nobody need send more than its own, of a scattering nobody need receive more.
    let busiest = match (point.collective.sends(), point.collective.receives()) {
        (BufferContent::AllAtRoot, _) | (_, BufferContent::AllAtRoot) => {
            match directions(point.collective) {
                (true, _) => inwards,
                _ => outwards,
            }
        }
        _ => inwards.max(outwards),
    };
    busiest * bytes
}

/// Until the processors together have copied everything in and out, in messages of whatever size.
fn of_all_processors(memory: &NodeMemory, point: Point) -> f64 {
    let bytes = sent(point);
    if bytes <= 0.0 {
        return 0.0;
    }
    let mut knots: Vec<u64> = memory.knots_of_slowdown().collect();
    knots.extend(memory.knots());
    let mut sizes: Vec<u64> = sizes(&knots, bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let copied = |size: u64| (memory.send(size) + memory.receive(size)) / size as f64;
    let shared = |size: u64| {
        if memory.has_caches() {
            return 1.0 / f64::from(point.procs());
        }
        let busy = memory.rows_of_slowdown(point.procs());
        let part = busy.map(|busy| memory.slowdown(size, busy) / busy);
        part.fold(f64::INFINITY, f64::min)
    };
    // Between two sizes each is least at one of them.
    let least = |of: &dyn Fn(u64) -> f64, ends: &[u64]| {
        ends.iter().copied().map(of).fold(f64::INFINITY, f64::min)
    };
    let between = |ends: &[u64]| least(&copied, ends) * least(&shared, ends);
    let ranges = sizes.windows(2).map(between);
    bytes * ranges.chain(sizes.last().map(|size| between(&[*size]))).fold(f64::INFINITY, f64::min)
}
