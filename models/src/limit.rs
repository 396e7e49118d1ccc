//! The limit: what a collective takes at least on this network, by whatever algorithm.
//!
//! It is the greatest of three times, each of which no algorithm gets below:
//!
//! - *latency*: something of one rank must reach all others, or of all others one rank. At best
//!   everybody who knows sends to somebody new whenever the port is free (Karp, Sahay, Santos,
//!   Schauser, "Optimal broadcast and summation in the LogP model", SPAA'93).
//! - *bandwidth*: some rank's port must take in, or send out, so many bytes.
//! - *combining*: some rank must do its share of the arithmetic.
//!
//! | collective | bytes through a port | bytes combined |
//! |---|---|---|
//! | barrier | - | - |
//! | bcast | m | - |
//! | reduce | m | m (P - 1) / P |
//! | allreduce | 2 m (P - 1) / P | m (P - 1) / P |
//! | scan, exscan | m | m |
//! | `reduce_scatter`, block m | (P - 1) m | (P - 1) m |
//! | allgather, gather, scatter, alltoall, block m | (P - 1) m | - |
//!
//! One rank is taken to have one port, which passes one message at a time each way; where sending
//! to or receiving from several ranks at once was measured to be quicker, that counts. A time below
//! the limit says that this, or the calibration, is wrong: several network cards, or ranks that
//! share memory. The simulator can be quicker where sending keeps the processor busy for as long as the
//! port: there messages of several senders come side by side that one wire would bring one by one.

mod memory;
mod nodes;

use records::{BufferContent, Collective, Point};
use schedules::simulator::Costs as _;

use crate::{
    Predictor,
    parameters::{Network, PointToPointParameters},
    simulated::memory_of,
    spreading::spreading,
};
pub use nodes::limit_on_nodes;

/// What the limit of a point hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCause {
    /// How soon everybody can have heard of something.
    Latency,
    /// The bytes that one port must pass.
    Bandwidth,
    /// The bytes that all ranks of a node must copy through the memory that they share.
    Memory,
    /// The arithmetic of one rank.
    Combining,
}

impl LimitCause {
    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            LimitCause::Latency => "latency",
            LimitCause::Bandwidth => "bandwidth",
            LimitCause::Memory => "memory",
            LimitCause::Combining => "combining",
        }
    }
}

/// What a collective takes at least at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkLimit {
    /// In seconds.
    pub seconds: f64,
    /// Which of the bounds it is.
    pub cause: LimitCause,
}

/// The greatest number of bytes: beyond, costs are lines.
const FAR: u64 = 1 << 40;

impl Predictor {
    /// The limit at a point, by what predicts there; none where each algorithm has constants of its
    /// own, which tell nothing of others.
    pub fn limit(&self, point: Point) -> Option<NetworkLimit> {
        let predictor = self.at(point.layout);
        match predictor.levels() {
            Some(levels) => Some(limit_on_nodes(levels, point, predictor.root)),
            None => predictor.network().map(|network| limit(network, point)),
        }
    }
}

/// The limit at a point on a network; 0 on one process, and where nothing is sent.
pub fn limit(network: &Network, point: Point) -> NetworkLimit {
    if let Some(memory) = memory_of(network, point.procs()) {
        return memory::limit_in_memory(network, memory, point);
    }
    greatest(point, || {
        let (passing, combined) = work(point);
        [
            (latency(network, point), LimitCause::Latency),
            (bandwidth(network, passing, point.procs()), LimitCause::Bandwidth),
            (combining(network, combined), LimitCause::Combining),
        ]
    })
}

/// The greatest of the bounds, the first of equal ones; 0 on one process, and where nothing is sent.
fn greatest<const BOUNDS: usize>(
    point: Point,
    bounds: impl FnOnce() -> [(f64, LimitCause); BOUNDS],
) -> NetworkLimit {
    let nothing = NetworkLimit { seconds: 0.0, cause: LimitCause::Latency };
    let is_barrier = point.collective == Collective::Barrier;
    if point.procs() < 2 || (point.bytes == 0 && !is_barrier) {
        return nothing;
    }
    bounds().into_iter().fold(nothing, |most, (seconds, cause)| match seconds > most.seconds {
        true => NetworkLimit { seconds, cause },
        false => most,
    })
}

/// Bytes that some port must pass, and that some rank must combine.
fn work(point: Point) -> (f64, f64) {
    let (procs, bytes) = (f64::from(point.procs()), point.bytes as f64);
    let share = bytes * (procs - 1.0) / procs;
    let blocks = bytes * (procs - 1.0);
    match point.collective {
        Collective::Reduce => (bytes, share),
        Collective::Allreduce => (2.0 * share, share),
        // The last rank combines what all but one of the others have, at least once.
        Collective::Scan => (bytes, bytes),
        Collective::Exscan => (bytes, if point.procs() > 2 { bytes } else { 0.0 }),
        Collective::ReduceScatter | Collective::ReduceScatterBlock => (blocks, blocks),
        other => (other.data_bytes(point.bytes, point.procs() - 1) as f64, 0.0),
    }
}

