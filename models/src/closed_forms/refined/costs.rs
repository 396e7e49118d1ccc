//! Costs of messages of one size, and of rounds of exchanges.

use super::super::shape::CallShape;
use crate::parameters::{Network, PointToPointParameters};

/// Costs of messages of one size, in seconds; the symbols are defined in [`refined`](super).
#[derive(Debug, Clone, Copy)]
pub(super) struct RefinedCosts {
    pub bytes: f64,
    /// M: from the start of the send to the end of the receive.
    pub message: f64,
    /// s: the sender's overhead.
    pub send: f64,
    /// r: the receiver's overhead.
    pub receive: f64,
    /// g: the gap between two messages.
    pub gap: f64,
    /// y: combining two messages.
    pub combine: f64,
    /// phi: the part of a message that is its last frame, and leaves whole where others leave at the same time;
    /// 1 where messages leave in turn.
    pub last_frame: f64,
}

impl RefinedCosts {
    pub fn from_network(network: &Network, bytes: f64) -> Self {
        let combine = network.combine(bytes);
        let (latency, send, receive, gap) = match &network.model {
            PointToPointParameters::Hockney(net) => {
                (0.0, net.message(bytes), 0.0, net.message(bytes))
            }
            PointToPointParameters::LogGp(net) => {
                let latency = net.latency + 2.0 * net.overhead - net.gap;
                (latency, net.overhead, net.overhead, net.gap(bytes))
            }
            PointToPointParameters::PLogP(net) => {
                let costs = net.at(bytes);
                (net.latency() + net.transit(bytes), costs.send, costs.receive, costs.gap)
            }
        };
        let message = (latency + gap).max(send + receive);
        let last_frame = network.frame().map_or(1.0, |frame| (frame as f64 / bytes).min(1.0));
        RefinedCosts { bytes, message, send, receive, gap, combine, last_frame }
    }

    /// Of one segment of a call.
    pub fn of_segment(network: &Network, shape: &CallShape) -> Self {
        RefinedCosts::from_network(network, shape.segment_bytes())
    }

    /// g(m, k) / k: the gap of one message among those to k partners.
    pub fn gap_each(&self, network: &Network, partners: u32) -> f64 {
        match &network.model {
            PointToPointParameters::PLogP(net) if partners > 1 => {
                net.gap_to_by(self.gap, self.bytes, partners) / f64::from(partners)
            }
            _ => self.gap,
        }
    }

    /// e(k): between the starts of two sends of a rank that sends to k partners.
    pub fn each(&self, network: &Network, partners: u32) -> f64 {
        self.send.max(self.gap_each(network, partners))
    }

    /// By how much later than alone the message of that place (from 0) has left, of several to as many ranks
    /// at once: (k - 1) (1 - phi) e + i phi e, since all but the last frames leave together. Where `each` is
    /// the processor's time they leave in turn, i e.
    pub fn served(&self, each: f64, place: u32, children: u32) -> f64 {
        let frame = if each > self.send { each * self.last_frame } else { each };
        f64::from(children.max(1) - 1) * (each - frame) + f64::from(place) * frame
    }

    /// Between the ends of two messages that a rank combines, of several that come at once:
    /// (1 - phi) g + max(phi g, r + y).
    pub fn taken_at_once(&self) -> f64 {
        let frame = self.gap * self.last_frame;
        self.gap - frame + frame.max(self.receive + self.combine)
    }

    /// Between the ends of two messages that a rank receives and combines: max(g, r + y).
    pub fn taken(&self) -> f64 {
        self.gap.max(self.receive + self.combine)
    }

    /// A message and its combination: M + y.
    pub fn combined(&self) -> f64 {
        self.message + self.combine
    }
}

/// e(c) by the number of children c, each computed once: it takes most of the time to evaluate a tree.
pub(super) struct EachByChildren<'a> {
    costs: &'a RefinedCosts,
    network: &'a Network,
    known: [f64; MAX_CHILDREN],
}

/// More than any rank of a k-nomial tree of fan-out 4 has; of greater ones each is found anew.
const MAX_CHILDREN: usize = 64;

impl<'a> EachByChildren<'a> {
    pub fn new(costs: &'a RefinedCosts, network: &'a Network) -> Self {
        EachByChildren { costs, network, known: [f64::NAN; MAX_CHILDREN] }
    }

    pub fn seconds(&mut self, children: u32) -> f64 {
        let Some(known) = self.known.get_mut(children as usize) else {
            return self.costs.each(self.network, children);
        };
        if known.is_nan() {
            *known = self.costs.each(self.network, children);
        }
        *known
    }
}

/// A cost of messages of so many bytes by its symbol; `partners` is k in e(k).
pub(in super::super) fn symbol(
    network: &Network,
    bytes: f64,
    name: &str,
    partners: u32,
) -> Option<f64> {
    let costs = RefinedCosts::from_network(network, bytes);
    match name {
        "M" => Some(costs.message),
        "s" => Some(costs.send),
        "r" => Some(costs.receive),
        "g" => Some(costs.gap),
        "y" => Some(costs.combine),
        "e" => Some(costs.each(network, partners)),
        _ => None,
    }
}

/// Ranks that exchange a message each, round after round, all at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rounds {
    /// The processors' time, in seconds.
    pub clock: f64,
    /// When the outgoing ports are free.
    sent: f64,
    /// When the incoming ports are free.
    passed: f64,
}

impl Rounds {
    /// A round of messages of such costs, which takes M if those before were not much larger.
    pub fn exchange(&mut self, costs: &RefinedCosts) {
        let begin = self.clock.max(self.sent);
        self.sent = begin + costs.gap;
        let left = begin + costs.send;
        let passes = left.max(self.passed);
        self.passed = passes + costs.gap;
        let flight = costs.message - costs.send - costs.receive;
        self.clock = passes + flight + costs.receive;
    }

    /// As [`Rounds::exchange`], of several messages at once, to as many ranks.
    pub fn exchange_all(&mut self, network: &Network, messages: &[RefinedCosts]) {
        let mut arrivals = Vec::with_capacity(messages.len());
        for costs in messages {
            let begin = self.clock.max(self.sent);
            self.sent = begin + costs.gap_each(network, messages.len() as u32);
            self.clock = begin + costs.send;
            let passes = self.clock.max(self.passed);
            self.passed = passes + costs.gap;
            let flight = costs.message - costs.send - costs.receive;
            arrivals.push((passes + flight, costs.receive));
        }
        for (arrived, receive) in arrivals {
            self.clock = self.clock.max(arrived) + receive;
        }
    }

    /// As [`Rounds::exchange`]; what comes is combined.
    pub fn combine(&mut self, costs: &RefinedCosts) {
        self.exchange(costs);
        self.clock += costs.combine;
    }
}

/// ceil(lg n) of a number of ranks: children of a binomial tree's root.
pub(super) fn rounds(ranks: u32) -> u32 {
    u32::BITS - ranks.saturating_sub(1).leading_zeros()
}

/// floor(lg P), and by how much P exceeds that power of two.
pub(super) fn folded(ranks: u32) -> (u32, u32) {
    let levels = ranks.ilog2();
    (levels, ranks - (1 << levels))
}