/// Whether something of one rank must reach all others, and something of all others one rank.
fn directions(collective: Collective) -> (bool, bool) {
    match collective.receives() {
        BufferContent::OwnAtRoot | BufferContent::AllAtRoot => (false, true),
        _ => (true, !collective.is_rooted()),
    }
}

/// What a message costs at least, whatever its size, in seconds.
struct LeastCosts {
    send: f64,
    receive: f64,
    /// Of a port, with however many others.
    gap: f64,
    /// From the start of the send to the end of the receive.
    trip: f64,
}

impl LeastCosts {
    fn new(network: &Network, point: Point) -> Self {
        let knots = network.knots();
        let least = |of: &dyn Fn(u64) -> f64| least_of(&knots, point, of);
        LeastCosts {
            send: least(&|bytes| network.send_overhead(bytes)),
            receive: least(&|bytes| network.receive_overhead(bytes)),
            gap: least(&|bytes| port_seconds(network, bytes, point.procs())),
            trip: least(&|bytes| message(network, bytes)),
        }
    }
}

/// The least of a cost, a line between `knots`, over the sizes of messages that say something.
fn least_of(knots: &[u64], point: Point, of: impl Fn(u64) -> f64) -> f64 {
    let smallest = u64::from(point.collective != Collective::Barrier);
    let knots = knots.iter().copied().filter(|bytes| (smallest..=FAR).contains(bytes));
    knots.chain([smallest]).map(of).fold(f64::INFINITY, f64::min)
}

/// Until everybody has heard of the least that there can be, by messages of any size.
fn latency(network: &Network, point: Point) -> f64 {
    let LeastCosts { send, receive, gap, trip } = LeastCosts::new(network, point);
    let spreading = |overhead| spreading(point.procs(), gap.max(overhead), trip, 0);
    later_way(point.collective, spreading(send), spreading(receive))
}

/// The later of what must spread and what must be gathered. Read backwards, the messages of a
/// gathering spread: their receiver takes the sender's part.
fn later_way(collective: Collective, spread: f64, gathered: f64) -> f64 {
    let (outward, inward) = directions(collective);
    let taken = |is_there, seconds| if is_there { seconds } else { 0.0 };
    f64::max(taken(outward, spread), taken(inward, gathered))
}

/// Until so many bytes have passed one port, in messages of whatever size: the last one is on its way
/// beside.
fn bandwidth(network: &Network, bytes: f64, procs: u32) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let rate = min_rate(&network.knots(), bytes, |size| port_seconds(network, size, procs));
    match &network.model {
        // One message of all is the cheapest way; the first byte costs nothing.
        PointToPointParameters::Hockney(net) => net.message(bytes),
        PointToPointParameters::LogGp(net) => {
            let rest = (bytes - 1.0).max(0.0) * net.gap_per_byte.min(net.gap);
            net.latency + 2.0 * net.overhead + rest
        }
        PointToPointParameters::PLogP(net) => net.latency() + rate * bytes,
    }
}

/// The sizes of which messages of so many bytes in all may be, at one of which costs, lines between
/// `knots`, and rates are least.
fn sizes(knots: &[u64], bytes: f64) -> impl Iterator<Item = u64> {
    let whole = (bytes as u64).max(1);
    let knots = knots.iter().copied().filter(move |size| (1..whole).contains(size));
    knots.chain([1, whole])
}

/// The least that a byte costs, of so many in messages of whatever size.
fn min_rate(knots: &[u64], bytes: f64, of: impl Fn(u64) -> f64) -> f64 {
    sizes(knots, bytes).map(|size| of(size) / size as f64).fold(f64::INFINITY, f64::min)
}

/// Seconds that so many bytes take to combine, in pieces of whatever size.
fn combining(network: &Network, bytes: f64) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    bytes * min_rate(&network.knots(), bytes, |size| network.combine(size as f64))
}

/// Seconds for which a message keeps a port busy at least, whichever way and with however many others.
fn port_seconds(network: &Network, bytes: u64, procs: u32) -> f64 {
    let PointToPointParameters::PLogP(net) = &network.model else { return network.gap(bytes, 1) };
    let size = bytes as f64;
    let with = |partners: u32| {
        let gap = net.gap_to(size, partners).min(net.gap_from(size, partners));
        gap / f64::from(partners)
    };
    let partners = net.partners().filter(|partners| *partners < procs).chain([1, procs - 1]);
    partners.map(with).fold(f64::INFINITY, f64::min)
}

/// From the start of a send to the end of the receive.
fn message(network: &Network, bytes: u64) -> f64 {
    network.send_overhead(bytes) + network.flight(bytes) + network.receive_overhead(bytes)
}
